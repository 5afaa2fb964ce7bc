package isa

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
)

// The fields that every instruction has, known or not.
var (
	GuardField = Bits(12, 14)   // guard predicate, 7 = PT
	GuardNot   = Bits(15, 15)   // 1 negates the guard
	StallField = Bits(105, 108) // stall count
	YieldField = Bits(109, 109) // 0 = yield
	WBarField  = Bits(110, 112) // scoreboard set when the result is written, 7 = none
	RBarField  = Bits(113, 115) // scoreboard set when the sources are read, 7 = none
	WaitField  = Bits(116, 121) // scoreboards to wait for
	ReuseField = Bits(122, 124) // reuse flags where bit 109 is 1, else the batch number
)

// NoBar is the scoreboard number that means none.
const NoBar = 7

// A Control is the scheduling part of an instruction, bits 105–124.
//
//	124  122 121   116 115  113 112  110 109 108   105
//	+-------+---------+--------+--------+---+---------+
//	| reuse |  wait   |  rbar  |  wbar  | y |  stall  |
//	+-------+---------+--------+--------+---+---------+
type Control struct {
	Stall uint8 // 0–15
	Yield bool  // bit 109 is 0
	WBar  uint8 // 0–7, NoBar = none
	RBar  uint8 // 0–7, NoBar = none
	Wait  uint8 // bit i: wait for scoreboard i, 0–5
	Reuse uint8 // bits 122–124 where Yield is false, else 0
	Batch uint8 // bits 122–124 where Yield is true, else 0
}

// Drain is the control code for which NVIDIA's notation prints nothing.
var Drain = Control{Yield: true, WBar: NoBar, RBar: NoBar}

// DefaultControl is `[B------:R-:W-:-:S01]`, what a line without a control code
// means.
var DefaultControl = Control{Stall: 1, WBar: NoBar, RBar: NoBar}

// ControlOf returns the control fields of w.
func ControlOf(w Word) Control {
	h := w.Hi >> 41
	c := Control{
		Stall: uint8(h & 15),
		Yield: h>>4&1 == 0,
		WBar:  uint8(h >> 5 & 7),
		RBar:  uint8(h >> 8 & 7),
		Wait:  uint8(h >> 11 & 63),
	}
	if c.Yield {
		c.Batch = uint8(h >> 17 & 7)
	} else {
		c.Reuse = uint8(h >> 17 & 7)
	}
	return c
}

// The bits that every control code shows, 105–121, and those of reuse flags or batch
// number, 122–124.
const (
	codeMask  = (1<<17 - 1) << 41
	reuseMask = 7 << 58
)

// Set returns w with bits 105–124 as c says; of Reuse and Batch it writes the one
// that goes with Yield.
func (c Control) Set(w Word) Word {
	w = c.setLow(w)
	v := c.Reuse
	if c.Yield {
		v = c.Batch
	}
	w.Hi = w.Hi&^reuseMask | uint64(v&7)<<58
	return w
}

// SetCode returns w with bits 105–124 as a control code in text says: reuse flags
// stand in the instruction's text and stay as they are, the batch number stands in the
// code. Where yield changes from Y to -, no batch number is taken for reuse flags.
func (c Control) SetCode(w Word) Word {
	old := ControlOf(w)
	w = c.setLow(w)
	switch {
	case c.Yield:
		w.Hi = w.Hi&^reuseMask | uint64(c.Batch&7)<<58
	case old.Yield:
		w.Hi &^= reuseMask
	}
	return w
}

// setLow returns w with bits 105–121 as c says.
func (c Control) setLow(w Word) Word {
	h := uint64(c.Stall&15) | uint64(c.WBar&7)<<5 | uint64(c.RBar&7)<<8 | uint64(c.Wait&63)<<11
	if !c.Yield {
		h |= 1 << 4
	}
	w.Hi = w.Hi&^codeMask | h<<41
	return w
}

// Schedule returns bits 105–109 as one number: 0 drain, 1–15 a wait, 17–27 a
// transition. 16 and 28–31 are illegal in every class.
func (c Control) Schedule() int {
	if c.Yield {
		return int(c.Stall)
	}
	return int(c.Stall) + 16
}

// Legal reports whether the stall count and yield are a pair that exists: S00–S15
// with Y, S01–S11 without.
func (c Control) Legal() bool { return c.Yield || c.Stall >= 1 && c.Stall <= 11 }

// String returns c in CuAssembler's notation, `[B01----:R2:W0:Y:S04]`. A batch
// number that is not 0 follows, which CuAssembler has no notation for:
// `[B01----:R2:W0:Y:S04:T1]`.
func (c Control) String() string { return string(c.Append(nil)) }

