package isa

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// eachVariant calls fn for each variant of each table.
func eachVariant(t *testing.T, fn func(tab *Table, v *Variant)) {
	t.Helper()
	seen := map[*Variant]bool{}
	for _, a := range Arches() {
		tab, err := Load(a)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range tab.Variants() {
			if !seen[v] {
				seen[v] = true
				fn(tab, v)
			}
		}
	}
}

// randomWords returns words of v that have text, with control bits and guard of a plain
// instruction.
func randomWords(tab *Table, v *Variant, rng *rand.Rand, n int) []Inst {
	var out []Inst
	for range 20 * n {
		w := Word{rng.Uint64(), rng.Uint64()}.AndNot(v.Mask).Or(v.Value)
		w = GuardNot.MustSet(GuardField.MustSet(w, 7), 0)
		in := tab.Decode(DefaultControl.Set(w))
		if in.Variant == v && in.Status == StatusKnown {
			if out = append(out, in); len(out) == n {
				break
			}
		}
	}
	return out
}

// TestFacts checks that facts.txt names every mnemonic of every architecture, and that
// every class with an address in brackets has facts about memory.
func TestFacts(t *testing.T) {
	known, err := parseFacts(factsText)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	eachVariant(t, func(tab *Table, v *Variant) {
		names := v.Mnemonics()
		if len(names) == 0 && v.Mnemonic() == "" {
			return // no word of the class has text
		}
		if len(names) != 1 || names[0] != v.Mnemonic() {
			t.Errorf("%s: class %s has the mnemonics %v and %s", tab.Arch(), v.Class, names, v.Mnemonic())
		}
		f := known[v.Mnemonic()]
		if f == nil {
			t.Errorf("%s: facts.txt does not name %s (class %s)", tab.Arch(), v.Mnemonic(), v.Class)
			return
		}
		used[v.Mnemonic()] = true
		for _, o := range tab.Operands(v) {
			if strings.Contains(o.Text, "[") && !strings.HasPrefix(strings.TrimLeft(o.Text, "-|~"), "c[") &&
				!strings.HasPrefix(strings.TrimLeft(o.Text, "-|~"), "cx[") && f.memory.Op == MemoryNone {
				t.Errorf("%s: %s (class %s) has an address, %s, and facts.txt says nothing of memory", tab.Arch(), v.Mnemonic(), v.Class, o.Text)
			}
		}
	})
	for name := range known {
		if !used[name] {
			t.Errorf("facts.txt names %s, which no table has", name)
		}
	}
}

// TestBehaviorIsText checks what is known of a word without its text against the text:
// mnemonic, modifiers, size, targets, and that no bit but those of OpcodeBits decides
// the opcode.
func TestBehaviorIsText(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 2))
	eachVariant(t, func(tab *Table, v *Variant) {
		for _, in := range randomWords(tab, v, rng, 4) {
			p := tab.Split(in, 0)
			if in.Mnemonic() != p.Mnemonic {
				t.Errorf("%s: %s: mnemonic %s", tab.Arch(), tab.Text(in, 0), in.Mnemonic())
			}
			b := in.behavior()
			var mods []string
			for i := range b.mods {
				x, _ := b.mods[i].in(in.Word)
				mods = append(mods, x...)
			}
			if !slices.Equal(mods, p.Mods) {
				t.Errorf("%s: %s: modifiers %q", tab.Arch(), tab.Text(in, 0), mods)
			}
			noise := Word{rng.Uint64(), rng.Uint64()}.AndNot(tab.OpcodeBits(in.Word).Or(guardMask).Or(controlMask))
			if in.Opcode() != strings.Join(append([]string{p.Mnemonic}, p.Mods...), ".") {
				t.Errorf("%s: %s: opcode %s", tab.Arch(), tab.Text(in, 0), in.Opcode())
			}
			if same := tab.Decode(in.Word.And(tab.OpcodeBits(in.Word))); same.Variant != v || same.Memory() != in.Memory() || same.Opcode() != in.Opcode() {
				t.Errorf("%s: %s: the bits of OpcodeBits alone are %s", tab.Arch(), tab.Text(in, 0), tab.Text(same, 0))
			}
			if q := tab.Split(tab.Decode(in.Word.Xor(noise)), 0); q.Mnemonic != p.Mnemonic || !slices.Equal(q.Mods, p.Mods) {
				t.Errorf("%s: %s: OpcodeBits is not all that decides %s", tab.Arch(), tab.Text(in, 0), tab.Text(tab.Decode(in.Word.Xor(noise)), 0))
			}
		}
	})
}

