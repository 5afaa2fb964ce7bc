package patch

import (
	"errors"
	"path/filepath"
	"slices"
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
		{"(sm_80, 8 registers, 128 bytes)", false}, {"(sm_90a)", false}, {"(sm_90, 8 registers)", false}, {"(sm_90, 128 bytes)", false},
		{"(sm_90, 14 registers)", true}, {"(sm_90, 640 bytes)", true}, {"(sm_90, 14 registers, 640 bytes)", true}, {"", true}, {"(edited by hand)", true},
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

// TestListingShape sees that a listing is refused which cannot be honoured by changing
// instructions in place: lines in another order, lines left out or put in, a header that
// makes no sense.
func TestListingShape(t *testing.T) {
	target := openCubin(t, loadsCubin)
	text := string(wholeListing(target, ListingStyle{}))
	text = text[:strings.Index(text[1:], "// kernel")+1]
	whole := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	with := func(edit func(l []string) []string) string { return strings.Join(edit(slices.Clone(whole)), "") }
	for _, test := range []struct {
		name, text, want string
	}{
		{"as it is", text, ""},
		{"one line", with(func(l []string) []string { return l[:2] }), ""},
		{"a few lines", with(func(l []string) []string { return append(l[:1], l[5], l[7]) }), ""},
		{"swapped", with(func(l []string) []string { l[3], l[4] = l[4], l[3]; return l }), "k.sass:5: address 0x20 after 0x30"},
		{"last first", with(func(l []string) []string { return append(append(l[:1:1], l[len(l)-1]+"\n"), l[1:len(l)-1]...) }), "address 0x0 after 0x270"},
		{"deleted", with(func(l []string) []string { return slices.Delete(l, 3, 4) }), "no line for address 0x20"},
		{"last deleted", with(func(l []string) []string { return l[:len(l)-1] }), "no line for address 0x270"},
		{"first deleted", with(func(l []string) []string { return slices.Delete(l, 1, 2) }), "no line for address 0x0"},
		{"twice", with(func(l []string) []string { return slices.Insert(l, 3, l[2]) }), "k.sass:4: address 0x10 is listed twice"},
		{"inserted", with(func(l []string) []string { return slices.Insert(l, 3, "[B------:R-:W-:-:S01] NOP ;\n") }), "k.sass:4: no address before the instruction"},
		{"size", strings.Replace(text, "640 bytes", "656 bytes", 1), "the header says 656 bytes, the kernel has 640"},
		{"registers", strings.Replace(text, "14 registers", "16 registers", 1), "the header says 16 registers, the kernel has 14"},
		{"unit", strings.Replace(text, "14 registers", "14 shared", 1), "want (ARCH, N registers, N bytes)"},
		{"count", strings.Replace(text, "14 registers", "x registers", 1), "want (ARCH, N registers, N bytes)"},
		{"entry", "// entry lib.so#1 (sm_80)\n" + text, "kernel for sm_90 in an entry for sm_80"},
	} {
		list, err := ParseListing("k.sass", strings.NewReader(test.text))
		var edits []Edit
		if err == nil {
			edits, err = ListingEdits("k.sass", list, target, nil)
		}
		switch {
		case test.want == "" && (err != nil || len(edits) > 0):
			t.Errorf("%s: %d edits, %v", test.name, len(edits), err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
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
