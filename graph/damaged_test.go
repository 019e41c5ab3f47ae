package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// A flipped bit anywhere in a record is an error that names the thread and the record,
// for every reader; what can be read without it stays as it was.
func TestADamagedRecordIsAnError(t *testing.T) {
	e := newEverything(t)
	mem := journal.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}
	e.finish(t, r, true)
	if _, err := history.Prune(t.Context(), mem, "t", history.Keep{Records: 1}); err != nil {
		t.Fatal(err)
	}
	var recs []journal.Record
	kinds := map[journal.Kind]bool{}
	for rec, err := range mem.Read(t.Context(), "t", journal.Range{}) {
		if err != nil || rec.Sum == 0 {
			t.Fatalf("record %d has no checksum, %v", rec.Seq, err)
		}
		recs = append(recs, rec)
		kinds[rec.Kind] = true
	}
	if !kinds[journal.KindSnapshot] || !kinds[journal.KindStep] {
		t.Fatalf("the journal has only %v", kinds)
	}
	n := 0
	for at := range recs {
		for _, flip := range flips(recs[at]) {
			n++
			bad := journal.NewMemory()
			damaged := append([]journal.Record(nil), recs...)
			damaged[at] = flip.rec
			if err := bad.Append(t.Context(), "t", 0, damaged); err != nil {
				t.Fatal(err)
			}
			var d *journal.DamagedError
			_, err := history.Inspect(t.Context(), bad, "t", int64(at)+1)
			if !errors.As(err, &d) || d.Seq != int64(at)+1 || d.Thread != "t" {
				t.Fatalf("record %d (%s), %s: Inspect says %v", at+1, recs[at].Kind, flip.what, err)
			}
			if flip.inData {
				continue
			}
			found := false
			for e, err := range history.Entries(t.Context(), bad, "t") {
				found = errors.As(err, &d) && d.Seq == int64(at)+1
				if err == nil && e.Seq == int64(at)+1 {
					t.Fatalf("record %d, %s: History lists %+v", at+1, flip.what, e)
				}
			}
			if !found {
				t.Errorf("record %d, %s: History noticed nothing", at+1, flip.what)
			}
		}
	}
	if n < 500 {
		t.Errorf("only %d flips", n)
	}
}

type flipped struct {
	what   string
	inData bool
	rec    journal.Record
}

// flips are copies of a record with one bit flipped.
func flips(r journal.Record) (all []flipped) {
	add := func(what string, inData bool, change func(*journal.Record)) {
		c := r
		c.Head, c.Data = append([]byte(nil), r.Head...), append([]byte(nil), r.Data...)
		change(&c)
		all = append(all, flipped{what, inData, c})
	}
	add("kind", false, func(r *journal.Record) { r.Kind ^= 1 })
	add("time", false, func(r *journal.Record) { r.Time ^= 1 << 40 })
	add("sum", false, func(r *journal.Record) { r.Sum ^= 1 << 60 })
	for i := 0; i < len(r.Head); i += 1 + len(r.Head)/20 {
		add(fmt.Sprint("head ", i), false, func(r *journal.Record) { r.Head[i] ^= 1 << (i % 8) })
	}
	for i := 0; i < len(r.Data); i += 1 + len(r.Data)/20 {
		add(fmt.Sprint("data ", i), true, func(r *journal.Record) { r.Data[i] ^= 1 << (i % 8) })
	}
	if len(r.Data) > 0 {
		add("cut", true, func(r *journal.Record) { r.Data = r.Data[:len(r.Data)-1] })
	}
	return all
}

// A record belongs to its thread and its place: one that stands elsewhere is damage.
func TestARecordInTheWrongPlaceIsAnError(t *testing.T) {
	e := newEverything(t)
	mem := journal.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}, true)
	var recs []journal.Record
	for rec := range mem.Read(t.Context(), "t", journal.Range{}) {
		recs = append(recs, rec)
	}
	for name, c := range map[string]struct {
		thread string
		recs   []journal.Record
	}{
		"another thread": {"other", recs},
		"missing record": {"t", append(append([]journal.Record(nil), recs[:3]...), recs[4:]...)},
		"no checksum":    {"t", func() []journal.Record { c := append([]journal.Record(nil), recs...); c[3].Sum = 0; return c }()},
	} {
		bad := journal.NewMemory()
		if err := bad.Append(t.Context(), c.thread, 0, c.recs); err != nil {
			t.Fatal(err)
		}
		var d *journal.DamagedError
		if _, err := history.Inspect(t.Context(), bad, c.thread, 0); !errors.As(err, &d) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A journal without checksums opens, and what is appended to it has them.
func TestAJournalWithoutChecksums(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "a", Run: asks(nil)}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	old := journal.NewMemory()
	if err := old.Append(t.Context(), thread, 0, journalOf(t, r.Store, thread)); err != nil {
		t.Fatal(err)
	}
	was, err := history.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	is1, err := history.Inspect(t.Context(), old, thread, 0)
	if d := cmp.Diff(was, is1); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	r.Store = old
	res, err = resume(t, r, says("a", "yes"))
	is(t, graph.Done, res, err)
	n := 0
	for rec, err := range journal.Records(context.Background(), old, thread, journal.Range{After: 3}) {
		if err != nil || rec.Sum == 0 {
			t.Errorf("record %d: %v", rec.Seq, err)
		}
		n++
	}
	if n < 3 {
		t.Errorf("%d records", n)
	}
	res, err = resume(t, r)
	is(t, graph.Done, res, err)
}

