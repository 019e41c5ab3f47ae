package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// Answers given ahead in parallel tasks: those with a name go where they belong,
// whatever the order; each of the others is used once.
func TestAnswersGivenAheadInParallelTasks(t *testing.T) {
	g := parallel(t, graph.Node{Name: "a", Run: asker("a")}, graph.Node{Name: "b", Run: asker("b1", "b2")}, graph.Node{Name: "c", Run: asker("c")}, graph.Node{Name: "d", Run: asker("d")})
	for _, e := range []graph.Executor{sequential{}, backward{}, nil} {
		r := kept(g)
		r.Executor = e
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("b#2", "two"), says("c", "see"), says("b", "one"), says("", "any")}})
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Fatalf("%T: %v", e, ids(res.Questions))
		}
		left := res.Questions[0].Node
		if left != "d" {
			t.Errorf("%T: the bare answer went to d", e)
		}
		if res = answered(t, r, res, false); strings.Count(strings.Join(list.Get(res.State), " "), "=any") != 1 {
			t.Errorf("%T: %v", e, list.Get(res.State))
		}
		if got := strings.Join(list.Get(res.State), " "); !strings.Contains(got, "b1=one b2=two c=see") {
			t.Errorf("%T: %s", e, got)
		}
	}
}

// A question is never in the journal without the answer that was given ahead.
func TestAnAnswerGivenAheadIsSavedWithItsQuestion(t *testing.T) {
	pairs := &batches{Store: journal.NewMemory()}
	r := &graph.Runner{Graph: parallel(t, graph.Node{Name: "a", Run: asker("a")}, graph.Node{Name: "b", Run: asker("b")}, graph.Node{Name: "c", Run: asker("c")}), Store: pairs}
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("a", "1"), says("c", "2"), says("b", "3")}})
	if is(t, graph.Done, res, err); pairs.torn > 0 {
		t.Errorf("%d batches end between a question and its answer", pairs.torn)
	}
}

// batches counts the appends that end with a question.
type batches struct {
	journal.Store
	torn int
}

func (b *batches) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	if recs[len(recs)-1].Kind == journal.KindQuestion {
		b.torn++
	}
	return b.Store.Append(ctx, thread, after, recs)
}

// An answer given ahead that the rule refuses opens the question with the reason.
// It is used up: no later question takes it.
func TestAnAnswerGivenAheadThatIsRefusedOpensTheQuestion(t *testing.T) {
	for _, id := range []string{"", "a"} {
		g := compile(t, graph.Def{Keys: []graph.AnyKey{newReducerKey}, Start: []string{"a"}, Nodes: []graph.Node{checkedAsker("a"), checkedAsker("b")},
			Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b"}}, {From: []string{"b"}, To: []string{graph.End}}}})
		r := kept(g)
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says(id, "ab"), says("", "later")}})
		if is(t, graph.Waiting, res, err); res.Questions[0].ID != "a" || res.Questions[0].Rejected != "too short" {
			t.Fatalf("%q: %+v", id, res.Questions)
		}
		s, err := history.Inspect(t.Context(), r.Store, thread, 0)
		if err != nil || len(s.Questions) != 1 || s.Questions[0].Rejected != "too short" {
			t.Fatalf("%q: %+v, %v", id, s.Questions, err)
		}
		res, err = resume(t, r, says("a", "abc"))
		is(t, graph.Done, res, err) // b has taken what was meant for it
	}
}

// A bare answer that is none of the options of a question is left for a later
// one; one that names the question is refused.
func TestABareAnswerIsLeftForTheQuestionThatItFits(t *testing.T) {
	options := graph.Node{Name: "a", CheckAnswer: func(q graph.Question, a graph.Answer) error {
		if a.ID == "" && !slices.Contains(q.Options, fmt.Sprint(a.Value)) {
			return errors.New("it is none of the options")
		}
		return nil
	}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		s, err := graph.Interrupt[string](ctx, graph.Ask{Options: []string{"once", "no"}, Free: true})
		return graph.Put(newReducerKey.Set(len(s))), err
	}}
	g := compile(t, graph.Def{Keys: []graph.AnyKey{newReducerKey}, Start: []string{"a"}, Nodes: []graph.Node{options, checkedAsker("b")},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{"b"}}, {From: []string{"b"}, To: []string{graph.End}}}})
	for first, ahead := range map[string][]graph.Answer{"once": {says("", "yes!"), says("", "once")}, "because": {says("", "yes!"), says("a", "because")}} {
		res, err := kept(g).Invoke(t.Context(), graph.Input{Thread: thread, Ahead: ahead})
		if is(t, graph.Done, res, err); newReducerKey.Get(res.State) != len("yes!")+len(first) {
			t.Errorf("%v: %v", ahead, newReducerKey.Get(res.State))
		}
	}
}

