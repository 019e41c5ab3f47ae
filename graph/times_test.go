package graph_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"raddle.dev/graph"
)

// clockStore writes records as a computer with a wrong clock does.
type clockStore struct {
	*graph.Memory
	time int64
}

func (s clockStore) Append(ctx context.Context, thread string, head int64, records []graph.Record) error {
	for i := range records {
		records[i].Time, records[i].Sum = s.time, 0
	}
	return s.Memory.Append(ctx, thread, head, records)
}

// TestTimesThatNoFormatCanWrite: a run can be looked at whatever its records say about the time.
func TestTimesThatNoFormatCanWrite(t *testing.T) {
	for _, micros := range []int64{math.MinInt64, -1 << 60, 0, 1 << 60, math.MaxInt64} {
		store := clockStore{graph.NewMemory(), micros}
		key := graph.Last[int]("n")
		g := compile(t, graph.Def{
			Name: "g", Keys: []graph.AnyKey{key}, Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)},
			Nodes: []graph.Node{{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Put(key.Set(1)), nil }}},
		})
		if _, err := (&graph.Runner{Graph: g, Store: store}).Invoke(t.Context(), graph.Input{Thread: "t"}); err != nil {
			t.Fatal(micros, err)
		}
		s, err := graph.Inspect(t.Context(), store, "t", 0)
		if err != nil {
			t.Fatal(micros, err)
		}
		if _, err := json.Marshal(s.RunInfo); err != nil {
			t.Errorf("%d: %v", micros, err)
		}
		for e, err := range graph.History(t.Context(), store, "t") {
			if err != nil {
				t.Fatal(micros, err)
			}
			if _, err := json.Marshal(e.Time); err != nil {
				t.Errorf("%d: %v", micros, err)
			}
		}
	}
}
