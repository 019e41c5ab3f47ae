package journal

import (
	"context"
	"slices"
)

// Index may be implemented by a Store that keeps one Line for each thread, so that a list reads only what it shows,
// however many threads there are. A line is written by the same transaction as the records that change it: see
// WithLine. Who appends without one, and changes what a list shows, leaves a line without a status: then the first and
// the last record of the thread say what there is, as in Threads. A thread that a Prune deletes has no line.
type Index interface {
	// ListLines returns lines, the greatest Order first, and those of one order by Thread, descending.
	ListLines(ctx context.Context, r LineRange) ([]Line, error)

	// ListWaiting returns lines with a Wait, the smallest first, and those of one Wait by Thread. Its cost does not
	// grow with the number of others.
	ListWaiting(ctx context.Context, r WaitRange) ([]Line, error)

	// ListForks returns the lines whose Parent is one of these threads, by Thread.
	ListForks(ctx context.Context, parents []string) ([]Line, error)

	// ReadLine returns the line of a thread; ok is false if there is no such thread.
	ReadLine(ctx context.Context, thread string) (line Line, ok bool, err error)

	// FillLine writes the line of a thread whose line has no status. It does nothing if there is no such thread, or if
	// its line has a status by now.
	FillLine(ctx context.Context, line Line) error

	// CountLines returns how many lines there are of each status. Its cost does not grow with their number.
	CountLines(ctx context.Context) (map[string]int, error)
}

// A Line is what a list shows of a thread. A store does not read what it says.
type Line struct {
	// Thread is the thread.
	Thread string

	// Order is where lists have it: the greatest comes first. It is not empty.
	Order string

	// Status and Label are for lists of only some threads. A line whose Status is "" says nothing but Thread; its Order
	// is Thread.
	Status string
	Label  string

	// Wait is where a list of what waits has it: the smallest comes first. 0: it is in no such list.
	Wait int64

	// Parent is a thread below which a list has it; "": none.
	Parent string

	// Details is all else that a list shows.
	Details []byte

	// Lease is that of the running drive, which the store sets; zero: there is none.
	Lease Lease
}

// A LineRange selects lines. The zero LineRange is all of them. One without a status is selected whatever Statuses and
// Label say.
type LineRange struct {
	// Prefix selects threads whose names begin with it.
	Prefix string

	// Below and BelowThread are the Order and the Thread of a line: only those that come after it are selected. If
	// Below is "", all. If BelowThread is "", those with the order Below are left out.
	Below       string
	BelowThread string

	// Statuses selects lines with one of them; nil: all.
	Statuses []string

	// Label selects lines with this one; "": all.
	Label string

	// Limit is the largest number of lines. If 0, there is no limit.
	Limit int
}

// A WaitRange selects lines with a Wait. The zero WaitRange is all of them.
type WaitRange struct {
	// After and AfterThread are the Wait and the Thread of a line: only those that come after it are selected. If After
	// is 0, all.
	After       int64
	AfterThread string

	// Limit is the largest number of lines. If 0, there is no limit.
	Limit int
}

// Selects reports whether a line is in the range, without its limit: for stores that look at each.
func (r *LineRange) Selects(l *Line) bool {
	switch {
	case len(l.Thread) < len(r.Prefix) || l.Thread[:len(r.Prefix)] != r.Prefix:
		return false
	case r.Below != "" && (l.Order > r.Below || l.Order == r.Below && l.Thread >= r.BelowThread):
		return false
	case l.Status == "":
		return true
	}
	return (r.Statuses == nil || slices.Contains(r.Statuses, l.Status)) && (r.Label == "" || r.Label == l.Label)
}

// lineKey is the key of a Line in a context.
type lineKey struct{}

// WithLine returns a context with which a Store that is an Index writes the line in the transaction of the records that
// are appended to its thread.
func WithLine(ctx context.Context, l *Line) context.Context {
	return context.WithValue(ctx, lineKey{}, l)
}

// LineOf returns the line that a Store that is an Index writes together with records of a thread that come after one of
// it; nil: none. Records that change what a list shows, and come without a line, leave one without a status.
func LineOf(ctx context.Context, thread string, after int64, recs []Record) *Line {
	if l, _ := ctx.Value(lineKey{}).(*Line); l != nil && l.Thread == thread {
		return l
	}
	if after == 0 {
		return &Line{Thread: thread, Order: thread}
	}
	for i := range recs {
		switch recs[i].Kind {
		case KindStart, KindClaim, KindAnswer, KindEdit, KindEnd:
			return &Line{Thread: thread, Order: thread}
		}
	}
	return nil
}
