package code

import "github.com/cupatch/cupatch/isa"

func CutDot(s []byte) (head, tail []byte) {
	for i, c := range s {
		if c == '.' {
			return s[:i], s[i+1:]
		}
	}
	return s, nil
}

// Texts makes the texts of instructions. A text that comes again takes no memory of its
// own. The zero value is ready; it is not safe for concurrent use.
type Texts struct {
	table *isa.Table // of known
	known map[isa.Word]string
	buf   []byte
}

// maxTexts is how many texts are kept.
const maxTexts = 1 << 16

// Text returns the text of w at the address pc; like is one that may be the same.
func (x *Texts) Text(t *isa.Table, w isa.Word, pc uint64, like string) string {
	if t != x.table {
		x.table, x.known = t, nil
	}
	if s, ok := x.known[w]; ok {
		return s
	}
	in := t.Decode(w)
	x.buf = t.AppendText(x.buf[:0], in, pc)
	s := like
	if string(x.buf) != like {
		s = string(x.buf)
	}
	if in.Relative() {
		return s
	}
	if x.known == nil || len(x.known) == maxTexts {
		x.known = map[isa.Word]string{}
	}
	x.known[w] = s
	return s
}
