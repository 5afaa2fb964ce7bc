package isa

import "fmt"

// A SyntaxError says where a text is no instruction of the table.
type SyntaxError struct {
	Text     string
	Pos      int    // of the first byte that does not fit
	Expected string // what would fit there
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("column %d: expected %s", e.Pos+1, e.Expected)
}

// Encode returns the word whose text at the address pc is text.
func (t *Table) Encode(text string, pc uint64, like *Word) (Word, error) {
	return Word{}, &SyntaxError{Text: text, Expected: "an instruction"}
}