// An answer given ahead to a node reaches what is asked inside of it, however deep.
func TestAnAnswerGivenAheadToANodeReachesItsChildren(t *testing.T) {
	leaf := parallel(t, checkedAsker("ask"))
	caller := graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"kind": {Graph: parallel(t, graph.Node{Name: "sub", Graph: leaf})}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.CallChild(ctx, "bob-1", "kind")
			return graph.Update{}, err
		}}
	const id = "team/bob-1/sub/ask"
	for _, name := range []string{id, "ask", "team/bob-1/sub", "sub", "team/bob-1", "bob-1", "team", ""} {
		r := kept(parallel(t, caller))
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says(name, "abcd")}})
		is(t, graph.Done, res, err)
	}
	for _, name := range []string{"bob", "team/bob-1/s", "eam", "tea", "team/ask", "team/"} {
		r := kept(parallel(t, caller))
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says(name, "abcd")}})
		is(t, graph.Waiting, res, err)
	}
}

// A result lists the answers given ahead that nothing has asked for: a misspelt name
// is one of them.
func TestUnusedAnswersAreReported(t *testing.T) {
	r := kept(parallel(t, checkedAsker("ask")))
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("aks", "abc"), {ID: "b", Refused: "no one"}}})
	if is(t, graph.Waiting, res, err); len(res.Unused) != 2 || res.Unused[0] != says("aks", "abc") || res.Unused[1].Refused != "no one" {
		t.Errorf("%+v", res.Unused)
	}
	res, err = resume(t, r, says("ask", "abc"))
	if is(t, graph.Done, res, err); len(res.Unused) != 2 {
		t.Errorf("%+v", res.Unused)
	}
	res, err = kept(r.Graph).Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("ask", "abc")}})
	if is(t, graph.Done, res, err); res.Unused != nil {
		t.Errorf("%+v", res.Unused)
	}
}

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
	count := &dying{Store: journal.NewMemory(), left: -1}
	want, err := (&graph.Runner{Graph: g, Store: count, Executor: sequential{}}).Invoke(t.Context(), graph.Input{Thread: "t", Ahead: ahead})
	is(t, graph.Done, want, err)
	for left := range count.taken {
		mem := journal.NewMemory()
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

// A node that checks answers sees the data of its question, also if the answer is given ahead.
func TestAnswersAheadAreCheckedWithTheData(t *testing.T) {
	type limit struct{ Most int }
	node := graph.Node{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[int](ctx, graph.Ask{Prompt: "How many?", Data: limit{3}})
		return graph.Update{}, err
	}, CheckAnswer: func(q graph.Question, a graph.Answer) error {
		var l limit
		if err := json.Unmarshal(q.Data, &l); err != nil {
			return fmt.Errorf("the data of the question: %w", err)
		}
		if n, _ := a.Value.(float64); n > float64(l.Most) {
			return fmt.Errorf("at most %d", l.Most)
		}
		return nil
	}}
	g, err := graph.Compile(graph.Def{Name: "g", Nodes: []graph.Node{node}, Start: []string{"ask"}, Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[int]graph.Status{2: graph.Done, 4: graph.Waiting} {
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		res, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Ahead: []graph.Answer{{ID: "ask", Value: value}}})
		if err != nil || res.Status != want {
			t.Errorf("%d: %v, %v, want %v", value, res.Status, err, want)
		}
	}
}

// An answer given ahead that names a question, and cannot be its answer, opens the question with the reason; the one
// behind it is taken by another.
func TestAnAnswerGivenAheadOfAnotherKindOpensTheQuestion(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
		Nodes: []graph.Node{{Name: "a", Run: asks(nil)}, {Name: "b", Run: asks(nil)}}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{says("b", "two"), {ID: "a", Value: 7}}})
	if is(t, graph.Waiting, res, err); res.Questions[0].ID != "a" || !strings.Contains(res.Questions[0].Rejected, "it must be a string, not a number") {
		t.Fatalf("%+v", res.Questions)
	}
	res, err = resume(t, r, says("a", "one"))
	is(t, graph.Done, res, err)
}

// An answer given ahead that cannot be stored fails the start, also if it is the only one and there is no store.
func TestOneAnswerGivenAheadThatCannotBeStored(t *testing.T) {
	for _, st := range []journal.Store{nil, journal.NewMemory()} {
		r := &graph.Runner{Graph: parallel(t, graph.Node{Name: "n", Run: idle}), Store: st}
		_, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: []graph.Answer{{ID: "a", Value: make(chan int)}}})
		var wrong *graph.AnswerError
		if !errors.As(err, &wrong) || wrong.ID != "a" {
			t.Errorf("with the store %v: %v", st, err)
		}
	}
}
