package stats_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/stats"
)

const root = "../.."

// everyKernel calls fn for each kernel of testdata.
func everyKernel(t *testing.T, fn func(path string, target *code.Target, c *code.Kernel)) {
	t.Helper()
	files, err := filepath.Glob(root + "/testdata/cubin/*/*/*.cubin")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d cubins: %v", len(files), err)
	}
	for _, name := range files {
		target := patchtest.OpenCubin(t, name)
		for i := range target.Cubin.Kernels() {
			fn(strings.TrimPrefix(filepath.ToSlash(name), root+"/"), target, target.Kernel(&target.Cubin.Kernels()[i]))
		}
	}
}

// readSpills returns what ptxas -v says of stores and loads, by cubin and function.
func readSpills(t *testing.T) map[string][2]int {
	t.Helper()
	text, err := os.ReadFile("testdata/spills.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][2]int{}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		cols := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") {
			continue
		}
		stores, err1 := strconv.Atoi(cols[3])
		loads, err2 := strconv.Atoi(cols[4])
		if err1 != nil || err2 != nil {
			t.Fatal(line)
		}
		out[cols[0]+" "+cols[1]] = [2]int{stores, loads}
	}
	return out
}

// TestSpills compares spills with those that ptxas -v reports of the same compilation, for
// a kernel and its device functions together.
func TestSpills(t *testing.T) {
	want := readSpills(t)
	told, spilled := 0, 0
	everyKernel(t, func(path string, target *code.Target, c *code.Kernel) {
		l := stats.Describe(target.Table, c).Local
		sum := want[path+" "+c.Name]
		for _, f := range c.Functions() {
			if name, ok := strings.CutPrefix(f.Name, "$"+c.Name+"$"); ok {
				sum[0] += want[path+" "+name][0]
				sum[1] += want[path+" "+name][1]
			}
		}
		if l.SpillStores == nil {
			if sum != [2]int{} {
				t.Errorf("%s %s: spills are not told, ptxas %d", path, c.Name, sum)
			}
			return
		}
		told++
		if sum[0] > 0 {
			spilled++
		}
		if got := [2]int{*l.SpillStores, *l.SpillLoads}; got != sum {
			t.Errorf("%s %s: spills %d, ptxas %d", path, c.Name, got, sum)
		}
		if l.Stores != sum[0] || l.Loads != sum[1] {
			t.Errorf("%s %s: %d stored, %d loaded, and nothing but spills", path, c.Name, l.Stores, l.Loads)
		}
	})
	if told < 500 || spilled < 20 {
		t.Errorf("spills of %d kernels, %d with some", told, spilled)
	}
}

// TestReuseOfCompiler sees that what ptxas marks for reuse is what the rule takes from the
// cache: all flags of testdata but a few.
func TestReuseOfCompiler(t *testing.T) {
	flags, taken := 0, 0
	everyKernel(t, func(_ string, target *code.Target, c *code.Kernel) {
		s := stats.New()
		s.Count(target.Table, c.Data)
		flags += s.Reuse
		taken += stats.Describe(target.Table, c).Reuse.Taken
	})
	t.Logf("%d of %d flags", taken, flags)
	if taken > flags || taken*100 < flags*98 || flags < 5000 {
		t.Errorf("%d operands from the cache, %d flags", taken, flags)
	}
}

