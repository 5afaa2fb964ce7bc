package isa

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// listText returns the choices of p, which isList, as a list line writes them.
func listText(p *Piece) string {
	var b strings.Builder
	for i := 0; i < len(p.Table); {
		n := 1
		for i+n < len(p.Table) && p.Table[i+n] == p.Table[i] {
			n++
		}
		if i > 0 {
			b.WriteString(" | ")
		}
		s := guardBlanks(choiceText(p, p.Table[i], `\|*`))
		switch s {
		case "":
			s = "-"
		case "-":
			s = `\-`
		}
		b.WriteString(s)
		if n > 1 {
			b.WriteString("*" + strconv.Itoa(n))
		}
		i += n
	}
	return b.String()
}

// nameLists finds the lists that vs need and names those that the base does not
// have.
func (w *tableWriter) nameLists(vs []*Variant) {
	w.names, w.lists = map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.base)) {
		l := w.base[name]
		w.names[listText(l.piece(nil))] = name
	}
	pieces := map[string]*Piece{}
	for _, v := range vs {
		for i := range v.Template {
			if p := &v.Template[i]; isList(p) && !isFlag(p) {
				if s := listText(p); w.names[s] == "" {
					pieces[s] = p
				}
			}
		}
	}
	for _, s := range slices.Sorted(maps.Keys(pieces)) {
		stem := listStem(pieces[s])
		name := stem
		for n := 2; w.base[name] != nil || w.lists[name] != ""; n++ {
			name = stem + "_" + strconv.Itoa(n)
		}
		w.names[s], w.lists[name] = name, s
	}
}

// listStem makes a name for p: that of the modifier group it is, or its first words.
func listStem(p *Piece) string {
	name := ""
	if g := newGroup(p); g != nil {
		name = groupName(g)
	}
	if name == "" {
		name = firstWords(p)
	}
	if _, isKind := kindOf(name); isKind {
		name += "_1"
	}
	return cmp.Or(name, "refused")
}

// firstWords joins the first words of p's alternatives.
func firstWords(p *Piece) string {
	var words []string
	for _, x := range p.Table {
		if int(x) >= len(p.Alts) || len(p.Alts[x]) == 0 || isInvalid(p.Alts[x][0].Lit) {
			continue
		}
		lit := strings.Trim(strings.ToLower(p.Alts[x][0].Lit), " .,")
		word := strings.Trim(strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' {
				return r
			}
			return '_'
		}, lit), "_")
		if word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
		if len(words) == 3 {
			break
		}
	}
	return strings.Join(words, "_")
}

// kindOf returns the kind of operand with the given name in tables.
func kindOf(name string) (Kind, bool) {
	k := slices.Index(kindNames[1:], name) + 1
	return Kind(k), k > 0
}

// writeLists writes the definitions of the lists.
func (w *tableWriter) writeLists() {
	const limit = 100
	for _, name := range slices.Sorted(maps.Keys(w.lists)) {
		line := "list " + name + " ="
		for i, e := range strings.Split(w.lists[name], " | ") {
			if i > 0 {
				e = "| " + e
			}
			if len(line)+len(e) >= limit {
				w.out.WriteString(line + "\n")
				line = "   "
			}
			line += " " + e
		}
		fmt.Fprintln(&w.out, line)
	}
}

// piece returns the choice that l makes by the field f.
func (l *list) piece(f Field) *Piece {
	return &Piece{Tests: []Test{{Field: f}}, Table: l.table, Alts: l.alts}
}
