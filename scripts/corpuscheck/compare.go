package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// counts are what was found about the instructions of one architecture.
type counts struct {
	cubins, kernels, instrs int
	sameText                int // as cuobjdump prints it
	sameWord                int // encoded from the text, starting from the word
	fromText                int // encoded from the text alone: same word but for the control code
	unknown                 int // decoded as .word, .illegal
	diffs                   []diff
	total                   int // differences, also those not kept
}

// A diff is an instruction that went wrong.
type diff struct {
	mnemonic string // with the kind of difference: one is shown for each
	line     string
}

// maxDiffs is how many differences are kept for one architecture.
const maxDiffs = 100_000

func (n *counts) add(m *counts) {
	n.cubins += m.cubins
	n.kernels += m.kernels
	n.instrs += m.instrs
	n.sameText += m.sameText
	n.sameWord += m.sameWord
	n.fromText += m.fromText
	n.unknown += m.unknown
	n.total += m.total
	n.diffs = append(n.diffs, m.diffs[:min(len(m.diffs), maxDiffs-len(n.diffs))]...)
}

func (n *counts) differ(kind, want, line string) {
	n.total++
	if len(n.diffs) < maxDiffs {
		n.diffs = append(n.diffs, diff{kind + " " + mnemonic(want), line})
	}
}

// mnemonic returns the opcode of a text without guard and modifiers.
func mnemonic(text string) string {
	for _, f := range strings.Fields(text) {
		if f[0] != '@' {
			m, _, _ := strings.Cut(f, ".")
			return m
		}
	}
	return ""
}

// compare checks all instructions of a cubin against the reference.
func (n *counts) compare(cubin *elfx.Cubin, arch string, ref listing) error {
	a, err := isa.ParseArch(arch)
	if err != nil {
		return err
	}
	table, err := isa.Load(a)
	if err != nil {
		return err
	}
	var buf []byte
	for _, k := range cubin.Kernels() {
		n.kernels++
		code, texts := cubin.Data()[k.Offset:k.Offset+k.Size], ref[k.Name]
		if len(texts) != len(code)/isa.WordSize {
			return fmt.Errorf("kernel %s: %d instructions, the reference has %d", k.Name, len(code)/isa.WordSize, len(texts))
		}
		for i, want := range texts {
			pc := uint64(i) * isa.WordSize
			buf = n.instr(table, isa.LoadWord(code[pc:]), pc, want, buf)
		}
	}
	return nil
}

// control has the bits that a text alone does not tell.
var control = isa.Bits(105, 127).Mask()

// instr checks one instruction; it returns buf for the next one.
func (n *counts) instr(table *isa.Table, w isa.Word, pc uint64, want string, buf []byte) []byte {
	n.instrs++
	in := table.Decode(w)
	buf = table.AppendText(buf[:0], in, pc)
	got := string(buf)
	if in.Status != isa.StatusKnown {
		if in.Status == isa.StatusSilent && want == "" {
			n.sameText, n.sameWord, n.fromText = n.sameText+1, n.sameWord+1, n.fromText+1
			return buf
		}
		n.unknown++
	}
	if got != want && squeeze(got) != squeeze(want) {
		n.differ("text", want, fmt.Sprintf("%v at 0x%x: %q, cuobjdump %q", w, pc, got, want))
		return buf
	}
	n.sameText++
	if e, err := table.Encode(got, pc, &w); err != nil {
		n.differ("encode", want, fmt.Sprintf("%v at 0x%x: %q: %v", w, pc, got, err))
	} else if e != w {
		n.differ("encode", want, fmt.Sprintf("%v at 0x%x: %q: encoded as %v", w, pc, got, e))
	} else {
		n.sameWord++
	}
	if e, err := table.Encode(got, pc, nil); err == nil && e.AndNot(control) == w.AndNot(control) {
		n.fromText++
	}
	return buf
}

// squeeze makes one of several spaces, if an operand is printed as ???: there the
// disassembler's own padding varies.
func squeeze(s string) string {
	if !strings.Contains(s, "???") {
		return s
	}
	return strings.Join(strings.Fields(s), " ")
}

// report prints the counts and returns whether everything agreed.
func (c *check) report(w io.Writer) bool {
	archs := slices.SortedFunc(maps.Keys(c.byArch), byNumber)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "arch\tcubins\tkernels\tinstructions\tsame text\tsame word\tfrom text alone\tunknown\t")
	all := &counts{}
	for _, a := range archs {
		c.byArch[a].row(tw, a)
		all.add(c.byArch[a])
	}
	all.row(tw, "all")
	if err := tw.Flush(); err != nil {
		return false
	}
	for _, a := range archs {
		c.differences(w, a)
	}
	for _, err := range c.errs {
		fmt.Fprintln(w, "error:", err)
	}
	return all.total == 0 && len(c.errs) == 0
}

func (n *counts) row(w io.Writer, arch string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", arch, n.cubins, n.kernels, n.instrs, n.sameText, n.sameWord, n.fromText, n.unknown)
}

// byNumber orders architecture names by their number.
func byNumber(a, b string) int {
	number := func(s string) int {
		n, _ := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(s, "sm_"), "af")) // 0 for what is no number
		return n
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
}

// differences prints the most frequent kinds of differences of an architecture.
func (c *check) differences(w io.Writer, arch string) {
	kinds := map[string]int{}
	example := map[string]string{}
	for _, d := range c.byArch[arch].diffs {
		kinds[d.mnemonic]++
		example[d.mnemonic] = d.line
	}
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(-cmp.Compare(kinds[a], kinds[b]), cmp.Compare(a, b))
	})
	for i, k := range names {
		if i == c.shown {
			fmt.Fprintf(w, "%s: %d more kinds of differences\n", arch, len(names)-i)
			break
		}
		fmt.Fprintf(w, "%s: %d × %s: %s\n", arch, kinds[k], k, example[k])
	}
}
