// Package assign makes the control codes of instructions: how long each stalls, which
// scoreboards it sets and waits for, and whether it yields.
//
// What it has to keep to and what ptxas does beyond that is learned from code of ptxas: a
// [Miner] gathers it, [Habits] holds it, and [Scheduler.Schedule] makes control codes from it.
// A distance that was seen in such code is enough; of pairs that were never seen, the safest of
// what is known of the first instruction counts. What nobody has seen is given a scoreboard.
package assign
