package shape

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/scripts/nv/oracle"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// marked is a NOP that nvdisasm tells from others: it has a guard, which reads nothing.
func marked(tb testing.TB, t *code.Target) isa.Word {
	tb.Helper()
	w, err := t.Table.Encode("@!PT NOP", 0, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return isa.DefaultControl.Set(w)
}

// nvlines returns what nvdisasm says of a cubin, without addresses, and without the lines
// that the marked NOP has; found counts those.
func nvlines(tb testing.TB, tool, path string, args ...string) (out []string, found int) {
	tb.Helper()
	text := string(oracletest.Run(tb, tool, append(args, path)...))
	text = graph.Replace(text)
	for _, s := range strings.Split(text, "\n") {
		s = strings.TrimRight(addresses.ReplaceAllString(s, ""), " \t")
		switch {
		case strings.Contains(s, "@!PT NOP"):
			found++
		case s == "" || strings.HasSuffix(s, "NOP ;") || strings.HasSuffix(s, "NOP;"): // those at the end
		default:
			out = append(out, s)
		}
	}
	return out, found
}

// graph splits the blocks of a flow graph into lines.
var graph = strings.NewReplacer(`\l`, "\n", `\ `, " ", `<entry>`, "\n", `|<exit0>`, "\n")

var (
	addresses = regexp.MustCompile(`/\*[0-9a-f]{4,5}\*/ *|(?:^|\s)//## .*inlined_at.*pc.*`)
	number    = regexp.MustCompile(`-?0x[0-9a-f]+`)
	holders   = regexp.MustCompile(`\b(MOV|BRX|BRXU|IMAD\.MOV\.U32) `)
)

// sameButMoved reports whether a line of the old cubin became one of the new by an
// instruction more at pc: numbers that are addresses count on.
func sameButMoved(a, b string, pc int64) bool {
	if a == b {
		return true
	}
	x, y := number.FindAllString(a, -1), number.FindAllString(b, -1)
	if !holders.MatchString(a) || number.ReplaceAllString(a, "#") != number.ReplaceAllString(b, "#") || len(x) != len(y) {
		return false
	}
	for i := range x {
		p, err1 := strconv.ParseInt(x[i], 0, 64)
		q, err2 := strconv.ParseInt(y[i], 0, 64)
		if err1 != nil || err2 != nil || p != q && !(q == p+isa.WordSize && p >= pc) && !(p < 0 && q == p-isa.WordSize) {
			return false
		}
	}
	return true
}

// views are the questions to nvdisasm: the code with labels, symbols and source lines, the
// flow graph, and the life ranges of registers.
var views = []struct {
	args []string
	new  bool // of the new ELF layout only
}{{[]string{"-c", "-g"}, false}, {[]string{"-c", "-gp"}, false}, {[]string{"-bbcfg"}, false}, {[]string{"-c", "-plr", "-lrm", "narrow"}, true}}

// What nvdisasm says of a kernel with a NOP more is what it said before, and the NOP.
func TestInsertedAgainstNvdisasm(t *testing.T) {
	dir := t.TempDir()
	tried := 0
	eachCubin(t, func(path string, x *code.Target) {
		tool := oracle.Current("nvdisasm", x.Cubin.Arch)
		name := filepath.Base(path)
		few := []string{"calls.cubin", "inline.cubin"}
		if !long() && (!slices.Contains(few, name) || x.Cubin.Arch != "sm_90") {
			return
		}
		for ki := range x.Cubin.Kernels() {
			k := &x.Cubin.Kernels()[ki]
			n := int(k.Size) / isa.WordSize
			for step := range 5 {
				if !long() && (step != (tried+ki)%5 || tried >= 4) {
					continue
				}
				i := n * step / 5
				now, err := Apply(x.Cubin.Data(), []edit.Edit{inserted(k, i, marked(t, x), step%2 == 1)})
				if err != nil {
					t.Fatalf("%s: kernel %s at %#x: %v", path, k.Name, i*isa.WordSize, err)
				}
				to := filepath.Join(dir, "now.cubin")
				if err := os.WriteFile(to, now, 0o644); err != nil {
					t.Fatal(err)
				}
				where := fmt.Sprintf("%s: kernel %s at %#x", path, k.Name, i*isa.WordSize)
				compareViews(t, where, tool, path, to, int64(i)*isa.WordSize, x.Cubin.Layout == elfx.LayoutNew)
				compareAttributes(t, where, k, &open(t, now).Cubin.Kernels()[ki], uint64(i)*isa.WordSize)
				tried++
			}
		}
	})
	t.Log(tried, "places")
}

func compareViews(t *testing.T, where, tool, old, now string, pc int64, newLayout bool) {
	t.Helper()
	for _, v := range views {
		if (v.new && !newLayout || len(v.args) != 2 || v.args[1] != "-g") && !long() {
			continue
		}
		a, _ := nvlines(t, tool, old, v.args...)
		b, found := nvlines(t, tool, now, v.args...)
		if found == 0 && v.args[0] == "-c" && len(v.args) == 2 { // the others leave unreachable code out
			t.Errorf("%s: nvdisasm %v shows no NOP", where, v.args)
		}
		for i := range max(len(a), len(b)) {
			if i >= len(a) || i >= len(b) {
				t.Errorf("%s: nvdisasm %v: %d lines instead of %d", where, v.args, len(b), len(a))
				break
			}
			if !sameButMoved(a[i], b[i], pc) {
				t.Errorf("%s: nvdisasm %v:\n was %s\n now %s", where, v.args, a[i], b[i])
				break
			}
		}
	}
}

// compareAttributes sees that attributes list the instructions that they listed.
func compareAttributes(t *testing.T, where string, old, now *elfx.Kernel, pc uint64) {
	t.Helper()
	list := func(k *elfx.Kernel, more func(uint64) uint64) (out []string) {
		for _, a := range k.Info() {
			a.InstrOffsets(func(word int, off uint64) { out = append(out, fmt.Sprintf("%s %d %#x", a.Name(), word, more(off))) })
		}
		return out
	}
	want := list(old, func(off uint64) uint64 {
		if off >= pc {
			off += isa.WordSize
		}
		return off
	})
	got := list(now, func(off uint64) uint64 { return off })
	for i := range want {
		if i >= len(got) || got[i] != want[i] && !strings.Contains(want[i], "INDIRECT") {
			t.Errorf("%s: attributes %v, want %v", where, got, want)
			return
		}
	}
}
