package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// otherwise is an nvdisasm that thinks otherwise of the table: value 0 of BBB is legal and
// value 1 is .C, schedule 2 of AAA is refused, and there is a class c.
func otherwise(tab *isa.Table) Oracle {
	return func(words []isa.Word) ([]Answer, error) {
		var out []Answer
		for _, w := range words {
			in := tab.Decode(w)
			a := Answer{Text: tab.Text(in, 0)}
			switch {
			case in.BadSched:
				a = Answer{Refused: true, Class: in.Variant.Class, Table: "TABLES_opex_0"}
			case strings.HasPrefix(a.Text, ".silent"):
				a.Text = ""
			case strings.HasPrefix(a.Text, ".word"):
				a = Answer{Refused: true}
				if w.Opcode() == 3 {
					a.Class = "c"
				}
			case strings.HasPrefix(a.Text, ".illegal"):
				a.Text = "BBB"
			case isa.ControlOf(w).Schedule() == 2 && in.Variant.Class == "a":
				a = Answer{Refused: true, Class: "a", Table: "TABLES_opex_0"}
			}
			a.Text = strings.Replace(a.Text, "BBB.A", "BBB.C", 1)
			out = append(out, a)
		}
		return out, nil
	}
}

func TestRun(t *testing.T) {
	f := parse(t)
	tab := isa.NewTable(f.Arch, f.Variants)
	control := isa.DefaultControl.Set(isa.Word{}).Hi
	word := func(lo, hi uint64) isa.Word { return isa.Word{Lo: lo | 7<<12, Hi: hi<<8 | control} }
	two := isa.Control{Stall: 2, Yield: true, WBar: 7, RBar: 7}.Set(word(1, 0))
	real := []isa.Word{word(1, 1), word(1|5<<16|7<<24, 0), word(2, 0), word(2, 1), word(2, 2), word(2, 3), word(3, 0), word(4, 0), two}
	rep, err := Run(tab, otherwise(tab), real, Options{Examples: 1})
	if err != nil {
		t.Fatal(err)
	}
	want := []Sort{{"real", Tally{Words: 9, Accepted: 6, Equal: 4, Silent: 1, Refused: 3, RefusedToo: 2, Reencoded: 3, EncodedText: 3, EncodedSame: 3,
		TextDiffers: 1, NotKnown: 1, Schedule: 1, NewClass: 1}}}
	if d := cmp.Diff(want, rep.Sorts); d != "" {
		t.Error(d)
	}
	var kinds []string
	for _, k := range rep.Kinds {
		kinds = append(kinds, k.Class+" "+k.What)
	}
	slices.Sort(kinds)
	if want := []string{"a has a schedule value that nvdisasm refuses", "b has another text", "b is refused, nvdisasm accepts it",
		"c is a class that the table does not have"}; !slices.Equal(kinds, want) {
		t.Errorf("disagreements: %q", kinds)
	}
	if !rep.Complete || rep.ClassesInTable != 2 {
		t.Errorf("complete %v, %d classes", rep.Complete, rep.ClassesInTable)
	}
}

// Words that are made without the table find all that the oracle thinks otherwise.
func TestBlind(t *testing.T) {
	f := parse(t)
	tab := isa.NewTable(f.Arch, f.Variants)
	start := isa.Word{Lo: 1 | 7<<12, Hi: isa.DefaultControl.Set(isa.Word{}).Hi}
	opt := Options{Words: 30000, Start: []isa.Word{start}, Related: []*isa.Table{tab}}
	rep, err := Run(tab, otherwise(tab), nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	var all Tally
	var sorts []string
	for _, s := range rep.Sorts {
		sorts = append(sorts, s.Name)
		all.add(&s.Tally)
	}
	if want := []string{"names", "uniform", "flips", "splices", "windows", "transplants"}; !slices.Equal(sorts, want) {
		t.Errorf("sorts %q", sorts)
	}
	if all.Words != 180000 || all.TextDiffers == 0 || all.NotKnown == 0 || all.Schedule == 0 || all.NewClass == 0 || rep.Classes == 0 {
		t.Errorf("%+v, %d classes", all, rep.Classes)
	}

	// A run that is stopped and gone on with finds the same.
	var kept []Batch
	n := 0
	opt.Stop = func() bool { n++; return n > 4 }
	opt.Done = func(b Batch) { kept = append(kept, b) }
	part, err := Run(tab, otherwise(tab), nil, opt)
	if err != nil || part.Complete || len(kept) != 4 {
		t.Fatalf("%v, complete %v, %d batches", err, part.Complete, len(kept))
	}
	opt.Stop, opt.Before = nil, kept
	again, err := Run(tab, otherwise(tab), nil, opt)
	if d := cmp.Diff(rep, again); err != nil || d != "" {
		t.Error(err, d)
	}
	if len(kept) != 12 {
		t.Errorf("%d batches in all", len(kept))
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