// decodeText returns the instruction that text is on an architecture.
func decodeText(t *testing.T, arch, text string, pc uint64) Inst {
	t.Helper()
	a, err := ParseArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	tab, err := Load(a)
	if err != nil {
		t.Fatal(err)
	}
	w, err := tab.Encode(text, pc, nil)
	if err != nil {
		t.Fatalf("%s: %s: %v", arch, text, err)
	}
	return tab.Decode(w)
}

func TestFlow(t *testing.T) {
	for _, tt := range []struct {
		arch, text string
		want       Flow
		ends, past bool // ends a block; control may pass
		target     uint64
	}{
		{"sm_90", "BRA 0x130", Flow{FlowBranch, false}, true, false, 0x130},
		{"sm_90", "@P0 BRA 0x130", Flow{FlowBranch, true}, true, true, 0x130},
		{"sm_90", "BRA P3, 0x130", Flow{FlowBranch, true}, true, true, 0x130},
		{"sm_90", "BRA.DIV UR4, 0x130", Flow{FlowBranch, true}, true, true, 0x130},
		{"sm_75", "BRX R4 -0x10", Flow{FlowIndirect, false}, true, false, 0},
		{"sm_90", "CALL.REL.NOINC 0x400", Flow{FlowCall, false}, true, true, 0x400},
		{"sm_90", "RET.REL.NODEC R4 0x0", Flow{FlowReturn, false}, true, false, 0},
		{"sm_90", "EXIT", Flow{FlowExit, false}, true, false, 0},
		{"sm_90", "@!P1 EXIT", Flow{FlowExit, true}, true, true, 0},
		{"sm_90", "KILL", Flow{FlowExit, false}, true, false, 0},
		{"sm_90", "BSSY B0, 0x200", Flow{FlowReserve, false}, false, true, 0x200},
		{"sm_90", "BSYNC B0", Flow{FlowSync, false}, true, true, 0},
		{"sm_90", "@P0 BREAK P1, B0", Flow{FlowBreak, true}, true, true, 0},
		{"sm_90", "WARPSYNC R4", Flow{FlowWarpSync, false}, false, true, 0},
		{"sm_90", "IADD3 R4, R5, R6, R7", Flow{}, false, true, 0},
		{"sm_90", "NOP", Flow{}, false, true, 0},
	} {
		in := decodeText(t, tt.arch, tt.text, 0x100)
		f := in.Flow()
		to, _ := in.Target(0x100)
		if f != tt.want || f.EndsBlock() != tt.ends || f.NeverPasses() == tt.past {
			t.Errorf("%s: %+v, ends a block %v, never passed %v", tt.text, f, f.EndsBlock(), f.NeverPasses())
		}
		if to != tt.target && tt.target != 0 {
			t.Errorf("%s: target %#x", tt.text, to)
		}
		if in.IsPadding() != (tt.text == "NOP") || in.Word.IsNOP() != in.IsPadding() {
			t.Errorf("%s: padding %v", tt.text, in.IsPadding())
		}
	}
}

