package diff

import (
	"strconv"

	"github.com/cupatch/cupatch/isa"
)

// numFiles is the number of register files.
const numFiles = isa.FileB + 1

// registerNames has the names of the registers that fields of 8 bits can mean.
var registerNames = func() (names [numFiles][256]string) {
	for f := range names {
		for n := range names[f] {
			names[f][n] = isa.RegFile(f).String() + strconv.Itoa(n)
		}
	}
	return names
}()

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
