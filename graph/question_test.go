package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
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

func TestARefusalIsAnError(t *testing.T) {
	var got error
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, got = graph.Interrupt[int](ctx, graph.Ask{Options: []string{"1", "2"}})
		if errors.Is(got, graph.ErrWaiting) {
			return graph.Update{}, got
		}
		return graph.Put(only.Set(fmt.Sprint(got))), nil
	}})
	r := kept(g)
	_, _ = start(t, r)
	res, err := resume(t, r, graph.Answer{ID: "a", Refused: "they left"})
	var refused *graph.RefusedError
	if is(t, graph.Done, res, err); !errors.As(got, &refused) || refused.Reason != "they left" {
		t.Error(got)
	}
	res, err = kept(g).Invoke(t.Context(), graph.Input{Ahead: []graph.Answer{{ID: "a", Refused: "they left"}}})
	if is(t, graph.Done, res, err); !errors.As(got, &refused) {
		t.Error(got)
	}
}

func TestAnswersThatDoNotFitChangeNothing(t *testing.T) {
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Options: []string{"yes", "no"}})
		return graph.Update{}, err
	}}, graph.Node{Name: "b", Run: asker("b")})
	r := kept(g)
	_, _ = start(t, r)
	records := len(journalOf(t, r.Store, thread))
	for _, bad := range [][]graph.Answer{{says("c", "x")}, {says("a", "maybe")}, {{ID: "a", Value: 1}}, {{ID: "a"}}, {says("a", "yes"), says("a", "no")},
		{says("b", "x"), says("a", "maybe")}, {{ID: "b", Value: func() {}}}, {says("", "x")}, {says("a#2", "yes")}} {
		_, err := resume(t, r, bad...)
		var e *graph.AnswerError
		if !errors.As(err, &e) || !slices.Equal(e.Open, []string{"a", "b"}) {
			t.Errorf("%v: %v", bad, err)
		}
		if n := len(journalOf(t, r.Store, thread)); n != records {
			t.Fatalf("%v left %d records", bad, n-records)
		}
	}
	res, err := resume(t, r, says("b", ""), says("a", "no"))
	is(t, graph.Done, res, err)
	var e *graph.AnswerError
	if _, err := resume(t, r, says("a", "no")); !errors.As(err, &e) || e.Open != nil {
		t.Errorf("an answer to a run that is over: %v", err)
	}
}

// A number that is not an integer is refused before it is recorded.
func TestAnAnswerThatIsNoIntegerIsRefused(t *testing.T) {
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		n, err := graph.Interrupt[int](ctx, graph.Ask{Prompt: "how many?"})
		return graph.Put(newReducerKey.Set(n)), err
	}})
	r := kept(g)
	res, err := start(t, r)
	if is(t, graph.Waiting, res, err); res.Questions[0].Type != "number" || res.Questions[0].Integer != "int" {
		t.Error(res.Questions[0])
	}
	records := len(journalOf(t, r.Store, thread))
	for _, bad := range []any{2.5, 1e30, "3", true, nil, json.Number("3.0")} {
		_, err := resume(t, r, graph.Answer{ID: "a", Value: bad})
		var e *graph.AnswerError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), "it must be an integer") || len(journalOf(t, r.Store, thread)) != records {
			t.Errorf("%v: %v", bad, err)
		}
	}
	res, err = resume(t, r, graph.Answer{ID: "a", Value: 3})
	if is(t, graph.Done, res, err); newReducerKey.Get(res.State) != 3 {
		t.Error(newReducerKey.Get(res.State))
	}
}

// An integer has the range of its Go type.
func TestAnAnswerOutOfRangeIsRefused(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[uint8](ctx, graph.Ask{})
		return graph.Update{}, err
	}}))
	_, _ = start(t, r)
	for _, bad := range []int{-1, 256} {
		var e *graph.AnswerError
		if _, err := resume(t, r, graph.Answer{ID: "a", Value: bad}); !errors.As(err, &e) || !strings.Contains(e.Reason, "integer (uint8)") {
			t.Errorf("%d: %v", bad, err)
		}
	}
	res, err := resume(t, r, graph.Answer{ID: "a", Value: 255})
	is(t, graph.Done, res, err)
}

