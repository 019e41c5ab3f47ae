// Package foreign keeps, next to the journals of a store, which of its threads came from elsewhere: an exported run
// that someone sent, or a store that the configuration does not name. The mark is not part of the journal: a file
// cannot say of itself that it is trusted, and no edit of the file removes the mark. A mark may hold an [Acceptance]:
// what a person at this machine has decided after seeing what the run would do next, and up to which record.
//
// A mark is a thread of its own in the store, to which each change is appended: every kind of store keeps it, and the
// newest record counts.
package foreign

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"raddle.dev/graph/journal"
)

// threadPrefix begins the names of the threads that hold marks. No run and no session has such a name.
const threadPrefix = "foreign:"

// kindMark is the kind of the records of marks. The engine does not know it, so it cannot be confused with a record of
// a run.
const kindMark journal.Kind = 101

// IsThread reports whether a thread holds a mark, and no run.
func IsThread(name string) bool { return strings.HasPrefix(name, threadPrefix) }

// NameThread returns the name of the thread that holds the mark of a thread.
func NameThread(of string) string { return threadPrefix + of }

// MarkedBy returns the thread that a thread of NameThread holds the mark of.
func MarkedBy(name string) string { return strings.TrimPrefix(name, threadPrefix) }

// Mark says where a thread came from.
type Mark struct {
	From string    `json:"from"` // the file or the store
	At   time.Time `json:"at"`   // when it was imported
	// Head is the number of its newest record then; what starts after that was started here. 0: it is not known.
	Head     int64       `json:"head,omitempty"`
	Accepted *Acceptance `json:"accepted,omitempty"` // nil: no one has decided yet
	// Declined is the newest no, after which the thread stayed as it was; nil: there is none.
	Declined *Refusal `json:"declined,omitempty"`
}

// Refusal says who has looked at a thread and left it as it was.
type Refusal struct {
	By string    `json:"by,omitempty"` // as in [Acceptance]
	At time.Time `json:"at"`
}

// Acceptance is what a person has decided about a thread.
type Acceptance struct {
	// Whole says that everything that the thread brought counts, as it was shown. Otherwise nothing of it counts but
	// the prompt and the values of the state.
	Whole bool `json:"whole,omitempty"`

	// Pending says that what was allowed elsewhere is still in the state of the thread: it must be removed before
	// anything else happens.
	Pending bool `json:"pending,omitempty"`

	// Head and Sum are the number and the checksum of the newest record that the person has decided about.
	Head int64  `json:"head"`
	Sum  uint64 `json:"sum"`

	Workspace string    `json:"workspace"`    // where the run works from then on
	By        string    `json:"by,omitempty"` // name of the token of who decided; "": a person at a terminal
	At        time.Time `json:"at"`
}

// Put appends a mark for a thread: it replaces the one that is there.
func Put(ctx context.Context, st journal.Store, thread string, m Mark) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("mark %s as foreign: %w", thread, err)
	}
	for {
		var head int64
		for r, err := range st.Read(ctx, NameThread(thread), journal.Range{Heads: true}) {
			if err != nil {
				return fmt.Errorf("mark %s as foreign: %w", thread, err)
			}
			head = r.Seq
		}
		err := journal.Append(ctx, st, NameThread(thread), head, journal.Record{Kind: kindMark, Time: time.Now().UnixMicro(), Data: data})
		if err == nil {
			return nil
		}
		if !errors.Is(err, journal.ErrConflict) || ctx.Err() != nil {
			return fmt.Errorf("mark %s as foreign: %w", thread, err)
		}
	}
}

// IsUndecided reports whether the newest of some records of a mark's thread says that no one has decided about the thread.
func IsUndecided(recs []journal.Record) bool {
	var m Mark
	return len(recs) > 0 && json.Unmarshal(recs[len(recs)-1].Data, &m) == nil && m.Accepted == nil
}

