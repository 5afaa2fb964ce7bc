package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/listing"
)

const isaDecodeUsage = `usage: cupatch isa decode --arch ARCH [OPTIONS] [- | FILE… | LO HI [PC]]

Reads lines LO HI [PC], the two 64-bit halves of a word and its address in
hexadecimal, and prints the text of each. Without arguments it reads standard input,
as with -.

  -a, --arch ARCH    sm_90, sm_90a, 90a, …
      --control      print the control code in front: [B------:R-:W2:-:S04]
      --control=nvidia  print it after the text, in NVIDIA's notation
      --strict       exit with status 1 where a word has no text

A word that the table does not know prints as ".word 0xLO, 0xHI", one that nvdisasm
refuses as ".illegal …", one that it accepts without printing anything as ".silent …".
A line that is no word gives "error: …", and the exit status is 1.

examples:
  cupatch isa decode --arch sm_90 0x0000000402047981 0x001ea8000c1e1900
  cupatch isa decode --arch 90a --control - < words
`

const isaEncodeUsage = `usage: cupatch isa encode --arch ARCH [OPTIONS] [- | TEXT]

Reads instructions, one a line, and prints the word of each as LO HI. A line is
  TEXT                                   the address is 0
  [B------:R-:W2:-:S04] TEXT             with a control code
  /*0070*/ [B------:R-:W2:-:S04] TEXT ;  as cupatch dis prints it
  LO HI [PC]<TAB>TEXT                    made from that word: what the text does not
                                         determine stays as it is
  an empty line, // a comment, .L_0070:  an empty line
Without arguments it reads standard input, as with -.

  -a, --arch ARCH    sm_90, sm_90a, 90a, …
      --allow LIST   write what is refused by name: round, schedule, align

Without a word to start from, bits that the text hides are those that ptxas emits, and
a missing control code is [B------:R-:W-:-:S01]. A line that does not encode gives
"error: …" with the column and what was expected, and the exit status is 1.

examples:
  cupatch isa encode --arch sm_90 'FADD R0, R1, 1.5'
  cupatch dis -k gemm a.cubin | cupatch isa encode --arch sm_90 -
`

func init() {
	registerIsa(&command{"decode", "", isaDecodeUsage, runIsaDecode})
	registerIsa(&command{"encode", "", isaEncodeUsage, runIsaEncode})
}

// A decoder turns lines of words into lines of text.
type decoder struct {
	table   *isa.Table
	control string // "", "cuasm" or "nvidia"
	strict  bool
	failed  bool
	buf     []byte
}

func runIsaDecode(e *env, args []string) error {
	flags := e.flags()
	arch := archFlag(flags)
	d := decoder{}
	flags.StringVar(&d.control, "control", "", "")
	flags.Lookup("control").NoOptDefVal = "cuasm"
	flags.BoolVar(&d.strict, "strict", false, "")
	rest, err := e.parse(flags, args)
	if err != nil {
		return err
	}
	if d.control != "" && d.control != "cuasm" && d.control != "nvidia" {
		return e.usagef("--control=%s: cuasm or nvidia", d.control)
	}
	if d.table, err = e.table(*arch); err != nil {
		return err
	}
	if len(rest) > 0 && len(rest) <= 3 && rest[0] != "-" {
		if _, err := os.Stat(rest[0]); errors.Is(err, fs.ErrNotExist) {
			line := strings.Join(rest, " ")
			if _, _, err := parseWordLine(line); err != nil {
				return e.usagef("%s is neither a file nor a word LO HI [PC]: %v", line, err)
			}
			_, err = e.stdout.Write(d.line([]byte(line)))
			return errors.Join(err, d.status())
		}
	}
	if err := e.stream(rest, d.line); err != nil {
		return err
	}
	return d.status()
}

func (d *decoder) status() error {
	if d.failed {
		return silent(1)
	}
	return nil
}

// line returns the line of text for a line of input, newline included.
func (d *decoder) line(in []byte) []byte {
	d.buf = d.buf[:0]
	in = bytes.TrimSpace(in)
	if len(in) == 0 {
		return append(d.buf, '\n')
	}
	w, pc, err := parseWordLine(string(in))
	if err != nil {
		d.failed = true
		return fmt.Appendf(d.buf, "error: %v\n", err)
	}
	if d.control == "cuasm" {
		d.buf = append(isa.ControlOf(w).Append(d.buf), ' ')
	}
	inst := d.table.Decode(w)
	if inst.BadSched && inst.Status != isa.StatusUnknown {
		inst.Status = isa.StatusIllegal
	}
	d.buf = d.table.AppendText(d.buf, inst, pc)
	if inst.Status != isa.StatusKnown && d.strict {
		d.failed = true
	}
	if d.control == "nvidia" {
		d.buf = inst.AppendNvidia(d.buf)
	}
	return append(d.buf, '\n')
}

