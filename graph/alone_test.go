package graph_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
)

func TestNewStateFoldsWrites(t *testing.T) {
	list, sum, name := graph.Append[string]("list"), graph.Sum[int]("sum"), graph.Last[string]("name")
	s, err := graph.NewState(list.Set([]string{"a"}), sum.Set(1), list.Set([]string{"b"}), sum.Set(2))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b"}, list.Get(s)); diff != "" || sum.Get(s) != 3 {
		t.Error(diff, sum.Get(s))
	}
	if v, present := name.Lookup(s); present || v != "" {
		t.Errorf("a key that nobody wrote: %q %v", v, present)
	}
	if diff := cmp.Diff([]string{"list", "sum"}, s.Keys()); diff != "" {
		t.Error(diff)
	}
	empty, err := graph.NewState()
	if _, present := name.Lookup(empty); err != nil || present {
		t.Error(err, present)
	}
}

func TestNewStateReportsWhatCannotBeFolded(t *testing.T) {
	picky := graph.Fold("picky", func(_ int, _ bool, n int) (int, error) {
		if n < 0 {
			return 0, errors.New("negative")
		}
		return n, nil
	})
	_, err := graph.NewState(picky.Set(-1))
	wantError(t, "reducer", err, `key "picky": negative`)
	_, err = graph.NewState(graph.Write{})
	wantError(t, "no key", err, "not made by Set or Reset")
	_, err = graph.NewState(graph.Last[int]("k").Set(1), graph.Last[string]("k").Set("x"))
	wantError(t, "two types", err, `key "k" is declared with type int, written with type string`)
	_, err = graph.NewState(graph.Last[report]("k").Set(report{}))
	wantError(t, "no way back", err, "report.Err")
}

func TestWrittenReadsWrites(t *testing.T) {
	list, same, other := graph.Append[string]("list"), graph.Append[string]("list"), graph.Last[int]("other")
	node := func(_ context.Context, s graph.State) (graph.Update, error) {
		return graph.Put(list.Set(append(list.Get(s), "b")), other.Reset(7)), nil
	}
	s, err := graph.NewState(list.Set([]string{"a"}))
	if err != nil {
		t.Fatal(err)
	}
	u, err := node(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	v, ok := same.WrittenValue(u.Writes[0])
	if diff := cmp.Diff([]string{"a", "b"}, v); diff != "" || !ok || u.Writes[0].IsReset() {
		t.Error(diff, ok)
	}
	if _, ok := other.WrittenValue(u.Writes[0]); ok {
		t.Error("another key's write")
	}
	if n, ok := other.WrittenValue(u.Writes[1]); !ok || n != 7 || !u.Writes[1].IsReset() || u.Writes[1].Value() != 7 {
		t.Error(n, ok)
	}
	if _, ok := other.WrittenValue(graph.Write{}); ok || (graph.Write{}).Value() != nil {
		t.Error("the zero Write")
	}
	if v, ok := graph.Dyn("d").WrittenValue(graph.Dyn("d").Set(nil)); !ok || v != nil {
		t.Errorf("a nil: %v %v", v, ok)
	}
}
