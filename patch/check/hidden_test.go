package check

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestHiddenOperand looks for hidden operands in our cubins: on sm_80 to sm_89 they are
// the descriptor registers of memory instructions and nothing else, from sm_90 on there
// are none.
func TestHiddenOperand(t *testing.T) {
	for _, arch := range []string{"sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"} {
		files, err := filepath.Glob("../../testdata/cubin/new/" + arch + "/*.cubin")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d cubins: %v", arch, len(files), err)
		}
		hidden := 0
		for _, name := range files {
			target := patchtest.OpenCubin(t, name)
			for i := range target.Cubin.Kernels() {
				data := target.Cubin.Kernels()[i].Data()
				for off := 0; off < len(data); off += isa.WordSize {
					in := target.Table.Decode(isa.LoadWord(data[off:]))
					if in.Status != isa.StatusKnown || !in.HidesOperand() {
						continue
					}
					hidden++
					if text := target.Table.Text(in, 0); !strings.Contains(text, "[R") && !strings.Contains(text, "[UR") {
						t.Errorf("%s: %s hides an operand", arch, text)
					}
				}
			}
		}
		if old := arch == "sm_80" || arch == "sm_86"; old != (hidden > 0) && hasTable(t, arch) {
			t.Errorf("%s: %d hidden operands", arch, hidden)
		}
	}
}

// hasTable reports whether the architecture has a table of its own.
func hasTable(t *testing.T, arch string) bool {
	t.Helper()
	a, err := isa.ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	_, err = isa.Load(a)
	return err == nil
}
