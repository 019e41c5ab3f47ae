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

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

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

// FindAnswer finds what a person has answered to a question of this visit, and asks nothing.
func TestFindAnswer(t *testing.T) {
	var found []string
	look := func(ctx context.Context) {
		answer, ok, err := graph.FindAnswer[string](ctx, "sure")
		found = append(found, fmt.Sprint(answer, " ", ok, " ", err))
	}
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		look(ctx)
		for range 2 {
			if _, err := graph.Interrupt[string](ctx, graph.Ask{Name: "sure"}); errors.Is(err, graph.ErrWaiting) {
				return graph.Update{}, err
			}
			look(ctx)
		}
		return graph.Update{}, nil
	}})
	expect := func(step string, want ...string) {
		t.Helper()
		if !slices.Equal(found, want) {
			t.Errorf("%s: %q, want %q", step, found, want)
		}
		found = nil
	}
	r := kept(g)
	_, _ = start(t, r)
	expect("before the first", " false <nil>")
	_, _ = resume(t, r, says("a", "no"))
	expect("answered; the second is another", "no true <nil>", " false <nil>")
	res, err := resume(t, r, graph.Answer{ID: "a#2", Refused: "they left"})
	is(t, graph.Done, res, err)
	expect("both", "no true <nil>", " true "+(&graph.RefusedError{Reason: "they left"}).Error(), " false <nil>")
	if _, _, err := graph.FindAnswer[string](t.Context(), "sure"); err == nil {
		t.Error("it works outside of a node")
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
