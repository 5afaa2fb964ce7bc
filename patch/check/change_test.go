package check

import (
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// TestReuseShows sees that the flags which ptxas sets show in the text:
// else the refusal would be wrong.
func TestReuseShows(t *testing.T) {
	files, err := filepath.Glob("../../testdata/cubin/*/*/*.cubin")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d cubins: %v", len(files), err)
	}
	flags := 0
	for _, name := range files {
		target := patchtest.OpenCubin(t, name)
		for i := range target.Cubin.Kernels() {
			cs := code.NewState(target.Kernel(&target.Cubin.Kernels()[i]), target.Table)
			for at := range cs.N {
				v := cs.View(at)
				reuse := isa.ControlOf(v.Inst.Word).Reuse
				for slot := range 3 {
					if reuse>>slot&1 == 0 {
						continue
					}
					if flags++; !printsReuse(v, slot) {
						t.Errorf("%s: flag %d of %s does not show", name, slot, v.Text())
					}
				}
			}
		}
	}
	if flags < 50 {
		t.Errorf("only %d flags seen", flags)
	}
}
