package assign

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

// ErrNoHabits says that nothing is known of how ptxas schedules an architecture.
var ErrNoHabits = errors.New("no schedule habits")

//go:embed tables/*.txt
var files embed.FS

var tables = shipped.Tables[Habits]{Files: &files, Parse: Parse, Missing: ErrNoHabits}

// Load returns the program's habits for a, whose suffix does not count. Where there are none the
// error is [ErrNoHabits].
func Load(a isa.Arch) (*Habits, error) { return tables.Load(a) }

// Format returns h as text. Every figure stands with the number of uses that it rests on.
//
//	boards LDS.U 914 529 69
//	set LDS 2 6818
//	pass LDS LDS 57
//	safe read R FADD 5 70123
//	least read R FADD 4:FADD@24=5034,FMUL@32=12 5:LDG@24*2=31
//	stall IMAD FADD 0=1/1:2034 2=2y/2:33
//
// A line boards has an opcode, how many instructions have it, and how many set scoreboards for
// their results and for their sources. Set is the least number of cycles from setting a scoreboard
// to waiting for it. Pass says that the second does not wait for the first to overwrite its
// result, both setting scoreboards. Safe is the number of cycles that is enough between an
// opcode or a mnemonic and whatever uses its result; least has those of pairs, by cycles: the
// second is a mnemonic, with the lowest bit of the operand's field, how many registers it
// is, and + for a register that is not the first that the first instruction writes. Stall has how
// long the first stalls before the second (END at the end of a block, * whatever it is) by
// how many cycles the second needs: the stall count, y where it yields, and the least stall count.
func Format(h *Habits) []byte {
	b := fmt.Appendf(nil, "# Made by cupatch isa learn --habits from code of ptxas.\narch %s\ninstructions %d\n", h.Arch, h.Instructions)
	for _, k := range slices.Sorted(maps.Keys(h.boards)) {
		x := h.boards[k]
		b = fmt.Appendf(b, "boards %s %d %d %d\n", k, x.all, x.results, x.sources)
	}
	for _, k := range slices.Sorted(maps.Keys(h.sets)) {
		b = fmt.Appendf(b, "set %s %d %d\n", k, h.sets[k].cycles, h.sets[k].seen)
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.pass), func(a, b through) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second))
	}) {
		b = fmt.Appendf(b, "pass %s %s %d\n", k.first, k.second, h.pass[k])
	}
	for _, k := range slices.SortedFunc(maps.Keys(h.safe), compareSafe) {
		b = fmt.Appendf(b, "safe %s %s %s %d %d\n", kindNames[k.kind], k.file, k.first, h.safe[k].cycles, h.safe[k].seen)
	}
	return appendStalls(appendLeast(b, h), h)
}

func compareSafe(a, b safeKey) int {
	return cmp.Or(int(a.kind)-int(b.kind), int(a.file)-int(b.file), cmp.Compare(a.first, b.first))
}

func appendLeast(b []byte, h *Habits) []byte {
	keys := slices.SortedFunc(maps.Keys(h.least), func(a, b leastKey) int {
		return cmp.Or(compareSafe(safeKey{a.kind, a.file, a.first}, safeKey{b.kind, b.file, b.first}),
			h.least[a].cycles-h.least[b].cycles, cmp.Compare(a.second, b.second))
	})
	for i, k := range keys {
		f, sep := h.least[k], ","
		if i == 0 || compareSafe(safeKey{k.kind, k.file, k.first}, safeKey{keys[i-1].kind, keys[i-1].file, keys[i-1].first}) != 0 {
			if i > 0 {
				b = append(b, '\n')
			}
			b = fmt.Appendf(b, "least %s %s %s %d:", kindNames[k.kind], k.file, k.first, f.cycles)
			sep = ""
		} else if f.cycles != h.least[keys[i-1]].cycles {
			b = fmt.Appendf(b, " %d:", f.cycles)
			sep = ""
		}
		b = fmt.Appendf(b, "%s%s=%d", sep, k.second, f.seen)
	}
	if len(keys) > 0 {
		b = append(b, '\n')
	}
	return b
}

