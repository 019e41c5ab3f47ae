// Package history reads and changes what is stored of runs, without their graphs: it lists the runs of
// a store, shows the records of a thread and what it holds at each of them, compares two points, and
// forks, shortens, ends and deletes threads. No code of nodes runs.
//
//	for t, err := range store.Threads(ctx, "") {
//		run, err := history.Describe(t) // the thread's newest run, without reading its values
//	}
//	for c, err := range history.Checkpoints(ctx, store, "t1") {
//		fmt.Println(c.Seq, c.Kind, c.Next, err) // 4 step [], then 1 start [greet]
//	}
//	err := history.Fork(ctx, store, "t1", 1, "t2") // t2 is t1 as it was at record 1
package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// Entry is one line of a thread's history.
type Entry struct {
	// Seq, Time and Kind are those of the record.
	Seq  int64
	Time time.Time
	Kind journal.Kind

	// Path is that of the frame in the journal: the tasks above, each with a '/'.
	Path string

	// What is the task, effect, question, status or keys that it is about, for people.
	What string

	// ID is that of an effect, as in Intent.ID.
	ID string

	// Timing is that of an effect; zero: it is not known, because an earlier version wrote the record.
	Timing Timing `json:",omitzero"`

	// Step is the number of steps that the frame has done, which is the number of the
	// next. It is set for a start, call, step, edit, fork and snapshot.
	Step int

	// Next are the nodes that run next, after the same records.
	Next []string

	// Tasks is the number of tasks of these nodes, after a start, call or step: a node has
	// several if a Send names it more than once.
	Tasks int

	// Failed is, for a step, why one of its tasks failed whose failure its node handles, with
	// OnError. The Content of the task's own record has it, too.
	Failed string

	// From is, for a fork, what was copied.
	From journal.Point

	// By is the name of who answered, forked, edited or abandoned the run: graph.Answer.By or that of
	// journal.WithAuthor; "": no name was given.
	By string
}

