package graphtest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
)

// faulty is a store that is right but for what a function replaces.
type faulty struct {
	journal.Store
	append  func(ctx context.Context, thread string, after int64, recs []journal.Record) error
	read    func(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error]
	threads func(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error]
	prune   func(ctx context.Context, thread string, before int64) error
}

func (f *faulty) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if f.append != nil {
		return f.append(ctx, thread, after, recs)
	}
	return f.Store.Append(ctx, thread, after, recs)
}

func (f *faulty) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	if f.read != nil {
		return f.read(ctx, thread, r)
	}
	return f.Store.Read(ctx, thread, r)
}

func (f *faulty) Threads(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
	if f.threads != nil {
		return f.threads(ctx, prefix)
	}
	return f.Store.Threads(ctx, prefix)
}

func (f *faulty) Prune(ctx context.Context, thread string, before int64) error {
	if f.prune != nil {
		return f.prune(ctx, thread, before)
	}
	return f.Store.Prune(ctx, thread, before)
}

// each changes what a store reads.
func each(s journal.Store, change func(rec *journal.Record)) func(context.Context, string, journal.Range) iter.Seq2[journal.Record, error] {
	return func(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
		return func(yield func(journal.Record, error) bool) {
			for rec, err := range s.Read(ctx, thread, r) {
				change(&rec)
				if !yield(rec, err) {
					return
				}
			}
		}
	}
}

// faults are mistakes that stores make, and the case that must find each.
var faults = []struct {
	name, found string
	store       func(s journal.Store) *faulty
}{
	{"takes any head for the newest", "Append/ConflictsUnlessBehindTheHead", func(s journal.Store) *faulty {
		return &faulty{append: func(ctx context.Context, thread string, after int64, recs []journal.Record) error {
			for info := range s.Threads(ctx, thread) {
				if info.Name == thread {
					after = info.Head
				}
			}
			return s.Append(ctx, thread, after, recs)
		}}
	}},
	{"calls a conflict something else", "Append/ConflictsUnlessBehindTheHead", func(s journal.Store) *faulty {
		return &faulty{append: func(ctx context.Context, thread string, after int64, recs []journal.Record) error {
			if err := s.Append(ctx, thread, after, recs); err != nil {
				return errors.New("UNIQUE constraint failed")
			}
			return nil
		}}
	}},
	{"appends a batch one by one", "Concurrent/ReadersSeeWholeBatches", func(s journal.Store) *faulty {
		return &faulty{append: func(ctx context.Context, thread string, after int64, recs []journal.Record) error {
			for i := range recs {
				if err := s.Append(ctx, thread, after+int64(i), recs[i:i+1]); err != nil {
					return err
				}
				if i == len(recs)/2 {
					time.Sleep(time.Millisecond) // a reader comes between, also if the machine is busy
				}
			}
			return ctx.Err()
		}}
	}},
	{"ignores contexts", "Context/CancelledDoesNothing", func(s journal.Store) *faulty {
		return &faulty{append: func(ctx context.Context, thread string, after int64, recs []journal.Record) error {
			return s.Append(context.WithoutCancel(ctx), thread, after, recs)
		}}
	}},
	{"loses times", "Append/Values", func(s journal.Store) *faulty {
		return &faulty{read: each(s, func(rec *journal.Record) { rec.Time -= rec.Time % 1000 })}
	}},
	{"reads text", "Append/Values", func(s journal.Store) *faulty {
		return &faulty{read: each(s, func(rec *journal.Record) { rec.Head = []byte(strings.ToValidUTF8(string(rec.Head), "?")) })}
	}},
	{"reads data with heads", "Read/AllRanges", func(s journal.Store) *faulty {
		return &faulty{read: func(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
			r.Heads = false
			return s.Read(ctx, thread, r)
		}}
	}},
	{"takes the newest snapshot of all", "Read/AllRanges", func(s journal.Store) *faulty {
		return &faulty{read: func(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
			for rec := range s.Read(ctx, thread, journal.Range{FromSnapshot: r.FromSnapshot}) {
				r.After = max(r.After, rec.Seq-1)
				break
			}
			return s.Read(ctx, thread, r)
		}}
	}},
	{"limits before it reverses", "Read/AllRanges", func(s journal.Store) *faulty {
		return &faulty{read: func(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
			newest := r.Newest
			r.Newest = false
			var l []journal.Record
			for rec := range s.Read(ctx, thread, r) {
				l = append(l, rec)
			}
			if newest {
				slices.Reverse(l)
			}
			return func(yield func(journal.Record, error) bool) {
				for _, rec := range l {
					if !yield(rec, ctx.Err()) {
						return
					}
				}
			}
		}}
	}},
	{"treats a prefix as a pattern", "Threads/Prefixes", func(s journal.Store) *faulty {
		return &faulty{threads: func(ctx context.Context, prefix string) iter.Seq2[journal.ThreadInfo, error] {
			before, _, _ := strings.Cut(prefix, "%")
			return s.Threads(ctx, before)
		}}
	}},
	{"prunes the head", "Prune/KeepsFromBeforeOn", func(s journal.Store) *faulty {
		return &faulty{prune: func(ctx context.Context, thread string, before int64) error {
			return s.Prune(ctx, thread, before+1)
		}}
	}},
	{"never deletes", "Prune/BeyondTheHeadDeletes", func(s journal.Store) *faulty {
		return &faulty{prune: func(ctx context.Context, thread string, before int64) error {
			for info := range s.Threads(ctx, thread) {
				before = min(before, info.Head)
			}
			return s.Prune(ctx, thread, before)
		}}
	}},
}

const faultVar = "RADDLE_GRAPHTEST_FAULT"

// TestSuiteFindsFaults runs the suite on faulty stores, in a process of their own:
// there it must fail.
func TestSuiteFindsFaults(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			c := exec.CommandContext(t.Context(), exe, "-test.run=^TestFaultyStore$/^"+strings.ReplaceAll(f.found, "/", "$/^")+"$")
			c.Env = append(os.Environ(), faultVar+"="+f.name)
			out, err := c.CombinedOutput()
			if want := "--- FAIL: TestFaultyStore/" + f.found; err == nil || !strings.Contains(string(out), want) {
				t.Errorf("%s has not found this: %v\n%s", f.found, err, out)
			}
		})
	}
}

// TestFaultyStore is for the processes that TestSuiteFindsFaults starts; by itself
// it tests a store without a fault.
func TestFaultyStore(t *testing.T) {
	open := func(journal.Store) *faulty { return &faulty{} }
	for _, f := range faults {
		if f.name == os.Getenv(faultVar) {
			open = f.store
		}
	}
	graphtest.TestStore(t, func(*testing.T) journal.Store {
		s := journal.NewMemory()
		f := open(s)
		f.Store = s
		return f
	})
}