// parseWordLine reads `LO HI [PC]`.
func parseWordLine(s string) (w isa.Word, pc uint64, err error) {
	w, rest, err := isa.ParseWord(s)
	if err != nil {
		return w, 0, err
	}
	if rest = strings.TrimSpace(rest); rest != "" {
		if pc, err = isa.ParseHex(rest); err != nil {
			return w, 0, fmt.Errorf("address: %w", err)
		}
	}
	return w, pc, nil
}

// An encoder turns lines of text into lines of words.
type encoder struct {
	table  *isa.Table
	allow  isa.Allow
	failed bool
	buf    []byte

	notation int
	pending  [][]byte // lines of a listing before the first one with a code
}

func runIsaEncode(e *env, args []string) error {
	fs := e.flags()
	arch := archFlag(fs)
	allow := fs.String("allow", "", "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	var enc encoder
	if enc.allow, err = isa.ParseAllow(*allow); err != nil {
		return e.usagef("--allow: %v", err)
	}
	if enc.table, err = e.table(*arch); err != nil {
		return err
	}
	if len(rest) > 1 {
		return e.usagef("one instruction in quotes, or - for lines from standard input")
	}
	if len(rest) == 1 && rest[0] != "-" {
		_, err = e.stdout.Write(enc.line([]byte(rest[0])))
	} else {
		err = e.stream(nil, enc.next)
		if _, werr := e.stdout.Write(enc.flush(false)); err == nil {
			err = werr
		}
	}
	if err == nil && enc.failed {
		err = silent(1)
	}
	return err
}

// maxPending is how many lines an encoder keeps until one has a control code.
const maxPending = 1 << 12

// next is line for the lines of a listing: NVIDIA's notation prints nothing for a drain, so
// that a line without a code waits for the first one that has one.
func (c *encoder) next(in []byte) []byte {
	if c.notation == noNotation {
		l, err := isa.ParseLine(string(in))
		switch {
		case err == nil && l.HasControl && l.Nvidia:
			return append(c.flush(true), c.line(in)...)
		case err == nil && l.HasControl, len(c.pending) == maxPending:
			return append(c.flush(false), c.line(in)...)
		case len(c.pending) > 0 || err == nil && l.HasPC:
			c.pending = append(c.pending, bytes.Clone(in))
			return nil
		case err == nil && l.Text != "" && !strings.HasPrefix(l.Text, "//"):
			c.notation = otherNotation // instructions, and no listing
		}
	}
	return c.line(in)
}

// flush encodes the lines that waited.
func (c *encoder) flush(nvidia bool) []byte {
	c.notation = otherNotation
	if nvidia {
		c.notation = nvidiaNotation
	}
	var out []byte
	for _, l := range c.pending {
		out = append(out, c.line(l)...)
	}
	c.pending = nil
	return out
}

// The notation of a listing's control codes, as far as the lines so far tell.
const (
	noNotation = iota
	otherNotation
	nvidiaNotation
)

// line returns the line of output for a line of input, newline included.
func (c *encoder) line(in []byte) []byte {
	c.buf = c.buf[:0]
	if listing.NoInst(string(bytes.TrimSpace(in))) {
		return append(c.buf, '\n')
	}
	w, err := c.encode(strings.TrimRight(string(in), "\r\n"))
	if err != nil {
		c.failed = true
		return fmt.Appendf(c.buf, "error: %v\n", err)
	}
	c.buf = append(c.buf, "0x"...)
	c.buf = isa.AppendHalf(c.buf, w.Lo)
	c.buf = append(c.buf, " 0x"...)
	c.buf = isa.AppendHalf(c.buf, w.Hi)
	return append(c.buf, '\n')
}

func (c *encoder) encode(s string) (isa.Word, error) {
	var like *isa.Word
	var pc uint64
	if word, text, ok := strings.Cut(s, "\t"); ok {
		if w, p, err := parseWordLine(word); err == nil {
			like, pc, s = &w, p, text
		} else if strings.HasPrefix(word, "0x") {
			return isa.Word{}, err
		}
	}
	l, err := isa.ParseLine(s)
	if err != nil {
		return isa.Word{}, err
	}
	if l.HasPC && !l.HasControl && c.notation == nvidiaNotation {
		l.Control, l.HasControl = isa.Drain, true
	}
	if !l.HasPC {
		l.PC = pc
	}
	return c.table.EncodeLine(l, like, c.allow)
}

// stream calls line for every line of the named files, or of standard input, and
// writes what it returns.
func (e *env) stream(files []string, line func([]byte) []byte) error {
	if len(files) == 0 {
		files = []string{"-"}
	}
	for _, name := range files {
		if name == "-" {
			if err := e.streamLines(e.stdin, line); err != nil {
				return fmt.Errorf("standard input: %w", err)
			}
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = e.streamLines(f, line)
		f.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// maxLine is the length of the longest line that stream reads.
const maxLine = 1 << 16

func (e *env) streamLines(r io.Reader, line func([]byte) []byte) error {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, maxLine), maxLine)
	for sc.Scan() {
		if _, err := e.stdout.Write(line(sc.Bytes())); err != nil {
			return err
		}
	}
	return sc.Err()
}
