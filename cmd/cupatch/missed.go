package main

import (
	"strings"

	"github.com/cupatch/cupatch/elfx"
)

// maxNames bounds the names that a message lists.
const maxNames = 12

// misses is what a command has seen of files in which the options choose nothing, for the
// message that it ends with if that is so of all of them.
type misses struct {
	extra   string   // further options that choose, such as --kind ptx
	first   string   // name of the first file
	sel     string   // the entries that its name chooses, "" for all
	files   int      // how many files
	kernels bool     // there were cubins, but no kernel in them
	there   []string // what there is
	more    bool     // and others
}

// missed remembers that nothing in a file was chosen.
func (n *narrowing) missed(f *elfx.File, selected map[*elfx.Entry]bool) {
	m := &n.miss
	if m.files++; m.files == 1 {
		m.first, m.sel = f.Name, entryNumbers(f, selected)
	}
	if len(n.kernels) > 0 {
		if cubins := n.cubins(f, selected); len(cubins) > 0 {
			if !m.kernels { // the kernels tell more than the architectures of other files
				m.kernels, m.there, m.more = true, nil, false
			}
			m.addKernels(cubins)
			return
		}
	}
	if m.kernels {
		return
	}
	for _, e := range f.Entries() {
		if e.Kind != elfx.KindConcat {
			m.add(strings.TrimSpace(e.Kind.String() + " " + e.Target()))
		}
	}
}

// chooses reports whether the options choose a kernel of a file, or a cubin where they name
// no kernels. A cubin that cannot be read is left to those that need it.
func (n *narrowing) chooses(f *elfx.File, selected map[*elfx.Entry]bool) bool {
	cubins := n.cubins(f, selected)
	if len(n.kernels) == 0 {
		return len(cubins) > 0
	}
	for _, e := range cubins {
		c, err := e.Cubin()
		if err != nil {
			return true
		}
		kernels := c.Kernels()
		for i := range kernels {
			if n.kernelWanted(&kernels[i]) {
				return true
			}
		}
	}
	return false
}

// addKernels adds the names of the kernels of some cubins.
func (m *misses) addKernels(cubins []*elfx.Entry) {
	for _, e := range cubins {
		if m.more {
			return
		}
		c, err := e.Cubin()
		if err != nil {
			continue
		}
		kernels := c.Kernels()
		for i := range kernels {
			m.add(shownName(kernels[i].Name))
		}
		e.Done()
	}
}

func (m *misses) add(name string) {
	for _, x := range m.there {
		if x == name {
			return
		}
	}
	if len(m.there) == maxNames {
		m.more = true
		return
	}
	m.there = append(m.there, name)
}

// nothing returns the error of a command for which the options choose nothing in any
// file: what was looked for, where, and what there is. what is cubin or entry.
func (n *narrowing) nothing(what string) error {
	m := &n.miss
	if m.files == 0 { // no file with GPU code, which has been said
		return answerNo("no %s", what)
	}
	if m.kernels {
		what = "kernel"
	}
	s := m.first
	if m.files > 1 {
		s += " and " + plural(m.files-1, "other file", "other files")
	}
	s += ": no " + what
	if m.sel != "" && m.files == 1 {
		s += " in " + m.sel
	}
	if options := strings.TrimSpace(n.String() + " " + m.extra); options != "" {
		s += " fits " + options
	}
	switch {
	case m.more:
		s += "; there are " + strings.Join(m.there, ", ") + " and others"
	case len(m.there) == 1:
		s += "; there is " + m.there[0]
	case len(m.there) > 0:
		s += "; there are " + strings.Join(m.there, ", ")
	}
	return answerNo("%s", s)
}

// entryNumbers names the entries that a file's name chooses.
func entryNumbers(f *elfx.File, selected map[*elfx.Entry]bool) string {
	if selected == nil || len(selected) == len(f.Entries()) {
		return ""
	}
	var out []string
	for _, e := range f.Entries() {
		if !selected[e] {
			continue
		}
		if len(out) == maxNames {
			out = append(out, "…")
			break
		}
		out = append(out, e.Tag())
	}
	return strings.Join(out, ", ")
}
