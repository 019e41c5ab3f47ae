// Package app is the process behind every user interface of raddle: it knows
// where things are, reads the configuration, opens the store and the models by
// name, finds agents, and drives runs of them so that one process at a time
// works on a run and any later one can go on with it.
//
// It prints nothing and asks nobody. Whoever uses it passes a [Driver] that sees
// the events of a run and answers its questions.
//
// A run is self-contained: its start record holds a [Record] with everything
// that starting it depended on, so that [Process.Resume] needs nothing but the
// run's id.
package app
