package check

import (
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
)

const table = `arch sm_90
list kind = !illegal | .A | .B | !silent

class a 0x0001
  text AAA{72?.X} {16:23 R}{24:31=0?:, {24:31 R}}
  hidden 32:39

class b 0x0002
  text BBB{72:73 kind}
`

func parse(t *testing.T) *isa.TableFile {
	t.Helper()
	f, err := isa.ParseTable(table, nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRun(t *testing.T) {
	f := parse(t)
	tab := isa.NewTable(f.Arch, f.Variants)
	// An nvdisasm that thinks otherwise of b: value 0 is legal and 1 is .C.
	oracle := func(words []isa.Word) ([]Answer, error) {
		var out []Answer
		for _, w := range words {
			a := Answer{Text: tab.Text(tab.Decode(w), 0)}
			switch {
			case strings.HasPrefix(a.Text, ".silent"):
				a.Text = ""
			case strings.HasPrefix(a.Text, ".word"):
				a = Answer{Refused: true}
			case strings.HasPrefix(a.Text, ".illegal"):
				a.Text = "BBB"
			}
			a.Text = strings.Replace(a.Text, "BBB.A", "BBB.C", 1)
			out = append(out, a)
		}
		return out, nil
	}
	control := isa.DefaultControl.Set(isa.Word{}).Hi
	word := func(lo, hi uint64) isa.Word { return isa.Word{Lo: lo | 7<<12, Hi: hi<<8 | control} }
	real := []isa.Word{word(1, 1), word(1|5<<16|7<<24, 0), word(2, 0), word(2, 1), word(2, 2), word(2, 3), word(3, 0)}
	rep, err := Run(tab, oracle, real, Options{Examples: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := Tally{Words: 7, Accepted: 6, Equal: 4, Refused: 1, RefusedToo: 1, Reencoded: 4, EncodedText: 4, EncodedSame: 4}
	if rep.Real != want {
		t.Errorf("got %+v, want %+v", rep.Real, want)
	}
	if len(rep.Kinds) != 2 || rep.Kinds[0].What != "has another text" || rep.Kinds[1].What != "is refused, nvdisasm accepts it" {
		t.Errorf("disagreements: %+v", rep.Kinds)
	}
}

func TestInheritDefaults(t *testing.T) {
	mask := isa.Bits(0, 11).Mask().Or(isa.BitWord(91))
	base := []*isa.Variant{{Class: "a", Mask: mask, Default: isa.Word{Lo: 5 << 32}, Rank: 2}, {Class: "b", Mask: mask, Default: isa.Word{Lo: 7 << 32}}}
	vs := []*isa.Variant{{Class: "a", Mask: mask.Or(isa.BitWord(32))}, {Class: "c", Mask: mask, Default: isa.Word{Lo: 1 << 40}, Rank: 1}}
	InheritDefaults(vs, base)
	if vs[0].Default != (isa.Word{Lo: 4 << 32}) || vs[0].Rank != 2 || !vs[1].Default.IsZero() || vs[1].Rank != 0 {
		t.Errorf("%+v, %+v", vs[0], vs[1])
	}
}

func TestFitDefaults(t *testing.T) {
	f := parse(t)
	hi := isa.DefaultControl.Set(isa.Word{}).Hi
	var words []isa.Word
	for r := range uint64(10) {
		words = append(words, isa.Word{Lo: 1 | 7<<12 | r<<16 | 0x5a<<32, Hi: hi})
	}
	words = append(words, isa.Word{Lo: 1 | 7<<12 | 0x11<<32, Hi: hi})
	if n := FitDefaults(f.Arch, f.Variants, words); n != 1 || f.Variants[0].Default != (isa.Word{Lo: 0x5a << 32}) {
		t.Errorf("%d changed, default %v", n, f.Variants[0].Default)
	}
	tab := isa.NewTable(f.Arch, f.Variants)
	if w, err := tab.Encode("AAA R3", 0, nil); err != nil || w != words[3] {
		t.Errorf("got %v, %v, want %v", w, err, words[3])
	}
}
