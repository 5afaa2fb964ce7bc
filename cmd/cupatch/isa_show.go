package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cupatch/cupatch/elfx"
	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule/assign"
	"github.com/cupatch/cupatch/patch/code"
)

const isaShowUsage = `usage: cupatch isa show MNEMONIC --arch ARCH [OPTIONS]

Prints the encoding classes of an instruction: what each bit means, the modifier
groups with their values, the operands with the names that rules use, and the bits
that no text shows.

  -a, --arch ARCH    sm_90, sm_90a, 90a, …
      --class NAME   only this encoding class; * and ? are wildcards
      --text         as the table's text has it
      --json         the same facts as JSON

In a text, {24:31 R} is an operand in bits 24–31, {72?.E} a flag, {68:69 A | B | …} a
choice by value, {#1} a choice described below it.

examples:
  cupatch isa show LDG --arch sm_100
  cupatch isa show 'IMAD' --arch sm_90 --class '*RIR*' --json
`

const isaLsUsage = `usage: cupatch isa ls [--arch ARCH] [--json]

Without --arch, lists the architectures that have a table; with it, the instructions
of one, with the number of encoding classes and the modifier groups of each.

  -a, --arch ARCH    sm_90, sm_90a, 90a, …
      --json         the same as JSON

examples:
  cupatch isa ls
  cupatch isa ls --arch sm_90
`

const isaDiffUsage = `usage: cupatch isa diff [--short] ARCH ARCH

Prints which encoding classes the second architecture has and the first has not (+),
the other way round (-), and which differ (~), with the lines that do. Exit status 1
when anything differs.

      --short    one line a class

example:
  cupatch isa diff sm_90a sm_100
`

func init() {
	registerIsa(&command{"show", "", isaShowUsage, runIsaShow})
	registerIsa(&command{"ls", "", isaLsUsage, runIsaLs})
	registerIsa(&command{"diff", "", isaDiffUsage, runIsaDiff})
}

func runIsaShow(e *env, args []string) error {
	fs := e.flags()
	arch := archFlag(fs)
	class := fs.String("class", "*", "")
	asJSON := fs.Bool("json", false, "")
	asText := fs.Bool("text", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return e.usagef("which instruction? say one, such as LDG")
	}
	t, err := e.table(*arch)
	if err != nil {
		return err
	}
	ds := []*isa.Description{}
	var vs []*isa.Variant
	var classes []string
	for _, v := range t.Variants() {
		if !slices.Contains(v.Mnemonics(), rest[0]) {
			continue
		}
		classes = append(classes, v.Class)
		if elfx.MatchGlob(*class, v.Class) {
			ds = append(ds, t.Describe(v))
			vs = append(vs, v)
		}
	}
	if len(ds) == 0 && len(classes) > 0 {
		x := answerNo("%s of %s has no class %s", rest[0], t.Arch(), *class)
		x.hint = "classes: " + strings.Join(classes, " ")
		return x
	}
	if len(ds) == 0 {
		x := answerNo("%s has no instruction %s", t.Arch(), rest[0])
		if near := nearest(rest[0], t.Mnemonics()); near != "" {
			x.hint = "did you mean " + near + "?"
		}
		return x
	}
	var boards assign.Boards
	if h, err := assign.Load(t.Arch()); err == nil {
		boards = h.Boards(rest[0])
	}
	switch {
	case *asJSON:
		out := map[string]any{"arch": t.Arch().String(), "mnemonic": rest[0], "classes": ds}
		if boards.Instructions > 0 {
			out["scoreboards"] = boards
		}
		return e.printJSON(out)
	case *asText:
		for i, v := range vs {
			if i > 0 {
				fmt.Fprintln(e.stdout)
			}
			fmt.Fprint(e.stdout, isa.FormatVariant(v))
		}
		return nil
	}
	fmt.Fprintf(e.stdout, "%s on %s: %s\n", rest[0], t.Arch(), plural(len(ds), "encoding class", "encoding classes"))
	e.showBoards(boards)
	for _, d := range ds {
		e.showClass(d)
	}
	return nil
}

