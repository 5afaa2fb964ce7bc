package diff

import (
	"slices"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// Instructions of which operands stand for more registers than they name.
var (
	doubles = []string{"DADD", "DFMA", "DMNMX", "DMUL", "DSETP"}
	// As many as their size says: what is loaded, the first register after the guard,
	// and what is stored, the last operand.
	loads  = []string{"ATOM", "ATOMG", "ATOMS", "LD", "LDC", "LDCU", "LDG", "LDL", "LDS", "ULDC"}
	stores = []string{"ATOM", "ATOMG", "ATOMS", "RED", "REDG", "ST", "STG", "STL", "STS"}
	// WIDE: the result, and what is added to it.
	multiplies = []string{"IMAD", "UIMAD"}
)

// A width says how many registers the operands of an instruction stand for: all of those
// in R, or the first and the last one. 0 is as many as they name.
type width struct{ all, first, last int }

// A wideKind says for which operands of an instruction a width is to be looked for.
type wideKind uint8

const (
	wideAll   wideKind = 1 << iota // doubles
	wideFirst                      // loads
	wideLast                       // stores
	wideMultiply
	wideMatrix
)

func wideKindOf(mnemonic string) (k wideKind) {
	for _, x := range []struct {
		kind  wideKind
		names []string
	}{{wideAll, doubles}, {wideFirst, loads}, {wideLast, stores}, {wideMultiply, multiplies}, {wideMatrix, []string{"LDSM"}}} {
		if slices.Contains(x.names, mnemonic) {
			k |= x.kind
		}
	}
	return k
}

// widthOf returns what the name and the size of an instruction say; what they leave open,
// such as the operands of matrix instructions, counts as one register.
func widthOf(t *isa.Table, in isa.Inst) width {
	k := wideKindOf(in.Mnemonic())
	switch k {
	case 0:
		return width{}
	case wideAll:
		return width{all: 2}
	}
	n := 0
	p := t.Split(in, 0)
	switch {
	case k == wideMatrix: // one, two or four matrices
		k = wideFirst
		for _, m := range p.Mods {
			if m == "2" || m == "4" {
				n = int(m[0] - '0')
			}
		}
	case k == wideMultiply:
		if slices.Contains(p.Mods, "WIDE") {
			k, n = wideFirst|wideLast, 2
		}
	default:
		n = in.Memory().Bytes / 4
	}
	var w width
	if n > 1 && k&wideFirst != 0 {
		w.first = n
	}
	if last := len(p.Operands) - 1; n > 1 && k&wideLast != 0 && last > 0 && strings.Trim(p.Operands[last], "-UR0123456789") == "" {
		w.last = n
	}
	return w
}

// counts appends to dst how many registers each of regs, those of an instruction of width
// w with its guard first, stands for.
func (w width) counts(dst []int, regs []isa.Operand) []int {
	first, last := -1, -1
	for i, s := range regs {
		n := s.Count
		if s.File == isa.FileR || s.File == isa.FileUR {
			if last = i; first < 0 {
				first = i
			}
		}
		if s.File == isa.FileR && w.all > 0 {
			n = 2
		}
		dst = append(dst, n)
	}
	if first >= 0 {
		dst[first] = max(dst[first], w.first)
		dst[last] = max(dst[last], w.last)
	}
	return dst
}