func appendStalls(b []byte, h *Habits) []byte {
	keys := slices.SortedFunc(maps.Keys(h.stalls), func(a, b stallKey) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.second, b.second), a.need-b.need)
	})
	for i, k := range keys {
		if i == 0 || k.first != keys[i-1].first || k.second != keys[i-1].second {
			if i > 0 {
				b = append(b, '\n')
			}
			b = fmt.Appendf(b, "stall %s %s", k.first, k.second)
		}
		x, yield := h.stalls[k], ""
		if x.yield {
			yield = "y"
		}
		b = fmt.Appendf(b, " %d=%d%s/%d:%d", k.need, x.stall, yield, x.least, x.seen)
	}
	if len(keys) > 0 {
		b = append(b, '\n')
	}
	return b
}

// newHabits returns habits of which nothing is known.
func newHabits() *Habits {
	return &Habits{boards: map[string]boardCount{}, names: map[string]boardCount{}, least: map[leastKey]figure{}, safe: map[safeKey]figure{},
		sets: map[string]figure{}, pass: map[through]int{}, stalls: map[stallKey]stallHabit{}}
}

// Parse reads what [Format] writes.
func Parse(text string) (*Habits, error) {
	h := newHabits()
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line[0] == '#' {
			continue
		}
		if err := h.line(strings.Split(line, " ")); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if h.Arch == (isa.Arch{}) {
		return nil, errors.New(`no line "arch sm_XX" says which architecture this is for`)
	}
	h.sumNames()
	return h, nil
}

// lineForms has how many words the lines of each kind have at least.
var lineForms = map[string]int{"arch": 2, "instructions": 2, "boards": 5, "set": 4, "pass": 4, "safe": 6, "least": 5, "stall": 4}

// line reads the words of a line.
func (h *Habits) line(f []string) error {
	least, ok := lineForms[f[0]]
	switch {
	case !ok:
		return fmt.Errorf("%q is no kind of line", f[0])
	case len(f) < least || len(f) > least && f[0] != "least" && f[0] != "stall":
		return fmt.Errorf("a line %s has %d words, not %d", f[0], least, len(f))
	}
	r := &numberReader{}
	switch f[0] {
	case "arch":
		h.Arch, r.err = isa.ParseArch(f[1])
	case "instructions":
		h.Instructions = r.number(f[1], maxFigure)
	case "boards":
		h.boards[f[1]] = boardCount{r.number(f[2], maxFigure), r.number(f[3], maxFigure), r.number(f[4], maxFigure)}
	case "set":
		h.sets[f[1]] = figure{r.number(f[2], longAge), r.number(f[3], maxFigure)}
	case "pass":
		h.pass[through{rewrite, f[1], f[2]}] = r.number(f[3], maxFigure)
	case "safe":
		h.safe[safeKey{r.kind(f[1]), r.file(f[2]), f[3]}] = figure{r.number(f[4], longAge), r.number(f[5], maxFigure)}
	case "least":
		for _, group := range f[4:] {
			cycles, list, _ := strings.Cut(group, ":")
			for _, x := range strings.Split(list, ",") {
				second, seen, _ := strings.Cut(x, "=")
				h.least[leastKey{r.kind(f[1]), r.file(f[2]), f[3], second}] = figure{r.number(cycles, longAge), r.number(seen, maxFigure)}
			}
		}
	case "stall":
		for _, x := range f[3:] {
			need, x, _ := strings.Cut(x, "=")
			x, seen, _ := strings.Cut(x, ":")
			stall, least, _ := strings.Cut(x, "/")
			n, yield := strings.CutSuffix(stall, "y")
			h.stalls[stallKey{f[1], f[2], r.number(need, longAge)}] = stallHabit{
				uint8(r.number(n, maxStall)), yield, uint8(r.number(least, maxStall)), r.number(seen, maxFigure)}
		}
	}
	return r.err
}

// maxFigure is the greatest number of uses.
const maxFigure = 1 << 30

// A numberReader reads the words of a line and keeps the first error.
type numberReader struct{ err error }

func (r *numberReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *numberReader) number(s string, most int) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > most {
		r.fail("%q is no number from 0 to %d", s, most)
	}
	return n
}

func (r *numberReader) kind(s string) kind {
	k := slices.Index(kindNames[:], s)
	if k < 0 {
		r.fail("%q is no kind of dependence", s)
	}
	return kind(max(k, 0))
}

func (r *numberReader) file(s string) isa.RegFile {
	for f := range isa.FileB + 1 {
		if f.String() == s {
			return f
		}
	}
	r.fail("%q is no register file", s)
	return 0
}
