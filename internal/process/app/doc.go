// Package app is the process behind every user interface of raddle: it finds
// agents, gives them their models, tools and permissions, and drives runs of them. One process at a time
// works on a run, and any later process can continue it.
//
// It prints nothing and asks no questions itself. The caller passes a [Driver] that
// receives the events of a run and answers its questions.
//
// A run is self-contained: its start record holds a [runs.Record] with everything
// that its start depended on, so that [Process.ResumeRun] needs only the id of the
// run.
package app
