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
)

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
	if err := r.CheckAnswers(t.Context(), "other", says("a", "yes")); !errors.Is(err, graph.ErrNoThread) {
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
		s, err := graph.Inspect(t.Context(), r.Store, thread, 0)
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
