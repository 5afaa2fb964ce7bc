package diff

import (
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/internal/patchtest"
)

const pairs = "../../testdata/cubin/new/"

// readCubin returns a copy of a cubin of the test data, to change.
func readCubin(tb testing.TB, path string) []byte {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// assemble returns words for lines of text, each with an optional control code and
// label in front. A label after BRA stands for its address.
func assemble(tb testing.TB, t *isa.Table, lines string) []isa.Word {
	tb.Helper()
	labels := map[string]int{}
	var list []string
	for _, l := range strings.Split(lines, "\n") {
		l = strings.TrimSpace(l)
		if name, ok := strings.CutSuffix(l, ":"); ok {
			labels[name] = len(list)
		} else if l != "" {
			list = append(list, l)
		}
	}
	for name, at := range labels {
		for i := range list {
			list[i] = strings.ReplaceAll(list[i], name, fmt.Sprintf("%#x", at*isa.WordSize))
		}
	}
	code := patchtest.Code(tb, t, strings.Join(list, "\n"))
	var out []isa.Word
	for ; len(code) > 0; code = code[isa.WordSize:] {
		out = append(out, isa.LoadWord(code))
	}
	return out
}

// kernel returns a Code of the given words, padded with NOPs.
func kernel(tb testing.TB, t *isa.Table, words []isa.Word) *Code {
	tb.Helper()
	data := readCubin(tb, pairs+"sm_90/pair.cubin")
	c, err := elfx.ParseCubin(data)
	if err != nil {
		tb.Fatal(err)
	}
	k := &c.Kernels()[slices.IndexFunc(c.Kernels(), func(k elfx.Kernel) bool { return k.Name == "ffma_loop" })]
	nop := assemble(tb, patchtest.MiniTable(tb), "[B------:R-:W-:Y:S00] NOP")[0]
	for i := range int(k.Size) / isa.WordSize {
		w := nop
		if i < len(words) {
			w = words[i]
		}
		w.Store(data[int(k.Offset)+i*isa.WordSize:])
	}
	return NewCode(c, k, t)
}

func source(tb testing.TB, t *isa.Table, lines string) *Code {
	tb.Helper()
	return kernel(tb, t, assemble(tb, t, lines))
}

// both compares in both directions and checks that the results mirror each other.
func both(tb testing.TB, a, b *Code) *CodeDiff {
	tb.Helper()
	d, e := Compare(a, b), Compare(b, a)
	if d.Class != e.Class || d.Kinds != e.Kinds || d.Changed != e.Changed || d.Inserted != e.Deleted || d.Deleted != e.Inserted || d.Moved != e.Moved {
		tb.Errorf("%s %s ~%d +%d -%d ↕%d one way, %s %s ~%d +%d -%d ↕%d the other", d.Class, d.Kinds, d.Changed, d.Inserted, d.Deleted, d.Moved,
			e.Class, e.Kinds, e.Changed, e.Inserted, e.Deleted, e.Moved)
	}
	return d
}

// The program that the tests below change.
const program = `
	FFMA R1, R2, R3, R4
	@P0 LDG.E R6, desc[UR4][R8.64+0x10]
	L1:
	[B0-----:R-:W-:-:S04] IADD3 R6, R6, 0x4d, RZ
	FFMA R5, R6, R6, R1
	@!P0 BRA L1
	STG.E desc[UR4][R8.64], R5
	EXIT
	L2:
	BRA L2`

func TestClasses(t *testing.T) {
	table := patchtest.MiniTable(t)
	for _, test := range []struct {
		name   string
		change func(string) string
		class  Class
		says   string // in the fields of the changes
	}{
		{"nothing", func(s string) string { return s }, Identical, ""},
		{"padding behind an EXIT", func(s string) string { return strings.Replace(s, "EXIT\n", "EXIT\nNOP\nNOP\nNOP\n", 1) }, SameCode, ""},
		{"stall", func(s string) string { return strings.Replace(s, "S04", "S05", 1) }, ControlOnly, "stall: 4 → 5"},
		{"wait", func(s string) string { return strings.Replace(s, "[B0-----", "[B-1----", 1) }, ControlOnly, "wait: 0 → 1"},
		{"register", func(s string) string { return strings.ReplaceAll(s, "R6", "R7") }, RegistersOnly, "register: R6 → R7"},
		{"predicate", func(s string) string { return strings.ReplaceAll(s, "P0", "P1") }, RegistersOnly, "register: P0 → P1"},
		{"register here and not there", func(s string) string { return strings.Replace(s, "IADD3 R6, R6", "IADD3 R7, R6", 1) }, CodeDiffers, ""},
		{"two registers become one", func(s string) string { return strings.ReplaceAll(s, "R6", "R5") }, CodeDiffers, ""},
		{"register for RZ", func(s string) string { return strings.ReplaceAll(s, "RZ", "R20") }, CodeDiffers, "src3: RZ → R20"},
		{"address taken apart", func(s string) string { return strings.ReplaceAll(s, "R1\n", "R9\n") }, CodeDiffers, ""},
		{"modifier", func(s string) string { return strings.Replace(s, "LDG.E ", "LDG.E.EL ", 1) }, ModifiersOnly, "evict: none → EL"},
		{"modifier and stall", func(s string) string {
			return strings.Replace(strings.Replace(s, "LDG.E ", "LDG.E.EL ", 1), "S04", "S05", 1)
		}, ModifiersOnly, "evict: none → EL"},
		{"constant", func(s string) string { return strings.Replace(s, "0x4d", "0x4e", 1) }, CodeDiffers, "imm: 0x4d → 0x4e"},
		{"sign", func(s string) string { return strings.Replace(s, "R6, R6, R1", "-R6, R6, R1", 1) }, CodeDiffers, "src1: R6 → -R6"},
		{"negated guard", func(s string) string { return strings.Replace(s, "@P0 LDG", "@!P0 LDG", 1) }, CodeDiffers, "guard: @P0 → @!P0"},
		{"target", func(s string) string { return strings.Replace(s, "BRA L1", "BRA L2", 1) }, CodeDiffers, "target: 0x20 → 0x70"},
		{"opcode", func(s string) string { return strings.Replace(s, "FFMA R5", "IADD3 R5", 1) }, CodeDiffers, ""},
		{"insertion", func(s string) string { return strings.Replace(s, "FFMA R5", "FFMA R9, R9, R9, R9\nFFMA R5", 1) }, CodeDiffers, ""},
	} {
		src := program
		changed := test.change(src)
		if test.name == "opcode" {
			changed = strings.Replace(src, "FFMA R5, R6, R6, R1", "IADD3 R5, R6, 0x1, R1", 1)
		}
		d := both(t, source(t, table, src), source(t, table, changed))
		if d.Class != test.class {
			t.Errorf("%s: class %s, want %s", test.name, d.Class, test.class)
		}
		var fields []string
		for _, o := range d.Ops {
			for _, f := range d.Fields(o) {
				fields = append(fields, f.String())
			}
		}
		if !strings.Contains(strings.Join(fields, "; "), test.says) {
			t.Errorf("%s: changes %q, want %q", test.name, fields, test.says)
		}
	}
}

func TestHidden(t *testing.T) {
	table := patchtest.MiniTable(t)
	words := assemble(t, table, "QGMMA.E4M3.E5M2 R8, R24\nEXIT")
	a := kernel(t, table, words)
	words[0] = words[0].Or(isa.BitWord(40))
	d := both(t, a, kernel(t, table, words))
	if d.Class != HiddenOnly || d.Ops[0].Kinds != Hidden {
		t.Errorf("class %s, want hidden", d.Class)
	}
	if f := d.Fields(d.Ops[0]); f[0].String() != "bit 40: 0x0 → 0x1" {
		t.Errorf("fields %v", f)
	}
}

// TestWidths renames registers with and without those that operands mean beyond the one
// they name.
func TestWidths(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ src, named, other string }{
		{"LDG.E.64 R10, desc[UR4][R2.64]\nFFMA R0, R11, R11, R11", "R10=R20", "R11=R21"},
		{"LDG.E.128 R8, desc[UR4][R2.64]\nFFMA R0, R11, R11, R11", "R8=R20", "R11=R23"},
		{"STG.E.64 desc[UR4][R2.64], R10\nFFMA R0, R11, R11, R11", "R10=R20", "R11=R21"},
		{"ULDC.64 UR10, c[0x0][0x210]\nUIADD3 UR4, UR11, 0x1, URZ", "UR10=UR20", "UR11=UR21"},
		{"IMAD.WIDE R10, R2, 0x4, R12\nFFMA R0, R11, R11, R11", "R10=R20", "R11=R21"},
		{"IMAD.WIDE R10, R2, 0x4, R12\nFFMA R0, R13, R13, R13", "R12=R20", "R13=R21"},
		{"LDSM.16.M88.4 R8, [R2]\nFFMA R0, R11, R11, R11", "R8=R20", "R11=R23"},
		{"DADD R10, R2, R4\nFFMA R0, R11, R11, R11", "R10=R20", "R11=R21"},
		{"HMMA.16816.F32 R8, R12, R16, R24\nFFMA R0, R11, R11, R11", "R8=R40", "R11=R43"},
		{"HMMA.16816.F32 R8, R12, R16, R24\nFFMA R0, R27, R27, R27", "R24=R40", "R27=R43"},
		{"ATOMG.E.CAS.64 PT, R8, [R2], R12, R16\nFFMA R0, R13, R13, R13", "R12=R40", "R13=R41"},
		{"STSM.16.M88.4 [R2], R8\nFFMA R0, R11, R11, R11", "R8=R20", "R11=R23"},
		{"CCTL.E.PF1 [R10]\nFFMA R0, R11, R11, R11", "R10=R20", "R11=R21"},
	} {
		rename := func(src, what string) string {
			old, now, _ := strings.Cut(what, "=")
			return strings.ReplaceAll(src, old, now)
		}
		alone := rename(test.src, test.named)
		a, b, c := source(t, table, test.src), source(t, table, alone), source(t, table, rename(alone, test.other))
		if d := both(t, a, b); d.Class != CodeDiffers || a.Hash(HashNoRegs) == b.Hash(HashNoRegs) {
			t.Errorf("%q, %s alone: class %s", test.src, test.named, d.Class)
		}
		if d := both(t, a, c); d.Class != RegistersOnly || a.Hash(HashNoRegs) != c.Hash(HashNoRegs) {
			t.Errorf("%q, %s and %s: class %s", test.src, test.named, test.other, d.Class)
		}
	}
}

