package isa

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// randomField returns a field of n bits in one to three ranges.
func randomField(r *rand.Rand, n int) Field {
	for {
		var f Field
		left := n
		for left > 0 {
			k := left
			if len(f) < 2 && r.IntN(3) == 0 {
				k = 1 + r.IntN(left)
			}
			f = append(f, Range{uint8(16 + r.IntN(75-min(k, 74))), uint8(k)})
			left -= k
		}
		if checkField(f) == nil {
			g, err := ParseField(f.String())
			if err == nil && slices.Equal(f, g) {
				return f
			}
		}
	}
}

var oddLiterals = []string{".E", "-", "[", "] ", " ", "  , ", "{5,4}", `\`, "|R", "a:b", "!illegal", "!", "???4", "*3", ".X*", `\*2`,
	"#1", "=", "R1", ".INVALID6", " | ", "s", "\\s", "{", "}"}

func randomAlt(r *rand.Rand) Alt {
	var a Alt
	for range r.IntN(4) {
		if r.IntN(2) == 0 {
			a = append(a, Elem{Lit: oddLiterals[r.IntN(len(oddLiterals))]})
			continue
		}
		s := Slot{Kind: Kind(1 + r.IntN(int(KindF32Q))), Shift: uint8(r.IntN(3)), Add: r.Int64N(5) - 2}
		n := 1 + r.IntN(maxRegBits)
		if s.Kind > KindUPred {
			n = 1 + r.IntN(40)
		}
		s.Field = randomField(r, n)
		if r.IntN(3) == 0 {
			s.Xor = r.Uint64() & (1<<n - 1)
		}
		if r.IntN(5) == 0 {
			s.Xor = 1<<n - 1
		}
		a = append(a, Elem{Slot: s})
	}
	return a
}

func randomPiece(r *rand.Rand) Piece {
	if r.IntN(2) == 0 {
		return Piece{Alts: []Alt{randomAlt(r)}}
	}
	var p Piece
	n := uint(0)
	for range 1 + r.IntN(3) {
		t := Test{Kind: TestKind(r.IntN(4)), Field: randomField(r, 1+r.IntN(4))}
		if t.Kind == TestEq {
			t.Arg = r.Uint64N(1 << t.Field.Width())
		}
		p.Tests = append(p.Tests, t)
		n += t.width()
	}
	for range 1 + r.IntN(6) {
		p.Alts = append(p.Alts, randomAlt(r))
	}
	for range 1 << n {
		switch r.IntN(8) {
		case 0:
			p.Table = append(p.Table, PieceIllegal)
		case 1:
			p.Table = append(p.Table, PieceSilent)
		case 2:
			p.Table = append(p.Table, PieceOther)
		default:
			p.Table = append(p.Table, uint16(r.IntN(len(p.Alts))))
		}
	}
	return p
}

func randomVariant(r *rand.Rand, i int) *Variant {
	v := &Variant{
		Class: fmt.Sprintf("class_%d", i),
		Mask:  opcodeMask.Or(Word{r.Uint64() & r.Uint64(), r.Uint64() & r.Uint64()}.AndNot(guardMask.Or(controlMask))),
		Guard: Guard(r.IntN(3)),
		Sched: Sched(r.IntN(16)),
		Rank:  uint8(max(r.IntN(600)-344, 0)),
	}
	v.Value = Word{r.Uint64(), r.Uint64()}.And(v.Mask)
	v.Ignored = Word{r.Uint64(), r.Uint64() >> 24}.AndNot(v.Mask.Or(guardMask))
	v.Default = v.Ignored.And(Word{r.Uint64() & r.Uint64(), r.Uint64()})
	if r.IntN(3) == 0 {
		v.Default = v.Default.Or(BitWord(70 + r.IntN(20))).AndNot(v.Mask)
	}
	v.Template = []Piece{{Alts: []Alt{{{Lit: []string{"LDG", "IMAD", "BRA"}[r.IntN(3)]}}}}}
	for range r.IntN(8) {
		v.Template = append(v.Template, randomPiece(r))
	}
	return v
}

// TestTableRoundTrip writes tables of random variants and reads them back.
func TestTableRoundTrip(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	f := &TableFile{Arch: Arch{90, "a"}, Tool: "13.5.37"}
	for i := range 200 {
		v := randomVariant(r, i)
		if err := v.Check(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		f.Variants = append(f.Variants, v)
	}
	text, err := FormatTable(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTable(string(text), nil)
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	compareTables(t, seed, got, f)
	testLazy(t, seed, map[string]string{f.Arch.String(): string(text)}, f.Arch, f)
	testDelta(t, r, seed, got)
}

// testLazy reads the table of a by an index of texts, completes all of it from several
// goroutines, and compares it with want.
func testLazy(t *testing.T, seed uint64, texts map[string]string, a Arch, want *TableFile) {
	t.Helper()
	index, err := IndexTables(texts)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	store, err := newTableStore(string(index), func(a Arch) io.ReaderAt { return strings.NewReader(texts[a.String()]) })
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	tab, err := store.load(a)
	if err != nil || tab == nil {
		t.Fatalf("seed %d: %v, %v", seed, tab, err)
	}
	for i := range tab.cands {
		if c, names := &tab.cands[i], tab.cands[i].mnemonics(); c.pending == nil || c.v.Template != nil || !slices.Equal(names, want.named(c.v)) {
			t.Fatalf("seed %d: class %s has the names %q", seed, c.v.Class, names)
		}
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for _, v := range want.Variants {
				tab.Text(tab.Decode(v.Value), 0)
			}
			tab.Groups(tab.Variants()[0])
		})
	}
	wg.Wait()
	if d := cmp.Diff(NewTable(a, want.Variants).tried(), tab.tried()); d != "" {
		t.Fatalf("seed %d: a table by index differs (-whole +index):\n%s", seed, d)
	}
	if d := cmp.Diff(sortVariants(want.Variants), sortVariants(tab.Variants())); d != "" {
		t.Fatalf("seed %d: a table by index differs (-written +read):\n%s", seed, d)
	}
}

// named returns the mnemonics of the variant that v is before it is read.
func (f *TableFile) named(v *Variant) []string {
	for _, x := range f.Variants {
		if variantKey(x) == variantKey(v) {
			return x.Mnemonics()
		}
	}
	return nil
}

// tried returns the variants in the order in which they are tried, and the places of those
// of each opcode.
func (t *Table) tried() (out []string) {
	for op := range numOpcodes {
		for i := t.first[op]; i < t.first[op+1]; i++ {
			out = append(out, fmt.Sprint(op, " ", variantKey(t.cands[i].v)))
		}
	}
	return out
}

func compareTables(t *testing.T, seed uint64, got, want *TableFile) {
	t.Helper()
	if got.Arch != want.Arch || got.Tool != want.Tool || got.Base != want.Base {
		t.Errorf("header: got %v %q %v", got.Arch, got.Tool, got.Base)
	}
	if d := cmp.Diff(sortVariants(want.Variants), sortVariants(got.Variants)); d != "" {
		t.Fatalf("seed %d: read differs from written (-written +read):\n%s", seed, d)
	}
}

// testDelta changes some variants of base and writes the difference.
func testDelta(t *testing.T, r *rand.Rand, seed uint64, base *TableFile) {
	f := &TableFile{Arch: Arch{100, ""}, Tool: "13.5.37", Base: base.Arch}
	for i, v := range base.Variants {
		switch r.IntN(10) {
		case 0: // dropped
		case 1:
			w := *v
			w.Sched ^= 1
			f.Variants = append(f.Variants, &w)
		case 2:
			f.Variants = append(f.Variants, v, randomVariant(r, 1000+i))
		default:
			f.Variants = append(f.Variants, v)
		}
	}
	// Two variants of one opcode change places.
	a, b := *f.Variants[3], *f.Variants[3]
	a.Class, b.Class = "swap_a", "swap_b"
	f.Variants = append(f.Variants, &b, &a)
	text, err := FormatTable(f, base)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseTable(string(text), func(a Arch) (*TableFile, error) { return base, nil })
	if err != nil {
		t.Fatalf("seed %d: %v\n%s", seed, err, text)
	}
	compareTables(t, seed, got, f)
	baseText, err := FormatTable(base, nil)
	if err != nil {
		t.Fatal(err)
	}
	testLazy(t, seed, map[string]string{f.Arch.String(): string(text), base.Arch.String(): string(baseText)}, f.Arch, got)
	for i, j := 0, len(f.Variants)-1; i < j; i, j = i+1, j-1 {
		f.Variants[i], f.Variants[j] = f.Variants[j], f.Variants[i]
	}
	if text, err = FormatTable(f, base); err != nil {
		t.Fatal(err)
	}
	if got, err = ParseTable(string(text), func(a Arch) (*TableFile, error) { return base, nil }); err != nil {
		t.Fatalf("seed %d: reversed: %v\n%s", seed, err, text)
	}
	compareTables(t, seed, got, f)
}

const sampleTable = `arch sm_90
nvdisasm 13.5.37
list evict = .EF | - | .EL | .LU | .EU | .NA | .INVALID6 | .INVALID7
list special = SR_LANEID | SR_CLOCK | !illegal*2

class ldg 0x0381 76=0 reuse=a
  text LDG{72?.E}{84:86 evict} {16:23 R}, {#1}{64:66=7?:, {64:66 P ~}}
  #1 72 24:31=255
    0 1 = !illegal
    - 1 = [{40:63 hex}]
    - - = [{24:31 R}{72 dec <<2 +1}]
  hidden 92 101:104=3

class s2r 0x0919 uniform guard=UP
  text S2R {16:23 R}, \{{72:73 special}\}
`

func TestParseTable(t *testing.T) {
	f, err := ParseTable(sampleTable, nil)
	if err != nil {
		t.Fatal(err)
	}
	ldg, s2r := f.Variants[0], f.Variants[1]
	if ldg.Class != "ldg" || ldg.Sched != 1 || ldg.Ignored != (Word{Hi: 1<<28 | 15<<37}) || ldg.Default != (Word{Hi: 3 << 37}) {
		t.Errorf("ldg: %+v", ldg)
	}
	if s2r.Sched != SchedUniform || s2r.Guard != GuardUP || s2r.Mask != opcodeMask || s2r.Value != (Word{Lo: 0x919}) {
		t.Errorf("s2r: %+v", s2r)
	}
	tab := NewTable(f.Arch, f.Variants)
	for _, c := range []struct {
		w    Word
		want string
	}{
		{Word{0x0000000000047381, 0x000fe20000100107}, "LDG.E R4, [R05]"},
		{Word{0x00001000ff041381, 0x000fe20000200100}, "@P1 LDG.E.EL R4, [0x10], PT"},
		{Word{0x00001000ff047381, 0x000fe20000000006}, ".illegal 0x00001000ff047381, 0x000fe20000000006"},
		{Word{0x000000000004f919, 0x000fe20000000100}, "@!UPT S2R R4, {SR_CLOCK}"},
		{Word{0x000000000004f919, 0x000fe20000000200}, ".illegal 0x000000000004f919, 0x000fe20000000200"},
		{Word{0x000000000004f381, 0x000fe20000001000}, ".word 0x000000000004f381, 0x000fe20000001000"},
	} {
		if got := tab.Text(tab.Decode(c.w), 0); got != c.want {
			t.Errorf("%v: got %q, want %q", c.w, got, c.want)
		}
	}
	text, err := FormatTable(f, nil)
	if want := sampleTable; err != nil || string(text) != want {
		t.Errorf("written again: %v\n%s", err, cmp.Diff(want, string(text)))
	}
}

func TestParseTableErrors(t *testing.T) {
	const head = "arch sm_90\nclass a 0x1\n  text "
	for _, c := range []struct{ text, want string }{
		{"", "line 0: no arch line"},
		{"arch sm_x", "line 1: "},
		{"foo", "line 1: \"foo\" is none of"},
		{"arch sm_90\nclass a 0x2000", "line 2: opcode"},
		{"arch sm_90\nclass a 0x1 12=1", "class a: guard or schedule"},
		{"arch sm_90\nclass a 0x1 reuse=d", "slots are a, b and c"},
		{"arch sm_90\nclass a 0x1 76=2", "line 2: value 0x2 does not fit"},
		{"arch sm_90\n  text a", "belongs to nothing"},
		{"arch sm_90\nclass a 0x1\nclass a 0x1\n", "a second class a 0x0001"},
		{"arch sm_90\nlist R = a | b", "a list is written"},
		{"arch sm_90\nlist x = a | b | c\narch", "line 3: list x: 3 entries"},
		{"base sm_80", "line 1: no table for the base sm_80"},
		{"drop a 0x1", "line 1: the base has no class a 0x1"},
		{head + "{", "line 3: a { without its }"},
		{head + "}", "without anything after it"},
		{head + "a\\", "backslash at the end"},
		{head + "{1}", "neither an operand nor a choice"},
		{head + "{200 R}", "bad bit range"},
		{head + "{16:23 foo}", "neither a kind of operand nor a list"},
		{head + "{16:23 R +x}", "none of ~"},
		{head + "{16:23?a}", "more than one bit"},
		{head + "{16?{17?a}}", "no operand"},
		{head + "{#1}", "{#1} is not described"},
		{head + "{#2}", "should be {#1}"},
		{head + "{#1}\n  #2 1", "no {#2}"},
		{head + "{#1}\n  #1 16:40", "more than 16 bits"},
		{head + "{#1}\n  #1 16\n    1 = a", "leave 1 of 2 cases open"},
		{head + "{#1}\n  #1 16\n    10 = a", "should be 1 bits for 16"},
		{head + "{#1}\n  #1 16\n    1 0 = a", "no test for these bits"},
		{head + "{#1}\n  #1 16\n    x = a", "a bit is 0, 1 or -"},
		{head + "{#1}\n  #1 16\n    1", "a pattern is written"},
		{head + "{16:40 R}", "a register of 25 bits"},
	} {
		f, err := ParseTable(c.text, nil)
		if f != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, %v, want an error with %q", c.text, f, err, c.want)
		}
	}
}

// FuzzParseTable checks that no text makes the package panic, and that what it reads
// can be written, and read again as the same.
func FuzzParseTable(f *testing.F) {
	f.Add(sampleTable)
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseTable(s, nil)
		if err != nil {
			return
		}
		text, err := FormatTable(a, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseTable(string(text), nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		compareTables(t, 0, b, a)
		tab := NewTable(a.Arch, a.Variants)
		for _, v := range a.Variants {
			tab.Text(tab.Decode(v.Value.Or(v.Default)), 0)
		}
	})
}
