package isa

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// batchNames are the batch numbers in NVIDIA's notation; 0 prints nothing. A number
// without a name has another question mark, as nvdisasm 12.8 writes 3.
var batchNames = [8]string{"", "?BATCH_START", "?BATCH_START_TILE", "????3", "?BATCH_END", "?BARRIER_EXEMPT", "????6", "????7"}

// Nvidia returns c in the notation of NVIDIA's disassembler of CUDA 12.8 for sm_120,
// `&req={1,0} &rd=0x2 &wr=0x0 ?WAIT4_END_GROUP ?BATCH_START`. What is none is left out;
// the schedule values that do not exist are `?sched16` and `?sched28` to `?sched31`.
func (c Control) Nvidia() string {
	return strings.TrimPrefix(string(c.appendNvidia(nil, " &rd=0x")), " ")
}

// AppendNvidia appends the control code of in as NVIDIA's disassembler of CUDA 12.8
// prints it for sm_120, each part with a blank before it: between the text and its
// semicolon. It is what [Control.Nvidia] returns but for ATOM, whose scoreboard that is
// free first is `&wr_early=0x0`.
func (in Inst) AppendNvidia(dst []byte) []byte {
	first := " &rd=0x"
	if in.Variant != nil && in.Variant.Mnemonic() == "ATOM" {
		first = " &wr_early=0x"
	}
	return ControlOf(in.Word).appendNvidia(dst, first)
}

// appendNvidia appends c, each part with a blank before it; first is what stands before
// the number of RBar.
func (c Control) appendNvidia(dst []byte, first string) []byte {
	if c.Wait != 0 {
		dst = append(dst, " &req={"...)
		for i := 5; i >= 0; i-- {
			if c.Wait>>i&1 != 0 {
				dst = append(dst, byte('0'+i), ',')
			}
		}
		dst[len(dst)-1] = '}'
	}
	if c.RBar < NoBar {
		dst = append(append(dst, first...), '0'+c.RBar)
	}
	if c.WBar < NoBar {
		dst = append(append(dst, " &wr=0x"...), '0'+c.WBar)
	}
	switch s := int64(c.Schedule()); {
	case s == 0:
	case s < 16:
		dst = strconv.AppendInt(append(dst, " ?WAIT"...), s, 10)
		dst = append(dst, "_END_GROUP"...)
	case c.Legal():
		dst = strconv.AppendInt(append(dst, " ?trans"...), s-16, 10)
	default:
		dst = strconv.AppendInt(append(dst, " ?sched"...), s, 10)
	}
	if c.Yield && c.Batch != 0 {
		dst = append(append(dst, ' '), batchNames[c.Batch&7]...)
	}
	return dst
}

// cutNvidia takes a control code in NVIDIA's notation off the end of the text s. ok is
// false where there is none.
func cutNvidia(s string) (text string, c Control, ok bool, err error) {
	i := NvidiaStart(s)
	if i < 0 {
		return s, c, false, nil
	}
	c, err = parseNvidia(s[i+1:])
	return s[:i], c, true, err
}

// NvidiaStart returns where a control code in NVIDIA's notation starts in the text s of an
// instruction, its blank included, or -1.
func NvidiaStart(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if (s[i] == ' ' || s[i] == '\t') && (s[i+1] == '&' || s[i+1] == '?') && (!strings.HasPrefix(s[i+1:], "???") || isBatchName(s[i+1:])) {
			return i
		}
	}
	return -1
}

// isBatchName reports whether s starts with the name of a batch number. An operand that
// has no name is ???7, with one question mark less.
func isBatchName(s string) bool { return strings.HasPrefix(s, "????") }

// parseNvidia reads `&req={1,0} &rd=0x2 &wr=0x0 ?WAIT4_END_GROUP ?BATCH_START`, the parts
// in any order and each at most once; &wr_early is another name of &rd.
func parseNvidia(s string) (Control, error) {
	c := Control{Yield: true, WBar: NoBar, RBar: NoBar}
	var seen [5]bool
	for _, part := range strings.Fields(s) {
		which, err := c.parsePart(part)
		if err == nil && seen[which] {
			err = fmt.Errorf("%q says a second time what was said before", part)
		}
		if err != nil {
			return Control{}, controlError(s, err.Error())
		}
		seen[which] = true
	}
	if c.Batch != 0 && !c.Yield {
		return Control{}, controlError(s, "a batch number goes with ?WAITn_END_GROUP alone")
	}
	return c, nil
}

// parsePart reads one part of a code into c and returns which of the five it is.
func (c *Control) parsePart(part string) (which int, err error) {
	name, value, _ := strings.Cut(part, "=")
	switch {
	case name == "&req":
		return 0, c.parseReq(value)
	case name == "&rd" || name == "&wr_early":
		c.RBar, err = parseHexBar(value)
		return 1, err
	case name == "&wr":
		c.WBar, err = parseHexBar(value)
		return 2, err
	}
	for n := 1; n < len(batchNames); n++ {
		if part == batchNames[n] {
			c.Batch = uint8(n)
			return 4, nil
		}
	}
	if strings.HasPrefix(part, "?") {
		return 3, c.parseSched(part[1:])
	}
	return 0, fmt.Errorf("%q is none of &req={…}, &rd=0x…, &wr=0x…, &wr_early=0x…, ?WAITn_END_GROUP, ?transn, ?BATCH_START", part)
}

func parseHexBar(s string) (uint8, error) {
	num, ok := strings.CutPrefix(s, "0x")
	if !ok || len(num) != 1 || num == "-" {
		return 0, errors.New("a scoreboard is 0x0 to 0x6, or left out for none")
	}
	return parseBar(num[0])
}

func (c *Control) parseReq(s string) error {
	body, open := strings.CutPrefix(s, "{")
	body, closed := strings.CutSuffix(body, "}")
	for d := range strings.SplitSeq(body, ",") {
		if !open || !closed || len(d) != 1 || d[0] < '0' || d[0] > '5' || c.Wait>>(d[0]-'0')&1 != 0 {
			return fmt.Errorf("&req=%s: write scoreboards 0 to 5 like &req={1,0}, each once", s)
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