// TestFixedRegisters renames a predicate that another instruction reads by a mask.
func TestFixedRegisters(t *testing.T) {
	table, err := isa.Load(isa.Arch{SM: 90})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		mask string
		want Class
	}{{"0x1", CodeDiffers}, {"0x4", CodeDiffers}, {"0x2", RegistersOnly}} {
		src := "ISETP.LT.AND P0, PT, R3, R4, PT\nP2R R0, PR, RZ, " + test.mask
		a, b := source(t, table, src), source(t, table, strings.ReplaceAll(src, "P0", "P2"))
		if d := both(t, a, b); d.Class != test.want || (a.Hash(HashNoRegs) == b.Hash(HashNoRegs)) != (test.want == RegistersOnly) {
			t.Errorf("P2 for P0, mask %s: class %s, want %s", test.mask, d.Class, test.want)
		}
	}
}

// TestPairsStayTogether renames R8 of R8.64 without R9, which the instruction means too.
func TestPairsStayTogether(t *testing.T) {
	table := patchtest.MiniTable(t)
	src := "LDG.E R1, desc[UR4][R8.64]\nFFMA R2, R9, R9, R1\nEXIT"
	if d := both(t, source(t, table, src), source(t, table, strings.ReplaceAll(src, "R8.64", "R10.64"))); d.Class != CodeDiffers {
		t.Errorf("class %s where R9 is left behind", d.Class)
	}
	moved := strings.ReplaceAll(strings.ReplaceAll(src, "R8.64", "R10.64"), "R9", "R11")
	if d := both(t, source(t, table, src), source(t, table, moved)); d.Class != RegistersOnly {
		t.Errorf("class %s where the pair moves together", d.Class)
	}
}

