package patch

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/check"
	"github.com/cupatch/cupatch/patch/code"
	"github.com/cupatch/cupatch/patch/edit"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
	"github.com/cupatch/cupatch/patch/listing"
)

// TestListingRefused sees that a line of a listing is refused for what a rule is refused
// for, and that the same name allows it.
func TestListingRefused(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	k := &target.Cubin.Kernels()[0]
	text := string(wholeListing(target, listing.Style{}))
	text = text[:strings.Index(text[1:], "// kernel")+1]
	load := text[strings.Index(text, "LDG"):]
	load = load[:strings.Index(load, ";")]
	mnemonic, ops, _ := strings.Cut(load, " ")
	_, address, _ := strings.Cut(ops, ", ")
	for _, test := range []struct{ old, new, kind, want string }{
		{load, mnemonic + " R200, " + address, check.RefuseFootprint, "refused: footprint"},
		{"EXIT", "BRA 0x100000", check.RefuseTarget, "refused: the target 0x100000 is outside the kernel"},
		{"EXIT", "BRA 0x8", check.RefuseTarget, "is no multiple of 16"},
	} {
		edited := strings.Replace(text, test.old, test.new, 1)
		list, err := listing.Parse("k.sass", strings.NewReader(edited))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ListingEdits("k.sass", list, target, nil)
		var r *check.Refusal
		if !errors.As(err, &r) || r.Kind != test.kind || !strings.Contains(err.Error(), test.want) || !strings.Contains(r.Hint(), "--allow "+test.kind) {
			t.Errorf("%s: got %v; want it refused as %s: %s", test.new, err, test.kind, test.want)
		}
		edits, err := ListingEdits("k.sass", list, target, check.Allow{test.kind: true})
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
		list, err := listing.Parse("k.sass", strings.NewReader(head+text[strings.Index(text, "\n")+1:]))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ListingEdits("k.sass", list, target, nil)
		if test.fits && err != nil || !test.fits && !errors.Is(err, edit.ErrMismatch) {
			t.Errorf("header %q: %v", test.header, err)
		}
	}
}

// wholeListing lists a cubin as dis does.
func wholeListing(t *code.Target, style listing.Style) []byte {
	var out []byte
	for i := range t.Cubin.Kernels() {
		c := t.Kernel(&t.Cubin.Kernels()[i])
		out = append(out, listing.Header(c, t.Cubin.Arch)+"\n"...)
		out = style.AppendKernel(out, t.Table, c)
	}
	return out
}

// TestListingIdentity lists every cubin of testdata in every style and applies the
// listing: that must change nothing.
func TestListingIdentity(t *testing.T) {
	files, err := filepath.Glob("../testdata/cubin/*/*/*.cubin")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d cubins: %v", len(files), err)
	}
	for _, name := range files {
		target := patchtest.OpenCubin(t, name)
		for _, style := range []listing.Style{{}, {Hex: true}, {Labels: true}, {Control: listing.ControlNvidia}, {Control: listing.ControlNone}} {
			text := wholeListing(target, style)
			list, err := listing.Parse(name, bytes.NewReader(text))
			if err != nil {
				t.Fatalf("%s %+v: %v", name, style, err)
			}
			edits, err := ListingEdits(name, list, target, nil)
			if err != nil {
				t.Fatalf("%s %+v: %v", name, style, err)
			}
			if len(edits) > 0 {
				t.Fatalf("%s %+v: %d edits, the first %+v", name, style, len(edits), edits[0])
			}
		}
	}
}

// TestListingEdit changes one line and nothing else.
func TestListingEdit(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	text := string(wholeListing(target, listing.Style{}))
	i := strings.Index(text, "LDG.E R")
	if i < 0 {
		t.Fatal("no plain load in the listing")
	}
	edited := text[:i] + "LDG.E.EF R" + text[i+len("LDG.E R"):]
	list, err := listing.Parse("k.sass", strings.NewReader(edited))
	if err != nil {
		t.Fatal(err)
	}
	edits, err := ListingEdits("k.sass", list, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(edits) != 1 || !strings.Contains(edits[0].NewText, "LDG.E.EF") {
		t.Fatalf("edits %+v", edits)
	}
	// Bits 84–86 are the evict group: 1 is none, 0 is EF.
	if d := edits[0].Old.Xor(edits[0].New); d != (isa.Word{Hi: 1 << 20}) {
		t.Errorf("bits %v differ", d)
	}
}

func TestListingErrors(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	name := target.Cubin.Kernels()[0].Name
	head := "// kernel " + name + "\n"
	for _, test := range []struct{ text, want string }{
		{"// kernel nobody\n/*0000*/ [B------:R-:W-:-:S01] NOP ;", "k.sass:2: the cubin has no kernel nobody"},
		{head + "[B------:R-:W-:-:S01] NOP ;", "k.sass:2: no address"},
		{head + "/*0008*/ [B------:R-:W-:-:S01] NOP ;", "address 0x8"},
		{head + "/*ffff0*/ [B------:R-:W-:-:S01] NOP ;", "address 0xffff0"},
		{head + "/*0000*/ [B------:R-:W-:-:S99] NOP ;", "k.sass:2: control code"},
		{head + "/*zz*/ [B------:R-:W-:-:S01] NOP ;", "expected an address"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] NOPE ;", "k.sass:2:"},
		{head + "/*0000*/ [B------:R-:W-:-:S00] NOP ;", "does not exist"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] LDG.E.INVALID6 R4, desc[UR4][R2.64] ;", "evict=INVALID6 means nothing; evict: EF EL LU EU NA"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] NOP ; /* 0x1 0x2 */", "another word"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] ;", "no instruction"},
		{"// kernel \"x\n", "bad kernel name"},
	} {
		list, err := listing.Parse("k.sass", strings.NewReader(test.text))
		if err == nil {
			_, err = ListingEdits("k.sass", list, target, nil)
		}
		var le *listing.Error
		if !errors.As(err, &le) {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if !strings.Contains(err.Error(), test.want) && !(test.want == "another word" && errors.Is(err, edit.ErrOldWord)) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
}

// TestListingShape sees that a listing is refused which cannot be honored by changing
// instructions in place: lines in another order, lines left out or put in, a header that
// makes no sense.
func TestListingShape(t *testing.T) {
	target := patchtest.OpenCubin(t, patchtest.LoadsCubin)
	text := string(wholeListing(target, listing.Style{}))
	text = text[:strings.Index(text[1:], "// kernel")+1]
	whole := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	with := func(f func(l []string) []string) string { return strings.Join(f(slices.Clone(whole)), "") }
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
		list, err := listing.Parse("k.sass", strings.NewReader(test.text))
		var edits []edit.Edit
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
