package patch

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// TestReuseOfNothing sees that a reuse flag is refused where no table of nvdisasm's
// tolerance tells: it prints these instructions with any flag.
func TestReuseOfNothing(t *testing.T) {
	for _, arch := range []string{"sm_75", "sm_80", "sm_90", "sm_120"} {
		table := loadTable(t, arch)
		for _, test := range []struct{ before, rule string }{
			{"EXIT", "EXIT => reuse.a=1"},
			{"S2R R4, SR_TID.X", "S2R => reuse.b=1"},
		} {
			_, _, err := planWith(t, table, lines(test.before), Options{}, test.rule)
			var re *RuleError
			if !errors.As(err, &re) || re.Refused() != RefuseSchedule {
				t.Errorf("%s: %s: got %v", arch, test.rule, err)
			}
		}
		got, _, err := planWith(t, table, lines("FFMA R0, R1, R2, R3"), Options{}, "FFMA => reuse.a=1 reuse.b=1 reuse.c=1")
		if want := lines("FFMA R0, R1.reuse, R2.reuse, R3.reuse"); err != nil || got != want {
			t.Errorf("%s: got %s, %v", arch, got, err)
		}
	}
}

// TestReuseShows sees that the flags which ptxas sets show in the text:
// else the refusal would be wrong.
func TestReuseShows(t *testing.T) {
	files, err := filepath.Glob("../testdata/cubin/*/*/*.cubin")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d cubins: %v", len(files), err)
	}
	flags := 0
	for _, name := range files {
		target := openCubin(t, name)
		for i := range target.Cubin.Kernels() {
			cs := newCodeState(KernelCode(&target.Cubin.Kernels()[i], Options{}), target.Table)
			for at := range cs.n {
				v := cs.view(at)
				reuse := isa.ControlOf(v.in.Word).Reuse
				for slot := range 3 {
					if reuse>>slot&1 == 0 {
						continue
					}
					if flags++; !v.printsReuse(slot) {
						t.Errorf("%s: flag %d of %s does not show", name, slot, v.text())
					}
				}
			}
		}
	}
	if flags < 50 {
		t.Errorf("only %d flags seen", flags)
	}
}

// TestListingRefused sees that a line of a listing is refused for what a rule is refused
// for, and that the same name allows it.
func TestListingRefused(t *testing.T) {
	target := openCubin(t, loadsCubin)
	k := &target.Cubin.Kernels()[0]
	text := string(wholeListing(target, ListingStyle{}))
	text = text[:strings.Index(text[1:], "// kernel")+1]
	load := text[strings.Index(text, "LDG"):]
	load = load[:strings.Index(load, ";")]
	mnemonic, ops, _ := strings.Cut(load, " ")
	_, address, _ := strings.Cut(ops, ", ")
	for _, test := range []struct{ old, new, kind, want string }{
		{load, mnemonic + " R200, " + address, RefuseFootprint, "refused: footprint"},
		{"EXIT", "BRA 0x100000", RefuseTarget, "refused: the target 0x100000 is outside the kernel"},
		{"EXIT", "BRA 0x8", RefuseTarget, "is no multiple of 16"},
	} {
		edited := strings.Replace(text, test.old, test.new, 1)
		list, err := ParseListing("k.sass", strings.NewReader(edited))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ListingEdits("k.sass", list, target, nil)
		var r *refusal
		if !errors.As(err, &r) || r.kind != test.kind || !strings.Contains(err.Error(), test.want) || !strings.Contains(r.Hint(), "--allow "+test.kind) {
			t.Errorf("%s: got %v; want it refused as %s: %s", test.new, err, test.kind, test.want)
		}
		edits, err := ListingEdits("k.sass", list, target, Allow{test.kind: true})
		if err != nil || len(edits) != 1 {
			t.Errorf("%s with --allow %s: %d edits, %v", test.new, test.kind, len(edits), err)
		}
	}
	for _, test := range []struct {
		header string
		fits   bool
	}{
		{"(sm_80, 8 registers, 128 bytes)", false}, {"(sm_90a)", false}, {"(sm_90, 8 registers)", true}, {"", true}, {"(edited by hand)", true},
	} {
		head := "// kernel " + k.Name + " " + test.header + "\n"
		list, err := ParseListing("k.sass", strings.NewReader(head+text[strings.Index(text, "\n")+1:]))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ListingEdits("k.sass", list, target, nil)
		if test.fits && err != nil || !test.fits && !errors.Is(err, ErrMismatch) {
			t.Errorf("header %q: %v", test.header, err)
		}
	}
}

// TestDiffOfBits sees that a word which reads as before says which bits differ.
func TestDiffOfBits(t *testing.T) {
	table := miniTable(t)
	before := code(t, table, lines("EXIT\nNOP"))
	rule, err := ParseRule("", 1, "* => bits[122..122]=1")
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlanner([]*Rule{rule}, table, Options{Allow: Allow{RefuseSchedule: true}})
	if err != nil {
		t.Fatal(err)
	}
	c := &Code{Name: "k", Data: before, FileOffset: -1}
	plan, err := p.Kernel(c)
	if err != nil {
		t.Fatal(err)
	}
	got := string(AppendDiff(nil, table, c, "x", plan.Edits[:1], 0))
	want := "--- x k\n+++ x k\n@@ -1,1 +1,1 @@\n-/*0000*/ " + d + "EXIT ;\n+/*0000*/ " + d + "EXIT ; // illegal schedule // bits[122..122] 0x0 -> 0x1\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if s := differingBits(isa.Word{Lo: 1}, isa.Word{Hi: 1 << 60}); !strings.HasPrefix(s, "word 0x") {
		t.Errorf("far bits: %s", s)
	}
}