// showBoards says whether code of ptxas waits for an instruction by scoreboards; its latency is fixed
// where none sets one.
func (e *env) showBoards(b assign.Boards) {
	switch {
	case b.Instructions == 0:
	case b.Results == 0 && b.Sources == 0:
		fmt.Fprintf(e.stdout, "none of %d in code of ptxas sets a scoreboard\n", b.Instructions)
	default:
		fmt.Fprintf(e.stdout, "of %d in code of ptxas, %d set a scoreboard for their results, %d for their sources\n", b.Instructions, b.Results, b.Sources)
	}
}

// printJSON writes v as indented JSON.
func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// showClass prints one encoding class.
func (e *env) showClass(d *isa.Description) {
	o := e.stdout
	fmt.Fprintf(o, "\n%s  opcode %#x", d.Class, d.Opcode&0xfff)
	if d.Opcode>>12 != 0 {
		fmt.Fprint(o, " with bit 91")
	}
	if d.Guard != "P" {
		fmt.Fprintf(o, ", guard %s", d.Guard)
	}
	fmt.Fprintf(o, "\n\n  %s\n", d.Text)
	for _, c := range d.Choices {
		fmt.Fprintln(o, c)
	}
	fmt.Fprintf(o, "\n  %-8s  %-14s  %s\n", "bits", "value", "meaning")
	for _, r := range d.Bits {
		fmt.Fprintf(o, "  %-8s  %-14s  %s\n", r, r.Value, r.Means)
	}
	if d.Reuse != "" {
		fmt.Fprintf(o, "\n  reuse flags: %s\n", strings.Join(strings.Split(d.Reuse, ""), " "))
	}
	if len(d.Operands) > 0 {
		fmt.Fprintf(o, "\n  operands\n")
		for _, op := range d.Operands {
			fmt.Fprintf(o, "    %-8s  %s\n", op.Name, op.Text)
		}
	}
	for _, g := range d.Groups {
		e.showGroup(g)
	}
	if len(d.Hidden) > 0 {
		fmt.Fprint(o, "\n  shown by no text:")
		for _, h := range d.Hidden {
			fmt.Fprintf(o, " %s", h.Field)
			if h.Default != 0 {
				fmt.Fprintf(o, "=%#x", h.Default)
			}
		}
		fmt.Fprintln(o)
	}
}

// showGroup prints a modifier group, equal neighbors as one.
func (e *env) showGroup(g isa.GroupDescription) {
	where := "of the opcode"
	if g.Operand >= 0 {
		where = fmt.Sprintf("at operand %d", g.Operand+1)
	}
	fmt.Fprintf(e.stdout, "\n  %s  %s, %s\n", g.Name, g.Field, where)
	for i := 0; i < len(g.Values); {
		j := i
		for j+1 < len(g.Values) && g.Values[j+1] == g.Values[i] && slices.Contains(g.Illegal, j+1) == slices.Contains(g.Illegal, i) {
			j++
		}
		num, text := fmt.Sprint(i), g.Values[i]
		if j > i {
			num = fmt.Sprintf("%d–%d", i, j)
		}
		switch {
		case text == "" && slices.Contains(g.Illegal, i):
			text = "(refused)"
		case text == "":
			text = "(default)"
		}
		fmt.Fprintf(e.stdout, "    %5s  %s\n", num, text)
		i = j + 1
	}
}

// An isaListing is a line of isa ls.
type isaListing struct {
	Name     string   `json:"name"`
	Classes  int      `json:"classes"`
	Mnemonic int      `json:"mnemonics,omitempty"`
	Groups   []string `json:"groups,omitempty"`
}