// TestAlignment inserts, deletes and moves instructions.
func TestAlignment(t *testing.T) {
	table := patchtest.MiniTable(t)
	line := func(i int) string {
		return fmt.Sprintf("FFMA R%d, R%d, R%d, R%d\n", i%200, (i+7)%200, (i*3)%200, (i*5)%200)
	}
	var list []string
	for i := range 100 {
		list = append(list, line(i))
	}
	end := "EXIT\n"
	a := source(t, table, strings.Join(list, "")+end)
	var changed []string
	changed = append(changed, list[:10]...)
	changed = append(changed, line(1000), line(1001))
	changed = append(changed, list[10:20]...)
	changed = append(changed, list[25:60]...)
	changed = append(changed, list[70:90]...)
	changed = append(changed, list[60:70]...)
	changed = append(changed, list[90:]...)
	d := both(t, a, source(t, table, strings.Join(changed, "")+end))
	if d.Inserted != 2 || d.Deleted != 5 || d.Moved != 10 || d.Changed != 0 {
		t.Errorf("~%d +%d -%d ↕%d, want ~0 +2 -5 ↕10", d.Changed, d.Inserted, d.Deleted, d.Moved)
	}
}

// TestTargetsFollow moves the target of a branch by an insertion before it.
func TestTargetsFollow(t *testing.T) {
	table := patchtest.MiniTable(t)
	d := both(t, source(t, table, program), source(t, table, strings.Replace(program, "L1:", "FFMA R9, R9, R9, R9\nL1:", 1)))
	if d.Inserted != 1 || d.Changed != 0 || d.Deleted != 0 {
		t.Errorf("~%d +%d -%d, want one insertion: the branch leads to the same instruction", d.Changed, d.Inserted, d.Deleted)
	}
}

