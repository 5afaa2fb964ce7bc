package isa

// A Variant is one encoding class: a pattern of constant bits and the recipe for
// the text of every word that has them.
//
// Where the patterns of several variants fit a word, the one with the most constant
// bits decides, unless a piece of it says PieceOther.
type Variant struct {
	// Class is nvdisasm's name of the encoding class, such as ldg_memdesc__Ra64.
	Class string
	// Mask has the constant bits, Value what they hold. Bits 0–11 and 91, the
	// opcode, are always among them; the guard (12–15) and the schedule (105–109 and
	// 122–124) never are. A class without a result, such as a store, may demand that
	// its write scoreboard is 7.
	Mask, Value Word
	// Guard says how the guard predicate prints.
	Guard Guard
	// Sched is what the control bits 105–109 and 122–124 may hold.
	Sched Sched
	// Template is the text after the guard, in order of printing; its first piece
	// starts with the mnemonic.
	Template []Piece
	// Rank orders the variants that have the same text: encoding from text alone tries
	// those of higher rank first.
	Rank uint8
	// Ignored has the bits that change neither text nor legality (control bits and
	// guard aside). Default holds the values that ptxas emits there, and in other bits
	// that a text leaves open those to prefer.
	Ignored, Default Word
}

// A Guard says which register file a variant's guard predicate, bits 12–15, names.
type Guard uint8

// The kinds of guard.
const (
	GuardP    Guard = iota // @P0, @!P0; @!PT prints, @PT does not
	GuardUP                // @UP0, @!UPT
	GuardNone              // prints nothing
)

// A Sched is the legality of a variant's control bits. Bits 0–2 say for which of
// the bits 122, 123, 124 the value 1 is a legal reuse flag (with bit 109 = 1); bit 3
// marks the uniform classes, whose batch numbers (with bit 109 = 0) are 0, 1, 2, 4
// and 5 rather than 0–5.
type Sched uint8

// SchedUniform is the bit of a Sched that marks the uniform batch numbers.
const SchedUniform Sched = 8

// A Piece is a part of the text: one alternative without conditions, or several of
// which the tests choose one.
type Piece struct {
	// Tests are read from the word; their outcomes, the first least significant,
	// form the index into Table.
	Tests []Test
	// Table maps the index to an element of Alts, or to PieceIllegal, PieceSilent or
	// PieceOther.
	// It is empty when there are no tests: Alts then has one element.
	Table []uint16
	Alts  []Alt
}

// Values of Piece.Table that name no alternative.
const (
	PieceIllegal uint16 = 0xffff // nvdisasm refuses the word
	PieceSilent  uint16 = 0xfffe // nvdisasm accepts the word and prints nothing at all
	// PieceOther says that the word is of another class, in spite of its constant bits:
	// the next variant that fits decides. The classes of CCTL need it, which share out the
	// values of one field.
	PieceOther uint16 = 0xfffd
)

// An Alt is a text with slots: literals and operands in order of printing.
type Alt []Elem

// An Elem is a literal, or, when Lit is empty, an operand.
type Elem struct {
	Lit  string
	Slot Slot
}

// A Test reads one outcome from a word.
type Test struct {
	Field Field
	Kind  TestKind
	Arg   uint64
}

// A TestKind is the question that a Test asks about its field.
type TestKind uint8

// The kinds of test. TestValue has 2^width outcomes, the others two: 0 no, 1 yes.
const (
	TestValue TestKind = iota // the field's value itself
	TestEq                    // is it Arg?
	TestPow2                  // is it a power of two other than 2^16 and the sign bit?
	TestNeg                   // is its highest bit set?
)

// A Slot prints a field's value. The value is first taken from the bits, then
// exclusive-ored with Xor, then shifted left by Shift, then Add is added; signed kinds
// extend the sign before the shift.
type Slot struct {
	Field Field
	Kind  Kind
	Xor   uint64
	Shift uint8
	Add   int64
}

// A Kind is a way of printing a field.
type Kind uint8

// The kinds of slot. Reg to UPred print a special name when the value, after Xor and
// before Shift and Add, is all ones.
const (
	KindNone  Kind = iota
	KindReg        // R0 … RZ
	KindUReg       // UR0 … URZ
	KindPred       // P0 … PT
	KindUPred      // UP0 … UPT
	KindDec        // decimal, unsigned
	KindHex        // 0x…
	KindSHex       // 0x… or -0x…
	KindRel        // target relative to the next instruction: pc+16+value, unsigned if positive, else -0x…
	KindF16        // half
	KindBF16       // upper half of a single
	KindF32        // single
	KindF64        // upper 32 bits of a double
	KindLog2       // the number of the set bit, in hex
	KindF16Q       // as KindF16, every NaN called quiet, as nvdisasm 12 does
	KindBF16Q      // as KindBF16, every NaN called quiet
	KindF32Q       // as KindF32, every NaN called quiet
)

// Text returns what s prints in w at the address pc.
func (s Slot) Text(w Word, pc uint64) string { return string(s.append(nil, w, pc)) }

// Outcome returns the answer to t in w: the field's value for TestValue, else 0 or 1.
func (t Test) Outcome(w Word) uint64 { return t.outcome(w) }
