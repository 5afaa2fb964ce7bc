package rule

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
)

// A Rule is the parsed form of `MATCH [if CONDITION] => CHANGES`. It belongs to no
// architecture; planning compiles it for each one that it meets.
type Rule struct {
	// Name stands in errors and reports; "" prints as the rule's number.
	Name string
	// Number is the rule's place in its list, from 1.
	Number int
	// Arch restricts the rule to these architectures when not empty.
	Arch []string
	// Last takes the rule's matches away from later rules.
	Last bool
	// Expect holds the counts of matches that are right; nil is any.
	Expect *Expectation

	match, cond, set source   // the three parts as written
	tree             ast.Node // of the condition, nil for none
	items            []item
	lists            []changeList // one for each item; gaps have none
}

// A source is a part of a rule's text and where it stands.
type source struct {
	text string
	part string // "match", "if", "set" in a recipe; "" in a one-line rule
	base int    // bytes of the whole rule before text, for columns
	full string // the text that columns count in
	pos  string // file:line:column of the recipe's value, or ""
}

// An item is one instruction pattern, a run of it, or a gap.
type item struct {
	label    string
	labelPos int // byte positions are in the match part
	pos      int

	gap      bool
	run      bool // a count stands after the pattern
	min, max int  // of a gap or a run; max < 0 is no limit

	guard   *guardPattern
	opcode  string   // the pattern as it is written
	opcodes []string // its alternatives
	atoms   []atomPattern
}

type atomPattern struct {
	text   string
	absent bool
	pos    int
}

// A guardPattern is `@P0`, `@!UPT`, `@P*`.
type guardPattern struct {
	uniform bool
	any     bool // `*`: 0 to 6
	not     bool // `!` is there
	index   uint8
	pos     int
}

// A changeList has the changes for one item.
type changeList struct {
	label   string
	pos     int
	changes []change
}

// A changeKind tells the forms of a change apart.
type changeKind uint8

const (
	changeSet    changeKind = iota // .EF
	changeUnset                    // -.EF
	changeGuard                    // @!P0 @! @-
	changeAssign                   // field=value
	changeAdd                      // field+=value
	changeSub                      // field-=value
	changeToggle                   // ~field
	changeBits                     // bits[a..b]=value
	changeText                     // "FADD R0, R1, R2"
	changeNOP                      // NOP
)

// A change is one change as written. Positions are bytes in the set part.
type change struct {
	kind     changeKind
	pos      int
	atoms    []atomPattern // set, unset
	guard    guardChange
	field    string
	value    string // of an assignment; a STRING without its quotes
	quoted   bool   // value was a STRING
	valuePos int
	lo, hi   int // bits
}

// A guardChange is what an @ change asks for.
type guardChange struct {
	negate, none bool
	to           guardPattern
}

// Source returns the rule as one line.
func (r *Rule) Source() string {
	s := r.match.text
	if c := strings.TrimSpace(r.cond.text); c != "" {
		s = strings.TrimSpace(s) + " if " + c
	}
	if r.lists != nil || r.set.text != "" {
		s = strings.TrimSpace(s) + " => " + strings.TrimSpace(r.set.text)
	}
	return strings.TrimSpace(s)
}

// ID returns what names the rule in errors and reports: its name in quotes, or its
// number.
func (r *Rule) ID() string {
	if r.Name != "" {
		return fmt.Sprintf("rule %q", r.Name)
	}
	return fmt.Sprintf("rule %d", max(r.Number, 1))
}

// Label returns the short form that edits carry.
func (r *Rule) Label() string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprint(max(r.Number, 1))
}

// A Error is a mistake in a rule, or a rule that cannot apply to what it
// matches, with its place.
type Error struct {
	Rule string // as ID returns it
	Pos  string // file:line:column in a recipe, or ""
	Part string // "match", "if" or "set" in a recipe, or ""
	Col  int    // 1-based, in characters, in the rule or part; 0: none
	Msg  string
	Help string // what to do about it, or ""

	unknownOpcode bool // another architecture may know it
	lacks         bool // another architecture may have the modifier, value or field
	refused       string
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Pos != "" {
		b.WriteString(e.Pos + ": ")
	}
	b.WriteString(e.Rule + ": ")
	if e.Part != "" {
		b.WriteString(e.Part + ": ")
	}
	if e.Col > 0 {
		fmt.Fprintf(&b, "column %d: ", e.Col)
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Hint returns what to do about the error, or "".
func (e *Error) Hint() string { return e.Help }

// NoInstruction reports whether the architecture has none of the instructions that the
// rule names.
func (e *Error) NoInstruction() bool { return e.unknownOpcode }

// Refused returns the name that [check.ParseAllow] takes to permit what was refused, or ""
// when no permission helps.
func (e *Error) Refused() string { return e.refused }

// errAt returns an error at byte pos of part s.
func (r *Rule) errAt(s *source, pos int, format string, args ...any) *Error {
	at := min(max(s.base+pos, 0), len(s.full))
	return &Error{
		Rule: r.ID(),
		Pos:  s.pos,
		Part: s.part,
		Col:  utf8.RuneCountInString(s.full[:at]) + 1,
		Msg:  fmt.Sprintf(format, args...),
	}
}

// lacking says that the error is one of the architecture at hand.
func (e *Error) lacking() *Error {
	e.lacks = true
	return e
}

// hint adds advice to an error.
func (e *Error) hint(format string, args ...any) *Error {
	e.Help = fmt.Sprintf(format, args...)
	return e
}
