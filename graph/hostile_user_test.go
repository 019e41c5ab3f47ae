package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
)

// deaf is a node that ignores its context for three seconds.
func deaf(then error) graph.Func {
	return func(context.Context, graph.State) (graph.Update, error) {
		time.Sleep(3 * time.Second)
		return graph.Put(list.Set([]string{"late"})), then
	}
}

// A node that ignores its context holds its run up until it returns: nothing can
// end a goroutine from outside. Then the run ends as it would have; a result that
// came too late for the node's timeout is one all the same, an error is not taken
// for the node's own.
func TestANodeThatIgnoresItsContext(t *testing.T) {
	for name, c := range map[string]struct {
		def    graph.Def
		then   error
		cancel bool
		want   graph.Status
		keeps  bool // its late update
		cause  error
	}{
		"past its timeout":              {want: graph.Done, keeps: true, def: graph.Def{}},
		"past its timeout, with errors": {want: graph.Failed, then: errors.New("gave up"), cause: graph.ErrTimeout},
		"past the step's":               {want: graph.Done, keeps: true, def: graph.Def{StepTimeout: 2 * time.Second}},
		"past the run's":                {want: graph.TimedOut, keeps: true, def: graph.Def{Timeout: 2 * time.Second}},
		"past the run's, with errors":   {want: graph.TimedOut, then: errors.New("gave up"), def: graph.Def{Timeout: 2 * time.Second}},
		"when cancelled":                {want: graph.Canceled, keeps: true, cancel: true, cause: context.Canceled},
		"when cancelled, with errors":   {want: graph.Canceled, then: errors.New("gave up"), cancel: true, cause: context.Canceled},
	} {
		t.Run(name, func(t *testing.T) {
			settled(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel {
					time.AfterFunc(time.Second, cancel)
				}
				d := c.def
				d.Name, d.Keys, d.Start = "g", all, []string{"a"}
				d.Nodes = []graph.Node{{Name: "a", Timeout: time.Second, Run: deaf(c.then)}, say("b")}
				d.Edges = []graph.Edge{edge("a", "b"), edge("b", graph.End)}
				r, begun := kept(compile(t, d)), time.Now()
				_, res, err := collect(r.Run(ctx, graph.Input{Thread: thread, Topics: graph.AllTopics}))
				is(t, c.want, res, err)
				if kept := len(list.Get(res.State)) > 0; kept != c.keeps || c.cause != nil && !errors.Is(err, c.cause) || time.Since(begun) != 3*time.Second {
					t.Errorf("state %v after %v: %v", list.Get(res.State), time.Since(begun), err)
				}
				if s, err := graph.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Status != c.want {
					t.Errorf("%v, %v", s.Status, err)
				}
			})
		})
	}
}

// A reader that is slow slows the run; one that stops and comes back finds it
// where it was, cancelled or not; one that pulls and stops has left the loop.
func TestReadersThatStop(t *testing.T) {
	chatty := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for i := range 100 {
			graph.Emit(ctx, i)
		}
		return graph.Update{}, ctx.Err()
	}
	settled(t, func(t *testing.T) {
		r, seen := kept(parallel(t, graph.Node{Name: "a", Run: chatty}, graph.Node{Name: "b", Run: chatty})), 0
		for e, err := range r.Run(t.Context(), graph.Input{Topics: graph.TopicEmit}) {
			if err != nil {
				t.Error(err)
			}
			if _, ok := e.Body.(graph.ValueEmitted); ok {
				if seen++; seen == 10 {
					time.Sleep(24 * time.Hour)
				}
			}
		}
		if seen != 200 {
			t.Errorf("%d values", seen)
		}
	})
	settled(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var last error
		for e, err := range kept(parallel(t, graph.Node{Name: "a", Run: chatty}, graph.Node{Name: "b", Run: chatty})).Run(ctx, graph.Input{Topics: graph.TopicEmit}) {
			if _, ok := e.Body.(graph.ValueEmitted); ok && ctx.Err() == nil {
				cancel()
				time.Sleep(24 * time.Hour)
			}
			last = err
		}
		var c *graph.CanceledError
		if !errors.As(last, &c) {
			t.Error(last)
		}
	})
	for pulls := range 6 {
		settled(t, func(t *testing.T) {
			r := kept(parallel(t, graph.Node{Name: "a", Run: chatty}, graph.Node{Name: "b", Run: chatty}))
			next, stop := iter.Pull2(r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}))
			for range pulls {
				if _, err, ok := next(); err != nil || !ok {
					t.Error(err, ok)
				}
			}
			stop()
			if pulls == 0 {
				return // it has not started
			}
			res, err := resume(t, r)
			is(t, graph.Done, res, err)
		})
	}
}

// Many runs of one graph and one store at the same time, each with its own state,
// sends, children, questions and events, do not see each other.
func TestManyRunsAtOnceKeepApart(t *testing.T) {
	const runs = 2048
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		a, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: only.Get(s)})
		return graph.Put(list.Set([]string{only.Get(s) + a})), err
	}}}, Edges: []graph.Edge{edge("x", graph.End)}})
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"split", "count"}, Nodes: []graph.Node{
		{Name: "split", Routes: []string{"sub"}, Run: func(_ context.Context, s graph.State) (u graph.Update, _ error) {
			for _, part := range []string{"l", "r"} {
				u.Send = append(u.Send, graph.Send{To: "sub", Overlay: []graph.Write{only.Set(only.Get(s) + part)}})
			}
			return u, nil
		}},
		{Name: "count", Run: writes(newReducerKey.Set(1))},
		{Name: "sub", Graph: child, Inherit: true, Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
			return graph.Put(list.Set(list.Get(c.State)), newReducerKey.Set(1)), nil
		}},
		say("end"),
	}, Edges: []graph.Edge{edge("count", graph.End), edge("sub", "end"), edge("end", graph.End)}})
	r := &graph.Runner{Graph: g, Store: graph.NewMemory(), Durability: graph.QuestionsOnly}
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() {
			name := fmt.Sprint("t", i)
			first := graph.Input{Thread: name, Set: []graph.Write{only.Set(name)}}
			if i%8 == 0 {
				first.Topics = graph.AllTopics
			}
			_, res, err := collect(r.Run(t.Context(), first))
			if err != nil || res.Status != graph.Waiting || len(res.Questions) != 2 || res.Questions[0].Prompt != name+"l" {
				t.Errorf("%s: %v, %v, %v", name, res.Status, res.Questions, err)
				return
			}
			in := graph.Resume{Thread: name}
			for _, q := range res.Questions {
				in.Answers = append(in.Answers, says(q.ID, "!"))
			}
			res, err = r.InvokeResume(t.Context(), in)
			want := strings.ReplaceAll("Tl! Tr! end", "T", name)
			if got := strings.Join(list.Get(res.State), " "); err != nil || res.Status != graph.Done || got != want || newReducerKey.Get(res.State) != 3 {
				t.Errorf("%s: %v with %q and %d, want %q: %v", name, res.Status, got, newReducerKey.Get(res.State), want, err)
			}
		})
	}
	wg.Wait()
}
