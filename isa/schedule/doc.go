// Package schedule says whether the control codes of a kernel let every instruction find the
// values that it should.
//
// Nothing in the hardware checks a latency that is fixed: an instruction that comes too soon
// reads what was there before. What is too soon is learned from code of ptxas, which holds to
// one least distance for each pair of instructions and waits for every scoreboard that it sets:
// a [Miner] gathers what the code does, a [Model] is what it never does otherwise, and a
// [Checker] finds what breaks that. Of pairs that are rarely seen a model says nothing, or only
// what holds for both instructions with others.
//
// Registers are all that is followed. Memory, barriers of threads, tensor memory and what
// matrix instructions of warp groups do later are not, and a function that is called is taken to
// leave nothing pending.
package schedule
