package learn

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// openOracle starts nvdisasm for arch, or skips the test.
func openOracle(t *testing.T, tool string, arch isa.Arch) *Oracle {
	t.Helper()
	o, err := OpenOracle(oracletest.Tool(t, tool), arch, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.Close)
	return o
}

// ldg is LDG.E R4, desc[UR4][R2.64] of sm_90.
var ldg = isa.Word{Lo: 0x0000000402047981, Hi: 0x001ea8000c1e1900}

// What one word and nvdisasm teach of LDG is what the bit-layout page of LDG says: evict
// at 84–86, prefetch at 68–69, size at 73–75.
func TestLearnLDG(t *testing.T) {
	o := openOracle(t, "nvdisasm", isa.Arch{SM: 90}).session()
	name := o.ClassOf([]isa.Word{ldg})[0]
	if name != "ldg_memdesc__Ra64" {
		t.Fatalf("the class is %q", name)
	}
	r := learnClass(o, name, []isa.Word{ldg}, 500, nil)
	if r.Variant == nil || r.Misses != 0 {
		t.Fatal(r)
	}
	table := isa.NewTable(o.Arch, []*isa.Variant{r.Variant})
	for _, c := range []struct {
		field isa.Field
		texts []string
	}{
		{isa.Bits(84, 86), []string{"LDG.E.EF", "LDG.E", "LDG.E.EL", "LDG.E.LU", "LDG.E.EU", "LDG.E.NA", "LDG.E.INVALID6", "LDG.E.INVALID7"}},
		{isa.Bits(68, 69), []string{"LDG.E", "LDG.E.LTC64B", "LDG.E.LTC128B", "LDG.E.LTC256B"}},
		{isa.Bits(73, 75), []string{"LDG.E.U8", "LDG.E.S8", "LDG.E.U16", "LDG.E.S16", "LDG.E", "LDG.E.64", "LDG.E.128", "LDG.E.INVALID7"}},
	} {
		for v, want := range c.texts {
			w, err := c.field.Set(ldg, uint64(v))
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := strings.Cut(table.Text(table.Decode(w), 0), " "); got != want {
				t.Errorf("bits %s = %d print %s, want %s", c.field, v, got, want)
			}
		}
	}
}

// The classes of CCTL share out the values of bits 87–90, and what one of them refuses may be
// legal in another. A table of all of them says of every value what nvdisasm says.
func TestLearnSharedField(t *testing.T) {
	o := openOracle(t, "nvdisasm", isa.Arch{SM: 100, Suffix: "a"}).session()
	cctl := isa.Word{Lo: 0x000010000200798f, Hi: 0x000fe80000800100} // CCTL.E.PF2 [R2+0x1000]
	var ws []isa.Word
	for op := range uint64(16) {
		for _, reg := range []uint64{2, 255} {
			for _, quiet := range []uint64{0, 7} {
				w := isa.Bits(87, 90).MustSet(isa.Bits(24, 31).MustSet(cctl, reg), op)
				ws = append(ws, isa.Bits(113, 115).MustSet(isa.Bits(110, 112).MustSet(w, 7), quiet))
			}
		}
	}
	samples := map[string][]isa.Word{}
	for i, name := range o.ClassOf(ws) {
		if name != "" {
			samples[name] = append(samples[name], ws[i])
		}
	}
	if len(samples) < 6 {
		t.Fatalf("%d classes", len(samples))
	}
	var vs []*isa.Variant
	for name, words := range samples {
		r := learnClass(o, name, words, 300, nil)
		if r.Variant == nil || r.Misses != 0 {
			t.Fatal(r)
		}
		vs = append(vs, r.Variant)
	}
	table := isa.NewTable(o.Arch, vs)
	for i, a := range o.Ask(ws) {
		if m, wrong := compare(table, ws[i], a); wrong && (a.OK || m.in.Status != isa.StatusUnknown) {
			t.Errorf("%v prints %q, predicted %q (%v)", ws[i], a.Text, m.pred, m.in.Status)
		}
	}
}

