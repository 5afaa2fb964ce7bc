package diff

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// Kinds is a set of kinds of difference.
type Kinds uint16

// The kinds of difference. The first six are those of instructions.
const (
	Hidden    Kinds = 1 << iota // bits that neither text nor control code shows
	Control                     // the control code, reuse flags and batch number
	Registers                   // which registers are used, consistently renamed
	Order                       // the order of instructions, every dependence kept
	Modifiers                   // modifiers of the opcode
	Other                       // anything else in the code
	Resources                   // registers, stack, shared memory, attributes
	Data                        // constant banks and initialised variables
	Names                       // names of kernels whose code is the same
	Unpaired                    // kernels and cubins that only one file has
	Loader                      // what else a loader sees: headers, symbols, attributes, PTX
	Metadata                    // sections that are neither code nor data
	Wrapping                    // container, compression, order, PTX, what surrounds the cubins

	allKinds  = Wrapping<<1 - 1
	codeKinds = Hidden | Control | Registers | Order | Modifiers | Other
)

var kindNames = []string{"hidden", "control", "registers", "order", "modifiers", "code", "resources", "data", "names", "unpaired", "loader", "metadata", "wrapping"}

// List returns the names of the kinds in k.
func (k Kinds) List() []string {
	var out []string
	for i, name := range kindNames {
		if k>>i&1 != 0 {
			out = append(out, name)
		}
	}
	return out
}

func (k Kinds) String() string {
	if k&(k-1) == 0 && k&allKinds != 0 { // one, the frequent case
		return kindNames[bits.TrailingZeros16(uint16(k))]
	}
	return strings.Join(k.List(), ",")
}

// ParseKinds reads a list of kinds separated by commas.
func ParseKinds(s string) (Kinds, error) {
	var k Kinds
	for _, name := range strings.Split(s, ",") {
		name = strings.TrimSpace(name)
		i := slices.Index(kindNames, name)
		if i < 0 {
			return 0, fmt.Errorf("no kind of difference %q; there are %s", name, strings.Join(kindNames, ", "))
		}
		k |= 1 << i
	}
	return k, nil
}

// levels has the kinds that count at each level.
var levels = []struct {
	name  string
	kinds Kinds
}{
	{"bytes", allKinds},
	{"metadata", allKinds &^ Wrapping},
	{"code", allKinds &^ (Wrapping | Metadata)},
	{"text", allKinds &^ (Wrapping | Metadata | Loader | Hidden)},
	{"nocontrol", allKinds &^ (Wrapping | Metadata | Loader | Control)},
	{"noregs", allKinds &^ (Wrapping | Metadata | Loader | Control | Registers)},
	{"noorder", allKinds &^ (Wrapping | Metadata | Loader | Control | Registers | Order)},
	{"nomods", allKinds &^ (Wrapping | Metadata | Loader | Control | Registers | Order | Modifiers)},
}

// levelNames returns the names that ParseLevel knows, the strictest first.
func levelNames() []string {
	var out []string
	for _, l := range levels {
		out = append(out, l.name)
	}
	return out
}

// ParseLevel returns the kinds of difference that count at a level.
func ParseLevel(s string) (Kinds, error) {
	for _, l := range levels {
		if l.name == s {
			return l.kinds, nil
		}
	}
	return 0, fmt.Errorf("level %q: want %s", s, strings.Join(levelNames(), ", "))
}

// A Class says how far two kernels agree.
type Class uint8

// The classes, the strongest agreement first.
const (
	Identical     Class = iota // the same bytes, referring to the same symbols
	SameCode                   // the same but for addresses and padding
	HiddenOnly                 // text and control codes are the same, other bits are not
	ControlOnly                // only control codes differ, and perhaps hidden bits
	RegistersOnly              // the same after a renaming of registers; control codes may differ
	Reordered                  // the same instructions in another order, every dependence kept; control codes may differ
	ModifiersOnly              // the same opcodes and operands; the rest may differ
	CodeDiffers
	numClasses
)

var classNames = [numClasses]string{"identical", "same-code", "hidden", "control-only", "registers-only", "reordered", "modifiers-only", "code"}

func (c Class) String() string { return classNames[c] }

// classOf returns the class of kernels of equal length whose instructions differ in
// the kinds k.
func classOf(k Kinds) Class {
	switch {
	case k&Other != 0:
		return CodeDiffers
	case k&Modifiers != 0:
		return ModifiersOnly
	case k&Registers != 0:
		return RegistersOnly
	case k&Control != 0:
		return ControlOnly
	case k&Hidden != 0:
		return HiddenOnly
	}
	return SameCode
}