// Append appends what String returns to dst.
func (c Control) Append(dst []byte) []byte {
	const room = "                        "
	n := len(dst)
	dst = append(dst, room...)
	b := dst[n : n+len(room)]
	stall := c.Stall & 15
	if !c.Yield {
		stall |= 16
	}
	binary.LittleEndian.PutUint64(b, waitTexts[c.Wait&63])
	binary.LittleEndian.PutUint64(b[8:], barTexts[c.RBar&7<<3|c.WBar&7])
	binary.LittleEndian.PutUint64(b[15:], stallTexts[stall])
	if c.Yield && c.Batch != 0 {
		return append(dst[:n+20], ':', 'T', '0'+c.Batch, ']')
	}
	return dst[:n+21]
}

// The parts of a control code in text, by their bits: scoreboards waited for, "[B01----";
// RBar and WBar, ":R2:W0:"; the schedule, "Y:S04]".
var (
	waitTexts  [64]uint64
	barTexts   [64]uint64
	stallTexts [32]uint64
)

func init() {
	bar := "0123456-"
	for i := range waitTexts {
		b := []byte("[B------")
		for board := range 6 {
			if i>>board&1 != 0 {
				b[2+board] = byte('0' + board)
			}
		}
		waitTexts[i] = binary.LittleEndian.Uint64(b)
		barTexts[i] = binary.LittleEndian.Uint64([]byte{':', 'R', bar[i>>3], ':', 'W', bar[i&7], ':', 0})
	}
	for i := range stallTexts {
		stall := byte(i & 15)
		stallTexts[i] = binary.LittleEndian.Uint64([]byte{"Y-"[i>>4], ':', 'S', '0' + stall/10, '0' + stall%10, ']', 0, 0})
	}
}

// ParseControl reads a control code in either notation, CuAssembler's with or
// without its brackets. Reuse is 0 in what it returns: reuse flags stand in the text.
func ParseControl(s string) (Control, error) {
	t := strings.TrimSpace(s)
	if strings.HasPrefix(t, "&") || strings.HasPrefix(t, "?") {
		return parseNvidia(t)
	}
	if strings.HasPrefix(t, "[") != strings.HasSuffix(t, "]") {
		return Control{}, controlError(s, "one bracket is missing")
	}
	t = strings.TrimSuffix(strings.TrimPrefix(t, "["), "]")
	t, batch, hasBatch := strings.Cut(t, ":T")
	if len(t) != 19 || t[0] != 'B' || t[7:9] != ":R" || t[10:12] != ":W" || t[13] != ':' || t[15:17] != ":S" {
		return Control{}, controlError(s, "write it like [B01----:R2:W0:Y:S04]")
	}
	var c Control
	for i := range 6 {
		switch t[1+i] {
		case '-':
		case byte('0' + i):
			c.Wait |= 1 << i
		default:
			return Control{}, controlError(s, fmt.Sprintf("scoreboard %d is written %d or -", i, i))
		}
	}
	var err error
	if c.RBar, err = parseBar(t[9]); err != nil {
		return Control{}, controlError(s, "R: "+err.Error())
	}
	if c.WBar, err = parseBar(t[12]); err != nil {
		return Control{}, controlError(s, "W: "+err.Error())
	}
	if c.Yield = t[14] == 'Y'; !c.Yield && t[14] != '-' {
		return Control{}, controlError(s, "yield is Y or -")
	}
	n, err := strconv.ParseUint(t[17:], 10, 8)
	if err != nil || t[17] == '+' {
		return Control{}, controlError(s, "the stall count has two decimal digits")
	}
	if n > 15 {
		return Control{}, controlError(s, fmt.Sprintf("stall count %d does not fit 4 bits, S00 to S15 do", n))
	}
	c.Stall = uint8(n)
	switch {
	case !hasBatch:
	case len(batch) != 1 || batch[0] < '0' || batch[0] > '7':
		return Control{}, controlError(s, "the batch number is T0 to T7")
	case !c.Yield:
		return Control{}, controlError(s, "only an instruction that yields, Y, has a batch number T")
	default:
		c.Batch = batch[0] - '0'
	}
	return c, nil
}

func controlError(s, msg string) error { return fmt.Errorf("control code %q: %s", s, msg) }

// parseBar reads a scoreboard number, 0–6, or - for none.
func parseBar(b byte) (uint8, error) {
	switch {
	case b == '-':
		return NoBar, nil
	case b >= '0' && b < '0'+NoBar:
		return b - '0', nil
	}
	return 0, fmt.Errorf("a scoreboard is 0 to 6, or - for none, not %c", b)
}

// Legal reports whether nvdisasm accepts the control bits of w for a class with
// legality s: the value (bits 122–124)<<5 | (bits 105–109) must be one it knows.
func (s Sched) Legal(w Word) bool {
	sched, top := w.Hi>>41&31, uint8(w.Hi>>58&7)
	switch {
	case sched >= 17 && sched <= 27:
		return top&^uint8(s&7) == 0
	case sched > 15:
		return false
	case sched == 0:
		return top == 0
	case s&SchedUniform != 0:
		return top < 6 && top != 3
	}
	return top < 6
}
