package learn

import (
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// An Asker answers questions about words of one architecture, as an [Oracle] does.
type Asker interface {
	Ask(words []isa.Word) ([]Answer, error)
}

// A session asks on behalf of the learner. After an error every word counts as refused, and
// the error is kept: whoever has asked for long looks at it in the end.
type session struct {
	Arch     isa.Arch
	QuietNaN bool // see Oracle

	asker Asker
	err   error
}

// session returns a session that asks o.
func (o *Oracle) session() *session {
	return &session{Arch: o.Arch, QuietNaN: o.QuietNaN, asker: o}
}

// AskAtZero is Ask for words whose text may depend on their address: the texts are those
// of address 0.
func (o *Oracle) AskAtZero(words []isa.Word) ([]Answer, error) {
	s := o.session()
	return s.AskAtZero(words), s.err
}

// Ask returns an answer for each word.
func (s *session) Ask(words []isa.Word) []Answer {
	if s.err == nil && len(words) > 0 {
		var out []Answer
		if out, s.err = s.asker.Ask(words); s.err == nil {
			return out
		}
	}
	return make([]Answer, len(words))
}

// ClassOf returns nvdisasm's name of each word's encoding class, or "" for a word
// that has none. It asks with a schedule value that no class has.
func (s *session) ClassOf(words []isa.Word) []string {
	odd := make([]isa.Word, len(words))
	for i, w := range words {
		odd[i] = schedField.MustSet(quieten(w).AndNot(reuseMask), 0x10)
	}
	out := make([]string, len(words))
	for i, a := range s.Ask(odd) {
		out[i] = a.Class
	}
	return out
}

// AskAtZero is Ask for words whose text may depend on their address: it asks for each
// at two addresses, and rewrites the number that moves with the address to what it would
// be at address 0.
func (s *session) AskAtZero(words []isa.Word) []Answer {
	first := s.Ask(words)
	second := s.Ask(append([]isa.Word{nop}, words...))[1:]
	for i := range first {
		switch {
		case !first[i].OK:
		case first[i].PC == second[i].PC:
			first[i] = s.Ask(words[i : i+1])[0]
		default:
			first[i].Text = atZero(first[i], second[i])
			first[i].PC = 0
		}
	}
	return first
}

func atZero(a, b Answer) string {
	x, y := tokenize(a.Text), tokenize(b.Text)
	if len(x) != len(y) {
		return a.Text
	}
	for i := range x {
		m, ok1 := readNumber(x[i])
		n, ok2 := readNumber(y[i])
		if x[i] == y[i] || !ok1 || !ok2 || m.prefix != "0x" || n.value-m.value != int64(b.PC-a.PC) {
			continue
		}
		v := m.value - int64(a.PC)
		x[i] = fmt.Sprintf("0x%x", v)
		if v < 0 {
			x[i] = fmt.Sprintf("-0x%x", -v)
		}
	}
	return strings.Join(x, "")
}