// One question tells all refused words of a batch, and why; the accepted ones keep their
// texts. Without a compiler, processes give the same answers.
func TestAsk(t *testing.T) {
	for name, cc := range map[string]string{"fork server": "", "no compiler": "no-such-compiler"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CC", cc)
			o := openOracle(t, "nvdisasm", isa.Arch{SM: 90})
			if (o.cmd == nil) != (cc != "") {
				t.Fatalf("fork server: %v", o.cmd != nil)
			}
			checkAnswers(t, o)
		})
	}
	if _, err := OpenOracle(oracletest.Tool(t, "nvdisasm"), isa.Arch{SM: 10}, t.TempDir()); err == nil {
		t.Error("an architecture that nvdisasm does not know is accepted")
	}
}

func checkAnswers(t *testing.T, o *Oracle) {
	t.Helper()
	bad := isa.Word{Lo: 0x7fff, Hi: nop.Hi}
	undefined := schedField.MustSet(nop, 0x10)
	before := o.Questions
	as, err := o.Ask([]isa.Word{nop, bad, undefined, {}, ldg, bad})
	if err != nil {
		t.Fatal(err)
	}
	if n := o.Questions - before; n > 2 {
		t.Errorf("%d questions, want 2", n)
	}
	for i, want := range []Answer{
		{OK: true, Text: "NOP"}, {}, {Class: "nop_", Value: 0x10, Table: "TABLES_opex_1"}, {},
		{OK: true, Text: "LDG.E R4, desc[UR4][R2.64]", PC: 16}, {},
	} {
		if as[i] != want {
			t.Errorf("word %d: %+v, want %+v", i, as[i], want)
		}
	}
}

// A word that is of two classes ends nvdisasm, which does not say where it stands; the
// others still get their answers.
func TestAskFatal(t *testing.T) {
	o := openOracle(t, "nvdisasm", isa.Arch{SM: 75}).session()
	both := isa.Word{Lo: 0x43cfe7ca00d97321, Hi: 0x000202ddd1007212} // ald_PHYS_ and ald__PATCH_RaNonRZOffset_P_RbRZ
	bad := isa.Word{Lo: 0x7fff, Hi: nop.Hi}
	as := o.Ask([]isa.Word{nop, bad, both, nop, both, bad, nop})
	for i, ok := range []bool{true, false, false, true, false, false, true} {
		if as[i].OK != ok || ok && as[i].Text != "NOP" {
			t.Errorf("word %d: %+v", i, as[i])
		}
	}
}

// Volta has no uniform registers, and nvdisasm ignores bit 91 in most of its classes: what
// was learned of a class serves its twin.
func TestTwin(t *testing.T) {
	o := openOracle(t, "nvdisasm12", isa.Arch{SM: 70}).session()
	fadd := isa.Word{Lo: 0x0000000502047221, Hi: 0x000fca0000000000} // FADD R4, R2, R5
	name := o.ClassOf([]isa.Word{fadd})[0]
	r := learnClass(o, name, []isa.Word{fadd}, 300, nil)
	l := &run{opt: Options{Tests: 300}, results: map[key]Result{{r.Opcode, name}: r}}
	twin, ok := l.twin(o, key{r.Opcode ^ 1<<12, name}, nil)
	if !ok || twin.Tested != 300 {
		t.Fatal(twin, ok)
	}
	table := isa.NewTable(o.Arch, []*isa.Variant{r.Variant, twin.Variant})
	for _, w := range []isa.Word{fadd, fadd.Xor(isa.BitWord(91))} {
		if got := table.Text(table.Decode(w), 0); got != "FADD R4, R2, R5" {
			t.Errorf("%v prints %q", w, got)
		}
	}
	if _, ok := l.twin(o, key{0x1234, name}, nil); ok {
		t.Error("a class without a twin has one")
	}
}
