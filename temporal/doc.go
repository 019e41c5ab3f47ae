// Package temporal drives raddle's runs on many machines with Temporal.
//
// The state of a run stays in the store that all machines share. Temporal only
// says which worker drives it, and when: each run is one workflow, whose id is
// that of the run, and each drive of it is one activity that returns a status and
// nothing else. If a worker dies, the next one continues the run from its journal
// and repeats only what was in flight.
package temporal
