package isa

import (
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

// The bits that a control code shows, 105–121, and those it does not, 122–124.
const (
	codeMask  = (1<<17 - 1) << 41
	reuseMask = 7 << 58
)

// Set returns w with bits 105–124 as c says; of Reuse and Batch it writes the one
// that goes with Yield.
func (c Control) Set(w Word) Word {
	w = c.SetCode(w)
	v := c.Reuse
	if c.Yield {
		v = c.Batch
	}
	w.Hi = w.Hi&^reuseMask | uint64(v&7)<<58
	return w
}

// SetCode returns w with those bits as c says that a control code shows, 105–121:
// reuse flags and batch number stay as they are.
func (c Control) SetCode(w Word) Word {
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

// String returns c in CuAssembler's notation, `[B01----:R2:W0:Y:S04]`.
func (c Control) String() string { return string(c.Append(nil)) }

// Append appends what String returns to dst.
func (c Control) Append(dst []byte) []byte {
	dst = append(dst, "[B------:R-:W-:-:S00]"...)
	b := dst[len(dst)-21:]
	for i := range 6 {
		if c.Wait>>i&1 != 0 {
			b[2+i] = byte('0' + i)
		}
	}
	if c.RBar < NoBar {
		b[10] = '0' + c.RBar
	}
	if c.WBar < NoBar {
		b[13] = '0' + c.WBar
	}
	if c.Yield {
		b[15] = 'Y'
	}
	b[18] = '0' + c.Stall/10
	b[19] = '0' + c.Stall%10
	return dst
}

// Nvidia returns c in the notation of NVIDIA's disassembler of CUDA 12.8,
// `&req={0,1} &rd=0x2 &wr=0x0 ?WAIT4_END_GROUP`. What is none is left out; the
// schedule values that do not exist print as `?sched16` and `?sched28` to `?sched31`.
func (c Control) Nvidia() string { return string(c.AppendNvidia(nil)) }

// AppendNvidia appends what Nvidia returns to dst.
func (c Control) AppendNvidia(dst []byte) []byte {
	start := len(dst)
	sep := func() {
		if len(dst) > start {
			dst = append(dst, ' ')
		}
	}
	if c.Wait != 0 {
		dst = append(dst, "&req={"...)
		for i := range 6 {
			if c.Wait>>i&1 != 0 {
				dst = append(dst, byte('0'+i), ',')
			}
		}
		dst[len(dst)-1] = '}'
	}
	if c.RBar < NoBar {
		sep()
		dst = append(dst, "&rd=0x"...)
		dst = append(dst, '0'+c.RBar)
	}
	if c.WBar < NoBar {
		sep()
		dst = append(dst, "&wr=0x"...)
		dst = append(dst, '0'+c.WBar)
	}
	switch s := c.Schedule(); {
	case s == 0:
	case s < 16:
		sep()
		dst = append(dst, "?WAIT"...)
		dst = strconv.AppendInt(dst, int64(s), 10)
		dst = append(dst, "_END_GROUP"...)
	case c.Legal():
		sep()
		dst = append(dst, "?trans"...)
		dst = strconv.AppendInt(dst, int64(s-16), 10)
	default:
		sep()
		dst = append(dst, "?sched"...)
		dst = strconv.AppendInt(dst, int64(s), 10)
	}
	return dst
}

// ParseControl reads a control code in either notation, CuAssembler's with or
// without its brackets. Reuse and Batch are 0 in what it returns.
func ParseControl(s string) (Control, error) {
	t := strings.TrimSpace(s)
	if strings.HasPrefix(t, "&") || strings.HasPrefix(t, "?") {
		return parseNvidia(t)
	}
	if strings.HasPrefix(t, "[") != strings.HasSuffix(t, "]") {
		return Control{}, controlError(s, "one bracket is missing")
	}
	t = strings.TrimSuffix(strings.TrimPrefix(t, "["), "]")
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
	return c, nil
}

func controlError(s, msg string) error { return fmt.Errorf("control code %q: %s", s, msg) }

// parseBar reads a scoreboard number: 0–6, or - or 7 for none.
func parseBar(b byte) (uint8, error) {
	switch {
	case b == '-':
		return NoBar, nil
	case b >= '0' && b <= '7':
		return b - '0', nil
	}
	return 0, fmt.Errorf("a scoreboard is 0 to 6, or - for none")
}

// parseNvidia reads `&req={0,1} &rd=0x2 &wr=0x0 ?WAIT4_END_GROUP`, the parts in any
// order and each at most once.
func parseNvidia(s string) (Control, error) {
	c := Control{Yield: true, WBar: NoBar, RBar: NoBar}
	var seen [4]bool
	for _, part := range strings.Fields(s) {
		var which int
		var err error
		switch {
		case strings.HasPrefix(part, "&req={"):
			which, err = 0, c.parseReq(part[len("&req="):])
		case strings.HasPrefix(part, "&rd=0x") && len(part) == 7:
			which = 1
			c.RBar, err = parseBar(part[6])
		case strings.HasPrefix(part, "&wr=0x") && len(part) == 7:
			which = 2
			c.WBar, err = parseBar(part[6])
		case strings.HasPrefix(part, "?"):
			which, err = 3, c.parseSched(part[1:])
		default:
			err = fmt.Errorf("%q is none of &req={…}, &rd=0x…, &wr=0x…, ?WAITn_END_GROUP, ?transn", part)
		}
		if err == nil && seen[which] {
			err = fmt.Errorf("%q says a second time what was said before", part)
		}
		if err != nil {
			return Control{}, controlError(s, err.Error())
		}
		seen[which] = true
	}
	return c, nil
}

func (c *Control) parseReq(s string) error {
	for _, d := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(s, "{"), "}"), ",") {
		if len(d) != 1 || d[0] < '0' || d[0] > '5' || !strings.HasSuffix(s, "}") {
			return fmt.Errorf("&req=%s: write scoreboards 0 to 5 like &req={0,1}", s)
		}
		c.Wait |= 1 << (d[0] - '0')
	}
	return nil
}

// parseSched reads the schedule value after its question mark.
func (c *Control) parseSched(s string) error {
	lo, hi, num := 0, 0, ""
	switch {
	case strings.HasPrefix(s, "WAIT") && strings.HasSuffix(s, "_END_GROUP"):
		lo, hi, num = 1, 15, strings.TrimSuffix(s[4:], "_END_GROUP")
	case strings.HasPrefix(s, "trans"):
		lo, hi, num = 1, 11, s[5:]
	case strings.HasPrefix(s, "sched"):
		lo, hi, num = 16, 31, s[5:]
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < lo || n > hi {
		return fmt.Errorf("?%s: write ?WAIT1_END_GROUP to ?WAIT15_END_GROUP or ?trans1 to ?trans11", s)
	}
	c.Stall = uint8(n & 15)
	c.Yield = strings.HasPrefix(s, "WAIT")
	return nil
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
