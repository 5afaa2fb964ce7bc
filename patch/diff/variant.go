package diff

import "github.com/cupatch/cupatch/isa"

// numFiles is the number of register files.
const numFiles = isa.FileB + 1

// registers appends to dst every register that in prints, its guard first.
func registers(dst []isa.Operand, in isa.Inst) []isa.Operand {
	n := len(dst)
	for _, o := range in.AppendOperands(dst)[n:] {
		if o.IsReg {
			dst = append(dst, o)
		}
	}
	return dst
}
