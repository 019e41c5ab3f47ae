package graph_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// crowd is a graph of three siblings: a node that asks, one that sends two tasks
// that ask, and a child whose two nodes ask concurrently.
func crowd(t *testing.T) *graph.Graph {
	child := compile(t, graph.Def{Name: "child", Keys: []graph.AnyKey{list}, Start: []string{"x", "y"},
		Nodes: []graph.Node{{Name: "x", Run: asker("x")}, {Name: "y", Run: asker("y")}},
		Edges: []graph.Edge{edge("x", graph.End), edge("y", graph.End)}})
	send := func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Send: []graph.Send{{To: "each"}, {To: "each"}}, Goto: []string{"one", "sub"}}, nil
	}
	return compile(t, graph.Def{Name: "crowd", Keys: []graph.AnyKey{list}, Start: []string{"first"},
		Nodes: []graph.Node{{Name: "first", Run: send, Routes: []string{"one", "each", "sub"}},
			{Name: "one", Run: asker("one1", "one2")}, {Name: "each", Run: asker("each")},
			{Name: "sub", Graph: child, Out: func(_ graph.State, c graph.Child) (graph.Update, error) {
				return graph.Put(list.Set(list.Get(c.State))), nil
			}}},
		Edges: []graph.Edge{edge("one", graph.End), edge("each", graph.End), edge("sub", graph.End)}})
}

// Answers given ahead that name no question are used in the order of tasks,
// whatever the order in which these ask.
func TestBareAnswersGoInTheOrderOfTasks(t *testing.T) {
	var ahead []graph.Answer
	for i := range 6 {
		ahead = append(ahead, says("", fmt.Sprint(i)))
	}
	ahead = append(ahead, says("each", "named"))
	const want = "[one1=0 one2=4 each=named each=1 x=2 y=3]"
	for _, e := range []graph.Executor{sequential{}, backward{}, nil} {
		r := kept(crowd(t))
		r.Executor = e
		told := map[string]int{}
		var res graph.Result
		for ev, err := range r.Run(t.Context(), graph.Input{Thread: thread, Ahead: ahead, Topics: graph.TopicQuestion}) {
			switch b := ev.Body.(type) {
			case graph.QuestionAsked:
				told["ask "+b.Question.ID]++
			case graph.QuestionAnswered:
				told["answer "+b.ID]++
			case graph.RunEnded:
				res = b.Result
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := fmt.Sprint(list.Get(res.State)); res.Status != graph.Done || got != want {
			t.Errorf("%T: %v %s, not %s", e, res.Status, got, want)
		}
		for what, n := range told {
			if n != 1 {
				t.Errorf("%T: %s was told %d times", e, what, n)
			}
		}
		if len(told) != 12 {
			t.Errorf("%T: told %v", e, told)
		}
	}
}

// Killed at any record, the run gives each question the same answer.
func TestBareAnswersSurviveACrash(t *testing.T) {
	ahead := []graph.Answer{says("", "0"), says("", "1"), says("", "2"), says("", "3"), says("", "4"), says("", "5")}
	g := crowd(t)
	count := &dying{Store: graph.NewMemory(), left: -1}
	want, err := (&graph.Runner{Graph: g, Store: count, Executor: sequential{}}).Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
	is(t, graph.Done, want, err)
	for left := range count.taken {
		mem := graph.NewMemory()
		_, err := (&graph.Runner{Graph: g, Store: &dying{Store: mem, left: left}, Executor: backward{}}).Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
		if err == nil {
			t.Fatalf("%d records: the store did not die", left)
		}
		r := &graph.Runner{Graph: g, Store: mem, Executor: backward{}}
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if left == 0 {
			res, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
		}
		if err != nil || fmt.Sprint(list.Get(res.State)) != fmt.Sprint(list.Get(want.State)) {
			t.Errorf("%d records: %v %v, %v", left, res.Status, list.Get(res.State), err)
		}
	}
}

// A child that stands at a break stays there: the answers wait for the resume.
func TestBareAnswersDoNotPassABreak(t *testing.T) {
	stop := compile(t, graph.Def{Name: "stop", Keys: []graph.AnyKey{counter}, Start: []string{"s"},
		Nodes: []graph.Node{{Name: "s", BreakAfter: true, Run: inc}, {Name: "t", Run: inc}}, Edges: []graph.Edge{edge("s", "t"), edge("t", graph.End)}})
	r := kept(parallel(t, graph.Node{Name: "a", Run: asker("a")}, graph.Node{Name: "b", Graph: stop}))
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("", "1")}})
	if is(t, graph.Waiting, res, err); len(res.Breaks) != 1 || len(res.Questions) != 1 {
		t.Fatalf("%v %v", res.Breaks, res.Questions)
	}
	if res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread}); res.Status != graph.Done || !strings.Contains(fmt.Sprint(list.Get(res.State)), "a=1") {
		t.Errorf("%v %v, %v", res.Status, list.Get(res.State), err)
	}
}