type seats struct{ Row int8 }

// What only the node can tell opens the question again, with the reason; also when
// the answer was given ahead, and when the process dies in between.
func TestAnAnswerThatDoesNotDecodeOpensTheQuestionAgain(t *testing.T) {
	var top tally
	g := parallel(t, graph.Node{Name: "a", Retry: graph.Retry{Attempts: 3}, OnError: "h", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		top.add("a")
		s, err := graph.Interrupt[seats](ctx, graph.Ask{Prompt: "which?"})
		return graph.Put(newReducerKey.Set(int(s.Row))), err
	}}, graph.Node{Name: "h", Run: top.counts("h")}, graph.Node{Name: "b", Run: asks(nil)})
	bad, good := graph.Answer{ID: "a", Value: map[string]int{"Row": 300}}, graph.Answer{ID: "a", Value: map[string]int{"Row": 7}}
	for _, ahead := range [][]graph.Answer{nil, {bad}} {
		r := kept(g)
		res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Ahead: ahead})
		if ahead == nil {
			is(t, graph.Waiting, res, err)
			res, err = resume(t, r, bad)
		}
		for range 2 {
			if is(t, graph.Waiting, res, err); !slices.Equal(ids(res.Questions), []string{"a", "b"}) || !strings.Contains(res.Questions[0].Rejected, "300") {
				t.Fatalf("%+v", res.Questions)
			}
			s, failed := history.Inspect(t.Context(), r.Store, thread, 0)
			if failed != nil || !slices.Equal(ids(s.Questions), []string{"a", "b"}) || s.Questions[0].Rejected == "" {
				t.Errorf("%v, %v", s.Questions, failed)
			}
			res, err = resume(t, r)
		}
		is(t, graph.Waiting, res, err)
		res, err = resume(t, r, good, says("b", ""))
		if is(t, graph.Done, res, err); newReducerKey.Get(res.State) != 7 {
			t.Error(newReducerKey.Get(res.State))
		}
		if err := history.Fork(t.Context(), r.Store, thread, 0, "copy"); err != nil {
			t.Error(err)
		}
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

// atLeast3 refuses texts that are shorter than three bytes.
func atLeast3(_ graph.Question, a graph.Answer) error {
	if s, ok := a.Value.(string); !ok || len(s) < 3 {
		return errShort
	}
	return nil
}

var errShort = errors.New("too short")

// checkedAsker asks for a text, puts it into total as its length, and checks answers.
func checkedAsker(name string) graph.Node {
	return graph.Node{Name: name, CheckAnswer: atLeast3, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		s, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: name + "?"})
		return graph.Put(newReducerKey.Set(len(s))), err
	}}
}

// A node's rule holds before anything is recorded, wherever the node is: at the
// root, in a child graph, and in a named child; also in another process.
func TestANodeChecksAnswersBeforeTheyAreRecorded(t *testing.T) {
	inner := parallel(t, checkedAsker("ask"))
	caller := graph.Node{Name: "team", Children: map[string]graph.ChildGraph{"other": {Graph: parallel(t, graph.Node{Name: "x", Run: asker("x")})}, "kind": {Graph: inner}},
		Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.CallChild(ctx, "bob.1", "kind")
			return graph.Update{}, err
		}}
	for id, node := range map[string]graph.Node{"ask": checkedAsker("ask"), "sub/ask": {Name: "sub", Graph: inner}, "team/bob.1/ask": caller} {
		g := parallel(t, node)
		r := kept(g)
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); res.Questions[0].ID != id {
			t.Fatal(res.Questions)
		}
		r = &graph.Runner{Graph: g, Store: r.Store}
		records := len(journalOf(t, r.Store, thread))
		for _, check := range []func() error{
			func() error { return r.CheckAnswers(t.Context(), thread, says(id, "ab")) },
			func() error { _, err := resume(t, r, says(id, "ab")); return err },
		} {
			var e *graph.AnswerError
			if err := check(); !errors.As(err, &e) || e.ID != id || e.Reason != "too short" || !errors.Is(err, errShort) {
				t.Errorf("%s: %v", id, err)
			}
			if n := len(journalOf(t, r.Store, thread)); n != records {
				t.Fatalf("%s left %d records", id, n-records)
			}
		}
		if err := r.CheckAnswers(t.Context(), thread, says(id, "abc")); err != nil {
			t.Error(err)
		}
		res, err = resume(t, r, says(id, "abc"))
		is(t, graph.Done, res, err)
	}
}

