package graph

import (
	"context"
	"fmt"
	"reflect"
	"testing"
)

// An update is read back as it was written: nil and empty lists stay apart, because an empty one leads nowhere.
func TestUpdatesAreReadBack(t *testing.T) {
	n := Last[int]("n")
	idle := func(context.Context, State) (Update, error) { return Update{}, nil }
	g, err := Compile(Def{Name: "g", Keys: []AnyKey{n}, Start: []string{"a"}, Nodes: []Node{{Name: "a", Run: idle}}, Edges: []Edge{{From: []string{"a"}, To: []string{End}}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&Runner{Graph: g}).Invoke(t.Context(), Input{Set: []Write{n.Set(1)}})
	if err != nil {
		t.Fatal(err)
	}
	s := res.State
	for name, u := range map[string]Update{
		"nothing":        {},
		"nowhere":        {Goto: []string{}},
		"no task":        {Send: []Send{}},
		"nodes":          {Goto: []string{"a", "b"}},
		"tasks":          {Send: []Send{{To: "a"}, {To: "b", Overlay: []Write{n.Set(2)}}}},
		"a write":        {Writes: []Write{n.Set(1)}},
		"a handled one":  {failed: &handledFailure{text: "text", reason: "reason"}},
		"without reason": {failed: &handledFailure{text: "text", reason: "text"}},
		"halted":         {Halt: &Halt{Value: "x"}},
	} {
		b, err := encodeUpdate(&u)
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.decodeUpdate(b)
		if err != nil {
			t.Fatal(name, err)
		}
		if !reflect.DeepEqual(listWrites(got.Writes), listWrites(u.Writes)) || (got.Goto == nil) != (u.Goto == nil) || (got.Send == nil) != (u.Send == nil) || len(got.Send) != len(u.Send) ||
			!reflect.DeepEqual(got.failed, u.failed) || !reflect.DeepEqual(got.Halt, u.Halt) || !reflect.DeepEqual(got.Goto, u.Goto) {
			t.Errorf("%s: %+v, not %+v", name, got, u)
		}
		for i := range got.Send {
			if got.Send[i].To != u.Send[i].To || !reflect.DeepEqual(listWrites(got.Send[i].Overlay), listWrites(u.Send[i].Overlay)) {
				t.Errorf("%s: task %d: %+v", name, i, got.Send[i])
			}
		}
	}
	if _, err := encodeUpdate(&Update{Halt: &Halt{Value: func() {}}}); err == nil {
		t.Error("a function is stored")
	}
}

// listWrites returns the keys of writes with their values, as text.
func listWrites(writes []Write) (list []string) {
	for _, w := range writes {
		list = append(list, fmt.Sprint(w.Key(), "=", w.val))
	}
	return list
}