// TestUnknown compares words that no table knows.
func TestUnknown(t *testing.T) {
	words := []isa.Word{{Lo: 0x1ff, Hi: 1 << 45}, {Lo: 0x2ff, Hi: 1 << 45}, {Lo: 0x94d}}
	a := kernel(t, nil, words)
	if a.Unknown != 168 || a.Len() != 3 {
		t.Errorf("%d unknown words and %d instructions, want 168 and 3", a.Unknown, a.Len())
	}
	changed := slices.Clone(words)
	changed[1].Hi |= 3 << 41
	if d := both(t, a, kernel(t, nil, changed)); d.Class != ControlOnly || d.Changed != 1 {
		t.Errorf("another stall count: class %s, %d changed", d.Class, d.Changed)
	}
	changed[1] = isa.Word{Lo: 0x12ff, Hi: 1 << 45}
	d := both(t, a, kernel(t, nil, changed))
	if d.Class != CodeDiffers || d.Changed != 1 || fmt.Sprint(d.Fields(d.Ops[0])) != "[bit 12: 0x0 → 0x1]" {
		t.Errorf("another bit: class %s, %v", d.Class, d.Ops)
	}
}

// TestRandomControl changes control codes of every cubin of the test data at random.
func TestRandomControl(t *testing.T) {
	eachCubin(t, func(t *testing.T, data []byte, c *elfx.Cubin, k *elfx.Kernel, r *rand.Rand) {
		table := tableFor(c)
		a := NewCode(c, k, table)
		if a.Len() == 0 {
			return
		}
		changed := slices.Clone(data)
		want := map[int32]bool{}
		for range 1 + r.Intn(5) {
			i := r.Intn(a.Len())
			at := int(k.Offset) + int(a.PC(i))
			w := isa.LoadWord(changed[at:])
			w.Hi ^= uint64(1+r.Intn(1<<17-1)) << 41
			w.Store(changed[at:])
			if isa.LoadWord(data[at:]) != w {
				want[int32(i)] = true
			} else {
				delete(want, int32(i))
			}
		}
		d := both(t, a, recode(t, changed, k, table))
		if len(want) == 0 {
			return
		}
		if d.Class != ControlOnly || d.Kinds != Control || len(d.Ops) != len(want) {
			t.Errorf("%s: class %s %s with %d changes, want control-only with %d", k.Name, d.Class, d.Kinds, len(d.Ops), len(want))
		}
		for _, o := range d.Ops {
			if !want[o.A] {
				t.Errorf("%s: instruction %d is listed", k.Name, o.A)
			}
		}
	})
}

// TestRandomModifiers changes modifiers of known instructions at random.
func TestRandomModifiers(t *testing.T) {
	eachCubin(t, func(t *testing.T, data []byte, c *elfx.Cubin, k *elfx.Kernel, r *rand.Rand) {
		table := tableFor(c)
		a := NewCode(c, k, table)
		changed := slices.Clone(data)
		want := 0
		for i := range a.Len() {
			if w := a.Word(i); r.Intn(4) == 0 {
				if x, ok := otherModifier(a, w, r); ok {
					x.Store(changed[int(k.Offset)+int(a.PC(i)):])
					want++
				}
			}
		}
		if want == 0 {
			return
		}
		if d := both(t, a, recode(t, changed, k, table)); d.Class != ModifiersOnly || d.Changed != want {
			t.Errorf("%s: class %s (%s) with %d changes, want modifiers-only with %d", k.Name, d.Class, d.Kinds, d.Changed, want)
		}
	})
}

