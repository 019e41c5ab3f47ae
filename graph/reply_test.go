package graph_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"raddle.dev/graph"
)

// Questions that are answered within the drive do not end it: the answers are in
// the journal, and a resume returns them. What the question does not take stays open.
func TestQuestionsAnsweredWithinTheDrive(t *testing.T) {
	settled(t, func(t *testing.T) {
		ask := func(name string) graph.Node {
			return graph.Node{Name: name, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				first, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "first", Default: name + "1"})
				if err != nil {
					return graph.Update{}, err
				}
				second, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "second", Options: []string{"yes"}, Default: "no"})
				return graph.Put(list.Set([]string{first, second})), err
			}}
		}
		var mu sync.Mutex
		asked := map[string]int{}
		reply := func(q graph.Question) (any, bool) {
			mu.Lock()
			defer mu.Unlock()
			asked[q.ID]++
			return q.Default, true
		}
		r := kept(parallel(t, ask("a"), ask("b")))
		var told []string
		var res graph.Result
		for e, err := range r.Run(t.Context(), graph.Input{Thread: thread, Reply: reply, Topics: graph.TopicQuestion}) {
			switch b := e.Body.(type) {
			case graph.QuestionAnswered:
				told = append(told, fmt.Sprint(b.ID, b.Ahead))
			case graph.RunEnded:
				res = b.Result
			}
			if err != nil {
				t.Error(err)
			}
		}
		is(t, graph.Waiting, res, nil)
		if fmt.Sprint(told) != "[afalse bfalse]" || len(res.Questions) != 2 || res.Questions[0].ID != "a#2" || asked["a"] != 1 || asked["b#2"] != 1 {
			t.Errorf("answered %v, open %v, asked %v", told, res.Questions, asked)
		}
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Reply: reply, Answers: []graph.Answer{says("a#2", "yes"), says("b#2", "yes")}})
		is(t, graph.Done, res, err)
		if got := strings.Join(list.Get(res.State), " "); got != "a1 yes b1 yes" || asked["a"] != 1 {
			t.Errorf("%q, asked %v", got, asked)
		}
	})
}

// Answers given ahead come before those given within the drive.
func TestAnswersGivenAheadComeFirst(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.Interrupt[string](ctx, graph.Ask{Default: "default"})
		return graph.Put(only.Set(v)), err
	}}))
	for _, ahead := range []string{"", "ahead"} {
		in := graph.Input{Reply: func(q graph.Question) (any, bool) { return q.Default, true }}
		want := "default"
		if ahead != "" {
			in.Ahead, want = []graph.Answer{{Value: ahead}}, ahead
		}
		res, err := r.Invoke(t.Context(), in)
		if is(t, graph.Done, res, err); only.Get(res.State) != want {
			t.Errorf("%q, want %q", only.Get(res.State), want)
		}
	}
}
