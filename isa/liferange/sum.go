package liferange

import (
	"fmt"
	"hash"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/cupatch/cupatch/isa"
)

// A Sum stands for the registers that are in use at the instructions of a section: two
// answers that have the same are the same. Rows are added by ascending address.
type Sum struct {
	Rows int    // instructions
	Peak [4]int // the most registers in use of R, UR, P and UP
	// Counts has how many are in use at each instruction.
	Counts []Count
	hash   hash.Hash64
}

// A Count is how many registers are in use of R, UR, P and UP.
type Count [4]int

// Add adds the instruction at an address, in bytes.
func (s *Sum) Add(pc uint64, inUse isa.RegSet) {
	if s.hash == nil {
		s.hash = fnv.New64a()
	}
	s.Rows++
	var c Count
	for f := range s.Peak {
		c[f] = inUse.Len(isa.RegFile(f))
		s.Peak[f] = max(s.Peak[f], c[f])
	}
	s.Counts = append(s.Counts, c)
	fmt.Fprintf(s.hash, "%x %s\n", pc, inUse)
}

// String returns the sum as it is recorded: rows, the four peaks, and the hash.
func (s *Sum) String() string {
	var sum uint64
	if s.hash != nil {
		sum = s.hash.Sum64()
	}
	return fmt.Sprintf("%d %d %d %d %d %016x", s.Rows, s.Peak[0], s.Peak[1], s.Peak[2], s.Peak[3], sum)
}

// FormatCounts writes counts as they are recorded: 3.2.0.0 for each instruction, 3.2.0.0*5
// for five in a row that have the same.
func FormatCounts(list []Count) string {
	var out []string
	for i := 0; i < len(list); {
		n := i
		for n < len(list) && list[n] == list[i] {
			n++
		}
		c := list[i]
		item := fmt.Sprintf("%d.%d.%d.%d", c[0], c[1], c[2], c[3])
		if n-i > 1 {
			item += fmt.Sprintf("*%d", n-i)
		}
		out = append(out, item)
		i = n
	}
	return strings.Join(out, " ")
}

// ParseCounts reads what FormatCounts writes.
func ParseCounts(s string) ([]Count, error) {
	var out []Count
	for item := range strings.FieldsSeq(s) {
		values, repeat, _ := strings.Cut(item, "*")
		n := 1
		if repeat != "" {
			var err error
			if n, err = strconv.Atoi(repeat); err != nil || n < 1 || n > 1<<20 {
				return nil, fmt.Errorf("counts %q", item)
			}
		}
		parts := strings.Split(values, ".")
		var c Count
		if len(parts) != len(c) {
			return nil, fmt.Errorf("counts %q", item)
		}
		for i, p := range parts {
			v, err := strconv.Atoi(p)
			if err != nil {
				return nil, fmt.Errorf("counts %q", item)
			}
			c[i] = v
		}
		for range n {
			out = append(out, c)
		}
	}
	return out, nil
}
