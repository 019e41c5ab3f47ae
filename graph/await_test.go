package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// A payment is the data of an event.
type payment struct {
	Order  int    `json:"order"`
	Method string `json:"method"`
}

// newAwaiting returns a runner of a graph whose node waits for the event paid, and writes its method to the key.
func newAwaiting(t *testing.T, w graph.EventWait) (*graph.Runner, *graph.Key[string]) {
	t.Helper()
	method := graph.Last[string]("method")
	g, err := graph.Compile(graph.Def{
		Name:  "order",
		Keys:  []graph.AnyKey{method},
		Start: []string{"wait"},
		Nodes: []graph.Node{{Name: "wait", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			p, err := graph.Await[payment](ctx, w)
			if err != nil {
				return graph.Update{}, err
			}
			return graph.Update{Writes: []graph.Write{method.Set(p.Method)}}, nil
		}}},
		Edges: []graph.Edge{{From: []string{"wait"}, To: []string{graph.End}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &graph.Runner{Graph: g, Store: journal.NewMemory()}, &method
}

// A run that waits for an event ends without a process, and its question says what it waits for. Data of the wrong type
// opens the question again.
func TestAwait(t *testing.T) {
	r, method := newAwaiting(t, graph.EventWait{Name: "paid", Match: map[string]any{"order": 7}})
	ctx := t.Context()
	res, err := r.Invoke(ctx, graph.Input{Thread: "t", Ahead: []graph.Answer{{Value: "not for events"}}})
	if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 || len(graph.ForPeople(res.Questions)) != 0 || len(res.Unused) != 1 {
		t.Fatalf("%v, %v: %+v", res.Status, err, res.Questions)
	}
	q := res.Questions[0]
	w, ok := graph.EventWaitOf(&q)
	if diff := cmp.Diff(graph.EventWait{Name: "paid", Match: map[string]any{"order": json.Number("7")}}, w); !ok || diff != "" {
		t.Errorf("it waits for (-want +got):\n%s", diff)
	}
	if res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: map[string]any{"order": "seven"}}}}); err != nil || res.Status != graph.Waiting || res.Questions[0].Rejected == "" {
		t.Fatalf("after data of the wrong type: %v, %v: %+v", res.Status, err, res.Questions)
	}
	res, err = r.InvokeResume(ctx, graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: q.ID, Value: payment{7, "card"}}}})
	if err != nil || res.Status != graph.Done || method.Get(res.State) != "card" {
		t.Errorf("after the event: %v, %v: %s", res.Status, err, method.Get(res.State))
	}
}

// A number that no float can hold is matched after it was stored.
func TestAwaitLargeNumber(t *testing.T) {
	const order = 1234567890123456789
	r, _ := newAwaiting(t, graph.EventWait{Name: "paid", Match: map[string]any{"order": order}})
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil || len(res.Questions) != 1 {
		t.Fatal(res.Status, err)
	}
	w, _ := graph.EventWaitOf(&res.Questions[0])
	if !w.Accepts("paid", []byte(`{"order": 1234567890123456789}`)) || w.Accepts("paid", []byte(`{"order": 1234567890123456788}`)) {
		t.Errorf("it waits for %+v", w)
	}
}

// The Reply of a drive answers with an event that came before.
func TestAwaitTakesEarlierEvent(t *testing.T) {
	r, method := newAwaiting(t, graph.EventWait{Name: "paid"})
	reply := func(q graph.Question) (any, bool) {
		w, ok := graph.EventWaitOf(&q)
		return json.RawMessage(`{"order": 7, "method": "cash"}`), ok && w.Name == "paid"
	}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Reply: reply})
	if err != nil || res.Status != graph.Done || method.Get(res.State) != "cash" {
		t.Errorf("%v, %v: %s", res.Status, err, method.Get(res.State))
	}
}

// A deadline ends the waiting.
func TestAwaitUntilDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newAwaiting(t, graph.EventWait{Name: "paid", Deadline: time.Hour})
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		if err != nil || res.Status != graph.Waiting || time.Until(res.Due) != time.Hour {
			t.Fatalf("%v, %v, due in %v", res.Status, err, time.Until(res.Due))
		}
		time.Sleep(time.Hour)
		if _, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); !errors.Is(err, graph.ErrDeadline) {
			t.Errorf("after the deadline: %v", err)
		}
	})
}

// Which events are waited for.
func TestEventWaitAccepts(t *testing.T) {
	match := func(members map[string]any) graph.EventWait { return graph.EventWait{Name: "paid", Match: members} }
	for _, test := range []struct {
		name string
		w    graph.EventWait
		data string
		want bool
	}{
		{"anything", match(nil), `[1]`, true},
		{"a number", match(map[string]any{"order": 7}), `{"order": 7, "x": 1}`, true},
		{"a text that is a number", match(map[string]any{"order": "7"}), `{"order": 7}`, true},
		{"a large number", match(map[string]any{"order": "12345678901234567890"}), `{"order": 12345678901234567890}`, true},
		{"a large number that differs", match(map[string]any{"order": "12345678901234567890"}), `{"order": 12345678901234567891}`, false},
		{"a boolean as text", match(map[string]any{"ok": "true"}), `{"ok": true}`, true},
		{"a text", match(map[string]any{"order": "a"}), `{"order": "a"}`, true},
		{"another text", match(map[string]any{"order": "a"}), `{"order": "b"}`, false},
		{"a number that is a text", match(map[string]any{"order": 7}), `{"order": "7"}`, false},
		{"an object as text", match(map[string]any{"order": "{}"}), `{"order": {}}`, false},
		{"an object", match(map[string]any{"at": map[string]any{"x": 1}}), `{"at": {"x": 1}}`, true},
		{"a member that is missing", match(map[string]any{"order": 7}), `{}`, false},
		{"all members", match(map[string]any{"order": 7, "ok": true}), `{"order": 7, "ok": false}`, false},
		{"no object", match(map[string]any{"order": 7}), `7`, false},
	} {
		if got := test.w.Accepts("paid", []byte(test.data)); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
		if test.w.Accepts("unpaid", []byte(test.data)) {
			t.Errorf("%s: an event with another name is accepted", test.name)
		}
	}
}

// Await outside of a node, and without a name, is an error.
func TestAwaitErrors(t *testing.T) {
	if _, err := graph.Await[any](t.Context(), graph.EventWait{Name: "paid"}); err == nil {
		t.Error("outside of a node there is no error")
	}
	r, _ := newAwaiting(t, graph.EventWait{})
	if _, err := r.Invoke(t.Context(), graph.Input{}); err == nil {
		t.Error("without a name there is no error")
	}
}
