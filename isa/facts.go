package isa

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Facts are what holds for every class of a mnemonic and stands in no text that
// nvdisasm prints. They were written by hand from the texts of all classes; the words
// of facts.txt are those of [parseFact].
//
//go:embed facts.txt
var factsText string

// facts are what is known of a mnemonic.
type facts struct {
	flow     FlowKind
	cond     []string // the modifiers that make a branch conditional
	memory   Memory   // without Bytes
	prefetch []string // the modifiers that make it a prefetch
	sized    bool     // moves as many bits for each thread as its size says, 32 if it says nothing
	target   bool     // its number is an address to go on at
	pad      bool     // does nothing
	move     bool     // puts its source into its result as it is
	value    Formula

	// Of the operands as they are named: none is written; predicates only; at most so many
	// predicates beside the written register.
	noOutput, onlyPredicates bool
	predicates               int
}

// noFacts is what is known of a mnemonic that facts.txt does not name.
var noFacts = facts{predicates: maxPieces}

// allFacts has the facts by mnemonic.
var allFacts = sync.OnceValue(func() map[string]*facts {
	m, err := parseFacts(factsText)
	if err != nil {
		panic(err) // a test reads the file
	}
	return m
})

// factsOf returns what is known of a mnemonic.
func factsOf(mnemonic string) *facts {
	if f := allFacts()[mnemonic]; f != nil {
		return f
	}
	return &noFacts
}

// parseFacts reads text in the form of facts.txt.
func parseFacts(text string) (map[string]*facts, error) {
	m := map[string]*facts{}
	for i, line := range strings.Split(text, "\n") {
		names, words, _ := strings.Cut(line, ":")
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := noFacts
		for _, w := range strings.Fields(words) {
			if err := f.parseFact(w); err != nil {
				return nil, fmt.Errorf("facts.txt: line %d: %w", i+1, err)
			}
		}
		for _, name := range strings.Fields(names) {
			if m[name] != nil {
				return nil, fmt.Errorf("facts.txt: line %d: %s is listed twice", i+1, name)
			}
			m[name] = &f
		}
	}
	return m, nil
}

// parseFact reads one word of a line of facts.txt.
func (f *facts) parseFact(word string) error {
	key, value, _ := strings.Cut(word, "=")
	ok := true
	switch key {
	case "flow":
		f.flow, ok = named[FlowKind](flowNames[:], value)
	case "cond":
		f.cond = strings.Split(value, ",")
	case "mem":
		op, space, _ := strings.Cut(value, ":")
		var inSpace bool
		f.memory.Op, ok = named[MemoryOp](memoryOpNames[:], op)
		f.memory.Space, inSpace = named[Space](spaceNames[:], space)
		ok = ok && inSpace
	case "prefetch":
		f.prefetch = strings.Split(value, ",")
	case "sized":
		f.sized = true
	case "target":
		f.target = true
	case "pad":
		f.pad = true
	case "move":
		f.move = true
	case "value":
		f.value, ok = named[Formula](formulaNames[:], value)
	case "out":
		f.noOutput, f.onlyPredicates = value == "none", value == "preds"
		ok = f.noOutput != f.onlyPredicates
	case "preds":
		f.predicates = int(value[0] - '0')
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%q says nothing", word)
	}
	return nil
}

// named returns the value whose name is in names at its place.
func named[T ~uint8](names []string, name string) (T, bool) {
	i := slices.Index(names, name)
	return T(max(i, 0)), i > 0
}
