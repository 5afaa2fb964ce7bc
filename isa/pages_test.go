package isa_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/scripts/nv/oracletest"
)

// A pageVariant is one variant of a file in testdata/pages, whose head explains the format.
type pageVariant struct {
	Key, Form, Distilled, Template string
	Archs                          []string
	Const, Mask                    isa.Word
	Fields                         []pageField
	Refused                        [][]string // architecture, group, value
}

type pageField struct {
	Name   string
	Bits   isa.Field
	Kind   string
	Flag   string   // text of a flag that is set
	Unset  []string // text of a flag that is not set although a group is 1, and that group
	Values []string // of a group: the modifier for each value
}

// loadPages reads all files of testdata/pages.
func loadPages(tb testing.TB) []*pageVariant {
	tb.Helper()
	files, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil || len(files) != 5 {
		tb.Fatalf("testdata/pages: %d files, %v", len(files), err)
	}
	var all []*pageVariant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		var archs []string
		for n, line := range strings.Split(string(text), "\n") {
			word, rest, _ := strings.Cut(line, " ")
			switch word {
			case "", "#":
			case "arch":
				archs = strings.Fields(rest)
			case "variant":
				all = append(all, &pageVariant{Key: rest, Archs: archs})
			default:
				if err := all[len(all)-1].set(word, rest); err != nil {
					tb.Fatalf("%s:%d: %v", file, n+1, err)
				}
			}
		}
	}
	return all
}

func (v *pageVariant) set(word, rest string) error {
	switch word {
	case "form":
		v.Form = rest
	case "distilled":
		v.Distilled = rest
	case "text":
		v.Template = rest
	case "const":
		for _, c := range strings.Fields(rest) {
			bits, value, _ := strings.Cut(c, "=")
			f, err := isa.ParseField(bits)
			if err != nil {
				return err
			}
			x, err := strconv.ParseUint(value, 0, 64)
			if err != nil {
				return err
			}
			if v.Const, err = f.Set(v.Const, x); err != nil {
				return err
			}
			v.Mask = v.Mask.Or(f.Mask())
		}
	case "refused":
		v.Refused = append(v.Refused, strings.Fields(rest))
	case "field", "group":
		words := strings.Fields(rest)
		f, err := isa.ParseField(words[1])
		if err != nil {
			return err
		}
		pf := pageField{Name: words[0], Bits: f, Kind: "group", Values: words[2:]}
		if word == "field" {
			pf.Kind, pf.Values, pf.Flag = words[2], nil, words[0]
			if len(words) > 3 {
				pf.Flag, pf.Unset = words[3], words[4:]
			}
		} else if len(pf.Values) != 1<<f.Width() {
			return fmt.Errorf("group %s of %d bits has %d values", pf.Name, f.Width(), len(pf.Values))
		}
		v.Fields = append(v.Fields, pf)
	default:
		return fmt.Errorf("unknown line %q", word)
	}
	return nil
}

// text puts the text of w together from the facts of the page alone.
func (v *pageVariant) text(w isa.Word, arch string) string {
	guard := ""
	if p, not := w.Lo>>12&7, w.Lo>>15&1; p != 7 || not == 1 {
		guard = "@" + strings.Repeat("!", int(not)) + pred(p) + " "
	}
	return guard + strings.TrimRight(regexp.MustCompile(`{[^}]*}`).ReplaceAllStringFunc(v.Template, func(name string) string {
		return v.piece(v.field(strings.Trim(name, "{}")), w, arch)
	}), " ")
}

func (v *pageVariant) field(name string) pageField {
	for _, f := range v.Fields {
		if f.Name == name {
			return f
		}
	}
	panic("no field " + name)
}

// refused reports whether w has a value that nvdisasm refuses on arch.
func (v *pageVariant) refused(w isa.Word, arch string) bool {
	for _, r := range v.Refused {
		if r[0] == arch && fmt.Sprint(v.field(r[1]).Bits.Get(w)) == r[2] {
			return true
		}
	}
	return false
}

func pred(p uint64) string {
	if p == 7 {
		return "PT"
	}
	return "P" + strconv.FormatUint(p, 10)
}

// not returns "!" if the negation that belongs to field f is set in w.
func (v *pageVariant) not(f pageField, w isa.Word) string {
	for _, n := range v.Fields {
		if n.Name == f.Name+".not" && n.Bits.Get(w) == 1 {
			return "!"
		}
	}
	return ""
}

