package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph/journal"
)

var errAway = journal.MarkUnavailable(errors.New("the server is away"))

// awayStore fails while it is away: before an append is stored or, if lost, after that.
type awayStore struct {
	journal.Store
	until time.Time
	lost  bool
	err   error
	calls int
}

func (s *awayStore) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	s.calls++
	if !time.Now().Before(s.until) {
		return s.Store.Append(ctx, thread, after, recs)
	}
	if s.lost {
		if err := s.Store.Append(context.WithoutCancel(ctx), thread, after, recs); err != nil {
			return err
		}
	}
	return s.err
}

func newRecord(text string) journal.Record {
	return journal.Record{Kind: journal.KindStep, Time: 7, Head: []byte(text), Data: []byte("data of " + text)}
}

func countRecords(t *testing.T, st journal.Store, want int) {
	t.Helper()
	n := 0
	for _, err := range journal.Records(t.Context(), st, "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != want {
		t.Errorf("the thread has %d records, want %d", n, want)
	}
}

// An append is stored once, whatever becomes of its answers.
func TestAppendSettles(t *testing.T) {
	for _, err := range []error{errAway, &net.OpError{Op: "read", Err: syscall.ECONNRESET}, context.DeadlineExceeded, syscall.ECONNREFUSED} {
		for _, lost := range []bool{false, true} {
			for _, away := range []time.Duration{time.Nanosecond, 6 * time.Second, time.Minute} {
				t.Run(fmt.Sprint(err, lost, away), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						st := &awayStore{Store: journal.NewMemory(), until: time.Now().Add(away), lost: lost, err: err}
						begun, ended := 0, 0
						p := journal.Patience{Limit: 5 * time.Minute, Away: func(err error) {
							if begun++; err == nil {
								t.Error("Away got no error")
							}
						}, Back: func(err error) {
							if ended++; err != nil {
								t.Error(err)
							}
						}}
						start := time.Now()
						if err := p.Append(t.Context(), st, "t", 0, newRecord("a"), newRecord("b")); err != nil {
							t.Fatal(err)
						}
						if begun != 1 || ended != 1 {
							t.Errorf("%d begins and %d ends of the waiting", begun, ended)
						}
						if took := time.Since(start); lost && took > time.Second || !lost && took > away+6*time.Second {
							t.Errorf("it took %v for an outage of %v", took, away)
						}
						countRecords(t, st, 2)
					})
				})
			}
		}
	}
}

// Records of another writer are a conflict, also if they are there when the outcome is unknown.
func TestAppendDoesNotTakeOthersRecords(t *testing.T) {
	for name, other := range map[string][]journal.Record{
		"another head": {newRecord("x"), newRecord("b")}, "another second": {newRecord("a"), newRecord("x")}, "fewer": {newRecord("a")},
		"another time": {{Kind: journal.KindStep, Time: 8, Head: []byte("a"), Data: []byte("data of a")}, newRecord("b")},
		"other data":   {{Kind: journal.KindStep, Time: 7, Head: []byte("a"), Data: []byte("x")}, newRecord("b")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mem := journal.NewMemory()
				st := &awayStore{Store: mem, until: time.Now().Add(time.Second), err: errAway}
				go func() {
					time.Sleep(500 * time.Millisecond)
					if err := journal.Append(context.Background(), mem, "t", 0, other...); err != nil {
						t.Error(err)
					}
				}()
				err := journal.Patience{Limit: time.Minute}.Append(t.Context(), st, "t", 0, newRecord("a"), newRecord("b"))
				if !errors.Is(err, journal.ErrConflict) {
					t.Errorf("%v, want ErrConflict", err)
				}
				countRecords(t, mem, len(other))
			})
		})
	}
}

// Without an unknown outcome a conflict is one, even if the records are equal.
func TestAppendConflictsAtOnce(t *testing.T) {
	mem := journal.NewMemory()
	for _, want := range []error{nil, journal.ErrConflict} {
		if err := (journal.Patience{Limit: time.Hour}).Append(t.Context(), mem, "t", 0, newRecord("a")); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// What was refused permanently is reported at once; an outage that is longer than the patience when that has ended.
func TestRetryEnds(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		err   error
		calls bool // more than one
	}{{refused, false}, {journal.ErrConflict, false}, {fs.ErrPermission, false}, {&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, false},
		{net.ErrClosed, false}, {context.Canceled, false}, {errAway, true}, {os.ErrDeadlineExceeded, true}, {fmt.Errorf("x: %w", &net.DNSError{IsNotFound: true}), true}} {
		synctest.Test(t, func(t *testing.T) {
			calls, start := 0, time.Now()
			err := journal.Patience{Limit: time.Minute}.Retry(t.Context(), func(context.Context) error { calls++; return c.err })
			if !errors.Is(err, c.err) || calls > 1 != c.calls {
				t.Errorf("%v: %v after %d calls", c.err, err, calls)
			}
			if took := time.Since(start); c.calls != (took >= time.Minute) || took > time.Minute+time.Second {
				t.Errorf("%v: it took %v", c.err, took)
			}
			if calls > 30 {
				t.Errorf("%d calls in a minute", calls)
			}
		})
	}
	if calls := 0; (journal.Patience{}).Retry(t.Context(), func(context.Context) error { calls++; return errAway }) == nil || calls != 1 {
		t.Errorf("without patience: %d calls", calls)
	}
}

// The end of the context ends the waiting at once, and the error says both.
func TestRetryIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		st := &awayStore{Store: journal.NewMemory(), until: time.Now().Add(time.Hour), err: errAway}
		time.AfterFunc(90*time.Second, cancel)
		start := time.Now()
		err := journal.Patience{Limit: 5 * time.Minute}.Append(ctx, st, "t", 0, newRecord("a"))
		if took := time.Since(start); took != 90*time.Second || !errors.Is(err, context.Canceled) || !errors.Is(err, journal.ErrUnavailable) || !errors.Is(err, errAway) {
			t.Errorf("%v after %v", err, took)
		}
		calls := st.calls
		if err := (journal.Patience{Limit: time.Hour}).Append(ctx, st, "t", 0, newRecord("a")); err == nil || st.calls != calls+1 {
			t.Errorf("with a context that has ended: %v after %d calls", err, st.calls-calls)
		}
		st.until = time.Time{}
		if err := (journal.Patience{}).Append(ctx, st, "t", 0, newRecord("a")); err != nil {
			t.Errorf("a write after the end of its context: %v", err)
		}
	})
}