// CheckAnswers says the same as Resume of everything else that is wrong.
func TestCheckAnswersSaysWhatResumeWould(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Options: []string{"yes", "no"}})
		return graph.Update{}, err
	}}))
	_, _ = start(t, r)
	for _, bad := range [][]graph.Answer{{says("c", "x")}, {says("a", "maybe")}, {{ID: "a", Value: 1}}, {says("a", "yes"), says("a", "no")}} {
		check := r.CheckAnswers(t.Context(), thread, bad...)
		if _, err := resume(t, r, bad...); err == nil || check == nil || check.Error() != err.Error() {
			t.Errorf("%v: %v and %v", bad, check, err)
		}
	}
	if err := r.CheckAnswers(t.Context(), thread, graph.Answer{ID: "a", Refused: "no one is there"}); err != nil {
		t.Error(err)
	}
	if err := r.CheckAnswers(t.Context(), "other", says("a", "yes")); !errors.Is(err, journal.ErrNoThread) {
		t.Error(err)
	}
	res, err := resume(t, r, says("a", "yes"))
	is(t, graph.Done, res, err)
	var e *graph.AnswerError
	if err := r.CheckAnswers(t.Context(), thread, says("a", "yes")); !errors.As(err, &e) {
		t.Error(err)
	}
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

// A check that panics is an error, and changes nothing.
func TestACheckThatPanicsRefusesTheAnswer(t *testing.T) {
	n := checkedAsker("a")
	n.CheckAnswer = func(graph.Question, graph.Answer) error { panic("oops") }
	r := kept(parallel(t, n))
	_, _ = start(t, r)
	var e *graph.AnswerError
	if _, err := resume(t, r, says("a", "abc")); !errors.As(err, &e) || !strings.Contains(err.Error(), "oops") {
		t.Error(err)
	}
}

// A check sees an answer as it is stored: what JSON makes of its value.
func TestACheckSeesWhatIsStored(t *testing.T) {
	var seen graph.Answer
	n := checkedAsker("a")
	n.Run = func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[any](ctx, graph.Ask{})
		return graph.Update{}, err
	}
	n.CheckAnswer = func(_ graph.Question, a graph.Answer) error { seen = a; return nil }
	r := kept(parallel(t, n))
	_, _ = start(t, r)
	res, err := resume(t, r, graph.Answer{ID: "a", Value: seats{Row: 3}})
	is(t, graph.Done, res, err)
	if b, _ := json.Marshal(seen.Value); string(b) != `{"Row":3}` {
		t.Errorf("%T %s", seen.Value, b)
	}
	if _, ok := seen.Value.(map[string]any); !ok || seen.ID != "a" {
		t.Errorf("%+v", seen)
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

// CheckAnswers says whether Resume would accept an answer, before anything is recorded.
func ExampleRunner_CheckAnswers() {
	g := sound(graph.Def{
		Name: "ask",
		Nodes: []graph.Node{aNode("review", func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Send it?", Options: []string{"yes", "no"}})
			return graph.Update{}, err
		})},
		Edges: []graph.Edge{anEdge("review", graph.End)},
		Start: []string{"review"},
	})
	ctx, r := context.Background(), &graph.Runner{Graph: g, Store: journal.NewMemory()}
	if _, err := r.Invoke(ctx, graph.Input{Thread: "t1"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.CheckAnswers(ctx, "t1", graph.Answer{ID: "review", Value: "maybe"}))
	fmt.Println(r.CheckAnswers(ctx, "t1", graph.Answer{ID: "review", Value: "yes"}))
	// Output:
	// answer to "review": it must be one of yes, no; open questions: review
	// <nil>
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
