package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// remoteResult is the answer of a run of its own in these tests.
type remoteResult struct {
	Text string `json:"text"`
}

// farNode waits for a run on a queue, and writes its text.
func farNode(calls *int) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		res, err := graph.Remote[remoteResult](ctx, "gpu", func() (any, error) { *calls++; return map[string]string{"prompt": "hi"}, nil })
		if err != nil {
			return graph.Update{}, err
		}
		return graph.Put(list.Set([]string{res.Text})), nil
	}
}

// remoteCalls returns the calls of the open questions.
func remoteCalls(t *testing.T, res graph.Result) (calls []graph.RemoteCall) {
	t.Helper()
	for _, q := range res.Questions {
		c, ok := graph.RemoteCallOf(&q)
		if !ok || q.Prompt != "waits for run "+c.Run+" on queue gpu" || string(c.Input) != `{"prompt":"hi"}` || c.Queue != "gpu" {
			t.Fatalf("the question is %+v", q)
		}
		calls = append(calls, c)
	}
	return calls
}

func TestRemoteWaitsForARun(t *testing.T) {
	asked := 0
	g := parallel(t, graph.Node{Name: "a", Run: farNode(&asked)})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	// Answers for people are not for such a question.
	in := graph.Input{Thread: "t", Run: "0123456789abcd", Ahead: []graph.Answer{{Value: map[string]any{"text": "x"}}, {ID: "a", Value: map[string]any{"text": "x"}}},
		Reply: func(graph.Question) (any, bool) { return map[string]any{"text": "x"}, true }}
	res, err := r.Invoke(t.Context(), in)
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%s, %v", res.Status, err)
	}
	call := remoteCalls(t, res)[0]
	if !strings.HasPrefix(call.Run, "012345678") || len(call.Run) != 19 || len(graph.ForPeople(res.Questions)) != 0 {
		t.Errorf("the run is %q", call.Run)
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"}); err != nil || remoteCalls(t, res)[0].Run != call.Run || asked != 1 {
		t.Errorf("after a resume: %+v, %v; the input was made %d times", res.Questions, err, asked)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: "a", Value: remoteResult{"far"}}}})
	if err != nil || res.Status != graph.Done || fmt.Sprint(list.Get(res.State)) != "[far]" || asked != 1 {
		t.Errorf("%s, %v, %v", res.Status, list.Get(res.State), err)
	}
}

// A run that has failed fails its node. When the run that waited is resumed, or its node is tried again, another run is asked for.
func TestRemoteFails(t *testing.T) {
	for _, attempts := range []int{1, 2} {
		asked := 0
		g := parallel(t, graph.Node{Name: "a", Run: farNode(&asked), Retry: graph.Retry{Attempts: attempts}})
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for n := range 4 { // runs that fail, one after the other
			run := remoteCalls(t, res)[0].Run
			if seen[run] {
				t.Errorf("attempt %d waits for run %s again", n+1, run)
			}
			seen[run] = true
			res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Refused: "no luck", Value: remoteResult{"half"}}}})
			if n%attempts == attempts-1 {
				refused, ok := errors.AsType[*graph.RefusedError](err)
				if !ok || refused.Reason != "no luck" || string(refused.Value) != `{"text":"half"}` {
					t.Fatalf("%s: %v", res.Status, err)
				}
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
			}
			if err != nil || res.Status != graph.Waiting {
				t.Fatalf("%s: %v", res.Status, err)
			}
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{Value: remoteResult{"far"}}}})
		if err != nil || res.Status != graph.Done || asked != 5 {
			t.Errorf("%s after %d runs: %v", res.Status, asked, err)
		}
	}
}

// A fork waits for a run of its own.
func TestRemoteOfAFork(t *testing.T) {
	asked := 0
	g := parallel(t, graph.Node{Name: "a", Run: farNode(&asked)})
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: "t"})
	if err != nil {
		t.Fatal(err)
	}
	run := remoteCalls(t, res)[0].Run
	if err := history.Fork(t.Context(), r.Store, "t", 0, "fork"); err != nil {
		t.Fatal(err)
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "fork"}); err != nil || remoteCalls(t, res)[0].Run == run {
		t.Errorf("the fork waits for %+v, %v", res.Questions, err)
	}
}

// The input of a run may be impossible, and its result must be one that JSON can hold.
func TestRemoteIsRefused(t *testing.T) {
	for name, run := range map[string]graph.Func{
		"no budget": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Remote[remoteResult](ctx, "gpu", func() (any, error) { return nil, errors.New("no budget") })
			return graph.Update{}, err
		},
		"unsupported type": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Remote[remoteResult](ctx, "gpu", func() (any, error) { return func() {}, nil })
			return graph.Update{}, err
		},
		"queue gpu": func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Remote[func()](ctx, "gpu", func() (any, error) { return json.RawMessage("1"), nil })
			return graph.Update{}, err
		},
	} {
		r := &graph.Runner{Graph: parallel(t, graph.Node{Name: "a", Run: run}), Store: journal.NewMemory()}
		if _, err := r.Invoke(t.Context(), graph.Input{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := graph.Remote[int](t.Context(), "gpu", nil); err == nil || !strings.Contains(err.Error(), "the context of a node") {
		t.Error(err)
	}
}

func TestRemoteCallOf(t *testing.T) {
	for data, want := range map[string]bool{`{"run":"r"}`: true, `{"run":""}`: false, `{`: false, ``: false} {
		for kind, isRemote := range map[string]bool{graph.KindRemote: true, "input": false} {
			q := graph.Question{Kind: kind, Data: []byte(data)}
			if call, ok := graph.RemoteCallOf(&q); ok != (want && isRemote) || ok && call.Run != "r" {
				t.Errorf("%s %s: %+v, %t", kind, data, call, ok)
			}
		}
	}
}
