package liferange

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/cupatch/cupatch/isa"
)

// A Row is one instruction of a listing with life ranges.
type Row struct {
	Section string // without .text.
	PC      uint64 // in bytes
	Marks   isa.Effects
	InUse   isa.RegSet // every register with a mark
}

// A column of the table says where a register's mark stands.
type column struct {
	at, number int
	file       isa.RegFile
}

// fileOf maps the titles of column groups to register files.
var fileOf = map[string]isa.RegFile{"GPR": isa.FileR, "UGPR": isa.FileUR, "PRED": isa.FileP, "UPRED": isa.FileUP}

// A parser reads what nvdisasm -plr -lrm narrow -c prints. Before the code of a kernel
// stand lines such as
//
//	// +-------------------+--------+
//	// |        GPR        | PRED   |
//	// |     0000000000111 |        |
//	// |   # 0123456789012 |  # 01  |
//
// in which the last has the lowest digits of the register numbers, those above it the
// higher ones. The lines of instructions end with a mark below each register: ^ written,
// v read, x both, : in use.
type parser struct {
	section string
	head    [][]byte // lines of the table's head, from the titles on
	columns []column
	ready   bool
}

var tableMark = []byte("// ")

// line reads a line of the listing. It reports whether it is an instruction's.
func (p *parser) line(l []byte) (Row, bool, error) {
	if name, ok := bytes.CutPrefix(l, []byte("//--------------------- .text.")); ok {
		name, _, _ = bytes.Cut(name, []byte(" "))
		*p = parser{section: string(name)}
		return Row{}, false, nil
	}
	i := bytes.Index(l, tableMark)
	if i < 0 || i+len(tableMark) >= len(l) {
		return Row{}, false, nil
	}
	t := l[i+len(tableMark):]
	switch t[0] {
	case '+':
		if len(p.head) > 0 && !p.ready {
			p.ready = true
			return Row{}, false, p.readHead()
		}
		return Row{}, false, nil
	case '|':
	default:
		return Row{}, false, nil
	}
	if !p.ready {
		p.head = append(p.head, bytes.Clone(t))
		return Row{}, false, nil
	}
	pc, ok := address(l)
	if !ok {
		return Row{}, false, nil
	}
	r := Row{Section: p.section, PC: pc}
	for _, c := range p.columns {
		if c.at >= len(t) {
			return r, false, fmt.Errorf("line %q is shorter than the table's head", l)
		}
		if t[c.at] != ' ' {
			r.InUse.Add(c.file, c.number, 1)
		}
		switch t[c.at] {
		case '^':
			r.Marks.Writes.Add(c.file, c.number, 1)
		case 'v':
			r.Marks.Reads.Add(c.file, c.number, 1)
		case 'x':
			r.Marks.Writes.Add(c.file, c.number, 1)
			r.Marks.Reads.Add(c.file, c.number, 1)
		case ':', ' ':
		default:
			return r, false, fmt.Errorf("mark %q in line %q", t[c.at], l)
		}
	}
	return r, true, nil
}

// address reads the number in the comment at the start of an instruction's line.
func address(l []byte) (uint64, bool) {
	l, ok := bytes.CutPrefix(bytes.TrimLeft(l, " \t"), []byte("/*"))
	n, _, closed := bytes.Cut(l, []byte("*/"))
	pc, err := strconv.ParseUint(string(n), 16, 64)
	return pc, ok && closed && err == nil
}

// readHead finds the columns of the registers.
func (p *parser) readHead() error {
	titles, digits := p.head[0], p.head[1:]
	if len(digits) == 0 {
		return fmt.Errorf("a table without register numbers")
	}
	last := digits[len(digits)-1]
	for start := 1; start < len(titles); {
		n := bytes.IndexByte(titles[start:], '|')
		if n < 0 {
			break
		}
		name := string(bytes.TrimSpace(titles[start : start+n]))
		file, ok := fileOf[name]
		if !ok {
			return fmt.Errorf("a table of %q", name)
		}
		for at := start + bytes.IndexByte(last[start:start+n], '#') + 1; at < start+n; at++ {
			if last[at] == ' ' {
				continue
			}
			number := 0
			for _, d := range digits {
				if c := d[at]; c != ' ' {
					number = number*10 + int(c-'0')
				}
			}
			p.columns = append(p.columns, column{at, number, file})
		}
		start += n + 1
	}
	return nil
}

// Parse calls f with every instruction of a listing that nvdisasm -plr -lrm narrow -c has
// printed. An error of f ends it.
func Parse(r io.Reader, f func(Row) error) error {
	in := bufio.NewReaderSize(r, 1<<16)
	var p parser
	for {
		l, err := in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			return fmt.Errorf("a line of more than %d bytes", in.Size())
		}
		if len(l) == 0 && err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
		row, ok, bad := p.line(bytes.TrimRight(l, "\r\n"))
		if bad != nil {
			return bad
		}
		if ok {
			if bad := f(row); bad != nil {
				return bad
			}
		}
	}
}
