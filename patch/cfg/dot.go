package cfg

import (
	"fmt"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/patch/listing"
)

// AppendDot appends the graph as text for Graphviz, one node a block, loops as clusters
// inside one another. With text, nodes show their instructions. What fills up the end of a
// section is left out. The same graph gives the same text.
func (g *Graph) AppendDot(dst []byte, text bool) []byte {
	d := &dotWriter{Graph: g, buf: dst, text: text, inner: make([][]int, len(g.Loops))}
	title := g.Kernel
	if g.Demangled != "" {
		title = g.Demangled
	}
	d.linef(0, "digraph %s {", quote(elfx.Printable(g.Kernel)))
	d.linef(1, "label=%s;", quote(fmt.Sprintf("%s, %s, %s", elfx.Printable(title), count(g.Instructions, "instruction"), count(g.Registers, "register"))))
	d.linef(1, "node [shape=box, fontname=monospace, fontsize=10];")
	d.linef(1, "edge [fontsize=9];")
	var outer []int
	for i := range g.Loops {
		if p := g.Loops[i].Parent; p != nil {
			d.inner[*p] = append(d.inner[*p], i)
		} else {
			outer = append(outer, i)
		}
	}
	for i := range g.Blocks {
		if g.Blocks[i].Loop == nil && !g.padding(&g.Blocks[i]) {
			d.node(1, &g.Blocks[i])
		}
	}
	d.clusters(outer)
	for i := range g.Blocks {
		d.edges(&g.Blocks[i])
	}
	d.linef(0, "}")
	return d.buf
}

// padding reports whether a block is nothing but what fills up the end of a section.
func (g *Graph) padding(b *Block) bool {
	if !b.Unreachable || len(b.Successors)+len(b.Predecessors) > 0 {
		return false
	}
	for i := b.Start / isa.WordSize; i < b.End/isa.WordSize; i++ {
		if !g.state.Table.Decode(g.state.Word(i)).IsPadding() {
			return false
		}
	}
	return true
}

// count returns `1 instruction`, `2 instructions`.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

type dotWriter struct {
	*Graph
	buf   []byte
	text  bool
	inner [][]int // the loops right inside each loop
}

// linef appends a line.
func (d *dotWriter) linef(depth int, format string, args ...any) {
	d.buf = append(d.buf, strings.Repeat("\t", min(depth, 32))...)
	d.buf = append(fmt.Appendf(d.buf, format, args...), '\n')
}

// clusters writes loops and what is inside them, without recursion: loops may be nested as
// deep as a kernel is long.
func (d *dotWriter) clusters(loops []int) {
	type frame struct{ left []int }
	stack := []frame{{loops}}
	for len(stack) > 0 {
		top := &stack[len(stack)-1]
		depth := len(stack)
		if len(top.left) == 0 {
			if stack = stack[:depth-1]; depth > 1 {
				d.linef(depth-1, "}")
			}
			continue
		}
		l := &d.Loops[top.left[0]]
		top.left = top.left[1:]
		d.linef(depth, "subgraph cluster_%d {", l.Loop)
		d.linef(depth+1, "label=\"loop %d, depth %d, %s\";", l.Loop, l.Depth, count(l.Instructions, "instruction"))
		for _, b := range l.Blocks {
			d.node(depth+1, &d.Blocks[b])
		}
		stack = append(stack, frame{d.inner[l.Loop]})
	}
}

// node writes a block.
func (d *dotWriter) node(depth int, b *Block) {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if b.Function != "" {
		add("%s", elfx.Printable(b.Function))
	}
	add("block %d: %04x-%04x", b.Block, b.Start, max(b.End-isa.WordSize, b.Start))
	add("%s", count(b.Instructions, "instruction"))
	p := b.Pressure
	add("pressure R %d UR %d P %d UP %d", p.R, p.UR, p.P, p.UP)
	if b.Open {
		add("goes on to an unknown place")
	}
	if d.text {
		for i := b.Start / isa.WordSize; i < b.End/isa.WordSize; i++ {
			line := listing.Style{}.AppendLine(nil, d.state.Table, d.state.Word(i), uint64(i)*isa.WordSize)
			add("%s", strings.TrimSuffix(string(line), "\n"))
		}
	}
	label := quote(strings.Join(lines, "\n") + "\n")
	style := ""
	switch {
	case b.Entry:
		style = ", penwidth=2"
	case b.Unreachable:
		style = ", color=gray, fontcolor=gray"
	}
	d.linef(depth, "b%d [label=%s%s];", b.Block, strings.ReplaceAll(label, "\n", `\l`), style)
}

// edgeStyles are the attributes of the kinds of edges, beside their label.
var edgeStyles = map[string]string{"fall through": ", style=dashed", "indirect": ", style=dotted"}

// edges writes the edges from a block.
func (d *dotWriter) edges(b *Block) {
	for _, e := range b.Successors {
		style := edgeStyles[e.Kind]
		if e.Back {
			style += ", color=red"
		}
		d.linef(1, "b%d -> b%d [label=%s%s];", b.Block, e.Block, quote(e.Kind), style)
	}
	if b.Calls != nil {
		d.linef(1, "b%d -> b%d [label=\"call\", style=dotted, color=gray, constraint=false];", b.Block, *b.Calls)
	}
}

// quote returns s as a quoted ID of the DOT language, in which only the quotation mark
// needs a backslash; a backslash is doubled, so that labels show it.
func quote(s string) string { return `"` + escapes.Replace(s) + `"` }

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