// TestSources counts conflicts and chances in code made for it.
func TestSources(t *testing.T) {
	for _, c := range []struct {
		arch, code, want string
	}{
		{"sm_75", "FFMA R0, R1, R3, R5", "1 conflicts true, 0 taken 0 missed"},
		{"sm_75", "FFMA R0, R2, R4, R6", "1 conflicts true, 0 taken 0 missed"},
		{"sm_75", "FFMA R0, R1, R3, R6", "0 conflicts true, 0 taken 0 missed"},
		{"sm_75", "FFMA R0, R1, R3, R3", "0 conflicts true, 0 taken 0 missed"}, // the same register twice
		{"sm_75", "FFMA R0, R1, R3, RZ", "0 conflicts true, 0 taken 0 missed"},
		{"sm_75", "DFMA R0, R2, R4, R6", "0 conflicts true, 0 taken 0 missed"}, // in both banks
		{"sm_75", "FFMA R0, R1, R3, 1.5", "0 conflicts true, 0 taken 0 missed"},
		{"sm_90", "FFMA R0, R1, R3, R5", "1 conflicts false, 0 taken 0 missed"},
		{"sm_90", "FFMA R0, R2, R9.reuse, R6\nFFMA R10, R11, R9, R5", "0 conflicts false, 1 taken 0 missed"},
		{"sm_90", "FFMA R0, R2, R9.reuse, R6\nFFMA R10, R9, R11, R5", "1 conflicts false, 0 taken 0 missed"},                         // another slot
		{"sm_90", "FFMA R0, R2, R9.reuse, R6\nFFMA R20, R21, R22, RZ\nFFMA R10, R11, R9, R5", "0 conflicts false, 1 taken 0 missed"}, // another bank between
		{"sm_90", "FFMA R0, R2, R9.reuse, R6\nFFMA R20, R21, R23, RZ\nFFMA R10, R11, R9, R5", "1 conflicts false, 0 taken 0 missed"}, // the same bank between
		{"sm_90", "FFMA R0, R2, R9.reuse, R6\nMOV R9, 0x5\nFFMA R10, R11, R9, R5", "1 conflicts false, 0 taken 0 missed"},            // written between
		{"sm_90", "FFMA R0, R2, R9, R6\nFFMA R10, R12, R9, R5", "0 conflicts false, 0 taken 1 missed"},
		{"sm_90", "FFMA R9, R2, R9, R6\nFFMA R10, R12, R9, R5", "0 conflicts false, 0 taken 0 missed"}, // written by the first
		{"sm_90", "[B------:R-:W-:Y:S04] FFMA R0, R2, R9, R6\nFFMA R10, R12, R9, R5", "0 conflicts false, 0 taken 0 missed"},
		{"sm_90", "IMAD R0, R2, R9.reuse, c[0x0][0x210]\nFFMA R10, R12, R9, R5", "0 conflicts false, 1 taken 0 missed"},
		{"sm_90", "LOP3.LUT R0, R2.reuse, 0x1, RZ, 0xc0, !PT\nLOP3.LUT R3, R2, 0x2, R5.reuse, 0xc0, !PT\nLOP3.LUT R3, R6, 0x2, R5, 0xc0, !PT", "0 conflicts false, 2 taken 0 missed"},
		{"sm_90", "FFMA R0, R2, R9.reuse, R6\nBRA 0x20\nFFMA R10, R11, R9, R5", "1 conflicts false, 0 taken 0 missed"}, // another block
	} {
		table := patchtest.Table(t, c.arch)
		d := stats.Describe(table, &code.Kernel{Name: "k", Data: patchtest.Code(t, table, c.code)})
		got := fmt.Sprintf("%d conflicts %t, %d taken %d missed", d.Banks.Conflicts, d.Banks.Measured, d.Reuse.Taken, d.Reuse.Missed)
		if got != c.want {
			t.Errorf("%s:\n%s\n%s, want %s", c.arch, c.code, got, c.want)
		}
	}
}

// TestDetails describes a kernel with a loop in a loop, made by hand.
func TestDetails(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	lines := "MOV R5, 0x1\nIADD3 R2, R5, R5, RZ\nIADD3 R3, R2, R5, RZ\nFADD R4, R3, R2\n@P0 BRA 0x20\nSTG.E desc[UR4][R2.64], R4\n@P1 BRA 0x10\nEXIT"
	d := stats.Describe(table, &code.Kernel{Name: "k", Data: patchtest.Code(t, table, patchtest.Lines(lines))})
	want := "[{1 16 - 6 map[BRA:2 FADD:1 IADD3:2 STG:1]} {2 32 0 3 map[BRA:1 FADD:1 IADD3:1]}]"
	var loops []string
	for _, l := range d.Loops {
		parent := "-"
		if l.Parent != nil {
			parent = strconv.Itoa(*l.Parent)
		}
		loops = append(loops, fmt.Sprintf("{%d %d %s %d %v}", l.Depth, l.Header, parent, l.Instructions, l.Opcodes))
	}
	if got := fmt.Sprint(loops); got != want {
		t.Errorf("loops %s, want %s", got, want)
	}
	// R2, R3, R4 and R5 from the FADD on; P0, P1, UR4 and UR5 from the start.
	if got, want := fmt.Sprintf("%+v", d.Pressure), "{R:{Registers:4 PC:48} UR:{Registers:2 PC:0} P:{Registers:2 PC:0} UP:{Registers:0 PC:0}}"; got != want {
		t.Errorf("pressure %s, want %s", got, want)
	}
}

// TestArray sees that spills are not told where the stack has another use.
func TestArray(t *testing.T) {
	table := patchtest.Table(t, "sm_90")
	for text, want := range map[string]string{
		"STL [R1+0x8], R4\nLDL R5, [R1+0x8]":                          "4 4 spills 4 4",
		"STL.64 [R1], R4\nLDL R4, [R1]\nLDL R4, [R1+0x4]":             "8 8 spills 8 8",
		"STL.64 [R1], R4\nLDL R4, [R1]":                               "8 4",
		"STL.64 [R1], R4\nLDL.64 R4, [R1]":                            "8 8 spills 8 8",
		"IADD3 R1, R1, -0x10, RZ\nSTL [R1+0x8], R4\nLDL R5, [R1+0x8]": "4 4 spills 4 4",
		"STL [R1+0x8], R4":                                            "4 0", // read by something else
		"STL.U8 [R1+0x8], R4":                                         "1 0",
		"STL [R1+0x8], R4\nLDL R5, [R6]":                              "4 4",
		"STL [R1+0x8], R4\nIADD3 R6, R1, 0x10, RZ":                    "4 0",
		"NOP": "0 0 spills 0 0",
	} {
		l := stats.Describe(table, &code.Kernel{Name: "k", Data: patchtest.Code(t, table, patchtest.Lines(text))}).Local
		got := fmt.Sprint(l.Stores, l.Loads)
		if l.SpillStores != nil {
			got += fmt.Sprint(" spills ", *l.SpillStores, " ", *l.SpillLoads)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
