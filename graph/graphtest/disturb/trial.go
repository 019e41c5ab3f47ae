package disturb

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A Trial is one run under a schedule, in one or more drives. It is safe for concurrent use.
type Trial struct {
	// Schedule is what happens.
	Schedule Schedule

	// Outage is how long the store is away in an Away. It is a minute, longer than a lease, unless Explorer.Run changes
	// it.
	Outage time.Duration

	rename func(string) string // nil: names stay

	mu         sync.Mutex // guards the fields below, and the appends to the store
	fired      []bool     // by place in Schedule
	thread     string     // of the first append: others are not disturbed
	stored     map[string]int
	milestones []Milestone
	recorded   map[string]bool // effects with a stored result, by path
	made       map[string]int  // calls of effects, by path
	leases     map[string]int  // changes of the lease, by label
	drives     []*Drive
	effects    int // the number of the newest drive that has made an effect
	away       time.Time
	last       []history.Entry // of the append that was disturbed last
	saved      bool            // it was stored
	forkAt     int64
	faults     []string
	released   chan struct{}
}

// A Milestone is a record that a run has stored, an effect that it has made, or a change of its lease.
type Milestone struct {
	// Label names it in all runs of one Explorer.
	Label string

	// Kind is that of the record. It is 0 for an effect that was made and not yet recorded, and for a change of the
	// lease.
	Kind journal.Kind

	// First is set for the first record of an append, and for a change of the lease: what may fail.
	First bool
}

// IsOfLease reports whether it is a change of the lease.
func (m Milestone) IsOfLease() bool { return m.Kind == 0 && m.First }

func newTrial(s Schedule) *Trial {
	return &Trial{Schedule: s, Outage: time.Minute, fired: make([]bool, len(s)), stored: map[string]int{}, recorded: map[string]bool{}, made: map[string]int{}, leases: map[string]int{}, released: make(chan struct{})}
}

// ReplaceNames sets a function that replaces, in the names of tasks and effects, what differs from run to run. Call it
// before the first drive.
func (t *Trial) ReplaceNames(f func(string) string) { t.rename = f }

// LabelRecords returns the names of the records of a whole thread, oldest first. rename is that of Trial.ReplaceNames;
// nil: names stay.
func LabelRecords(entries []history.Entry, rename func(string) string) []Milestone {
	t := newTrial(nil)
	t.ReplaceNames(rename)
	return t.labelRecords(entries)
}

// HasFired reports whether everything of the schedule that happens at a record has happened.
func (t *Trial) HasFired() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, d := range t.Schedule {
		if !t.fired[i] && d.Kind != Order && d.Kind != Poison {
			return false
		}
	}
	return true
}

// ListMilestones returns what the run has stored and made so far, in this order.
func (t *Trial) ListMilestones() []Milestone {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.milestones)
}

// LastAppend returns the records of the append that was disturbed last, and whether they were stored.
func (t *Trial) LastAppend() (entries []history.Entry, saved bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.last), t.saved
}

// IsEmpty reports whether nothing was stored.
func (t *Trial) IsEmpty() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.stored) == 0
}

// IsRecorded reports whether the result of an effect was stored. path is graph.EffectKey without the run.
func (t *Trial) IsRecorded(path string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.recorded[path]
}

// ForkPoint returns the number of the record at which the thread is to be forked; 0: nowhere.
func (t *Trial) ForkPoint() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.forkAt
}

// AddFault notes something that must not happen.
func (t *Trial) AddFault(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addFaultLocked(fmt.Sprintf(format, args...))
}

func (t *Trial) addFaultLocked(text string) {
	if !slices.Contains(t.faults, text) {
		t.faults = append(t.faults, text)
	}
}

// Faults returns what happened and must not happen: an effect that was made again although its result was stored,
// effects of two drives at the same time, and what AddFault has noted.
func (t *Trial) Faults() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.faults)
}

// ReleaseAll lets what is held or frozen return, with an error. Nothing more is stored. Call it when the run has ended.
func (t *Trial) ReleaseAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.drives {
		d.dead = true
	}
	select {
	case <-t.released:
	default:
		close(t.released)
	}
}

