package isa

// A Formula says how the low 32 bits of an instruction's first result come from its
// sources: enough to follow an address back to where it comes from.
type Formula uint8

// The formulas. a, b and c are the sources in printed order, predicates left out.
const (
	FormulaOther   Formula = iota // in another way
	FormulaCopy                   // a
	FormulaSum                    // a + b + c
	FormulaProduct                // a*b + c
	FormulaScaled                 // a<<n + b, where n is the immediate
	FormulaShift                  // a<<n or a>>n
	FormulaSelect                 // a or b
	FormulaNumber                 // of none of them: a special register
)

var formulaNames = [...]string{"", "copy", "sum", "product", "scaled", "shift", "select", "number"}

// highWord are the modifiers with which the result is not the low part: that of a product
// or a shift, or a sum with a carry.
var highWord = []string{"HI", "X"}

// Formula returns how the first result comes about.
func (in Inst) Formula() Formula {
	b := in.behavior()
	if b == nil || b.value == FormulaOther || b.hasMod(in.Word, highWord) {
		return FormulaOther
	}
	return b.value
}