// clockStore writes records as a computer with a wrong clock does.
type clockStore struct {
	*journal.Memory
	time int64
}

func (s clockStore) Append(ctx context.Context, thread string, head int64, records []journal.Record) error {
	for i := range records {
		records[i].Time, records[i].Sum = s.time, 0
	}
	return s.Memory.Append(ctx, thread, head, records)
}

// TestTimesThatNoFormatCanWrite: a run can be looked at whatever its records say about the time.
func TestTimesThatNoFormatCanWrite(t *testing.T) {
	for _, micros := range []int64{math.MinInt64, -1 << 60, 0, 1 << 60, math.MaxInt64} {
		store := clockStore{journal.NewMemory(), micros}
		key := graph.Last[int]("n")
		g := compile(t, graph.Def{
			Name: "g", Keys: []graph.AnyKey{key}, Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)},
			Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Put(key.Set(1)), nil }}},
		})
		if _, err := (&graph.Runner{Graph: g, Store: store}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(micros, err)
		}
		s, err := history.Inspect(t.Context(), store, "t", 0)
		if err != nil {
			t.Fatal(micros, err)
		}
		if _, err := json.Marshal(s.RunInfo); err != nil {
			t.Errorf("%d: %v", micros, err)
		}
		for e, err := range history.Entries(t.Context(), store, "t") {
			if err != nil {
				t.Fatal(micros, err)
			}
			if _, err := json.Marshal(e.Time); err != nil {
				t.Errorf("%d: %v", micros, err)
			}
		}
	}
}

// A record of a kind that only a newer version knows is not damage: whatever needs to read it says who has written it, and
// what to do.
func TestARecordOfANewerVersion(t *testing.T) {
	ctx := t.Context()
	for at, was := range map[string]graph.Status{"a run that is done": graph.Done, "a run that waits": graph.Waiting} {
		ask := parallel(t, graph.Node{Name: "ask", Run: asks(nil)})
		if was == graph.Done {
			ask = parallel(t, say("a"))
		}
		r := kept(ask)
		res, err := start(t, r)
		is(t, was, res, err)
		if err := journal.Append(ctx, r.Store, thread, res.Head, journal.Record{Kind: 200, Time: 1, Head: []byte("x"), Data: []byte("y")}); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"State":    second(r.State(ctx, thread, 0)),
			"Invoke":   second(start(t, r)),
			"Resume":   second(resume(t, r)),
			"Takeover": second(r.InvokeResume(ctx, graph.Resume{Thread: thread, Takeover: true})),
			"Edit":     second(r.Edit(ctx, thread, only.Set("x"))),
			"EditAll":  second(r.EditAll(ctx, thread, only.Reset("x"))),
			"EditNext": second(r.EditNext(ctx, thread, []string{graph.End})),
			"Abandon":  second(history.Abandon(ctx, r.Store, thread, "")),
			"Inspect":  second(history.Inspect(ctx, r.Store, thread, 0)),
			"Fork":     history.Fork(ctx, r.Store, thread, 0, "copy"),
			"Snapshot": history.WriteSnapshot(ctx, r.Store, thread),
			"Diff":     second(history.Diff(ctx, r.Store, journal.Point{Thread: thread, Seq: 1}, journal.Point{Thread: thread})),
			"Rewrite":  second(journal.RewriteRecord(thread, journal.Record{Seq: 1, Kind: 200}, func(b []byte) []byte { return b })),
			"Describe": func() error {
				for info := range r.Store.Threads(ctx, "") {
					return second(history.Describe(info))
				}
				return nil
			}(),
		} {
			if !errors.Is(err, journal.ErrNewer) || !contains(err.Error(), "a newer version of raddle has written it: update raddle") || contains(err.Error(), "damaged") || contains(err.Error(), "checksum") {
				t.Errorf("%s, %s: %v", at, name, err)
			}
		}
		if _, err := r.State(ctx, thread, res.Head); err != nil {
			t.Errorf("%s: the state before it: %v", at, err)
		}
	}
}

// second returns the error of a call with a result.
func second[T any](_ T, err error) error { return err }
