package report

import (
	"testing"

	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

// FuzzReport checks that no report makes a panic.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"format":"cupatch-report-1","files":[{"edits":[{"kernel":"k","pc":0,"old":["0x1","0x2"],"new_text":"NOP"}]}]}`))
	target := patchtest.OpenCubin(f, patchtest.LoadsCubin)
	f.Fuzz(func(t *testing.T, data []byte) {
		rep, err := Parse(data)
		if err != nil {
			return
		}
		for i := range rep.Files {
			_, _ = rep.Files[i].Locate([]*code.Target{target}, i%2 == 0, false)
		}
	})
}
