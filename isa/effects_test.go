package isa

import (
	"strings"
	"testing"
)

// What nvdisasm 13.5.37 marks in a listing with life ranges; words by ptxas.
func TestEffects(t *testing.T) {
	table, err := Load(Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, reads, writes string }{
		{"LDG.E.64 R12, desc[UR4][R8.64]", "R8 R9 UR4 UR5", "R12 R13"},
		{"LDG.E.128 R4, desc[UR4][R2.64]", "R2 R3 UR4 UR5", "R4-R7"},
		{"@!P2 LDG.E R12, desc[UR4][R8.64]", "R8 R9 UR4 UR5 P2", "R12"},
		{"LDG.E.128 R253, desc[UR62][R254.64]", "R254 UR62", "R253 R254"},
		{"FADD R3, R3, R101", "R3 R101", "R3"},
		{"FADD RZ, RZ, R101", "R101", ""},
		{"@UP1 UMOV UR5, UR4", "UR4 UP1", "UR5"},
		{"ISETP.LT.AND P1, PT, R3, R4, !P2", "R3 R4 P2", "P1"},
		{"DADD R5, R7, R9", "R7-R10", "R5 R6"},
		{"IMAD.WIDE R7, R9, R11, R13", "R9 R11 R13 R14", "R7 R8"},
		{"HMMA.16816.F32 R4, R8, R12, R16", "R8-R13 R16-R19", "R4-R7"},
		// Not marked, but what the texts say.
		{"P2R R4, PR, RZ, 0x5", "P0 P2", "R4"},
		{"R2P PR, R4, 0x7e", "R4", "P1-P6"},
		{"BSSY B3, 0x100", "", "B3"},
		{"BSYNC B3", "B3", ""},
		{"NOP", "", ""},
	} {
		w, err := table.Encode(c.text, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		in := table.Decode(w)
		e := in.Effects()
		if e.Reads.String() != c.reads || e.Writes.String() != c.writes {
			t.Errorf("%s reads %s writes %s, want %s and %s", c.text, e.Reads, e.Writes, c.reads, c.writes)
		}
		if !in.HasEffects() {
			t.Errorf("%s has no effects", c.text)
		}
		if n := testing.AllocsPerRun(10, func() { e = table.Decode(w).Effects() }); n != 0 {
			t.Errorf("%s: %v allocations", c.text, n)
		}
	}
}

// The runs of an instruction are its effects, the guard aside.
func TestAccesses(t *testing.T) {
	table, err := Load(Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	w, err := table.Encode("@P1 LDG.E.128 R4, desc[UR4][R2.64]", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[Access]bool{
		{File: FileR, First: 4, Count: 4, Writes: true, Bit: 16}: true,
		{File: FileR, First: 2, Count: 2, Reads: true, Bit: 24}:  true,
		{File: FileUR, First: 4, Count: 2, Reads: true, Bit: 32}: true,
	}
	for _, a := range table.Decode(w).Accesses(nil) {
		if !want[a] {
			t.Errorf("%+v", a)
		}
		delete(want, a)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}

// A word that is not known, and one without a table, have no effects.
func TestNoEffects(t *testing.T) {
	table, err := Load(Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []Inst{table.Decode(Word{Lo: 0x7fff}), {}} {
		if e := in.Effects(); e != (Effects{}) || in.HasEffects() || in.Accesses(nil) != nil {
			t.Errorf("%+v", in)
		}
	}
}

const effectsText = `arch sm_90
nvdisasm 13.5.37

class a_ w:R16:23{73:75 1*5 2 4 1} r:R24:31*2 rw:P64:66~ r:UR64:69+1
class b_
class c_ r:P=0*7 w:B16:19 r:UP32:38/mask r:R24:31{61:63,72,24:31=255 0-1.0.-=3 100.-.1=4 2}
`

func TestEffectsFile(t *testing.T) {
	f, err := ParseEffects(effectsText, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(FormatEffects(f, nil)); got != effectsText {
		t.Errorf("written again:\n%s", got)
	}
	w := Word{Lo: 0x05 << 16, Hi: 6 << 9}.Or(Word{Lo: 254 << 24, Hi: 3})
	e := CompileEffects(&Variant{Guard: GuardNone}, f.Rules["a_"]).Effects(w)
	if got, want := e.Reads.String()+" -> "+e.Writes.String(), "R254 UR4 P4 -> R5-R8 P4"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	base := f
	f, err = ParseEffects("arch sm_89\nnvdisasm 13.5.37\nbase sm_90\ndrop b_\nclass a_ r:R16:23\n", func(Arch) (*EffectsFile, error) { return base, nil })
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := f.Rules["b_"]; ok || len(f.Rules) != 2 || len(base.Rules["a_"]) != 4 {
		t.Errorf("with a base: %v", f.Rules)
	}
	if got, want := string(FormatEffects(f, base)), "arch sm_89\nnvdisasm 13.5.37\nbase sm_90\n\ndrop b_\nclass a_ r:R16:23\n"; got != want {
		t.Errorf("with a base, written again:\n%s", got)
	}
}

// Long lines are wrapped where a blank stands, and read as one.
func TestEffectsWrapped(t *testing.T) {
	f, err := ParseEffects(strings.Replace(effectsText, " r:R24:31*2", "\n  r:R24:31*2", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(FormatEffects(f, nil)); got != effectsText {
		t.Errorf("written again:\n%s", got)
	}
}

func TestEffectsErrors(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"class a_ q:R16:23", "has none of r:, w: and rw: in front"},
		{"class a_ r:X16:23", "names no register file"},
		{"class a_ r:R16:99999", "bad bit range"},
		{"class a_ r:R16:31", "more than 8 bits"},
		{"class a_ r:R16:23*x", "no count"},
		{"class a_ r:R16:23{73:75 1 2}", "2 counts for 3 bits"},
		{"class a_ r:R16:23{0:63 1}", "64 bits"},
		{"class a_ r:R16:23{73:75 1*999999999999}", "no count"},
		{"class a_ r:R16:23{73,74 1.2.3=1 0}", "not for 2 tests"},
		{"class a_ r:R16:23{", "without counts"},
		{"class a_ r:R16:23{73=1=2 1 1}", "no number"},
		{"klass a_", "no kind of line"},
		{"base sm_1", "no architecture"},
		{"class", "alone"},
	} {
		_, err := ParseEffects("arch sm_90\n"+c.line+"\n", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "line 2: ") {
			t.Errorf("%s: %v, want %q", c.line, err, c.want)
		}
	}
}

func FuzzParseEffects(f *testing.F) {
	f.Add(effectsText)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := ParseEffects(text, func(a Arch) (*EffectsFile, error) { return nil, &UnknownArchError{Arch: a} })
		if err != nil {
			return
		}
		again, err := ParseEffects(string(FormatEffects(file, nil)), nil)
		if err != nil {
			t.Fatal(err)
		}
		for class, rules := range file.Rules {
			if FormatRules(rules) != FormatRules(again.Rules[class]) {
				t.Errorf("%s: %s, read again %s", class, FormatRules(rules), FormatRules(again.Rules[class]))
			}
		}
	})
}

// A sparse IMMA of the double depth reads four registers of each matrix: nvdisasm -plr marks
// R39 to R42 and R80 to R83.
func TestEffectsOfSparseIMMA(t *testing.T) {
	table, err := Load(Arch{SM: 80})
	if err != nil {
		t.Fatal(err)
	}
	e := table.Decode(Word{0x7deec75027397237, 0x000fe3d036fd09a1}).Effects()
	for n := range 4 {
		if !e.Reads.Has(FileR, 39+n) || !e.Reads.Has(FileR, 80+n) {
			t.Errorf("reads %s", e.Reads)
		}
	}
	if e.Reads.Has(FileR, 43) || e.Reads.Has(FileR, 84) {
		t.Errorf("reads %s", e.Reads)
	}
}
