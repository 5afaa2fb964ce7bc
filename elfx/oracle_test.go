package elfx

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// cubins returns the paths of the cubins of the test data that cuobjdump 13 reads.
func cubins(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(filepath.Join("..", "testdata", "cubin"), func(p string, d fs.DirEntry, err error) error {
		old := strings.Contains(p, "sm_70") || strings.Contains(p, "sm_72")
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".cubin") && !old {
			out = append(out, p)
		}
		return err
	})
	if err != nil || len(out) < 50 {
		t.Fatalf("%d cubins in testdata, %v", len(out), err)
	}
	return out
}

// TestAgainstCuobjdump compares resources, architecture, toolkit and every attribute
// with what cuobjdump prints, on every cubin of the test data.
func TestAgainstCuobjdump(t *testing.T) {
	oracletest.Tool(t, "cuobjdump")
	for _, path := range cubins(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(path), "../testdata/cubin/"), func(t *testing.T) {
			t.Parallel()
			c := parse(t, mustRead(t, strings.TrimPrefix(filepath.ToSlash(path), "../testdata/")))
			// cuobjdump fails on cubins with surfaces: "elf section not found".
			if !strings.Contains(path, "surface") {
				compareResources(t, c, string(oracletest.Run(t, "cuobjdump", "-res-usage", path)))
			}
			dump := string(oracletest.Run(t, "cuobjdump", "-elf", path))
			compareHeader(t, c, dump)
			compareAttributes(t, c, dump)
			compareRelocs(t, c, dump)
		})
	}
}

var (
	resLine    = regexp.MustCompile(`(?m)^ Function (\S+):\n  REG:(\d+) STACK:(\w+) SHARED:(\d+) LOCAL:(\d+)(?:.*CONSTANT\[0\]:(\d+))?`)
	headerLine = regexp.MustCompile(`type=(\w+), .*(?i:abi)=(\d+), sm=(\w+), toolkit=([\d.]+)`)
	sectLine   = regexp.MustCompile(`^\s*([0-9a-f]+)\s+([0-9a-f]+)\s+([0-9a-f]+)\s+[0-9a-f]+\s+[0-9a-f]+\s+.*\s(\.\S+)$`)
)

func compareResources(t *testing.T, c *Cubin, out string) {
	got := map[string]string{}
	for _, k := range c.Kernels() {
		stack := strconv.Itoa(k.Stack)
		if k.Stack < 0 {
			stack = "UNKNOWN"
		}
		regs := k.Regs
		if c.SM >= 90 && !k.Entry {
			regs = 0 // cuobjdump does not look at REGCOUNT for device functions
		}
		got[k.Name] = fmt.Sprintf("%d %s %d %d %d", regs, stack, k.Shared, k.Local, k.Constant)
	}
	n := 0
	for _, m := range resLine.FindAllStringSubmatch(out, -1) {
		n++
		if m[6] == "" {
			m[6] = "0"
		}
		if want := strings.Join(m[2:], " "); got[m[1]] != want {
			t.Errorf("%s: registers, stack, shared, local, constant are %s, want %s", m[1], got[m[1]], want)
		}
	}
	if n != len(got) {
		t.Errorf("%d kernels, cuobjdump has %d", len(got), n)
	}
}

func compareHeader(t *testing.T, c *Cubin, dump string) {
	m := headerLine.FindStringSubmatch(dump)
	if m == nil {
		t.Fatalf("no header line in %.200q", dump)
	}
	toolkit := m[4]
	if !strings.Contains(toolkit, ".") { // 129
		toolkit = toolkit[:len(toolkit)-1] + "." + toolkit[len(toolkit)-1:]
	}
	typ := map[string]uint16{"1": 1, "2": 2, "ET_REL": 1, "ET_EXEC": 2}[m[1]]
	if c.Type != typ || strconv.Itoa(int(c.ABI)) != m[2] || c.Arch != "sm_"+m[3] || c.Toolkit != toolkit {
		t.Errorf("type %d, ABI %d, %s, toolkit %s; cuobjdump: %q", c.Type, c.ABI, c.Arch, c.Toolkit, m[0])
	}
	n := 0
	for _, line := range strings.Split(dump, "\n") {
		m := sectLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		index, _ := strconv.ParseUint(m[1], 16, 32)
		off, _ := strconv.ParseInt(m[2], 16, 64)
		size, _ := strconv.ParseUint(m[3], 16, 64)
		if int(index) >= len(c.Sections()) {
			t.Errorf("no section %d", index)
			continue
		}
		n++
		if s := c.Sections()[index]; s.Name != m[4] || s.Offset != off || s.Size != size {
			t.Errorf("section %d: %s at 0x%x, size 0x%x; want %s at 0x%x, size 0x%x", index, s.Name, s.Offset, s.Size, m[4], off, size)
		}
	}
	if n != len(c.Sections())-1 {
		t.Errorf("%d sections, cuobjdump lists %d", len(c.Sections())-1, n)
	}
}

