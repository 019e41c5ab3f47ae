package runs

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/memory"
)

// awayMemory is a store that is away until a time. If late is set, a call that writes is carried out and its answer is lost.
type awayMemory struct {
	memory.Store
	until time.Time
	late  bool
	after int // entries that a list yields before it notices
}

var errAway = journal.MarkUnavailable(errors.New("the store is away"))

func (m *awayMemory) isAway() bool { return time.Now().Before(m.until) }

func (m *awayMemory) write(f func() error) error {
	if !m.isAway() {
		return f()
	}
	if m.late {
		_ = f() // its answer is lost
	}
	return errAway
}

func (m *awayMemory) PutEntry(ctx context.Context, e memory.Entry, ttl time.Duration) error {
	return m.write(func() error { return m.Store.PutEntry(ctx, e, ttl) })
}

func (m *awayMemory) DeleteEntry(ctx context.Context, namespace, key string) error {
	return m.write(func() error { return m.Store.DeleteEntry(ctx, namespace, key) })
}

func (m *awayMemory) GetEntry(ctx context.Context, namespace, key string) (memory.Entry, error) {
	if m.isAway() {
		return memory.Entry{}, errAway
	}
	return m.Store.GetEntry(ctx, namespace, key)
}

func (m *awayMemory) ListEntries(ctx context.Context, namespace string) iter.Seq2[memory.Entry, error] {
	return func(yield func(memory.Entry, error) bool) {
		n := 0
		for e, err := range m.Store.ListEntries(ctx, namespace) {
			if n == m.after && m.isAway() {
				yield(memory.Entry{}, errAway)
				return
			}
			n++
			if !yield(e, err) {
				return
			}
		}
	}
}

// Every call waits for a store that is away, and gives up after some minutes. What was carried out although its answer was lost counts once.
func TestMemoryWaits(t *testing.T) {
	for name, late := range map[string]bool{"before the write": false, "after the write": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				away := &awayMemory{Store: memory.New(), late: late, after: 1}
				m := patientMemory{away, journal.Patience{Limit: memoryPatience}}
				ctx := t.Context()
				put := func(key string) error {
					return m.PutEntry(ctx, memory.Entry{Namespace: "user/ada", Key: key, Value: json.RawMessage(`1`)}, 0)
				}
				for call, f := range map[string]func() error{
					"put": func() error { return put("a") },
					"get": func() error {
						_, err := m.GetEntry(ctx, "user/ada", "known")
						return err
					},
					"delete": func() error { return m.DeleteEntry(ctx, "user/ada", "gone") },
					"list": func() error {
						var keys string
						for e, err := range m.ListEntries(ctx, "user/ada") {
							if err != nil {
								return err
							}
							keys += e.Key
						}
						if keys != "goneknownz" {
							t.Errorf("listed %q", keys)
						}
						return nil
					},
				} {
					for _, entry := range []string{"gone", "known", "z"} {
						if err := put(entry); err != nil {
							t.Fatal(err)
						}
					}
					away.until = time.Now().Add(2 * time.Minute)
					if err := f(); err != nil {
						t.Errorf("%s: %v", call, err)
					}
					if time.Now().Before(away.until) {
						t.Errorf("%s did not wait", call)
					}
					away.until = time.Now().Add(time.Hour)
					if err := f(); !journal.IsUnavailable(err) {
						t.Errorf("%s, away for an hour: %v", call, err)
					}
					away.until = time.Time{}
					_ = m.DeleteEntry(ctx, "user/ada", "a") // only one of the calls has written it
				}
				if err := m.DeleteEntry(ctx, "user/ada", "none"); !errors.Is(err, memory.ErrNotFound) {
					t.Errorf("deleting what is not there: %v", err)
				}
			})
		})
	}
}
