package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
)

// asker asks the named questions one after the other and keeps the answers.
func asker(names ...string) graph.Func {
	return func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var got []string
		for _, n := range names {
			a, err := graph.Interrupt[string](ctx, graph.Ask{Name: n, Prompt: n + "?"})
			if err != nil {
				return graph.Update{}, err
			}
			got = append(got, n+"="+a)
		}
		return graph.Put(list.Set(got)), nil
	}
}

// answered resumes until nothing is asked any more, one answer at a time, the
// last question first where last is true.
func answered(t testing.TB, r *graph.Runner, res graph.Result, last bool) graph.Result {
	t.Helper()
	var err error
	for range 50 {
		if res.Status != graph.Waiting {
			return is(t, graph.Done, res, err)
		}
		q := res.Questions[0]
		if last {
			q = res.Questions[len(res.Questions)-1]
		}
		if res, err = resume(t, r, says(q.ID, "to "+q.Prompt)); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("it never ends")
	return res
}

func TestSeveralQuestionsOfOneNode(t *testing.T) {
	var c tally
	run := asker("x", "", "y", "x", "")
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
		c.add("top")
		if _, err := graph.Do(ctx, "once", func(context.Context) (int, error) { return c.add("effect"), nil }); err != nil {
			return graph.Update{}, err
		}
		return run(ctx, s)
	}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	var asked []string
	for res.Status == graph.Waiting {
		asked = append(asked, ids(res.Questions)...)
		res, err = resume(t, r, says(res.Questions[0].ID, fmt.Sprint("answer ", len(asked))))
	}
	is(t, graph.Done, res, err)
	if diff := cmp.Diff([]string{"a", "a#2", "a#3", "a#4", "a#5"}, asked); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"x=answer 1", "=answer 2", "y=answer 3", "x=answer 4", "=answer 5"}, list.Get(res.State)); diff != "" {
		t.Error(diff)
	}
	if c.of("effect") != 1 || c.of("top") != 6 {
		t.Errorf("the effect happened %d times, the node ran %d times", c.of("effect"), c.of("top"))
	}
}

// Questions that goroutines of a node ask are open together.
func TestQuestionsOfOneNodeOpenTogether(t *testing.T) {
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		got, errs := make([]string, 3), make(chan error, 3)
		for i := range got {
			go func() {
				var err error
				got[i], err = graph.Interrupt[string](ctx, graph.Ask{Name: fmt.Sprint(i), Prompt: fmt.Sprint(i)})
				errs <- err
			}()
		}
		err := errors.Join(<-errs, <-errs, <-errs)
		return graph.Put(list.Set(got)), err
	}})
	for _, last := range []bool{false, true} {
		r := kept(g)
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); len(res.Questions) != 3 {
			t.Fatal(res.Questions)
		}
		if res = answered(t, r, res, last); fmt.Sprint(list.Get(res.State)) != "[to 0 to 1 to 2]" {
			t.Error(list.Get(res.State))
		}
	}
}

func TestSiblingsAskAndAnotherFinishes(t *testing.T) {
	for _, last := range []bool{false, true} {
		var c tally
		g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a", "b", "c"}, Nodes: []graph.Node{
			{Name: "a", Run: asker("a")}, {Name: "b", Run: asker("b")},
			{Name: "c", Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Put(list.Set([]string{fmt.Sprint("c ", c.add("c"))})), nil
			}}, say("j"),
		}, Edges: []graph.Edge{join("j", "a", "b", "c"), edge("j", graph.End)}})
		r := kept(g)
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"a", "b"}) {
			t.Fatal(res.Questions)
		}
		if res, err = resume(t, r); res.Status != graph.Waiting || len(res.Questions) != 2 || err != nil {
			t.Errorf("resumed without an answer: %v, %v, %v", res.Status, res.Questions, err)
		}
		if res = answered(t, r, res, last); fmt.Sprint(list.Get(res.State)) != "[a=to a? b=to b? c 1 j]" {
			t.Error(list.Get(res.State))
		}
	}
}

func TestALoopAsksEachTime(t *testing.T) {
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Run: asker("")}},
		Edges: []graph.Edge{branch("a", map[string]string{"again": "a", "stop": graph.End}, func(s graph.State) string {
			if len(list.Get(s)) < 3 {
				return "again"
			}
			return "stop"
		})}})
	r := kept(g)
	res, err := start(t, r)
	for i := range 3 {
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Fatal(res.Questions)
		}
		res, err = resume(t, r, says(res.Questions[0].ID, fmt.Sprint(i, " ", res.Questions[0].ID)))
	}
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[=0 a =1 a#2 =2 a#3]" {
		t.Error(list.Get(res.State))
	}
}

