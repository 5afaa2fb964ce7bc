package code

import "github.com/cupatch/cupatch/isa"

// Bits that belong together.
var (
	EveryBit     = isa.Word{}.Not()
	ScheduleMask = isa.StallField.Mask().Or(isa.YieldField.Mask()).Or(isa.ReuseField.Mask())
	ControlMask  = ScheduleMask.Or(isa.WBarField.Mask()).Or(isa.RBarField.Mask()).Or(isa.WaitField.Mask())
	GuardMask    = isa.GuardField.Mask().Or(isa.GuardNot.Mask())
)
