package learn

import (
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A number is a token read as prefix and value, such as R and 16.
type number struct {
	prefix string // R, UR, P, UP, another name; 0x; f for decimal and float numbers
	value  int64  // not set for floats
}

// readNumber reads tok as a number; the second result is false for names without one.
func readNumber(tok string) (number, bool) {
	switch tok {
	case "RZ":
		return number{prefix: "R", value: -1}, true
	case "URZ":
		return number{prefix: "UR", value: -1}, true
	case "PT":
		return number{prefix: "P", value: -1}, true
	case "UPT":
		return number{prefix: "UP", value: -1}, true
	}
	if tok == "" || tok[0] == '.' || strings.Contains(tok, "???") {
		return number{}, false
	}
	body := strings.TrimLeft(tok, "+-")
	if strings.HasPrefix(body, "0x") {
		v, err := strconv.ParseUint(body[2:], 16, 64)
		if tok[0] == '-' {
			v = -v
		}
		return number{"0x", int64(v)}, err == nil
	}
	if len(body) < len(tok) || numberLen(tok) == len(tok) {
		if numberLen(body) != len(body) || body == "" || strings.Trim(body, "0123456789.eINFQSA+-") != "" {
			return number{}, false
		}
		return number{prefix: "f"}, true
	}
	n := strings.TrimRight(tok, "0123456789")
	if n == tok || isDigit(tok[0]) {
		return number{}, false
	}
	v, err := strconv.ParseInt(tok[len(n):], 10, 32)
	return number{n, v}, err == nil
}

// A sample is a token that a word printed at an address.
type sample struct {
	w   isa.Word
	pc  uint64
	tok string
}

// matches reports whether e prints what the samples have.
func matches(e []isa.Elem, samples []sample) bool {
	for _, s := range samples {
		if strings.TrimRight(render(e, s.w, s.pc), " ") != s.tok {
			return false
		}
	}
	return true
}

func render(es []isa.Elem, w isa.Word, pc uint64) string {
	var b strings.Builder
	for _, e := range es {
		if e.Lit != "" {
			b.WriteString(e.Lit)
		} else {
			b.WriteString(e.Slot.Text(w, pc))
		}
	}
	return b.String()
}

var fileKinds = map[string]isa.Kind{
	"R": isa.KindReg, "UR": isa.KindUReg, "P": isa.KindPred, "UP": isa.KindUPred,
}

// fitSlot finds the way of printing f that gives the samples' tokens.
func fitSlot(f isa.Field, samples []sample) ([]isa.Elem, bool) {
	num, ok := readNumber(samples[0].tok)
	if !ok {
		return nil, false
	}
	w := f.Width()
	ones := ^uint64(0) >> (64 - w)
	try := func(s isa.Slot, lit string) ([]isa.Elem, bool) {
		s.Field = f
		e := []isa.Elem{{Slot: s}}
		if lit != "" {
			e = []isa.Elem{{Lit: lit}, {Slot: s}}
		}
		return e, matches(e, samples)
	}
	raw := f.Get(samples[0].w)
	var slots []isa.Slot
	lit := ""
	switch num.prefix {
	case "0x":
		for shift := uint8(0); shift <= 6; shift++ {
			slots = append(slots,
				isa.Slot{Kind: isa.KindHex, Shift: shift}, isa.Slot{Kind: isa.KindSHex, Shift: shift},
				isa.Slot{Kind: isa.KindRel, Shift: shift})
		}
		slots = append(slots, isa.Slot{Kind: isa.KindHex, Add: num.value - int64(raw)},
			isa.Slot{Kind: isa.KindHex, Xor: ones}, isa.Slot{Kind: isa.KindLog2})
	case "f":
		switch w {
		case 16:
			slots = append(slots, isa.Slot{Kind: isa.KindF16}, isa.Slot{Kind: isa.KindBF16})
		case 32:
			slots = append(slots, isa.Slot{Kind: isa.KindF32}, isa.Slot{Kind: isa.KindF64})
		}
		for shift := uint8(0); shift <= 4; shift++ {
			slots = append(slots, isa.Slot{Kind: isa.KindDec, Shift: shift})
		}
		if v, err := strconv.ParseInt(samples[0].tok, 10, 64); err == nil {
			slots = append(slots, isa.Slot{Kind: isa.KindDec, Add: v - int64(raw)})
		}
	default:
		kind := fileKinds[num.prefix]
		if kind == isa.KindNone {
			kind, lit = isa.KindDec, num.prefix
		}
		slots = append(slots, isa.Slot{Kind: kind}, isa.Slot{Kind: kind, Xor: ones},
			isa.Slot{Kind: kind, Add: num.value - int64(raw)}, isa.Slot{Kind: kind, Xor: ones, Add: num.value - int64(raw^ones)})
		for shift := uint8(1); shift <= 3; shift++ {
			slots = append(slots, isa.Slot{Kind: kind, Shift: shift},
				isa.Slot{Kind: kind, Shift: shift, Add: num.value - int64(raw<<shift)})
		}
	}
	for _, s := range slots {
		if e, ok := try(s, lit); ok {
			return e, true
		}
	}
	return nil, false
}

// orderBits sorts the bits of an operand by the weight that their flips show. Floats
// keep the order of the word.
func orderBits(bs []int, base sample, flips map[int]string) []int {
	num, _ := readNumber(base.tok)
	sort.Ints(bs)
	if num.prefix == "f" {
		return bs
	}
	weight := func(b int) uint64 {
		n, _ := readNumber(flips[b])
		if n.value >= 0 || n.prefix == "0x" {
			return uint64(max(n.value-num.value, num.value-n.value))
		}
		// RZ, PT and their like are all ones, of 3, 6 or 8 bits.
		for _, ones := range []int64{7, 63, 255} {
			if d := uint64(ones - num.value); ones >= num.value && isPow2(d) {
				return d
			}
		}
		return 1 << 32
	}
	sort.SliceStable(bs, func(i, j int) bool {
		wi, wj := weight(bs[i]), weight(bs[j])
		if wi != wj {
			return wi < wj
		}
		return bs[i] < bs[j]
	})
	return bs
}

// fieldOf packs ordered bits into ranges.
func fieldOf(bs []int) isa.Field {
	var f isa.Field
	for _, b := range bs {
		if n := len(f); n > 0 && int(f[n-1].Lo+f[n-1].N) == b {
			f[n-1].N++
			continue
		}
		f = append(f, isa.Range{Lo: uint8(b), N: 1})
	}
	return f
}

func isPow2(v uint64) bool { return bits.OnesCount64(v) == 1 }
