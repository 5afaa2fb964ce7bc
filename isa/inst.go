package isa

// A Status says how far a word is known.
type Status uint8

// The states of a decoded word.
const (
	StatusKnown   Status = iota // a variant fits and the word has text
	StatusUnknown               // no variant fits: prints as .word
	StatusIllegal               // a variant fits, with a value that nvdisasm refuses: .illegal
	StatusSilent                // nvdisasm accepts the word and prints nothing: .silent
)

// An Inst is a decoded instruction. It is a value; decoding allocates nothing.
type Inst struct {
	Word     Word
	Variant  *Variant // nil when Status is StatusUnknown
	Status   Status
	BadSched bool // the control bits hold a value that the variant refuses; Text still prints

	prog *program // the compiled form of Variant, set by Decode
}

// Number returns the number of the instruction's variant, as [Table.Variant] takes it, of
// an instruction that a table has decoded; ok is false for an unknown word.
func (in *Inst) Number() (n int, ok bool) {
	if in.prog == nil {
		return 0, false
	}
	return in.prog.number, true
}

// Relative reports whether the text of the instruction may depend on its address.
func (in *Inst) Relative() bool {
	return in.prog == nil && in.Variant != nil || in.prog != nil && in.prog.relative
}

// Steady reports whether a word that differs from that of the instruction in what
// [Word.Unscheduled] clears alone has the same text and status, at any address.
func (in *Inst) Steady() bool {
	return in.prog != nil && in.prog.steady && in.Status == StatusKnown
}