func runIsaLs(e *env, args []string) error {
	fs := e.flags()
	arch := archFlag(fs)
	asJSON := fs.Bool("json", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return e.usagef("%q is too much", rest[0])
	}
	var ls []isaListing
	if *arch == "" {
		ls, err = listTables()
	} else {
		ls, err = e.listMnemonics(*arch)
	}
	if err != nil {
		return err
	}
	if *asJSON {
		return e.printJSON(ls)
	}
	for _, l := range ls {
		if *arch == "" {
			fmt.Fprintf(e.stdout, "%-8s  %4d instructions  %4d encoding classes\n", l.Name, l.Mnemonic, l.Classes)
			continue
		}
		line := fmt.Sprintf("%-14s  %3d  %s", l.Name, l.Classes, strings.Join(l.Groups, " "))
		fmt.Fprintln(e.stdout, strings.TrimRight(line, " "))
	}
	return nil
}

func listTables() ([]isaListing, error) {
	tables, err := code.Tables()
	var ls []isaListing
	for _, t := range tables {
		ls = append(ls, isaListing{Name: t.Arch().String(), Classes: len(t.Variants()), Mnemonic: len(t.Mnemonics())})
	}
	return ls, err
}

func (e *env) listMnemonics(arch string) ([]isaListing, error) {
	t, err := e.tableOf(arch)
	if err != nil {
		return nil, err
	}
	byName := map[string]*isaListing{}
	for _, v := range t.Variants() {
		for _, m := range v.Mnemonics() {
			l := byName[m]
			if l == nil {
				l = &isaListing{Name: m}
				byName[m] = l
			}
			l.Classes++
			for _, g := range t.Groups(v) {
				if g.Operand < 0 && !slices.Contains(l.Groups, g.Name) {
					l.Groups = append(l.Groups, g.Name)
				}
			}
		}
	}
	var ls []isaListing
	for _, m := range t.Mnemonics() {
		ls = append(ls, *byName[m])
	}
	return ls, nil
}

func runIsaDiff(e *env, args []string) error {
	fs := e.flags()
	short := fs.Bool("short", false, "")
	rest, err := e.parse(fs, args)
	if err != nil {
		return err
	}
	if len(rest) != 2 {
		return e.usagef("say two architectures, such as sm_90a sm_100")
	}
	a, err := e.tableOf(rest[0])
	if err != nil {
		return err
	}
	b, err := e.tableOf(rest[1])
	if err != nil {
		return err
	}
	d := isa.DiffTables(a, b)
	for _, v := range d.Removed {
		fmt.Fprintf(e.stdout, "- %s\n", classLine(v))
	}
	for _, v := range d.Added {
		fmt.Fprintf(e.stdout, "+ %s\n", classLine(v))
	}
	for _, p := range d.Changed {
		fmt.Fprintf(e.stdout, "~ %s\n", classLine(p[1]))
		if !*short {
			e.diffLines(isa.FormatVariant(p[0]), isa.FormatVariant(p[1]))
		}
	}
	fmt.Fprintf(e.stdout, "%s to %s: %d classes the same, %d changed, %d removed, %d added\n",
		a.Arch(), b.Arch(), d.Same, len(d.Changed), len(d.Removed), len(d.Added))
	if len(d.Changed)+len(d.Removed)+len(d.Added) > 0 {
		return silent(1)
	}
	return nil
}

// classLine names a variant in one line.
func classLine(v *isa.Variant) string {
	line, _, _ := strings.Cut(isa.FormatVariant(v), "\n")
	return fmt.Sprintf("%-10s %s", v.Mnemonic(), strings.TrimPrefix(line, "class "))
}

// diffLines prints the lines that a and b do not share.
func (e *env) diffLines(a, b string) {
	as, bs := strings.Split(strings.TrimSpace(a), "\n"), strings.Split(strings.TrimSpace(b), "\n")
	for _, l := range as {
		if !slices.Contains(bs, l) {
			fmt.Fprintf(e.stdout, "    - %s\n", strings.TrimSpace(l))
		}
	}
	for _, l := range bs {
		if !slices.Contains(as, l) {
			fmt.Fprintf(e.stdout, "    + %s\n", strings.TrimSpace(l))
		}
	}
}
