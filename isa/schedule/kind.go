package schedule

// A Kind says how one instruction depends on another.
type Kind uint8

// The kinds of dependence.
const (
	Read      Kind = iota // the second reads what the first writes
	Guard                 // the second is guarded by a predicate that the first writes
	Rewrite               // both write the register
	Overwrite             // the second writes what the first reads
	numKinds
)

var kindNames = [numKinds]string{"read", "guard", "rewrite", "overwrite"}

// String returns the kind's name, such as read.
func (k Kind) String() string { return kindNames[k] }
