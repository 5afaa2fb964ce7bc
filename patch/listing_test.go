package patch

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

// wholeListing lists a cubin as dis does.
func wholeListing(t *Target, style ListingStyle) []byte {
	var out []byte
	for i := range t.Cubin.Kernels() {
		c := KernelCode(&t.Cubin.Kernels()[i], Options{})
		out = append(out, KernelHeader(c, t.Cubin.Arch)+"\n"...)
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
		target := openCubin(t, name)
		for _, style := range []ListingStyle{{}, {Hex: true}, {Labels: true}, {Control: ControlNvidia}, {Control: ControlNone}} {
			text := wholeListing(target, style)
			list, err := ParseListing(name, bytes.NewReader(text))
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
	target := openCubin(t, loadsCubin)
	text := string(wholeListing(target, ListingStyle{}))
	i := strings.Index(text, "LDG.E R")
	if i < 0 {
		t.Fatal("no plain load in the listing")
	}
	edited := text[:i] + "LDG.E.EF R" + text[i+len("LDG.E R"):]
	list, err := ParseListing("k.sass", strings.NewReader(edited))
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
	target := openCubin(t, loadsCubin)
	name := target.Cubin.Kernels()[0].Name
	head := "// kernel " + name + "\n"
	for _, test := range []struct{ text, want string }{
		{"// kernel nobody\n/*0000*/ [B------:R-:W-:-:S01] NOP ;", "k.sass:2: the cubin has no kernel nobody"},
		{head + "[B------:R-:W-:-:S01] NOP ;", "k.sass:2: no address"},
		{head + "/*0008*/ [B------:R-:W-:-:S01] NOP ;", "address 0x8"},
		{head + "/*ffff0*/ [B------:R-:W-:-:S01] NOP ;", "address 0xffff0"},
		{head + "/*0000*/ [B------:R-:W-:-:S99] NOP ;", "k.sass:2: control code"},
		{head + "/*zz*/ [B------:R-:W-:-:S01] NOP ;", "bad address"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] NOPE ;", "k.sass:2:"},
		{head + "/*0000*/ [B------:R-:W-:-:S00] NOP ;", "does not exist"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] LDG.E.INVALID6 R4, desc[UR4][R2.64] ;", "evict=INVALID6 means nothing; evict: EF EL LU EU NA"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] NOP ; /* 0x1 0x2 */", "another word"},
		{head + "/*0000*/ [B------:R-:W-:-:S01] ;", "no instruction"},
		{"// kernel \"x\n", "bad kernel name"},
	} {
		list, err := ParseListing("k.sass", strings.NewReader(test.text))
		if err == nil {
			_, err = ListingEdits("k.sass", list, target, nil)
		}
		var le *ListingError
		if !errors.As(err, &le) {
			t.Errorf("%q: %v", test.text, err)
			continue
		}
		if !strings.Contains(err.Error(), test.want) && !(test.want == "another word" && errors.Is(err, ErrOldWord)) {
			t.Errorf("%q: %v, want %q", test.text, err, test.want)
		}
	}
}

func TestStableListing(t *testing.T) {
	table := miniTable(t)
	data := code(t, table, lines("NOP\n@P0 BRA 0x0\nFFMA R0, R1, R2, R3\nBRA 0x20\nEXIT\nBRA 0x50\nNOP\nNOP"))
	got := string(ListingStyle{Stable: true}.AppendKernel(nil, table, &Code{Name: "k", Data: data}))
	want := ".L0:\n" + d + "NOP ;\n" + d + "@P0 BRA .L0 ;\n.L1:\n" + d + "FFMA R0, R1, R2, R3 ;\n" + d + "BRA .L1 ;\n" + d + "EXIT ;\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestAppendLineAllocates sees that a listing line costs no allocation.
func TestAppendLineAllocates(t *testing.T) {
	table := miniTable(t)
	data := code(t, table, lines("LDG.E.CONSTANT R0, desc[UR4][R2.64]"))
	w := isa.LoadWord(data)
	buf := make([]byte, 0, 256)
	if n := testing.AllocsPerRun(100, func() { buf = ListingStyle{Hex: true}.AppendLine(buf[:0], table, w, 0x70) }); n > 0 {
		t.Errorf("%v allocations a line", n)
	}
}
