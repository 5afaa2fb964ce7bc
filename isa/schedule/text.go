package schedule

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
	"github.com/cupatch/cupatch/isa/schedule/internal/shipped"
)

// ErrNoModel says that there is no model for an architecture.
var ErrNoModel = errors.New("no schedule model")

//go:embed tables/*.txt
var files embed.FS

var tables = shipped.Tables[Model]{Files: &files, Parse: Parse, Missing: ErrNoModel}

// Load returns the program's model for a, whose suffix does not count. Where there is none the
// error is [ErrNoModel].
func Load(a isa.Arch) (*Model, error) { return tables.Load(a) }

// Format returns m as text: a line for each rule,
//
//	least read R FADD FFMA@24 4 12345 PLACE
//
// which are the kind of rule, the kind of dependence, the register file, the class of the first
// instruction (an opcode, a mnemonic or *), the second (a mnemonic, for reads with the lowest
// bit of the operand's field, how many registers it is, and + for a register that is not the first
// of those that the first instruction writes; or -), the cycles of a least distance,
// how many dependences were seen, and where the distance was the least. The line late lists the
// mnemonics that set scoreboards, the line ordered those that answer in their order: what a wait
// says of one, it says of all before.
func Format(m *Model) []byte {
	b := fmt.Appendf(nil, "# Made by cupatch isa learn --schedule from code of ptxas.\narch %s\ninstructions %d\ndependences %d\n", m.Arch, m.Instructions, m.Dependences)
	b = fmt.Appendf(b, "late %s\n", strings.Join(slices.Sorted(maps.Keys(m.slow)), " "))
	b = fmt.Appendf(b, "ordered %s\n", strings.Join(slices.Sorted(maps.Keys(m.ordered)), " "))
	for _, k := range slices.SortedFunc(maps.Keys(m.rules), compareKeys) {
		r := m.rules[k]
		b = fmt.Appendf(b, "%s %s %s %s %s", k.rule, k.kind, k.file, k.first, cmp.Or(k.second, "-"))
		if k.rule == Least {
			b = fmt.Appendf(b, " %d", r.Cycles)
		}
		b = fmt.Appendf(b, " %d", r.Seen)
		if r.Place != "" {
			b = append(append(b, ' '), r.Place...)
		}
		b = append(b, '\n')
	}
	return b
}

func compareKeys(a, b ruleKey) int {
	return cmp.Or(int(a.rule)-int(b.rule), int(a.kind)-int(b.kind), int(a.file)-int(b.file),
		cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second))
}

// Parse reads what [Format] writes.
func Parse(text string) (*Model, error) {
	m := &Model{rules: map[ruleKey]Rule{}, slow: map[string]bool{}, ordered: map[string]bool{}}
	for i, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		if err := m.line(strings.Split(line, " ")); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if m.Arch == (isa.Arch{}) {
		return nil, errors.New(`no line "arch sm_XX" says which architecture this is for`)
	}
	return m, nil
}

// line reads the words of a line.
func (m *Model) line(f []string) (err error) {
	if len(f) < 2 {
		return fmt.Errorf("%q alone", f[0])
	}
	switch f[0] {
	case "arch":
		m.Arch, err = isa.ParseArch(f[1])
	case "instructions":
		m.Instructions, err = strconv.Atoi(f[1])
	case "dependences":
		m.Dependences, err = strconv.Atoi(f[1])
	case "late":
		for _, name := range f[1:] {
			m.slow[name] = true
		}
	case "ordered":
		for _, name := range f[1:] {
			m.ordered[name] = true
		}
	default:
		err = m.ruleLine(f)
	}
	return err
}

// ruleLine reads the words of a rule.
func (m *Model) ruleLine(f []string) error {
	rule := slices.Index(ruleNames[:], f[0])
	if rule < 0 || len(f) < 6 {
		return fmt.Errorf("%q is no rule", f[0])
	}
	kind, file := slices.Index(kindNames[:], f[1]), -1
	for x := range isa.FileB + 1 {
		if x.String() == f[2] {
			file = int(x)
		}
	}
	if kind < 0 || file < 0 {
		return fmt.Errorf("%s %s is no dependence", f[1], f[2])
	}
	k := ruleKey{RuleKind(rule), Kind(kind), isa.RegFile(file), f[3], strings.TrimPrefix(f[4], "-")}
	var r Rule
	var err error
	rest := f[5:]
	if k.rule == Least {
		if r.Cycles, err = strconv.Atoi(rest[0]); err != nil || len(rest) == 1 {
			return fmt.Errorf("%q: a least distance has cycles and a number of dependences", f)
		}
		rest = rest[1:]
	}
	if r.Seen, err = strconv.Atoi(rest[0]); err != nil {
		return err
	}
	r.Place = strings.Join(rest[1:], " ")
	m.rules[k] = r
	return nil
}