// Find returns the mark of a thread; nil: the thread is this store's own. A mark that cannot be read is an error, so
// that nothing is trusted because its mark is damaged.
func Find(ctx context.Context, st journal.Store, thread string) (*Mark, error) {
	var m *Mark
	for r, err := range journal.Records(ctx, st, NameThread(thread), journal.Range{}) {
		if err != nil {
			return nil, fmt.Errorf("the mark of %s that says where it came from cannot be read: %w", thread, err)
		}
		next := &Mark{}
		if err := json.Unmarshal(r.Data, next); err != nil || r.Kind != kindMark {
			return nil, fmt.Errorf("the mark of %s that says where it came from is damaged: remove the run", thread)
		}
		m = next
	}
	return m, nil
}

// FindCurrent is [Find] for the run that a thread holds at a record (0: now). It is nil for a turn of a session that
// was started here after the session was imported; and a decision about a thread that was replaced since is not in the
// mark.
func FindCurrent(ctx context.Context, st journal.Store, thread string, at int64) (*Mark, error) {
	m, err := Find(ctx, st, thread)
	if m == nil || err != nil {
		return nil, err
	}
	if own, err := m.isBefore(ctx, st, thread, at); own || err != nil {
		return nil, err
	}
	if m.Accepted == nil {
		return m, nil
	}
	same, err := m.Accepted.isAbout(ctx, st, thread)
	if err != nil {
		return nil, err
	}
	if !same {
		m.Accepted = nil
	}
	return m, nil
}

// isBefore reports whether the run that a thread holds at a record has started after all that came from elsewhere.
func (m *Mark) isBefore(ctx context.Context, st journal.Store, thread string, at int64) (bool, error) {
	if m.Head == 0 {
		return false, nil
	}
	for r, err := range st.Read(ctx, thread, journal.Range{After: m.Head, UpTo: at, Heads: true}) {
		if err != nil {
			return false, err
		}
		if r.Kind == journal.KindStart {
			return true, nil
		}
	}
	return false, nil
}

// IsOpen reports whether no one has decided yet about a thread with a mark. m is a mark of [FindCurrent]; nil: the
// thread is this store's own.
func (m *Mark) IsOpen() bool { return m != nil && m.Accepted == nil }

// IsLimited reports whether nothing of what a thread brought counts but its prompt and the values of its state. m is as
// in IsOpen.
func (m *Mark) IsLimited() bool { return m != nil && (m.Accepted == nil || !m.Accepted.Whole) }

// Copy gives a copy of a thread, taken at a record, the mark of the original. What a person has decided counts for the
// copy only if the record is not older than what that person has seen. It does nothing for a thread without a mark.
func Copy(ctx context.Context, st journal.Store, from string, at int64, into string) error {
	m, err := FindCurrent(ctx, st, from, at)
	if m == nil || err != nil {
		return err
	}
	m.Head = 1 // a copy has all of the original in its first record
	if m.Accepted != nil && (m.Accepted.Pending || at != 0 && at < m.Accepted.Head) {
		m.Accepted = nil
	}
	if m.Accepted != nil {
		m.Accepted.Head = 0
		m.Accepted.Sum = 0 // all that the copy begins with was seen, or was written here
	}
	return Put(ctx, st, into, *m)
}

// Remove removes the mark of a thread that is removed, too.
func Remove(ctx context.Context, st journal.Store, thread string) error {
	m, err := Find(ctx, st, thread)
	if m == nil && err == nil {
		return nil
	}
	return st.Prune(ctx, NameThread(thread), math.MaxInt64)
}

// isAbout reports whether what a thread holds is what a person has decided about.
func (a *Acceptance) isAbout(ctx context.Context, st journal.Store, thread string) (bool, error) {
	if a.Head == 0 {
		return true, nil
	}
	for r, err := range st.Read(ctx, thread, journal.Range{After: a.Head - 1, UpTo: a.Head, Heads: true}) {
		if err != nil {
			return false, err
		}
		return r.Sum == a.Sum, nil
	}
	return true, nil // its beginning was pruned; a removed thread that came again has a newer mark
}