// otherModifier returns w with another value of one modifier of its opcode.
func otherModifier(a *Code, w isa.Word, r *rand.Rand) (isa.Word, bool) {
	in := a.decode(w)
	if in.Status != isa.StatusKnown {
		return w, false
	}
	before := a.Table.Split(in, 0)
	for _, g := range a.Table.Groups(in.Variant) {
		v := r.Intn(len(g.Values))
		x, err := g.Field.Set(w, uint64(v))
		if g.Operand >= 0 || err != nil || !g.Values[v].Legal || x == w {
			continue
		}
		now := a.decode(x)
		after := a.Table.Split(now, 0)
		if now.Status == isa.StatusKnown && before.Mnemonic == after.Mnemonic && slices.Equal(before.Operands, after.Operands) &&
			!slices.Equal(before.Mods, after.Mods) {
			return x, true
		}
	}
	return w, false
}

// TestModifiersOfTwoClasses changes a modifier that leads to another encoding class, before
// and after a change that does not.
func TestModifiersOfTwoClasses(t *testing.T) {
	data := readCubin(t, "../../testdata/cubin/new/sm_80/debug.cubin")
	c, err := elfx.ParseCubin(data)
	if err != nil {
		t.Fatal(err)
	}
	table := tableFor(c)
	change := map[string][2]string{"BPT": {"TRAP", "PAUSE"}, "EXIT": {"EXIT", "EXIT.PREEMPTED"}, "BRA": {"BRA ", "BRA.INC "}}
	for i := range c.Kernels() {
		k := &c.Kernels()[i]
		a := NewCode(c, k, table)
		changed := slices.Clone(data)
		want, classes := 0, 0
		for i := range a.Len() {
			w := a.Word(i)
			text := table.Text(a.decode(w), 0)
			to, ok := change[table.Split(a.decode(w), 0).Mnemonic]
			if !ok {
				continue
			}
			x, err := table.Encode(strings.Replace(text, to[0], to[1], 1), 0, &w)
			if err != nil {
				t.Fatal(err)
			}
			if x == w {
				continue
			}
			x.Store(changed[int(k.Offset)+int(a.PC(i)):])
			want++
			if a.decode(x).Variant != a.decode(w).Variant {
				classes++
			}
		}
		if want == 0 {
			continue
		}
		if d := both(t, a, recode(t, changed, k, table)); d.Class != ModifiersOnly || d.Changed != want {
			t.Errorf("%s: class %s (%s) with %d changes, %d of them to another encoding class, want modifiers-only with %d", k.Name, d.Class, d.Kinds, d.Changed, classes, want)
		}
	}
}

// moved returns w with its operand o at register n, or w where it cannot be.
func moved(c *Code, w isa.Word, o isa.Operand, n int) isa.Word {
	raw, by := int(o.Field.Get(w)), n-o.First
	for _, raw := range []int{raw + by, raw + by/2} { // a field of 7 bits may hold half the number
		x := o.Field.MustSet(w, uint64(raw))
		for _, p := range registers(nil, c.decode(x)) {
			if p.Place == o.Place && p.First == n {
				return x
			}
		}
	}
	return w
}

// TestRandomRegisters renames the registers of kernels of which every word is known.
func TestRandomRegisters(t *testing.T) {
	eachCubin(t, func(t *testing.T, data []byte, c *elfx.Cubin, k *elfx.Kernel, r *rand.Rand) {
		table := tableFor(c)
		a := NewCode(c, k, table)
		by := uint64(2 * (1 + r.Intn(20)))
		// The register after the last one is RZ.
		if a.Unknown > 0 || a.Len() == 0 || uint64(k.Regs)+by > 254 {
			return
		}
		changed := slices.Clone(data)
		some := false
		for i := range a.Len() {
			w := a.Word(i)
			x := w
			for _, s := range registers(nil, a.decode(w)) {
				if s.First >= 0 && s.File == isa.FileR {
					x = moved(a, x, s, s.First+int(by))
					some = true
				}
			}
			x.Store(changed[int(k.Offset)+int(a.PC(i)):])
		}
		if !some {
			return
		}
		b := recode(t, changed, k, table)
		if d := both(t, a, b); d.Class != RegistersOnly || d.Kinds != Registers {
			t.Errorf("%s: class %s (%s), want registers-only", k.Name, d.Class, d.Kinds)
		}
		if a.Hash(HashNoRegs) != b.Hash(HashNoRegs) || a.Hash(HashNoControl) == b.Hash(HashNoControl) {
			t.Errorf("%s: the hash noregs must be the same and nocontrol another", k.Name)
		}
	})
}

