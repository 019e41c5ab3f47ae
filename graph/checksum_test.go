package graph_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

// A flipped bit anywhere in a record is an error that names the thread and the record,
// for every reader; what can be read without it stays as it was.
func TestADamagedRecordIsAnError(t *testing.T) {
	e := newEverything(t)
	mem := graph.NewMemory()
	r := &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}
	e.finish(t, r, true)
	if _, err := graph.Prune(t.Context(), mem, "t", graph.Keep{Records: 1}); err != nil {
		t.Fatal(err)
	}
	var recs []graph.Record
	kinds := map[graph.Kind]bool{}
	for rec, err := range mem.Read(t.Context(), "t", graph.Range{}) {
		if err != nil || rec.Sum == 0 {
			t.Fatalf("record %d has no checksum, %v", rec.Seq, err)
		}
		recs = append(recs, rec)
		kinds[rec.Kind] = true
	}
	if !kinds[graph.KindSnapshot] || !kinds[graph.KindStep] {
		t.Fatalf("the journal has only %v", kinds)
	}
	n := 0
	for at := range recs {
		for _, flip := range flips(recs[at]) {
			n++
			bad := graph.NewMemory()
			damaged := append([]graph.Record(nil), recs...)
			damaged[at] = flip.rec
			if err := bad.Append(t.Context(), "t", 0, damaged); err != nil {
				t.Fatal(err)
			}
			var d *graph.DamagedError
			_, err := graph.Inspect(t.Context(), bad, "t", int64(at)+1)
			if !errors.As(err, &d) || d.Seq != int64(at)+1 || d.Thread != "t" {
				t.Fatalf("record %d (%s), %s: Inspect says %v", at+1, recs[at].Kind, flip.what, err)
			}
			if flip.inData {
				continue
			}
			found := false
			for e, err := range graph.History(t.Context(), bad, "t") {
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
	rec    graph.Record
}

// flips are copies of a record with one bit flipped.
func flips(r graph.Record) (all []flipped) {
	add := func(what string, inData bool, change func(*graph.Record)) {
		c := r
		c.Head, c.Data = append([]byte(nil), r.Head...), append([]byte(nil), r.Data...)
		change(&c)
		all = append(all, flipped{what, inData, c})
	}
	add("kind", false, func(r *graph.Record) { r.Kind ^= 1 })
	add("time", false, func(r *graph.Record) { r.Time ^= 1 << 40 })
	add("sum", false, func(r *graph.Record) { r.Sum ^= 1 << 60 })
	for i := 0; i < len(r.Head); i += 1 + len(r.Head)/20 {
		add(fmt.Sprint("head ", i), false, func(r *graph.Record) { r.Head[i] ^= 1 << (i % 8) })
	}
	for i := 0; i < len(r.Data); i += 1 + len(r.Data)/20 {
		add(fmt.Sprint("data ", i), true, func(r *graph.Record) { r.Data[i] ^= 1 << (i % 8) })
	}
	if len(r.Data) > 0 {
		add("cut", true, func(r *graph.Record) { r.Data = r.Data[:len(r.Data)-1] })
	}
	return all
}

// A record belongs to its thread and its place: one that stands elsewhere is damage.
func TestARecordInTheWrongPlaceIsAnError(t *testing.T) {
	e := newEverything(t)
	mem := graph.NewMemory()
	e.finish(t, &graph.Runner{Graph: e.g, Store: mem, Executor: sequential{}}, true)
	var recs []graph.Record
	for rec := range mem.Read(t.Context(), "t", graph.Range{}) {
		recs = append(recs, rec)
	}
	for name, c := range map[string]struct {
		thread string
		recs   []graph.Record
	}{
		"another thread": {"other", recs},
		"missing record": {"t", append(append([]graph.Record(nil), recs[:3]...), recs[4:]...)},
		"no checksum":    {"t", func() []graph.Record { c := append([]graph.Record(nil), recs...); c[3].Sum = 0; return c }()},
	} {
		bad := graph.NewMemory()
		if err := bad.Append(t.Context(), c.thread, 0, c.recs); err != nil {
			t.Fatal(err)
		}
		var d *graph.DamagedError
		if _, err := graph.Inspect(t.Context(), bad, c.thread, 0); !errors.As(err, &d) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A journal without checksums opens, and what is appended to it has them.
func TestAJournalWithoutChecksums(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "a", Run: asks(nil)}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	old := graph.NewMemory()
	if err := old.Append(t.Context(), thread, 0, journalOf(t, r.Store, thread)); err != nil {
		t.Fatal(err)
	}
	was, err := graph.Inspect(t.Context(), r.Store, thread, 0)
	if err != nil {
		t.Fatal(err)
	}
	is1, err := graph.Inspect(t.Context(), old, thread, 0)
	if d := cmp.Diff(was, is1); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
	r.Store = old
	res, err = resume(t, r, says("a", "yes"))
	is(t, graph.Done, res, err)
	n := 0
	for rec, err := range graph.Records(context.Background(), old, thread, graph.Range{After: 3}) {
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
