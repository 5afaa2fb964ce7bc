package isa

// memory are the instructions that move as many bits as their size says, 32 if it
// says nothing.
var memory = nameSet("LD LDG LDS LDL LDC LDCU ULDC ST STG STS STL STAS ATOM ATOMG ATOMS ATOMGS RED REDG REDS REDAS " +
	"SUATOM SULD SURED SUST LDGSTS ALD AST")

// sizes are the modifiers that give a size in bits.
var sizes = map[string]int{
	"U8": 8, "S8": 8, "8": 8, "U16": 16, "S16": 16, "16": 16, "F16": 16, "BF16": 16, "32": 32, "U32": 32, "S32": 32, "F32": 32,
	"F16x2": 32, "BF16x2": 32, "64": 64, "U64": 64, "S64": 64, "F64": 64, "96": 96, "128": 128, "256": 256,
}

// Width returns the number of bits that a load, store or atomic operation in moves
// for each thread, or 0 for any other instruction.
func (t *Table) Width(in Inst) int {
	if in.Status != StatusKnown || in.Variant == nil || !memory[in.Variant.Mnemonic()] {
		return 0
	}
	for _, m := range t.Split(in, 0).Mods {
		if n := sizes[m]; n != 0 {
			return n
		}
	}
	return 32
}
