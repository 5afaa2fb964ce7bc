package shape

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
)

// eachCubin calls fn with the cubins of testdata.
func eachCubin(tb testing.TB, fn func(path string, t *code.Target)) {
	tb.Helper()
	paths, err := filepath.Glob("../../testdata/cubin/*/*/*.cubin")
	if err != nil || len(paths) < 100 {
		tb.Fatal(len(paths), "cubins", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		fn(path, open(tb, data))
	}
}

func open(tb testing.TB, data []byte) *code.Target {
	tb.Helper()
	c, err := elfx.ParseCubin(data)
	if err != nil {
		tb.Fatal(err)
	}
	t := &code.Target{Cubin: c}
	if t.Table, err = code.TableOf(c); err != nil {
		tb.Fatal(err)
	}
	return t
}

// nop is a NOP that is told from those at the end of a kernel.
func nop(tb testing.TB, t *code.Target) isa.Word {
	tb.Helper()
	w, err := t.Table.Encode("NOP", 0, nil)
	if err != nil {
		tb.Fatal(err)
	}
	c := isa.DefaultControl
	c.Stall = 5
	return c.Set(w)
}

// long says that there is time.
func long() bool { return os.Getenv("CUPATCH_LONG") != "" }

// places returns the instructions of a kernel to try: all where there is time, else a few.
func places(k *elfx.Kernel) []int {
	n := int(k.Size) / isa.WordSize
	step := 1
	if !long() {
		step = n/4 + 1
	}
	var out []int
	for i := 0; i < n; i += step {
		out = append(out, i)
	}
	return append(out, n)
}

// inserted is the edit that inserts w before instruction i, or after the one before it.
func inserted(k *elfx.Kernel, i int, w isa.Word, before bool) edit.Edit {
	pc := uint64(i) * isa.WordSize
	s := &edit.Shape{Op: edit.Insert, NewPC: pc}
	if before {
		s.Labels = []uint64{pc}
	}
	return edit.Edit{Kernel: k.Name, PC: pc, New: w, Shape: s}
}

// A NOP that is inserted anywhere and deleted again leaves the cubin as it was.
func TestInsertDelete(t *testing.T) {
	count := 0
	eachCubin(t, func(path string, x *code.Target) {
		w := nop(t, x)
		for ki := range x.Cubin.Kernels() {
			k := &x.Cubin.Kernels()[ki]
			for _, i := range places(k) {
				now, err := Apply(x.Cubin.Data(), []edit.Edit{inserted(k, i, w, i%2 == 0)})
				if err != nil {
					t.Errorf("%s: kernel %s at %#x: %v", path, k.Name, i*isa.WordSize, err)
					break
				}
				y := open(t, now)
				pc := uint64(i) * isa.WordSize
				if got := isa.LoadWord(y.Cubin.Kernels()[ki].Data()[pc:]); got != w {
					t.Fatalf("%s: kernel %s at %#x: %s is inserted", path, k.Name, pc, got)
				}
				del := edit.Edit{Kernel: k.Name, PC: pc, Offset: uint64(y.Cubin.Kernels()[ki].Offset) + pc, Old: w, Shape: &edit.Shape{Op: edit.Delete}}
				back, err := Apply(now, []edit.Edit{del})
				if err != nil {
					t.Fatalf("%s: kernel %s at %#x: delete: %v", path, k.Name, pc, err)
				}
				if !bytes.Equal(back, x.Cubin.Data()) {
					t.Fatalf("%s: kernel %s at %#x: byte %#x differs after deleting again", path, k.Name, pc, edit.FirstDifference(back, x.Cubin.Data()))
				}
				old, err := Sections(x.Cubin.Data(), now)
				if err != nil {
					t.Fatalf("%s: kernel %s at %#x: %v", path, k.Name, pc, err)
				}
				back, err = Apply(now, []edit.Edit{{Shape: &edit.Shape{Op: edit.Restore, Sections: old}}})
				if err != nil || !bytes.Equal(back, x.Cubin.Data()) {
					t.Fatalf("%s: kernel %s at %#x: restoring the sections does not lead back: %v", path, k.Name, pc, err)
				}
				count++
			}
		}
	})
	if count < 1000 {
		t.Error(count, "places")
	}
}