// One of several tasks of a Send asks: the others are done once, and it sees its
// own overlay again.
func TestATaskOfASendAsks(t *testing.T) {
	var c tally
	d := graph.Def{Name: "g", Keys: all, Start: []string{"split"}, Nodes: []graph.Node{sends(3),
		{Name: "work", Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			n := newReducerKey.Get(s)
			c.add(fmt.Sprint(n))
			if n != 2 {
				return graph.Put(list.Set([]string{fmt.Sprint(n)})), nil
			}
			u, err := asker("two")(ctx, s)
			return u, err
		}}, say("gather")}, Edges: []graph.Edge{edge("work", "gather"), edge("gather", graph.End)}}
	r := kept(compile(t, d))
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"work[2]"}) {
		t.Fatal(res.Questions)
	}
	res, err = resume(t, r, says("work[2]", "x"))
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[1 two=x 3 gather]" || c.of("1") != 1 || c.of("2") != 2 || c.of("3") != 1 {
		t.Errorf("%v, ran %v", list.Get(res.State), c.n)
	}
}

// Children two levels down, side by side, ask at once: each question has its
// path, all are listed in task order, and one answer at a time brings each on.
func TestChildrenWaitSideBySide(t *testing.T) {
	low := compile(t, graph.Def{Name: "low", Keys: all, Start: []string{"q", "p"}, Nodes: []graph.Node{{Name: "p", Run: asker("p")}, {Name: "q", Run: asker("q1", "q2")}},
		Edges: []graph.Edge{edge("p", graph.End), edge("q", graph.End)}})
	out := func(_ graph.State, c graph.Child) (graph.Update, error) {
		return graph.Put(list.Set(list.Get(c.State))), nil
	}
	mid := compile(t, graph.Def{Name: "mid", Keys: all, Start: []string{"low", "done"}, Nodes: []graph.Node{{Name: "low", Graph: low, Out: out}, say("done")}, Edges: []graph.Edge{edge("low", graph.End), edge("done", graph.End)}})
	var c tally
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"split", "side"}, Nodes: []graph.Node{
		{Name: "side", Run: asks(nil)},
		{Name: "split", Routes: []string{"sub"}, Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Send: make11("sub")}, nil
		}},
		{Name: "sub", Graph: mid, Out: out}, {Name: "also", Run: asker("also")}, {Name: "beside", Run: c.counts("beside")},
	}, Edges: []graph.Edge{edge("side", "also", "beside"), edge("sub", graph.End), edge("also", graph.End), edge("beside", graph.End)}})
	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprintf("sub[%d]/low/p", i+1), fmt.Sprintf("sub[%d]/low/q", i+1))
	}
	want = append(want, "also")
	for i, e := range []graph.Executor{sequential{}, backward{}, nil} {
		r := kept(g)
		r.Executor = e
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"side"}) {
			t.Fatal(ids(res.Questions))
		}
		res, err = resume(t, r, says("side", ""))
		if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), want) {
			t.Fatalf("%T: %v", e, ids(res.Questions))
		}
		s, err := history.Inspect(t.Context(), r.Store, thread, 0)
		if err != nil || !slices.Equal(ids(s.Questions), want) {
			t.Fatalf("%v, %v", ids(s.Questions), err)
		}
		res = answered(t, r, res, i%2 == 0)
		got := strings.Join(list.Get(res.State), " ")
		if got != strings.Repeat("p=to p? q1=to q1? q2=to q2? done ", 11)+"also=to also?" || c.of("beside") != i+1 {
			t.Errorf("%T: %s", e, got)
		}
	}
}

// make11 is eleven tasks: more than sort right as text.
func make11(to string) (s []graph.Send) {
	for range 11 {
		s = append(s, graph.Send{To: to})
	}
	return s
}

