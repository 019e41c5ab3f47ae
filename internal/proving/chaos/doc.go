// Package chaos is what raddle chaos does: it starts servers of this program, lets them work on runs of an agent, hurts
// them by a plan, and then says what of the runs is lost, repeated, stranded or in doubt. [NewPlan] makes the plan from
// a seed; [Command.Execute] carries it out; [Judge] is a pure function from what was seen to a [Verdict].
//
// # What is seen
//
// Three witnesses, none of which is a server, say what has happened:
//
//   - The client: it starts each run with an idempotency key and a user of its own, and knows which starts and which
//     answers a server has accepted. A request that got no answer is sent again with the same key. If it never got one,
//     the start is unconfirmed: its run may be there or not, and nothing is lost if it is not.
//   - The journals: they are read from the store itself, not through a server or the connection that is cut, again and
//     again while the runs work. Each record that was seen once, with its checksum, is remembered.
//   - The effects: each server writes a line to a file before it asks a model, calls a tool, runs a script or searches,
//     and one after it. A killed process has written the first line and not the second. A journal alone could not say
//     this: an effect that may be repeated is not announced in it.
//
// # What is counted
//
// As in a test with a register of acknowledged writes, what counts is what a server has confirmed or what the store has held.
//
//   - Lost: a start that was accepted has no run in the store; a record that was in the journal is not there any more,
//     or is another one; numbers of records are missing; the answers that were accepted are not all in the journal.
//   - Repeated: two runs have come from one start; an effect has two results in one journal; an effect began although its
//     result was in the journal. The last includes a process that was frozen, lost its lease and worked on: what it did
//     then counts, because it reached the outside, even if the journal refuses its result.
//   - Stranded: two leases (30 s) after the last fault, and after its newest record, a run has neither ended nor does it
//     wait for a person, an event or a time.
//   - Failed: a run ended by a failure or a limit. A first run, which nothing hurts, must not fail, so that this is due to the faults.
//   - In doubt: an effect began, its process died or was cut off before the result was recorded, and the effect began
//     again. That is what at-least-once means, and says nothing against a run. The author of the agent must make these effects
//     do their work once for each RADDLE_IDEMPOTENCY_KEY, so they are listed by node. A call that has returned an error
//     and is tried again is not in doubt.
//
// Times of effects and of records are compared by the clock of this machine, on which all servers work.
package chaos
