package sqlite

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// A weighing store counts the bytes of data that are read from it.
type weighing struct {
	*Store
	data int
}

func (w *weighing) Read(ctx context.Context, thread string, r graph.Range) iter.Seq2[graph.Record, error] {
	return func(yield func(graph.Record, error) bool) {
		for rec, err := range w.Store.Read(ctx, thread, r) {
			w.data += len(rec.Data)
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Ten thousand checkpoints are listed through one connection, which the loop's
// body uses too, and no value is read or decoded for it.
func TestAListingReadsNoState(t *testing.T) {
	const steps = 10_000
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	text := graph.Last[string]("text").WithCodec(graph.Codec[string]{
		Tag:    "write-only",
		Encode: func(b []byte, v string) ([]byte, error) { return append(b, v...), nil },
		Decode: func([]byte) (string, error) { return "", errors.New("a listing has decoded a value") },
	})
	n := 0
	g, err := graph.Compile(graph.Def{Name: "long", Keys: []graph.AnyKey{text}, MaxSteps: steps, Start: []string{"a"},
		Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			n++
			return graph.Put(text.Set(strings.Repeat("x", n%500))), nil
		}}},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"a"}}}})
	if err != nil {
		t.Fatal(err)
	}
	w := &weighing{Store: s}
	r := &graph.Runner{Graph: g, Store: w, Durability: graph.QuestionsOnly}
	if res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"}); res.Status != graph.StepLimit {
		t.Fatal(res.Status, err)
	}
	s.db.SetMaxOpenConns(2) // one of them is the writer's
	w.data = 0
	listed := 0
	for c, err := range graph.Checkpoints(t.Context(), w, "t") {
		if err != nil {
			t.Fatal(err)
		}
		if c.Kind == graph.KindStep && c.Step != steps-listed {
			t.Fatalf("checkpoint %d is of step %d", listed, c.Step)
		}
		if listed++; listed%1000 != 0 {
			continue
		}
		for i, err := range s.Threads(t.Context(), "") {
			if _, fault := graph.Describe(i); err != nil || fault != nil {
				t.Fatal(err, fault)
			}
		}
		for _, err := range s.Read(t.Context(), "t", graph.Range{Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	if listed != steps+1 || w.data != 0 {
		t.Errorf("%d checkpoints listed, %d bytes of data read for them", listed, w.data)
	}
	if _, err := r.State(t.Context(), "t", 0); err == nil {
		t.Error("the state was not decoded, as it must be")
	}
}