// Entries lists a thread's records, newest first, without reading any value. An error is
// last; an unknown thread has none. The sequence may be used several times, and reads the
// store each time.
func Entries(ctx context.Context, st journal.Store, thread string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for r, err := range journal.Records(ctx, st, thread, journal.Range{Heads: true, Newest: true}) {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			e, err := DecodeEntry(r)
			if err != nil {
				err = &journal.DamagedError{Thread: thread, Seq: r.Seq, Kind: r.Kind, Err: err}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// DecodeEntry returns the line of a record in its thread's history.
func DecodeEntry(r journal.Record) (Entry, error) {
	b := record.Parts{}
	err := b.ReadHead(uint8(r.Kind), r.Head)
	e := newEntry(&r, &b)
	if err != nil {
		return e, fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return e, nil
}

// newEntry returns the line of a record with the parts of its head.
func newEntry(r *journal.Record, b *record.Parts) Entry {
	e := Entry{Seq: r.Seq, Time: timeOf(r.Time), Kind: r.Kind, Path: b.Path, Step: b.Step, Next: b.Next, By: b.By}
	switch r.Kind {
	case journal.KindStart, journal.KindClaim, journal.KindSnapshot, journal.KindFork:
		e.What = b.Run
	case journal.KindIntent, journal.KindEffect, journal.KindFailure:
		e.ID = b.ID
		e.What = showParts(b.ID)
		e.Timing = newTiming(b.Timing)
	case journal.KindTask:
		e.What = b.ID
	case journal.KindVoid:
		e.What = strings.Join(b.Void, ", ")
	case journal.KindQuestion:
		e.What = b.Base
	case journal.KindAnswer:
		e.What = showParts(b.ID)
	case journal.KindReturn:
		if b.Dropped {
			e.What = "dropped"
		}
	case journal.KindEdit:
		e.What = strings.Join(b.Keys, ", ")
	case journal.KindEnd:
		e.What = graph.Status(b.Status).String()
	}
	switch r.Kind {
	case journal.KindStart, journal.KindCall, journal.KindStep:
		e.setTasks(b.Tasks)
	case journal.KindFork:
		e.From = journal.Point(b.Origin)
	}
	return e
}

// Timing says how an effect spent its time, by the clock of its drive.
type Timing struct {
	// Took is the time from its start to its record.
	Took time.Duration

	// First is the time from its start to the first part of the result that counts: see graph.NoteFirstPart. 0: it is
	// not known.
	First time.Duration

	// Retries is how often it was tried again, and Waited how long it waited in all before: see graph.NoteRetry.
	Retries int
	Waited  time.Duration
}

// newTiming returns a timing as a record has it.
func newTiming(t record.Timing) Timing {
	return Timing{
		Took:    microseconds(t.Took),
		First:   microseconds(t.First),
		Retries: t.Again,
		Waited:  microseconds(t.Waited),
	}
}

// microseconds returns a duration, at least 0 and at most the longest.
func microseconds(n int64) time.Duration {
	return time.Duration(min(max(n, 0), math.MaxInt64/1000)) * time.Microsecond
}

// showParts returns an identity with spaces between its parts instead of zero bytes.
func showParts(id string) string {
	return strings.Join(strings.FieldsFunc(id, func(r rune) bool { return r == 0 }), " ")
}

// setTasks sets what is known of the tasks that run next.
func (e *Entry) setTasks(tasks []record.Task) {
	e.Next = record.NextNames(tasks)
	e.Tasks = len(tasks)
	for i := range tasks {
		e.Failed = cmp.Or(e.Failed, tasks[i].Cause)
	}
}

// A Checkpoint is a point that is useful to go back to: a start, a step, the start of a
// child graph, an edit or a fork. Its Kind says which, its Step and Next what would run
// from there.
type Checkpoint struct {
	// Entry is that of the record.
	Entry

	// Parent is the checkpoint before it; for a fork the point that was copied; zero: none
	// is kept.
	Parent journal.Point
}

// Checkpoints lists the checkpoints of a thread, newest first, without reading any
// value. A pruned thread ends with the snapshot that replaces the deleted records. An
// error is last; an unknown thread has none.
func Checkpoints(ctx context.Context, st journal.Store, thread string) iter.Seq2[Checkpoint, error] {
	return func(yield func(Checkpoint, error) bool) {
		var held *Checkpoint // until its parent is known
		var oldest Entry
		for e, err := range Entries(ctx, st, thread) {
			if err != nil {
				yield(Checkpoint{}, err)
				return
			}
			oldest = e
			if !e.IsCheckpoint() {
				continue
			}
			if held != nil {
				held.Parent = journal.Point{Thread: thread, Seq: e.Seq}
				if !yield(*held, nil) {
					return
				}
			}
			held = &Checkpoint{Entry: e, Parent: e.From}
		}
		if oldest.Kind == journal.KindSnapshot {
			if held != nil {
				held.Parent = journal.Point{Thread: thread, Seq: oldest.Seq}
				if !yield(*held, nil) {
					return
				}
			}
			held = &Checkpoint{Entry: oldest}
		}
		if held != nil {
			yield(*held, nil)
		}
	}
}

// IsCheckpoint reports whether the record is a point that is useful to go back to, as those of [Checkpoints].
func (e *Entry) IsCheckpoint() bool {
	switch e.Kind {
	case journal.KindStart, journal.KindCall, journal.KindStep, journal.KindEdit, journal.KindFork:
		return true
	}
	return false
}

// timeOf returns the time of a record, limited to the years that every format can
// write: the clock of the writer may have been wrong by any amount.
func timeOf(micros int64) time.Time {
	// 0001-01-02 and 9999-12-30, in range in every time zone
	const first, last = -62_135_510_400_000_000, 253_402_214_399_999_999
	return time.UnixMicro(min(max(micros, first), last))
}