// attributes cuts the names of the attributes out of cuobjdump's dump, by section.
func attributes(dump string) map[string][]string {
	out := map[string][]string{}
	section := ""
	for _, line := range strings.Split(dump, "\n") {
		if strings.HasPrefix(line, ".") {
			section = strings.TrimSpace(line)
		}
		if name, ok := strings.CutPrefix(line, "\tAttribute:\t"); ok {
			out[section] = append(out[section], strings.TrimPrefix(name, "EIATTR_"))
		}
	}
	return out
}

func compareAttributes(t *testing.T, c *Cubin, dump string) {
	want := attributes(dump)
	check := func(section string, attrs []Attr) {
		if len(attrs) != len(want[section]) {
			t.Errorf("%s: %d attributes, cuobjdump has %d", section, len(attrs), len(want[section]))
			return
		}
		for i, a := range attrs {
			name := want[section][i]
			if name == "unknown Attribute" {
				continue
			}
			if a.Name() != name {
				t.Errorf("%s: attribute %d is %s, want %s", section, i, a.Name(), name)
			}
		}
	}
	check(".nv.info", c.Info())
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		check(".nv.info."+k.Name, k.Info())
		exits := regexp.MustCompile(`(?s)\n\.nv\.info\.` + regexp.QuoteMeta(k.Name) + `\n.*?EXIT_INSTR_OFFSETS\n\tFormat:\tEIFMT_SVAL\n\tValue:\t([^\n]*)`).FindStringSubmatch(dump)
		offsets := k.InfoOffsets()
		if exits == nil || !strings.Contains(strings.Join(want[".nv.info."+k.Name], " "), "EXIT_INSTR_OFFSETS") {
			continue
		}
		for _, f := range strings.Fields(exits[1]) {
			off, err := strconv.ParseUint(f, 0, 32)
			if err != nil || !strings.Contains(strings.Join(offsets[off], " "), "EXIT_INSTR_OFFSETS") {
				t.Errorf("%s: exit at %s is not among the listed offsets", k.Name, f)
			}
		}
	}
}

var relocLine = regexp.MustCompile(`(?m)^\s*(0x[0-9a-f]+|\d+)\s+(\S+)\s+(R_\w+)`)

// compareRelocs compares the offsets and symbols of each kernel's relocations.
func compareRelocs(t *testing.T, c *Cubin, dump string) {
	want := map[string]int{}
	for _, p := range strings.Split(dump, "\n.section .rel")[1:] {
		name, rest, _ := strings.Cut(p, "\t")
		name, ok := strings.CutPrefix(strings.TrimPrefix(name, "a"), ".text.")
		rest, _, _ = strings.Cut(rest, "\n\n")
		if !ok {
			continue
		}
		for _, l := range relocLine.FindAllStringSubmatch(rest, -1) {
			off, _ := strconv.ParseUint(l[1], 0, 64)
			want[fmt.Sprintf("%s+%#x %s", name, off, l[2])]++
		}
	}
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		for _, r := range k.Relocs() {
			want[fmt.Sprintf("%s+%#x %s", k.Name, r.Offset, r.Symbol)]--
		}
	}
	for key, n := range want {
		if n != 0 {
			t.Errorf("relocation %s: %d more in cuobjdump's list than in ours", key, n)
		}
	}
}