// A question of a child that failed is listed once while the child may still continue, and not at
// all when a handler has replaced it.
func TestQuestionsOfAChildThatFails(t *testing.T) {
	child := func(fail graph.Func) *graph.Graph {
		return compile(t, graph.Def{Name: "c", Start: []string{"x", "y"}, Nodes: []graph.Node{{Name: "x", Run: asks(nil)}, {Name: "y", Run: fail}}, Edges: []graph.Edge{edge("x", graph.End), edge("y", graph.End)}})
	}
	var c tally
	flaky := func(context.Context, graph.State) (graph.Update, error) {
		if c.add("y") < 4 {
			return graph.Update{}, errors.New("not yet")
		}
		return graph.Update{}, nil
	}
	r := kept(parallel(t, graph.Node{Name: "sub", Graph: child(flaky), Retry: graph.Retry{Attempts: 5}}))
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"sub/x"}) {
		t.Error(ids(res.Questions))
	}
	res, err = resume(t, r, says("sub/x", ""))
	is(t, graph.Done, res, err)

	r = kept(compile(t, graph.Def{Name: "g", Start: []string{"sub", "b"}, Nodes: []graph.Node{{Name: "sub", Graph: child(fails("no")), OnError: "h"}, {Name: "h", Run: asks(nil)}, {Name: "b", Run: asks(nil)}},
		Edges: []graph.Edge{edge("sub", graph.End), edge("h", graph.End), edge("b", graph.End)}}))
	res, err = start(t, r)
	if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"b"}) {
		t.Error(ids(res.Questions))
	}
	if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || !slices.Equal(ids(s.Questions), []string{"b"}) {
		t.Errorf("%v, %v", ids(s.Questions), err)
	}
	res, err = resume(t, r, says("b", ""))
	if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"h"}) {
		t.Error(ids(res.Questions))
	}
}

// Asking is not failing: no retry, no handler; also in an attempt that is a retry
// itself, which asks the same question again.
func TestAQuestionInARetriedNode(t *testing.T) {
	var c tally
	g := compile(t, graph.Def{Name: "g", Keys: all, Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", OnError: "h", Retry: graph.Retry{Attempts: 3}, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
			c.add("a")
			if graph.Attempt(ctx) == 1 {
				return graph.Update{}, errors.New("not yet")
			}
			u, err := asker("x", "y")(ctx, s)
			if err == nil && graph.Attempt(ctx) == 2 {
				err = errors.New("not yet")
			}
			return u, err
		}}, {Name: "h", Run: c.counts("h")},
	}, Edges: []graph.Edge{edge("a", graph.End), edge("h", graph.End)}})
	r := kept(g)
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); c.of("a") != 2 {
		t.Errorf("a ran %d times", c.of("a"))
	}
	if res = answered(t, r, res, false); fmt.Sprint(list.Get(res.State)) != "[x=to x? y=to y?]" || c.of("h") != 0 || c.of("a") != 7 {
		t.Errorf("%v; a ran %d times, the handler %d", list.Get(res.State), c.of("a"), c.of("h"))
	}
}

func TestAskingNeedsAStoreAndANode(t *testing.T) {
	if _, err := graph.Interrupt[string](t.Context(), graph.Ask{}); err == nil {
		t.Error("a question outside a node")
	}
	if _, err := graph.Do(t.Context(), "x", func(context.Context) (int, error) { return 1, nil }); err == nil {
		t.Error("an effect outside a node")
	}
	if _, err := graph.Call(t.Context()); err == nil {
		t.Error("a call outside a node")
	}
	if err := graph.Note(t.Context(), nil); err == nil {
		t.Error("a note outside an effect")
	}
	graph.Emit(t.Context(), "it is outside of a node")
	res, err := (&graph.Runner{Graph: parallel(t, graph.Node{Name: "a", Run: asks(nil)})}).Invoke(t.Context(), graph.Input{})
	if is(t, graph.Failed, res, err); !strings.Contains(err.Error(), "store") {
		t.Error(err)
	}
	liar := parallel(t, graph.Node{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{}, fmt.Errorf("so it says: %w", graph.ErrWaiting)
	}})
	if res, err := start(t, kept(liar)); res.Status != graph.Failed {
		t.Errorf("a node that says it waits, and asked nothing: %v, %v", res.Status, err)
	}
}

// A question asked inside an effect is not its result: the effect is called again
// with the answer.
func TestAQuestionInsideAnEffect(t *testing.T) {
	var c tally
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.Do(ctx, "outer", func(ctx context.Context) (string, error) {
			in, err := graph.Do(ctx, "inner", func(context.Context) (string, error) { return fmt.Sprint("inner ", c.add("inner")), nil })
			if err != nil {
				return "", err
			}
			a, err := graph.Interrupt[string](ctx, graph.Ask{})
			return fmt.Sprint(in, " ", a, " ", c.add("outer")), err
		})
		return graph.Put(only.Set(v)), err
	}})
	r := kept(g)
	_, _ = start(t, r)
	res, err := resume(t, r, says("a", "x"))
	if is(t, graph.Done, res, err); only.Get(res.State) != "inner 1 x 2" {
		t.Error(only.Get(res.State))
	}
}

