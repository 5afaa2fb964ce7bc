package listing

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
)

// A Inst is an instruction of a listing.
type Inst struct {
	Line    int
	Entry   string // of the header line above; "" for none
	Kernel  string
	Header  KernelHeader // the rest of the header line above
	PC      uint64
	HasPC   bool
	Control *isa.Control // nil in a listing without control codes: they stay
	Text    string       // bare
	Word    *isa.Word    // of a listing with --hex

	nvidia bool // the code stood after the text
}

// A KernelHeader is what the header line of a kernel says of it, NAME aside:
// `// kernel NAME (sm_90, 53 registers, 640 bytes)`.
type KernelHeader struct {
	Arch  string // as written; "" for none
	Regs  int    // -1 for none
	Bytes int    // -1 for none
}

// An Error is a line of a listing that cannot be read or does not fit.
type Error struct {
	Name string // of the listing
	Line int
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %v", e.Name, e.Line, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// IsListing reports whether data is a listing rather than a report, which is JSON, or no
// text at all.
func IsListing(data []byte) bool {
	t := bytes.TrimLeft(data, " \t\r\n\ufeff")
	return len(t) > 0 && t[0] != '{' && bytes.IndexByte(t[:min(len(t), 1024)], 0) < 0
}

// Parse reads a listing as `dis` writes it, edited or not. Blank lines, labels
// and comments have no meaning, except that header lines name kernel and entry.
func Parse(name string, r io.Reader) ([]Inst, error) {
	var out []Inst
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	entry, kernel := "", ""
	none := KernelHeader{Regs: -1, Bytes: -1}
	ofEntry, header := none, none
	for line := 1; sc.Scan(); line++ {
		s := strings.TrimSpace(strings.TrimPrefix(sc.Text(), "\ufeff"))
		if rest, ok := strings.CutPrefix(s, "// entry "); ok {
			var err error
			if ofEntry, err = parseHeader(rest); err != nil {
				return nil, &Error{name, line, err}
			}
			entry, kernel, header = entryNumber(rest), "", ofEntry
			continue
		}
		if rest, ok := strings.CutPrefix(s, "// kernel "); ok {
			k, err := unquoteName(rest)
			if err != nil {
				return nil, &Error{name, line, err}
			}
			if header, err = parseHeader(rest); err == nil && !SameArch(header.Arch, ofEntry.Arch) {
				err = fmt.Errorf("kernel for %s in an entry for %s", header.Arch, ofEntry.Arch)
			}
			if err != nil {
				return nil, &Error{name, line, err}
			}
			kernel = k
			if header.Arch == "" {
				header.Arch = ofEntry.Arch
			}
			continue
		}
		if NoInst(s) {
			continue
		}
		in, err := ParseLine(s)
		if err != nil {
			return nil, &Error{name, line, err}
		}
		in.Line, in.Entry, in.Kernel, in.Header = line, entry, kernel, header
		out = append(out, in)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	fillControl(out)
	return out, nil
}

// NoInst reports whether a line of a listing, without blanks at its ends, has no
// instruction and needs none: an empty line, a comment, a label.
func NoInst(s string) bool {
	return s == "" || strings.HasPrefix(s, "//") || strings.HasPrefix(s, ".L") && strings.HasSuffix(s, ":")
}

// fillControl gives the lines without a control code the one that this means: among
// lines with CuAssembler's codes [B------:R-:W-:-:S01], among lines with NVIDIA's, which
// prints nothing for it, a drain.
func fillControl(list []Inst) {
	missing := isa.DefaultControl
	any := false
	for _, in := range list {
		if in.nvidia {
			missing = isa.Drain
		}
		any = any || in.Control != nil
	}
	for i := range list {
		if list[i].Control == nil && any {
			list[i].Control = &missing
		}
	}
}

// entryNumber returns the 12 of `lib.so#12 sm_90a`.
func entryNumber(s string) string {
	s, _, _ = strings.Cut(s, " (")
	if _, number, ok := elfx.SplitSelector(s); ok {
		s = number
	}
	n, _, _ := strings.Cut(s, " ")
	return n
}

// parseHeader reads the parentheses at the end of a header line. Where they do not begin
// with an architecture they are somebody's remark.
func parseHeader(s string) (KernelHeader, error) {
	h := KernelHeader{Regs: -1, Bytes: -1}
	i := strings.LastIndex(s, " (")
	if i < 0 {
		return h, nil
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimSpace(s[i+2:]), ")"), ",")
	if _, err := isa.ParseArch(parts[0]); err != nil {
		return h, nil
	}
	h.Arch = parts[0]
	for _, p := range parts[1:] {
		num, unit, _ := strings.Cut(strings.TrimSpace(p), " ")
		n, err := strconv.Atoi(num)
		switch {
		case err != nil || n < 0:
			return h, fmt.Errorf("header (%s): want (ARCH, N registers, N bytes)", strings.Join(parts, ","))
		case unit == "registers" || unit == "register":
			h.Regs = n
		case unit == "bytes":
			h.Bytes = n
		default:
			return h, fmt.Errorf("header (%s): want (ARCH, N registers, N bytes)", strings.Join(parts, ","))
		}
	}
	return h, nil
}

func unquoteName(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", fmt.Errorf("bad kernel name %s", s)
		}
		return strconv.Unquote(q)
	}
	name, _, _ := strings.Cut(s, " ")
	return name, nil
}

// ParseLine reads a line as [isa.ParseLine] does; a listing has no line without an
// instruction.
func ParseLine(s string) (Inst, error) {
	l, err := isa.ParseLine(strings.TrimSpace(s))
	if err == nil && l.Text == "" {
		err = fmt.Errorf("no instruction")
	}
	in := Inst{PC: l.PC, HasPC: l.HasPC, Text: l.Text, nvidia: l.Nvidia}
	if l.HasWord {
		in.Word = &l.Word
	}
	if l.HasControl {
		in.Control = &l.Control
	}
	return in, err
}

// ParseRaw reads `.word 0xLO, 0xHI` and its kin.
func ParseRaw(text string) (w isa.Word, ok bool, err error) {
	if !strings.HasPrefix(text, ".word ") && !strings.HasPrefix(text, ".illegal ") && !strings.HasPrefix(text, ".silent ") {
		return w, false, nil
	}
	_, rest, _ := strings.Cut(text, " ")
	lo, hi, found := strings.Cut(rest, ",")
	w.Lo, err = strconv.ParseUint(strings.TrimSpace(lo), 0, 64)
	if err == nil && found {
		w.Hi, err = strconv.ParseUint(strings.TrimSpace(hi), 0, 64)
	}
	if err != nil || !found {
		return w, true, fmt.Errorf("want .word 0xLO, 0xHI")
	}
	return w, true, nil
}

// SplitControl takes a control code off an instruction's text, and the semicolon at its
// end; pos is where the rest starts.
func SplitControl(s string) (code *isa.Control, text string, pos int, err error) {
	return isa.SplitControl(strings.TrimSuffix(strings.TrimRight(s, " \t"), ";"))
}

// SameArch reports whether the architecture in a header, "" for none, is that of a cubin.
func SameArch(header, cubin string) bool {
	a, err1 := isa.ParseArch(header)
	b, err2 := isa.ParseArch(cubin)
	// The suffix f is the container's alone.
	return header == "" || err1 != nil || err2 != nil || a == b || a.SM == b.SM && a.Suffix == "f" && b.Suffix == ""
}
