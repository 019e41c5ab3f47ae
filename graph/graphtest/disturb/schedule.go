// Package disturb runs something with a journal again and again, each time under another [Schedule] of disturbances:
// processes that are killed, writes that fail, drives that are displaced. A [Trial] is one run: its drives use the
// trial's store, which carries the schedule out. An [Explorer] runs them all, compares each with a run that nothing
// disturbed, and shrinks a schedule that makes a difference.
//
// graphtest.Explore is the search for graphs in Go; raddle test --crash is the one for agents.
package disturb

import (
	"fmt"
	"slices"
	"strings"
)

// A Kind says how a run is disturbed.
type Kind string

// The kinds. All but Order and Poison happen at a record: when a drive appends it. Those that make a write fail also
// happen at changes of the lease.
const (
	CrashBefore Kind = "crash-before" // the process is killed, and the record is not stored
	CrashAfter  Kind = "crash-after"  // the process is killed, and the record is stored
	CrashMade   Kind = "crash-made"   // the process is killed when an effect was made; At is a Milestone of the effect
	FailBefore  Kind = "fail-before"  // the store refuses the record, and the process lives
	FailAfter   Kind = "fail-after"   // the store keeps the record, says that it has refused it, and the process lives
	Busy        Kind = "busy"         // the store is busy once: the same append succeeds later
	Away        Kind = "away"         // the store is away for a minute
	AnswerLost  Kind = "answer-lost"  // the record is stored, and the answer of the store is lost
	LeaseLost   Kind = "lease-lost"   // another process holds the lease of the thread for a moment
	Takeover    Kind = "takeover"     // another drive of the same process takes the run over
	Pause       Kind = "pause"        // the run is paused, and continues a day later in the same process
	Fork        Kind = "fork"         // the thread is forked at the record, and the copy runs to its end too
	Order       Kind = "order"        // parallel tasks and answers come in another order; At is Reversed or a number
	// Poison gives user code a copy of its own to read, which must not change: graph.Runner.Debug.
	Poison Kind = "poison"
)

// Kinds are all kinds.
var Kinds = []Kind{CrashBefore, CrashAfter, CrashMade, FailBefore, FailAfter, Busy, Away, AnswerLost, LeaseLost, Takeover, Pause, Fork, Order, Poison}

// Reversed is the At of an Order from last to first.
const Reversed = "reversed"

// words say what a kind does; %s is where.
var words = map[Kind]string{
	CrashBefore: "the process is killed before %s is stored, and another one resumes the run",
	CrashAfter:  "the process is killed after %s was stored, and another one resumes the run",
	CrashMade:   "the process is killed after %s, and another one resumes the run",
	FailBefore:  "the store refuses %s, and the run is resumed in the same process",
	FailAfter:   "the store keeps %s but returns an error, and the run is resumed in the same process",
	Busy:        "the store is busy when %s is appended, for a moment",
	Away:        "the store is away for a minute when %s is appended",
	AnswerLost:  "%s is stored, and the answer of the store is lost",
	LeaseLost:   "another process holds the lease when %s is appended",
	Takeover:    "another drive of the same process takes the run over when %s is appended",
	Pause:       "the run is paused after %s, and continues a day later",
	Fork:        "the thread is forked at %s, and the copy runs to its end",
	Order:       "parallel tasks and answers come in another order: %s",
	Poison:      "each function reads a copy of its own that it must not change (graph.Runner.Debug)",
}

// A Disturbance is one thing that happens to a run.
type Disturbance struct {
	// Kind says what happens.
	Kind Kind

	// At says when: the Label of a record, or what Kind needs.
	At string
}

// String returns the text that ParseSchedule reads.
func (d Disturbance) String() string {
	if d.At == "" {
		return string(d.Kind)
	}
	return string(d.Kind) + "@" + d.At
}

// InWords says in words what happens.
func (d Disturbance) InWords() string {
	text := words[d.Kind]
	if !strings.Contains(text, "%s") {
		return text
	}
	return fmt.Sprintf(text, d.At)
}

// A Schedule is what happens to one run, in any order. The empty Schedule disturbs nothing.
type Schedule []Disturbance

// String returns the text that ParseSchedule reads.
func (s Schedule) String() string {
	parts := make([]string, len(s))
	for i, d := range s {
		parts[i] = d.String()
	}
	return strings.Join(parts, "+")
}

// FindKind returns the disturbance of a kind, if there is one.
func (s Schedule) FindKind(k Kind) (d Disturbance, ok bool) {
	i := slices.IndexFunc(s, func(d Disturbance) bool { return d.Kind == k })
	if i < 0 {
		return d, false
	}
	return s[i], true
}

// ParseSchedule reads the text of a schedule.
func ParseSchedule(text string) (s Schedule, err error) {
	for part := range strings.SplitSeq(text, "+") {
		kind, at, _ := strings.Cut(part, "@")
		if !slices.Contains(Kinds, Kind(kind)) {
			return nil, fmt.Errorf("disturb: schedule %q: there is no disturbance %q; the kinds are %v", text, kind, Kinds)
		}
		s = append(s, Disturbance{Kind(kind), at})
	}
	return s, nil
}
