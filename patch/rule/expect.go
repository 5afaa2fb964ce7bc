package rule

import (
	"fmt"
	"strconv"
	"strings"
)

// An Expectation says how many matches of a rule are right.
type Expectation struct {
	lo, hi    int // hi < 0: no limit
	perKernel bool
	text      string
	Pos       string // file:line:column in the recipe
}

// ParseExpect reads "12", ">=1", "<=3", "1..4", each with " per kernel" after it if
// the count holds for every kernel that the rule's condition admits, rather than in total.
func ParseExpect(s string) (*Expectation, error) {
	e := &Expectation{text: s}
	t := strings.TrimSpace(s)
	if u, ok := strings.CutSuffix(t, "per kernel"); ok {
		e.perKernel, t = true, strings.TrimSpace(u)
	}
	var err error
	num := func(s string) int {
		n, nerr := strconv.ParseUint(strings.TrimSpace(s), 10, 31)
		if nerr != nil {
			err = fmt.Errorf("expect %q: want a count such as \"12\", \">=1\", \"<=3\", \"1..4\" or \"2 per kernel\"", s)
		}
		return int(n)
	}
	switch lo, hi, span := strings.Cut(t, ".."); {
	case strings.HasPrefix(t, ">="):
		e.lo, e.hi = num(t[2:]), -1
	case strings.HasPrefix(t, "<="):
		e.hi = num(t[2:])
	case span:
		e.lo, e.hi = num(lo), num(hi)
		if err == nil && e.hi < e.lo {
			err = fmt.Errorf("expect %q: the bounds are the wrong way round", s)
		}
	default:
		e.lo = num(t)
		e.hi = e.lo
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Expectation) holds(n int) bool { return n >= e.lo && (e.hi < 0 || n <= e.hi) }

// An ExpectError is a count of matches that a rule did not expect.
type ExpectError struct {
	Pos    string // file:line:column of the recipe's expect
	Rule   string // as Rule.ID returns it
	Kernel string // "" for the total
	Want   string
	Found  int
}

func (e *ExpectError) Error() string {
	where := ""
	if e.Kernel != "" {
		where = " in kernel " + e.Kernel
	}
	return fmt.Sprintf("%s: %s: expected %s matches%s, found %d", e.Pos, e.Rule, strings.TrimSuffix(e.Want, " per kernel"), where, e.Found)
}

// checkPerKernel compares the counts of one kernel with the rules that expect a count
// for each. A rule whose condition leaves the kernel out expects nothing of it.
func (p *Planner) checkPerKernel(k *KernelPlan, kernel string) error {
	for i, c := range p.rules {
		e, n := c.rule.Expect, k.Summary.Rules[i].Matches
		if e == nil || !e.perKernel || !k.meant[i] || e.holds(n) {
			continue
		}
		return &ExpectError{Pos: e.Pos, Rule: c.rule.ID(), Kernel: kernel, Want: e.text, Found: n}
	}
	return nil
}

// CheckExpected compares the total counts of a plan with what its rules expect.
func CheckExpected(rules []*Rule, s *Summary) error {
	for _, r := range rules {
		if r.Expect == nil || r.Expect.perKernel {
			continue
		}
		n := 0
		for _, c := range s.Rules {
			if c.Rule == r.Label() {
				n = c.Matches
			}
		}
		if !r.Expect.holds(n) {
			return &ExpectError{Pos: r.Expect.Pos, Rule: r.ID(), Want: r.Expect.text, Found: n}
		}
	}
	return nil
}