// A pause inside a child stops the whole run at the child's next step, and the
// child continues from there.
func TestAPauseInsideAChild(t *testing.T) {
	pause := make(chan struct{})
	var c tally
	child := compile(t, graph.Def{Name: "c", Keys: all, Start: []string{"x"}, Nodes: []graph.Node{
		{Name: "x", Run: func(context.Context, graph.State) (graph.Update, error) {
			if c.add("x") == 1 {
				close(pause)
			}
			return graph.Put(list.Set([]string{"x"})), nil
		}}, say("y")}, Edges: []graph.Edge{edge("x", "y"), edge("y", graph.End)}})
	d := graph.Def{Name: "g", Keys: all, Start: []string{"sub", "b"}, Nodes: []graph.Node{
		{Name: "sub", Graph: child, Retry: graph.Retry{Attempts: 3}, OnError: "h", Out: func(_ graph.State, ch graph.Child) (graph.Update, error) {
			return graph.Put(list.Set(list.Get(ch.State))), nil
		}},
		{Name: "b", Run: c.counts("b")}, {Name: "h", Run: c.counts("h")}, say("end"),
	}, Edges: []graph.Edge{join("end", "sub", "b"), edge("end", graph.End), edge("h", graph.End)}}
	r := kept(compile(t, d))
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Pause: pause})
	if is(t, graph.Paused, res, err); len(res.State.Keys()) != 0 {
		t.Error(res.State.Keys())
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Pause: pause}) // still
	is(t, graph.Paused, res, err)
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); fmt.Sprint(list.Get(res.State)) != "[x y end]" || c.of("x") != 1 || c.of("b") != 1 || c.of("h") != 0 {
		t.Errorf("%v, ran %v", list.Get(res.State), c.n)
	}
}

func TestAnswersNeedAStore(t *testing.T) {
	g := parallel(t, graph.Node{Name: "n", Run: asker("a")})
	if err := (&graph.Runner{Graph: g}).CheckAnswers(t.Context(), thread); err == nil || !strings.Contains(err.Error(), "needs a store") {
		t.Error(err)
	}
}

// FindAnswer returns a refused answer as Interrupt does.
func TestFindAnswerOfARefusedQuestion(t *testing.T) {
	var found, asked error
	known := false
	g := parallel(t, graph.Node{Name: "n", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, known, found = graph.FindAnswer[string](ctx, "q")
		_, asked = graph.Interrupt[string](ctx, graph.Ask{Name: "q", Prompt: "well?"})
		if errors.As(asked, new(*graph.RefusedError)) {
			return graph.Update{}, nil
		}
		return graph.Update{}, asked
	}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	if known || found != nil {
		t.Fatalf("before the answer: %t, %v", known, found)
	}
	res, err = resume(t, r, graph.Answer{ID: res.Questions[0].ID, Refused: "not now"})
	is(t, graph.Done, res, err)
	var refused *graph.RefusedError
	if !known || !errors.As(found, &refused) || refused.Reason != "not now" || found.Error() != asked.Error() {
		t.Errorf("found %t, %v; asked %v", known, found, asked)
	}
}

// FindAnswer says so if the answer is of another type than asked for, and it can still be found as what it is.
func TestFindAnswerOfAnotherType(t *testing.T) {
	var found, text error
	known := true
	answer := ""
	g := parallel(t, graph.Node{Name: "n", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, known, found = graph.FindAnswer[int](ctx, "q")
		answer, _, text = graph.FindAnswer[string](ctx, "q")
		_, err := graph.Interrupt[string](ctx, graph.Ask{Name: "q", Prompt: "well?"})
		return graph.Update{}, err
	}})
	r := kept(g)
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	res, err = resume(t, r, says("", "yes"))
	is(t, graph.Done, res, err)
	if known || found == nil || text != nil || answer != "yes" {
		t.Errorf("as a number: %t, %v; as a text: %q, %v", known, found, answer, text)
	}
}

// A question is asked once for the reader, also if the answer of another one that was given ahead continues the step.
func TestQuestionsBesideOneThatWasAnsweredAhead(t *testing.T) {
	g := parallel(t, graph.Node{Name: "a", Run: asker("one")}, graph.Node{Name: "b", Run: asker("two")})
	asked := map[string]int{}
	in := graph.Input{Thread: thread, Topics: graph.AllTopics, Ahead: []graph.Answer{says("", "yes")}}
	for e, err := range kept(g).Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		if q, ok := e.Body.(graph.QuestionAsked); ok {
			asked[q.Question.ID]++
		}
	}
	if len(asked) != 2 {
		t.Errorf("%v", asked)
	}
	for id, n := range asked {
		if n != 1 {
			t.Errorf("question %s is asked %d times", id, n)
		}
	}
}
