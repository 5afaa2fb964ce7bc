package liferange

import (
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/cupatch/cupatch/isa"
)

// A Sum stands for the registers that are in use at the instructions of a section: two
// answers that have the same are the same. Rows are added by ascending address.
type Sum struct {
	Rows int    // instructions
	Peak [4]int // the most registers in use of R, UR, P and UP
	hash hash.Hash64
}

// Add adds the instruction at an address, in bytes.
func (s *Sum) Add(pc uint64, inUse isa.RegSet) {
	if s.hash == nil {
		s.hash = fnv.New64a()
	}
	s.Rows++
	for f := range s.Peak {
		s.Peak[f] = max(s.Peak[f], inUse.Len(isa.RegFile(f)))
	}
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
