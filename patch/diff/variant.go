package diff

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cupatch/cupatch/isa"
)

// A variantInfo is what comparing wants to know of an instruction variant.
type variantInfo struct {
	v    *isa.Variant
	wide wideKind
	// pieces are those that print registers, in order.
	pieces []regPiece
}

// A regPiece is a piece that prints registers in some of its alternatives.
type regPiece struct {
	piece *isa.Piece
	alts  [][]regSlot // by alternative
}

// A regSlot is a register that an instruction prints.
type regSlot struct {
	slot *isa.Slot
	file regFile
	pair bool // printed as R4.64: the next register belongs to it
}

// A regFile is a register file.
type regFile uint8

// The register files.
const (
	fileR regFile = iota
	fileUR
	fileP
	fileUP
	fileB
	numFiles
)

var fileNames = [numFiles]string{"R", "UR", "P", "UP", "B"}

// registerNames has the names of the registers that fields of 8 bits can mean.
var registerNames = func() (names [numFiles][256]string) {
	for f := range names {
		for n := range names[f] {
			names[f][n] = fileNames[f] + strconv.Itoa(n)
		}
	}
	return names
}()

// name returns the name of register n.
func (f regFile) name(n uint64) string {
	if n < uint64(len(registerNames[f])) {
		return registerNames[f][n]
	}
	return fileNames[f] + strconv.FormatUint(n, 10)
}

var variantInfos sync.Map // *isa.Variant → *variantInfo

// recentInfos has, by a hash of opcode and constant bits, the variant that was asked for
// last: variantInfos without its cost.
var recentInfos [4096]atomic.Pointer[variantInfo]

// infoOf returns what is known of a variant.
func infoOf(v *isa.Variant) *variantInfo {
	key := (v.Value.Lo*0x9e3779b97f4a7c15 ^ v.Value.Hi*0xc2b2ae3d27d4eb4f ^ v.Mask.Hi*0x165667b19e3779f9) >> 52
	if x := recentInfos[key].Load(); x != nil && x.v == v {
		return x
	}
	x := newInfo(v)
	recentInfos[key].Store(x)
	return x
}

func newInfo(v *isa.Variant) *variantInfo {
	if x, ok := variantInfos.Load(v); ok {
		return x.(*variantInfo)
	}
	x := &variantInfo{v: v, wide: wideKindOf(v.Mnemonic())}
	x.findRegisters()
	y, _ := variantInfos.LoadOrStore(v, x)
	return y.(*variantInfo)
}

// alternative returns the index of the alternative of piece p that w prints, -1 for
// none.
func alternative(p *isa.Piece, w isa.Word) int {
	if len(p.Tests) == 0 {
		return len(p.Alts) - 1
	}
	index, shift := uint64(0), uint(0)
	for _, t := range p.Tests {
		index |= t.Outcome(w) << shift
		if t.Kind == isa.TestValue {
			shift += uint(t.Field.Width())
		} else {
			shift++
		}
	}
	if index >= uint64(len(p.Table)) || int(p.Table[index]) >= len(p.Alts) {
		return -1
	}
	return int(p.Table[index])
}

// findRegisters fills in pieces.
func (x *variantInfo) findRegisters() {
	before := ""
	for i := range x.v.Template {
		p := &x.v.Template[i]
		r := regPiece{piece: p}
		some := false
		for _, a := range p.Alts {
			var list []regSlot
			for j := range a {
				if a[j].Lit != "" {
					before = a[j].Lit
					continue
				}
				if s, ok := registerSlot(&a[j].Slot, before); ok {
					s.pair = strings.HasPrefix(x.behind(i, a, j), ".64")
					list = append(list, s)
					some = true
				}
				before = ""
			}
			r.alts = append(r.alts, list)
		}
		if some {
			x.pieces = append(x.pieces, r)
		}
	}
}

// behind returns the literal that follows element j of alternative a of piece i, where
// it is always the same.
func (x *variantInfo) behind(i int, a isa.Alt, j int) string {
	if j+1 < len(a) {
		return a[j+1].Lit
	}
	if i+1 < len(x.v.Template) {
		if next := &x.v.Template[i+1]; len(next.Tests) == 0 && len(next.Alts) == 1 && len(next.Alts[0]) > 0 {
			return next.Alts[0][0].Lit
		}
	}
	return ""
}

// registerSlot returns s as a register, if it is one.
func registerSlot(s *isa.Slot, before string) (regSlot, bool) {
	r := regSlot{slot: s}
	switch s.Kind {
	case isa.KindReg:
		r.file = fileR
	case isa.KindUReg:
		r.file = fileUR
	case isa.KindPred:
		r.file = fileP
	case isa.KindUPred:
		r.file = fileUP
	case isa.KindDec:
		r.file = fileB
		return r, strings.HasSuffix(before, " B") || strings.HasSuffix(before, ",B")
	default:
		return r, false
	}
	return r, true
}

// registers appends to dst every register that w prints, its guard first.
func (x *variantInfo) registers(dst []regSlot, w isa.Word) []regSlot {
	switch x.v.Guard {
	case isa.GuardP:
		dst = append(dst, regSlot{slot: &guardSlot, file: fileP})
	case isa.GuardUP:
		dst = append(dst, regSlot{slot: &guardSlot, file: fileUP})
	}
	for i := range x.pieces {
		if n := alternative(x.pieces[i].piece, w); n >= 0 {
			dst = append(dst, x.pieces[i].alts[n]...)
		}
	}
	return dst
}

// guardSlot is the guard's register, whose number 7 is PT.
var guardSlot = isa.Slot{Field: isa.GuardField, Kind: isa.KindPred}

// number returns the register's number in w, and whether it is the special register
// (RZ, PT) that is no storage.
func (r regSlot) number(w isa.Word) (n uint64, special bool) {
	s := r.slot
	x := s.Field.Get(w) ^ s.Xor
	if r.file != fileB && x == 1<<s.Field.Width()-1 {
		return 0, true
	}
	return x<<s.Shift + uint64(s.Add), false
}