func TestMemory(t *testing.T) {
	for _, tt := range []struct {
		arch, text string
		want       Memory
	}{
		{"sm_90", "LDG.E R4, desc[UR4][R2.64]", Memory{MemoryLoad, SpaceGlobal, 4}},
		{"sm_90", "LDG.E.U8 R4, desc[UR4][R2.64]", Memory{MemoryLoad, SpaceGlobal, 1}},
		{"sm_90", "LDG.E.LTC128B.128.CONSTANT R4, desc[UR4][R2.64]", Memory{MemoryLoad, SpaceGlobal, 16}},
		{"sm_80", "LDG.E.64 R4, [R2.64]", Memory{MemoryLoad, SpaceGlobal, 8}},
		{"sm_100", "LDCU.128 UR4, c[0x0][0x380]", Memory{MemoryLoad, SpaceConstant, 16}},
		{"sm_90", "STL.64 [R1], R4", Memory{MemoryStore, SpaceLocal, 8}},
		{"sm_90", "STS.U16 [R1], R4", Memory{MemoryStore, SpaceShared, 2}},
		{"sm_90", "ATOMG.E.ADD.F16x2.RN.STRONG.GPU PT, R4, desc[UR4][R2.64], R6", Memory{MemoryAtomic, SpaceGlobal, 4}},
		{"sm_90", "REDG.E.ADD.64.STRONG.GPU desc[UR4][R2.64], R6", Memory{MemoryReduce, SpaceGlobal, 8}},
		{"sm_90", "LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64]", Memory{MemoryCopy, SpaceGlobal, 16}},
		{"sm_90", "LDSM.16.M88.4 R4, [R2]", Memory{MemoryLoad, SpaceShared, 0}},
		{"sm_90", "CCTL.IVALL", Memory{MemoryControl, SpaceGlobal, 0}},
		{"sm_90", "CCTL.E.PF2 [R2]", Memory{MemoryPrefetch, SpaceGlobal, 0}},
		{"sm_90", "UTMALDG.2D [UR8], [UR4]", Memory{MemoryCopy, SpaceGlobal, 0}},
		{"sm_90", "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2+URZ], RZ", Memory{MemorySync, SpaceShared, 0}},
		{"sm_90", "FADD R4, R5, R6", Memory{}},
		{"sm_90", "LDGDEPBAR", Memory{}},
	} {
		if got := decodeText(t, tt.arch, tt.text, 0).Memory(); got != tt.want {
			t.Errorf("%s: %v %v, %d bytes", tt.text, got.Op, got.Space, got.Bytes)
		}
	}
}

// TestUnknownDoesNothing asks a word that no table knows.
func TestUnknownDoesNothing(t *testing.T) {
	in := miniTable(t).Decode(Word{})
	if in.Mnemonic() != "" || in.Flow() != (Flow{}) || in.Memory() != (Memory{}) || in.IsPadding() {
		t.Error("an unknown word does something")
	}
	if _, ok := in.Target(0); ok {
		t.Error("an unknown word has a target")
	}
}

func BenchmarkFlow(b *testing.B) {
	tab := miniTable(b)
	words := benchWords(tab)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := tab.Decode(words[i&4095])
		if in.Flow().EndsBlock() || in.Memory().Op != MemoryLoad || in.Mnemonic() != "LDG" {
			b.Fatal("no load")
		}
	}
}

// TestTraits checks that a question of which the traits say nothing has no answer, and
// that the number of an instruction is that of its variant.
func TestTraits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	with := map[Traits]int{}
	eachVariant(t, func(tab *Table, v *Variant) {
		for _, in := range randomWords(tab, v, rng, 4) {
			if n, ok := in.Number(); !ok || tab.Variant(n) != v {
				t.Fatalf("%s: class %s has the number %d, %v", tab.Arch(), v.Class, n, ok)
			}
			_, target := in.Target(0)
			_, constant := in.Constant()
			for _, q := range []struct {
				trait    Traits
				answered bool
			}{{HasFlow, in.Flow() != Flow{}}, {HasMemory, in.Memory() != Memory{}}, {HasTarget, target}, {HasConstant, constant}, {Padding, in.IsPadding()}} {
				if q.answered {
					with[q.trait]++
				}
				if q.answered && in.Traits()&q.trait == 0 {
					t.Errorf("%s: class %s: traits %b, and %b has an answer", tab.Arch(), v.Class, in.Traits(), q.trait)
				}
			}
		}
	})
	if len(with) != 5 {
		t.Errorf("only %d of 5 traits were met", len(with))
	}
	unknown := Inst{Word: Word{Lo: 1}, Status: StatusUnknown}
	if _, ok := unknown.Number(); ok || unknown.Traits() != 0 {
		t.Error("a word that is not known has a number or traits")
	}
}

// TestSteady changes stall counts and scoreboards of words of every class that is said to
// be steady: text and status stay.
func TestSteady(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	n := 0
	eachVariant(t, func(tab *Table, v *Variant) {
		for _, in := range randomWords(tab, v, rng, 2) {
			if !in.Steady() {
				continue
			}
			n++
			w := in.Word.Unscheduled()
			w.Hi |= rng.Uint64() & unscheduledMask
			other := tab.Decode(w)
			if other.Status != in.Status || tab.Text(other, 0x1230) != tab.Text(in, 0) || w.Unscheduled() != in.Word.Unscheduled() {
				t.Fatalf("%s: class %s: %v is %q, %v is %q", tab.Arch(), v.Class, in.Word, tab.Text(in, 0), w, tab.Text(other, 0x1230))
			}
		}
	})
	if n < 5000 {
		t.Errorf("only %d steady words", n)
	}
}