func (v *pageVariant) piece(f pageField, w isa.Word, arch string) string {
	x, full := f.Bits.Get(w), uint64(1)<<f.Bits.Width()-1
	choose := func(on bool, s string) string {
		if on {
			return s
		}
		return ""
	}
	switch f.Kind {
	case "reg", "addr":
		if x == full {
			return "RZ"
		}
		return fmt.Sprintf("R%d", x)
	case "ureg":
		if x == urz(arch) {
			return "URZ"
		}
		return fmt.Sprintf("UR%d", x)
	case "outpred":
		return choose(x != 7, pred(x)+", ")
	case "inpred":
		not := v.not(f, w)
		return choose(x != 0 || not != "", ", "+not+pred(7-x))
	case "pred":
		return v.not(f, w) + pred(x)
	case "neg":
		return choose(x == 1, "-")
	case "inv":
		return choose(x == 1, "~")
	case "hex":
		return fmt.Sprintf("%#x", x)
	case "mask":
		return choose(x != full, fmt.Sprintf(", %#x", x))
	case "offset", "offset32":
		s := int64(x<<(64-f.Bits.Width())) >> (64 - f.Bits.Width())
		if f.Kind == "offset32" {
			s *= 32
		}
		return choose(s != 0, fmt.Sprintf("+%#x", s))
	case "flag":
		if len(f.Unset) == 2 && x == 0 {
			return choose(v.field(f.Unset[1]).Bits.Get(w) == 1, "."+f.Unset[0])
		}
		return choose(x == 1, "."+f.Flag)
	case "group":
		return choose(f.Values[x] != "-", "."+f.Values[x])
	}
	panic("no kind " + f.Kind)
}

// urz returns the number of the uniform register that is always zero.
func urz(arch string) uint64 {
	if sm, _ := strconv.Atoi(strings.TrimRight(arch[3:], "af")); sm < 100 {
		return 63
	}
	return 255
}

// random returns v's constant bits with random legal values in all fields, a random guard
// and a control code that every class has: stall 1–11, no reuse.
func (v *pageVariant) random(rng *rand.Rand, arch string) isa.Word {
	w := v.Const
	for _, f := range v.Fields {
		x := rng.Uint64() & (1<<f.Bits.Width() - 1)
		switch {
		case rng.IntN(8) == 0:
			x = 0
		case rng.IntN(8) == 0:
			x = 1<<f.Bits.Width() - 1
		}
		if f.Kind == "addr" && x == 255 {
			x = 254
		}
		if f.Kind == "ureg" {
			x %= urz(arch)
		}
		w = mustSet(f.Bits, w, x)
	}
	w = mustSet(isa.Bits(12, 15), w, rng.Uint64N(16))
	w = mustSet(isa.Bits(105, 109), w, 16+1+rng.Uint64N(11))
	return mustSet(isa.Bits(110, 121), w, rng.Uint64N(1<<12))
}

func mustSet(f isa.Field, w isa.Word, x uint64) isa.Word {
	w, err := f.Set(w, x)
	if err != nil {
		panic(err)
	}
	return w
}

// words returns the words to try for v: all fields zero, every value of every group and
// flag with random values elsewhere, and n random words.
func (v *pageVariant) words(rng *rand.Rand, arch string, n int) []isa.Word {
	out := []isa.Word{mustSet(isa.Bits(105, 109), v.Const, 17)}
	for _, f := range v.Fields {
		if f.Bits.Width() > 6 || f.Kind == "ureg" {
			continue
		}
		for x := uint64(0); x < 1<<f.Bits.Width(); x++ {
			out = append(out, mustSet(f.Bits, v.random(rng, arch), x))
		}
	}
	for range n {
		out = append(out, v.random(rng, arch))
	}
	return out
}

func TestPagesAreWhole(t *testing.T) {
	pages := loadPages(t)
	if len(pages) != 50 {
		t.Errorf("%d variants, want 50", len(pages))
	}
	optional := regexp.MustCompile(`\+0x1\b|\+0x20\b|, P6`)
	for _, v := range pages {
		used, total := v.Mask, v.Mask.OnesCount()
		for _, f := range v.Fields {
			used, total = used.Or(f.Bits.Mask()), total+f.Bits.Width()
		}
		if want := isa.Bits(0, 11).Mask().Or(isa.Bits(16, 63).Mask()).Or(isa.Bits(64, 104).Mask()); used != want || total != want.OnesCount() {
			t.Errorf("%s %s: bits missing or used twice: %v, %d bits", v.Key, v.Form, used.Xor(want), total)
		}
		got, want := v.text(v.Const, v.Archs[0]), optional.ReplaceAllString(v.Distilled, "")
		if got != want {
			t.Errorf("%s %s: text %q, distilled %q", v.Key, v.Form, got, want)
		}
	}
}

// TestPagesOracle shows that the facts of the pages are nvdisasm's.
func TestPagesOracle(t *testing.T) {
	oracletest.Tool(t, "nvdisasm")
	n := 300
	if testing.Short() {
		n = 10
	}
	byArch := map[string][]*pageVariant{}
	for _, v := range loadPages(t) {
		for _, a := range v.Archs {
			byArch[a] = append(byArch[a], v)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for arch, variants := range byArch {
		var words []isa.Word
		var want []string
		for _, v := range variants {
			for _, w := range v.words(rng, arch, n) {
				words = append(words, w)
				if v.refused(w, arch) {
					want = append(want, "")
				} else {
					want = append(want, v.text(w, arch))
				}
			}
		}
		bad := 0
		for i, got := range oracletest.Disassemble(t, arch, words) {
			if got.Text != want[i] && bad < 10 {
				bad++
				t.Errorf("%s %v: the page says %q, nvdisasm %q %s", arch, words[i], want[i], got.Text, got.Refused)
			}
		}
	}
}