// lastingEnds are the ends after which a run does not continue unless a person asks for it.
var lastingEnds = []string{graph.Done.String(), graph.Failed.String(), graph.StepLimit.String(), graph.VisitLimit.String(), graph.TimedOut.String(), graph.Stuck.String(), graph.Abandoned.String(), graph.CleanedUp.String()}

// HasEnded reports whether the append that was disturbed last has stored an end after which the run does not continue
// by itself.
func (t *Trial) HasEnded() bool {
	entries, saved := t.LastAppend()
	return saved && slices.ContainsFunc(entries, func(e history.Entry) bool { return e.Kind == journal.KindEnd && slices.Contains(lastingEnds, e.What) })
}

// HasWaited reports whether it has stored that the run waits for an answer.
func (t *Trial) HasWaited() bool {
	entries, saved := t.LastAppend()
	return saved && slices.ContainsFunc(entries, func(e history.Entry) bool { return e.Kind == journal.KindEnd && e.What == graph.Waiting.String() })
}

// matchLocked returns the first disturbance of the schedule that happens at one of these milestones and has not
// happened yet, and its place.
func (t *Trial) matchLocked(milestones []Milestone) (d Disturbance, place int, ok bool) {
	for i, d := range t.Schedule {
		if !t.fired[i] && slices.ContainsFunc(milestones, func(m Milestone) bool { return m.Label == d.At && (m.Kind != 0 || m.First) == (d.Kind != CrashMade) }) {
			return d, i, true
		}
	}
	return Disturbance{}, 0, false
}

// labelRecords returns names for records that are about to be appended.
func (t *Trial) labelRecords(entries []history.Entry) (list []Milestone) {
	next := map[string]int{}
	for i, e := range entries {
		text := e.Path
		switch e.Kind {
		case journal.KindStart, journal.KindClaim, journal.KindSnapshot, journal.KindFork: // an id that each run has for itself
		default:
			text += e.What
		}
		if e.Step > 0 {
			text += "/" + strconv.Itoa(e.Step)
		}
		label := t.makeLabel(e.Kind.String(), text)
		n := t.stored[label] + next[label]
		next[label]++
		list = append(list, Milestone{label + countSuffix(n), e.Kind, i == 0})
	}
	return list
}

// unsafeText matches what is replaced in labels, so that they need no quotes in a shell and can be parts of a schedule.
var unsafeText = regexp.MustCompile(`[^\w./:=-]+`)

// makeLabel makes a name that can be a part of a schedule.
func (t *Trial) makeLabel(kind, text string) string {
	if t.rename != nil {
		text = t.rename(text)
	}
	if text == "" {
		return kind
	}
	return kind + ":" + unsafeText.ReplaceAllString(strings.ReplaceAll(text, " ", "/"), "_")
}

// countSuffix tells records apart that have the same name.
func countSuffix(n int) string {
	if n == 0 {
		return ""
	}
	return ",n=" + strconv.Itoa(n+1)
}

// storeLocked appends records to the store inside, and notes what is stored then.
func (t *Trial) storeLocked(ctx context.Context, st journal.Store, after int64, recs []journal.Record, entries []history.Entry) error {
	milestones := t.labelRecords(entries)
	if err := st.Append(ctx, t.thread, after, recs); err != nil {
		return err
	}
	for i, m := range milestones {
		t.stored[strings.TrimSuffix(m.Label, suffixOf(m.Label))]++
		if e := entries[i]; e.Kind == journal.KindEffect {
			t.recorded[e.Path+strings.ReplaceAll(e.ID, "\x00", "/")] = true
		}
	}
	t.milestones = append(t.milestones, milestones...)
	return nil
}

// suffixOf returns the countSuffix of a label.
func suffixOf(label string) string {
	if i := strings.LastIndex(label, ",n="); i >= 0 {
		return label[i:]
	}
	return ""
}

// listEntries returns the entries of records that can be decoded.
func listEntries(after int64, recs []journal.Record) (list []history.Entry) {
	for i, rec := range recs {
		e, err := history.DecodeEntry(rec)
		if err != nil {
			e = history.Entry{Kind: rec.Kind}
		}
		e.Seq = after + int64(i) + 1
		list = append(list, e)
	}
	return list
}

// ErrKilled is the error of everything that a killed drive still tries.
var ErrKilled = errors.New("disturb: the process was killed by the test")