// TestHashAndRenaming changes registers at random and checks that the hash without
// registers is the same exactly where the class says that registers were renamed.
func TestHashAndRenaming(t *testing.T) {
	renamed := 0
	eachCubin(t, func(t *testing.T, data []byte, c *elfx.Cubin, k *elfx.Kernel, r *rand.Rand) {
		table := tableFor(c)
		a := NewCode(c, k, table)
		if a.Unknown > 0 || a.Len() == 0 {
			return
		}
		changed := slices.Clone(data)
		// One register becomes another one, everywhere or at some places.
		old, now, part := uint64(r.Intn(12)), uint64(r.Intn(24)), r.Intn(2)
		for i := range a.Len() {
			w := a.Word(i)
			x := w
			for _, s := range registers(nil, a.decode(w)) {
				if s.File == isa.FileR && s.First == int(old) && (part == 0 || r.Intn(8) > 0) {
					x = moved(a, x, s, int(now))
				}
			}
			x.Store(changed[int(k.Offset)+int(a.PC(i)):])
		}
		b := recode(t, changed, k, table)
		d := both(t, a, b)
		if d.Class == RegistersOnly {
			renamed++
		}
		if same := a.Hash(HashNoRegs) == b.Hash(HashNoRegs); same != (d.Class <= SameCode || d.Class == RegistersOnly && d.Kinds&Hidden == 0) {
			t.Errorf("%s: R%d for R%d: class %s (%s), hash noregs the same: %t", k.Name, now, old, d.Class, d.Kinds, same)
		}
	})
	if renamed == 0 {
		t.Error("no renaming was consistent")
	}
}

// TestHashAndBits changes bits at random and checks that the hashes are the same exactly
// where the class says so, and that both ways of comparing words agree.
func TestHashAndBits(t *testing.T) {
	seen := map[Class]int{}
	eachCubin(t, func(t *testing.T, data []byte, c *elfx.Cubin, k *elfx.Kernel, r *rand.Rand) {
		table := tableFor(c)
		a := NewCode(c, k, table)
		if k.Size == 0 {
			return
		}
		for range 4 {
			changed := slices.Clone(data)
			for range 1 + r.Intn(2) {
				at := int(k.Offset) + r.Intn(int(k.Size)/isa.WordSize)*isa.WordSize
				w := isa.LoadWord(changed[at:])
				w.Xor(isa.BitWord(r.Intn(128))).Store(changed[at:])
			}
			b := recode(t, changed, k, table)
			d := both(t, a, b)
			seen[d.Class]++
			if same := a.Hash(HashCode) == b.Hash(HashCode); same != (d.Class <= SameCode) {
				t.Errorf("%s: class %s, hash code the same: %t", k.Name, d.Class, same)
			}
			if same := a.Hash(HashNoControl) == b.Hash(HashNoControl); same != (d.Class <= SameCode || d.Kinds == Control) {
				t.Errorf("%s: class %s (%s), hash nocontrol the same: %t", k.Name, d.Class, d.Kinds, same)
			}
			for _, o := range d.Ops {
				kinds := Kinds(0)
				for _, f := range d.Fields(o) {
					kinds |= f.Kind
				}
				if kinds != o.Kinds {
					t.Errorf("%s: %s, in the fields %s: %v", k.Name, o.Kinds, kinds, d.Fields(o))
				}
			}
		}
	})
	for c := SameCode; c < numClasses; c++ {
		if seen[c] == 0 && c != RegistersOnly && c != SameCode && c != Reordered {
			t.Errorf("no class %s", c)
		}
	}
}

// recode returns the code of kernel k in changed data.
func recode(tb testing.TB, data []byte, k *elfx.Kernel, table *isa.Table) *Code {
	tb.Helper()
	c, err := elfx.ParseCubin(data)
	if err != nil {
		tb.Fatal(err)
	}
	for i := range c.Kernels() {
		if c.Kernels()[i].Index == k.Index {
			return NewCode(c, &c.Kernels()[i], table)
		}
	}
	tb.Fatalf("no kernel %s", k.Name)
	return nil
}

// tableFor returns the instruction table of a cubin.
func tableFor(c *elfx.Cubin) *isa.Table {
	table, err := TableFor(c)
	if err != nil {
		panic(err)
	}
	return table
}
