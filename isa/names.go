package isa

import "strings"

// A knownGroup is a name for modifier groups: those that have a value among keys and
// no legal value but those among keys and more. A word that ends in * stands for all
// that start like it.
type knownGroup struct {
	name       string
	keys, more []string
}

func namedBy(name, keys, more string) knownGroup {
	return knownGroup{name, strings.Fields(keys), strings.Fields(more)}
}

// knownGroups are the names of modifier groups, the first that fits counts. A group is
// found by its values, so that one line names it in every instruction and on every
// architecture.
var knownGroups = []knownGroup{
	// Memory.
	namedBy("evict", "EF EL LU EU NA", ""),
	namedBy("evict_l2", "EFL2 ENL2 ELL2", ""),
	namedBy("prefetch", "LTC64B LTC128B LTC256B", ""),
	namedBy("scope", "CONSTANT.* STRONG.* MMIO.*", "CONSTANT STRONG MMIO WEAK GPU.PRIVATE SYS.ORDERED"),
	namedBy("scope", "CTA SM GPU SYS VC", "CTA.PARTIAL"),
	namedBy("order", "CONSTANT STRONG MMIO SC", "WEAK ALL"),
	namedBy("size", "U8 S8 U16 S16 16 32 64 128", "U32 S32 U64 S64 256 96 U S U.128"),
	namedBy("atomic", "ADD EXCH CAS SAFEADD", "MIN MAX INC DEC AND OR XOR POPC.INC FADD"),
	namedBy("clamp", "IGN TRAP NEAR", "SDCL SDBF"),
	namedBy("operation", "PF1 PF2 WB IV PF IVALL WBALL IVALLP RS", "PML2 DML2 RML2 WBALLP"),
	namedBy("cache", "U C I", "D"),
	namedBy("space", "G S L D", ""),
	// Textures and surfaces.
	namedBy("dimension", "1D 2D 3D CUBE 1D_ARRAY 2D_ARRAY ARRAY_1D ARRAY_2D", "*"),
	namedBy("lod", "LZ LB LL LC", "LB.LC LC.FDV ULC ULB ULL"),
	namedBy("component", "R G B A", "RG RGB RGBA"),
	namedBy("offset", "AOFFI PTP", "UAOFFI"),
	namedBy("derivative", "NDV DXY FDV", ""),
	namedBy("sample", "MS UMS", ""),
	namedBy("query", "TEX_HEADER*", "*"),
	namedBy("mode", "IM2COL SCATTER4 GATHER4", "W W128"),
	// Arithmetic.
	namedBy("round", "RM RP RZ RN CEIL FLOOR TRUNC ROUND", ""),
	namedBy("ftz", "FTZ FMZ", "OOB"),
	namedBy("sat", "SAT SATFINITE SATRELU", ""),
	namedBy("scale", "D8 D4 D2 M2 M4 M8", ""),
	namedBy("compare", "LT EQ LE GT NE GE", "F T NUM NAN LTU EQU LEU GTU NEU GEU MIN MAX"),
	namedBy("combine", "AND OR XOR", "PASS_B"),
	namedBy("reduce", "OR XOR SUM MIN MAX POPC", "AND"),
	namedBy("function", "COS SIN EX2 LG2 RCP RSQ RCP64H RSQ64H SQRT TANH", "*"),
	namedBy("half", "H0_H0 H1_H1 H0_NH1", "F32 H0 H1 H1_H0 ISWZA ISWZB"),
	namedBy("part", "H0 H1", "B0 B1 B2 B3"),
	namedBy("pack", "PACK_AB MERGE_C", "PACK_AB_MERGE_C"),
	namedBy("bits", "7b 9b 10b", ""),
	namedBy("type", "F16* BF16* F32* F64* TF32* E5M2* E4M3* E3M2* E2M3* E2M1* S64 U64 S32 U32 U16x2 S16x2 16x2 U8x4 S8x4 U2 S2 U4 S4", "U8 S8 U16 S16 B1 SD32 SD64 32 64 128 FMZ FTZ E8* S2_6"),
	namedBy("direction", "L R", ""),
	namedBy("part", "LO HI", ""),
	namedBy("barrier", "B4 B5 B6 B7", "B* THREAD_STATE_ENUM.* TRAP_RETURN_*"),
	namedBy("byte", "B0 B1 B2 B3", ""),
	namedBy("bytes", "B3210 N7654 N3210", "B* N*"),
	namedBy("step", "STEP0 STEP1", ""),
	// Matrices.
	namedBy("layout", "ROW COL", ""),
	namedBy("buffer", "BUFFER1 BUFFER2", "BUFFER3"),
	namedBy("matrix", "AB C", ""),
	namedBy("shape", "1688 16816 8816 8832 8864 16832 16864 88128 168128 168256 16128 M88 MT88 64x* 8x8x4 16x8x8", "*"),
	namedBy("count", "2 4", "1 8 x2 x4"),
	// Control flow, threads and what else there is.
	namedBy("branch", "DIV CONV", "U ANY"),
	namedBy("depth", "INC DEC", ""),
	namedBy("mode", "IDX UP DOWN BFLY ALL ANY F4E B4E RC8 ECL ECR RC16 IL IS ISL", "EQ"),
	namedBy("mode", "PASS EMIT COVMASK KEEPREFCOUNT", "*"),
	namedBy("mode", "FILL BROADCAST", ""),
	namedBy("mode", "RELIABLE RECONVERGENT", ""),
	namedBy("mode", "TRAP INT", ""),
	namedBy("test", "CSM_TA CSM_TR", "*"),
	namedBy("counter", "ARVCNT TRANSCNT", ""),
	namedBy("ctas", "2CTA", ""),
	namedBy("axis", "X Y Z", ""),
	namedBy("scoreboards", "{0} {1} {1,0}", "*"),
	namedBy("pattern", "PPPPPPPP", "*"),
	namedBy("special", "SR_LANEID SR_CLOCK", "*"),
}

// fits reports whether texts, the legal values of a group, are those of k.
func (k *knownGroup) fits(texts []string) bool {
	found := false
	for _, t := range texts {
		if hasWord(k.keys, t) {
			found = true
		} else if !hasWord(k.more, t) {
			return false
		}
	}
	return found
}

func hasWord(words []string, s string) bool {
	for _, w := range words {
		if stem, open := strings.CutSuffix(w, "*"); w == s || open && strings.HasPrefix(s, stem) {
			return true
		}
	}
	return false
}

// knownName returns the name of the first known group that fits texts, or "".
func knownName(texts []string) string {
	for i := range knownGroups {
		if knownGroups[i].fits(texts) {
			return knownGroups[i].name
		}
	}
	return ""
}