// slowStore ends the context of its caller while it works.
type slowStore struct {
	journal.Store
	cancel func()
}

func (s *slowStore) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	s.cancel()
	return s.Store.Append(ctx, thread, after, recs)
}

// A write is not left halfway because its context ends.
func TestAppendEndsWhatItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	st := &slowStore{journal.NewMemory(), cancel}
	if err := journal.Append(ctx, st, "t", 0, newRecord("a")); err != nil {
		t.Error(err)
	}
	countRecords(t, st, 1)
}

func TestMarkUnavailable(t *testing.T) {
	if err := journal.MarkUnavailable(nil); err != nil {
		t.Error(err)
	}
	inner := &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	err := journal.MarkUnavailable(inner)
	if err.Error() != inner.Error() || !errors.Is(err, syscall.ENOSPC) || !errors.Is(err, journal.ErrUnavailable) || !journal.IsUnavailable(err) || journal.IsUnavailable(inner) {
		t.Errorf("%v", err)
	}
}

// A scriptedStore fails at each append in turn as a script says, and then works.
type scriptedStore struct {
	*journal.Memory
	script []step
	cancel func()
	read   error // of every read, after the script
}

// A step is the outcome of an append.
type step struct {
	err    error
	done   bool // it is carried out nevertheless
	cancel bool // the context of the caller ends meanwhile
}

func (s *scriptedStore) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if len(s.script) == 0 {
		return s.Memory.Append(ctx, thread, after, recs)
	}
	now := s.script[0]
	s.script = s.script[1:]
	if now.cancel {
		s.cancel()
	}
	if now.done {
		if err := s.Memory.Append(context.WithoutCancel(ctx), thread, after, recs); err != nil {
			return err
		}
	}
	return now.err
}

func (s *scriptedStore) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	if s.read == nil {
		return s.Memory.Read(ctx, thread, r)
	}
	return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, s.read) }
}

// An error after an attempt whose outcome is unknown says that it is unknown, whatever the later attempts have met; one that
// says whether the write was stored does not.
func TestAppendSaysWhatIsUnknown(t *testing.T) {
	away, canceled := step{err: errAway}, step{err: context.Canceled, cancel: true}
	lost := step{err: errAway, done: true}
	refused := step{err: fs.ErrPermission}
	for name, c := range map[string]struct {
		script  []step
		read    error
		unknown bool
		is      error
	}{
		"refused":                                    {[]step{refused}, nil, false, fs.ErrPermission},
		"refused after an outage":                    {[]step{away, refused}, nil, true, fs.ErrPermission},
		"refused after a lost answer":                {[]step{lost, refused}, nil, true, fs.ErrPermission},
		"the end of the context in the second":       {[]step{away, canceled}, nil, true, context.Canceled},
		"the end of the context in the third":        {[]step{lost, away, canceled}, nil, true, context.Canceled},
		"a cancel without the end of the context":    {[]step{lost, {err: context.Canceled}}, nil, true, context.Canceled},
		"the end of the context and a refusal":       {[]step{{err: context.Canceled, cancel: true, done: true}, refused}, nil, true, fs.ErrPermission},
		"a lost answer and a thread that is damaged": {[]step{lost}, fs.ErrInvalid, true, fs.ErrInvalid},
		"the end of the context and damage":          {[]step{{err: context.Canceled, cancel: true, done: true}}, fs.ErrInvalid, true, fs.ErrInvalid},
		"a conflict":                                 {[]step{{err: journal.ErrConflict}}, nil, false, journal.ErrConflict},
		"a conflict after an outage":                 {[]step{away, {err: journal.ErrConflict}}, nil, false, journal.ErrConflict},
		"it was stored":                              {[]step{lost, away, away}, nil, false, nil},
		"it was stored, and the context has ended":   {[]step{{err: context.Canceled, cancel: true, done: true}}, nil, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				st := &scriptedStore{Memory: journal.NewMemory(), script: c.script, cancel: cancel, read: c.read}
				err := journal.Patience{Limit: time.Minute}.Append(ctx, st, "t", 0, newRecord("a"))
				if errors.Is(err, journal.ErrUnavailable) != c.unknown || !errors.Is(err, c.is) {
					t.Errorf("%v; unknown: %v", err, errors.Is(err, journal.ErrUnavailable))
				}
			})
		})
	}
}
