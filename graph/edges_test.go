package graph_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// rawKey returns a key whose values are stored as they are.
func rawKey(name string) graph.Key[string] {
	return graph.Last[string](name).WithCodec(graph.Codec[string]{
		Tag:    "raw",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func(b []byte) (string, error) { return string(b), nil },
	})
}

// A key that is absent is another input than the keys that follow it, whatever these hold: here all bytes are the same.
func TestCacheKeysOfAbsentValues(t *testing.T) {
	first := rawKey("a")
	second := rawKey("b")
	var c tally
	g := compile(t, graph.Def{
		Name: "absent",
		Keys: []graph.AnyKey{first, second},
		Nodes: []graph.Node{{
			Name:  "n",
			Run:   c.counts("n"),
			Cache: &graph.CachePolicy{Keys: []graph.AnyKey{first, second}},
		}},
		Start: []string{"n"},
		Edges: []graph.Edge{edge("n", graph.End)},
	})
	cache := &graph.MemoryCache{}
	for i, set := range [][]graph.Write{
		{first.Set("b")},  // a "b", no b
		{second.Set("b")}, // no a, b "b"
		{first.Set("b"), second.Set("b")},
		{first.Set("b")},
	} {
		if _, err := (&graph.Runner{Graph: g, Cache: cache}).Invoke(t.Context(), graph.Input{Set: set}); err != nil {
			t.Fatal(err)
		}
		if want := min(i+1, 3); c.of("n") != want {
			t.Errorf("after input %d the node has run %d times, want %d", i, c.of("n"), want)
		}
	}
}

func TestAMemoryCacheRemovesTheOldest(t *testing.T) {
	for _, c := range []struct{ max, most int }{{0, 10_000}, {-1, 10_000}, {2, 2}} {
		m := &graph.MemoryCache{Max: c.max}
		name := func(i int) string { return fmt.Sprint("key ", i) }
		for i := range c.most + 1 {
			if err := m.Set(t.Context(), name(i), []byte("x"), 0); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range map[int]bool{0: false, 1: true, c.most: true} {
			if _, ok, err := m.Get(t.Context(), name(i)); err != nil || ok != want {
				t.Errorf("at most %d: entry %d is there: %t, %v", c.max, i, ok, err)
			}
		}
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

func TestANodeCallsItsChildOnce(t *testing.T) {
	child := parallel(t, graph.Node{Name: "one", Run: idle})
	var twice error
	g := parallel(t, graph.Node{Name: "n", Graph: child, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Call(ctx)
		_, twice = graph.Call(ctx)
		return graph.Update{}, err
	}})
	res, err := start(t, kept(g))
	is(t, graph.Done, res, err)
	if twice == nil || !strings.Contains(twice.Error(), "node n calls its child twice") {
		t.Error(twice)
	}
}

// The consent to a changed child holds for the drives that follow, also for one that is not asked for it, and only for
// that change.
func TestConsentToAChangedChildIsKept(t *testing.T) {
	def := func(extra ...graph.Node) *graph.Graph {
		child := parallel(t, append([]graph.Node{{Name: "one", Run: asker("first", "second")}}, extra...)...)
		return parallel(t, graph.Node{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child, OutsideDigest: true}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.CallChild(ctx, "x", "k")
				return graph.Update{}, err
			},
		})
	}
	r := kept(def())
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Graph = def(graph.Node{Name: "two", Run: idle})
	var changed *graph.ChangedError
	_, err = resume(t, r)
	if !errors.As(err, &changed) || changed.Child != "n/x" || changed.Thread != thread || changed.Was == "" || changed.Is == "" {
		t.Fatalf("%+v, %v", changed, err)
	}
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
	is(t, graph.Waiting, res, err)
	res, err = resume(t, r, says(res.Questions[0].ID, "a"))
	is(t, graph.Waiting, res, err)
	again := r.Graph
	r.Graph = def(graph.Node{Name: "three", Run: idle})
	if _, err = resume(t, r); !errors.As(err, &changed) {
		t.Errorf("another change: %v", err)
	}
	r.Graph = again
	res, err = resume(t, r, says(res.Questions[0].ID, "b"))
	is(t, graph.Done, res, err)
}

func TestTheDigestHasFinally(t *testing.T) {
	digests := map[string]string{}
	for _, finally := range []string{"", "a", "b"} {
		g := compile(t, graph.Def{
			Name:    "ends",
			Nodes:   []graph.Node{{Name: "n", Run: idle, AnyRoute: true}, {Name: "a", Run: idle}, {Name: "b", Run: idle}},
			Start:   []string{"n"},
			Edges:   []graph.Edge{edge("n", graph.End), edge("a", graph.End), edge("b", graph.End)},
			Finally: finally,
		})
		if other, known := digests[g.Digest()]; known {
			t.Errorf("the digest of a graph that ends with %q is that of one that ends with %q", finally, other)
		}
		digests[g.Digest()] = finally
	}
}

func TestJoinsThatAreRefused(t *testing.T) {
	for name, e := range map[string]graph.Edge{
		"no target":   {From: []string{"a", "b"}},
		"two targets": {From: []string{"a", "b"}, To: []string{"c", "d"}},
		"a pick": {
			From: []string{"a", "b"},
			To:   []string{"c"},
			Pick: func(graph.State) ([]string, error) { return nil, nil },
		},
		"cases": {
			From:  []string{"a", "b"},
			To:    []string{"c"},
			Cases: map[string]string{"x": "d"},
		},
	} {
		_, err := graph.Compile(graph.Def{
			Name: "joins",
			Nodes: []graph.Node{
				{Name: "a", Run: idle},
				{Name: "b", Run: idle},
				{Name: "c", Run: idle},
				{Name: "d", Run: idle},
			},
			Start: []string{"a", "b", "c", "d"},
			Edges: []graph.Edge{edge("c", graph.End), edge("d", graph.End), e},
		})
		if err == nil || !strings.Contains(err.Error(), "the join of a, b needs exactly one To, and no Pick or Cases") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// unreadable is a store that cannot be read.
type unreadable struct{ journal.Store }

func (unreadable) Read(context.Context, string, journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) { yield(journal.Record{}, errAway) }
}

func TestAThreadThatCannotBeRead(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	r.Store = unreadable{r.Store}
	_, started := r.Invoke(t.Context(), graph.Input{Thread: thread})
	_, resumed := resume(t, r)
	for what, err := range map[string]error{"start": started, "resume": resumed} {
		if err == nil || !errors.Is(err, errAway) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", what, err)
		}
	}
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

// The record of a cancelled run's end says who has cancelled it; that of another end says no one.
func TestTheEndSaysWhoHasCancelled(t *testing.T) {
	ctx := journal.WithAuthor(t.Context(), "ann")
	for _, c := range []struct{ cancel, by string }{{"not needed", "ann"}, {"", ""}} {
		r := kept(parallel(t, graph.Node{Name: "n", Run: asker("a")}))
		res, err := start(t, r)
		is(t, graph.Waiting, res, err)
		res, _ = r.InvokeResume(ctx, graph.Resume{Thread: thread, Cancel: c.cancel})
		if want := map[bool]graph.Status{true: graph.Abandoned, false: graph.Waiting}[c.cancel != ""]; res.Status != want {
			t.Fatalf("%q: %v", c.cancel, res.Status)
		}
		by := ""
		for e, err := range history.Entries(t.Context(), r.Store, thread) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindEnd { // the newest comes first
				by = e.By
				break
			}
		}
		if by != c.by {
			t.Errorf("%q: the end is by %q, want %q", c.cancel, by, c.by)
		}
	}
}

func TestAnEffectWithAResultOfAnotherType(t *testing.T) {
	var n any = "text"
	node := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		var err error
		if _, isText := n.(string); isText {
			_, err = graph.Do(ctx, "e", func(context.Context) (string, error) { return "text", nil })
		} else {
			_, err = graph.Do(ctx, "e", func(context.Context) (int, error) { return 1, nil })
		}
		if err == nil {
			_, err = graph.Interrupt[string](ctx, graph.Ask{Prompt: "well?"})
		}
		return graph.Update{}, err
	}
	r := kept(parallel(t, graph.Node{Name: "n", Run: node}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	n = 1
	_, err = resume(t, r, says("", "go"))
	if err == nil || !strings.Contains(err.Error(), `effect "e": its recorded result cannot be read`) {
		t.Error(err)
	}
}

// Without an effect that runs, a call outside of one has a key of its own, each time another one.
func TestEffectKeyWithoutAnEffect(t *testing.T) {
	var keys []string
	g := parallel(t, graph.Node{Name: "n", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		keys = append(keys, graph.EffectKey(ctx), graph.EffectKey(ctx))
		return graph.Update{}, nil
	}})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); keys[0] == "" || keys[0] == keys[1] {
		t.Errorf("%q", keys)
	}
	if key := graph.EffectKey(t.Context()); key != "" {
		t.Errorf("outside of a node: %q", key)
	}
}

// The end of an attempt whose child has paused is told to its hooks as such.
func TestHooksHearOfAPause(t *testing.T) {
	child := parallel(t, graph.Node{Name: "one", Run: idle})
	var ends []error
	hooks := graph.Hooks{Before: func(context.Context, graph.Info, graph.State) (graph.Setup, error) {
		return graph.Setup{End: func(err error) { ends = append(ends, err) }}, nil
	}}
	g := parallel(t, graph.Node{Name: "n", Graph: child, Hooks: []graph.Hooks{hooks}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Call(ctx)
		if err != nil {
			err = fmt.Errorf("the child has stopped: %w", err)
		}
		return graph.Update{}, err
	}})
	r := kept(g)
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "n/one"}}})
	is(t, graph.Paused, res, err)
	res, err = resume(t, r)
	is(t, graph.Done, res, err)
	if len(ends) != 2 || ends[0] != graph.ErrPaused || ends[1] != nil {
		t.Errorf("%v", ends)
	}
}

// What a cancelled run would have done next is sorted by name.
func TestTheFrontierOfACancelledRunIsSorted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	g := compile(t, graph.Def{
		Name: "sorted",
		Nodes: []graph.Node{
			{Name: "z", Run: func(context.Context, graph.State) (graph.Update, error) { cancel(why); return graph.Update{}, nil }},
			{Name: "y", Run: idle},
			{Name: "x", Run: idle},
		},
		Start: []string{"z"},
		Edges: []graph.Edge{edge("z", "y", "x"), edge("y", graph.End), edge("x", graph.End)},
	})
	_, err := (&graph.Runner{Graph: g}).Invoke(ctx, graph.Input{})
	var canceled *graph.CanceledError
	if !errors.As(err, &canceled) || !slices.Equal(canceled.Frontier, []string{"x", "y"}) || !errors.Is(err, why) {
		t.Errorf("%+v, %v", canceled, err)
	}
}

// An attempt that fails because its context has ended is the last, and no event says that another one follows.
func TestNoRetryAfterTheEndOfTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c tally
	g := parallel(t, graph.Node{Name: "n", Retry: graph.Retry{Attempts: 3}, Run: func(context.Context, graph.State) (graph.Update, error) {
		c.add("n")
		cancel()
		return graph.Update{}, errors.New("no luck")
	}})
	retries := 0
	for e := range (&graph.Runner{Graph: g}).Run(ctx, graph.Input{Topics: graph.AllTopics}) {
		if _, isRetry := e.Body.(graph.TaskRetry); isRetry {
			retries++
		}
	}
	if retries > 0 || c.of("n") != 1 {
		t.Errorf("%d retries, %d attempts", retries, c.of("n"))
	}
}

// A join waits for each of its sources, also if one of them comes twice before.
func TestAJoinWaitsForASourceThatCameTwice(t *testing.T) {
	visits := graph.Sum[int]("visits")
	g := compile(t, graph.Def{
		Name: "twice",
		Keys: append(slices.Clone(all), visits),
		Nodes: []graph.Node{
			{Name: "a", Run: writes(visits.Set(1), list.Set([]string{"a"}))},
			{Name: "again", Run: idle},
			{Name: "b1", Run: idle},
			{Name: "b2", Run: idle},
			{Name: "b3", Run: idle},
			{Name: "b4", Run: idle},
			say("b"),
			say("j"),
		},
		Start: []string{"a", "b1"},
		Edges: []graph.Edge{
			edge("a", "again"),
			branch("again", map[string]string{"once more": "a", "enough": graph.End}, func(s graph.State) string {
				if visits.Get(s) < 2 {
					return "once more"
				}
				return "enough"
			}),
			edge("b1", "b2"),
			edge("b2", "b3"),
			edge("b3", "b4"),
			edge("b4", "b"),
			join("j", "a", "b"),
			edge("j", graph.End),
		},
	})
	res, err := start(t, kept(g))
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), []string{"a", "a", "b", "j"}) {
		t.Error(list.Get(res.State))
	}
}

func TestACodecHasBothFunctions(t *testing.T) {
	encode := func(dst []byte, _ string) ([]byte, error) { return dst, nil }
	decode := func([]byte) (string, error) { return "", nil }
	for name, c := range map[string]graph.Codec[string]{"Encode": {Encode: encode}, "Decode": {Decode: decode}, "neither": {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a codec with %s alone is taken", name)
				}
			}()
			graph.Last[string]("k").WithCodec(c)
		}()
	}
	graph.Last[string]("k").WithCodec(graph.Codec[string]{Encode: encode, Decode: decode})
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

func TestTheZeroState(t *testing.T) {
	if v, ok := (graph.State{}).Value("k"); ok || v != nil {
		t.Errorf("%v, %t", v, ok)
	}
	if keys := (graph.State{}).Keys(); keys != nil {
		t.Errorf("%q", keys)
	}
}

// A child sees what its parent has of its own keys, and what the parent has now, not what another run had.
func TestWhatAChildInherits(t *testing.T) {
	both := graph.Last[string]("both")
	above := graph.Last[string]("above")
	var seen []string
	child := compile(t, graph.Def{
		Name: "child",
		Keys: []graph.AnyKey{both},
		Nodes: []graph.Node{{Name: "look", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
			seen = append(seen, both.Get(s)+fmt.Sprint(s.Keys()))
			return graph.Update{}, nil
		}}},
		Start: []string{"look"},
		Edges: []graph.Edge{edge("look", graph.End)},
	})
	g := compile(t, graph.Def{
		Name: "parent",
		Keys: []graph.AnyKey{above, both},
		Nodes: []graph.Node{{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child, Inherit: true}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				c, err := graph.CallChild(ctx, "x", "k")
				if keys := c.State.Keys(); slices.Contains(keys, "above") {
					t.Errorf("the child has the keys %q", keys)
				}
				return graph.Update{}, err
			},
		}},
		Start: []string{"n"},
		Edges: []graph.Edge{edge("n", graph.End)},
	})
	for _, set := range [][]graph.Write{{above.Set("x"), both.Set("one")}, {above.Set("x")}, {both.Set("two")}} {
		res, err := kept(g).Invoke(t.Context(), graph.Input{Set: set})
		is(t, graph.Done, res, err)
	}
	if want := []string{"one[both]", "[]", "two[both]"}; !slices.Equal(seen, want) {
		t.Errorf("the children saw %q, want %q", seen, want)
	}
}

// A break may name a task by its index, as the results of a Send do: it holds for the node.
func TestABreakWithTheIndexOfATask(t *testing.T) {
	child := parallel(t, graph.Node{Name: "one", Run: idle})
	r := kept(parallel(t, graph.Node{Name: "n", Graph: child}))
	res, err := r.Invoke(t.Context(), graph.Input{Thread: thread, Break: []graph.Break{{Node: "n[3]/one"}}})
	if is(t, graph.Paused, res, err); !slices.Equal(res.Breaks, []graph.Break{{Node: "n/one"}}) {
		t.Errorf("%+v", res.Breaks)
	}
}

// The tasks of a step that is continued stand in the order of the graph that continues it.
func TestTheOrderOfAChangedGraphCounts(t *testing.T) {
	def := func(names ...string) *graph.Graph {
		d := graph.Def{Name: "order", Keys: all, Start: names}
		for _, name := range names {
			n := say(name)
			n.BreakBefore = true
			d.Nodes = append(d.Nodes, n)
			d.Edges = append(d.Edges, edge(name, graph.End))
		}
		return compile(t, d)
	}
	r := kept(def("a", "b", "c"))
	res, err := start(t, r)
	is(t, graph.Paused, res, err)
	r.Graph = def("c", "b", "a")
	res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, AcceptChanges: true})
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), []string{"c", "b", "a"}) {
		t.Error(list.Get(res.State))
	}
}

// A task that does not start because the context has ended has not run: a resume runs it.
func TestATaskThatDidNotStartRunsLater(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var c tally
	g := parallel(t,
		graph.Node{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			cancel()
			return graph.Update{}, nil
		}},
		graph.Node{Name: "b", Run: c.counts("b")},
	)
	r := kept(g)
	r.Executor = sequential{}
	res, err := r.Invoke(ctx, graph.Input{Thread: thread})
	if is(t, graph.Canceled, res, err); c.of("b") != 0 {
		t.Fatal("it has run")
	}
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); c.of("b") != 1 {
		t.Errorf("it has run %d times", c.of("b"))
	}
}

// If a child has stopped at a break, time answers nothing before the resume.
func TestABreakBesideATimerThatIsDue(t *testing.T) {
	settled(t, func(t *testing.T) {
		var c tally
		child := parallel(t,
			graph.Node{Name: "slow", BreakAfter: true, Run: func(context.Context, graph.State) (graph.Update, error) {
				<-time.After(time.Minute)
				return graph.Update{}, nil
			}},
		)
		r := kept(parallel(t, graph.Node{Name: "sleeps", Run: c.sleeps("slept", time.Second)}, graph.Node{Name: "child", Graph: child}))
		res, err := start(t, r)
		if is(t, graph.Waiting, res, err); len(res.Breaks) != 1 {
			t.Errorf("it has stopped at %v", res.Breaks)
		}
		if n := countKind(t, r.Store, journal.KindAnswer); n != 0 || c.of("slept") != 0 {
			t.Errorf("%d answers, slept %d", n, c.of("slept"))
		}
		res, err = resume(t, r)
		if is(t, graph.Done, res, err); c.of("slept") != 1 {
			t.Errorf("slept %d times", c.of("slept"))
		}
	})
}

// A reader may change the lists in the maps that it gets, and no one else sees it.
func TestListsInMapsAreCopied(t *testing.T) {
	lists := graph.Merge[string, []int]("lists")
	anything := graph.Last[any]("anything")
	var seen []string
	change := func(_ context.Context, s graph.State) (graph.Update, error) {
		seen = append(seen, fmt.Sprint(lists.Get(s), anything.Get(s)))
		lists.Get(s)["x"][0]++
		return graph.Update{}, nil
	}
	g := compile(t, graph.Def{
		Name:  "lists",
		Keys:  []graph.AnyKey{lists, anything},
		Nodes: []graph.Node{{Name: "a", Run: change}, {Name: "b", Run: change}},
		Start: []string{"a"},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
	})
	for _, v := range []any{nil, "text", map[string]any{"k": "v"}} {
		seen = nil
		set := []graph.Write{lists.Set(map[string][]int{"x": {1}}), anything.Set(v)}
		res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: set})
		is(t, graph.Done, res, err)
		want := fmt.Sprint(map[string][]int{"x": {1}}, v)
		if len(seen) != 2 || seen[0] != want || seen[1] != want || lists.Get(res.State)["x"][0] != 1 {
			t.Errorf("seen %q, want %q twice; then %v", seen, want, lists.Get(res.State))
		}
	}
}

// Two tasks that write the same of many keys are in conflict, and one that writes each of them twice is not.
func TestConflictsAmongManyKeys(t *testing.T) {
	var keys []graph.AnyKey
	var writes2, last []graph.Write
	for i := range 60 {
		k := graph.Last[int](fmt.Sprint("k", i))
		keys = append(keys, k)
		writes2 = append(writes2, k.Set(1), k.Set(2))
		last = []graph.Write{k.Set(3)}
	}
	def := func(nodes ...graph.Node) *graph.Graph {
		d := graph.Def{Name: "many", Keys: keys, Nodes: nodes}
		for _, n := range nodes {
			d.Start = append(d.Start, n.Name)
			d.Edges = append(d.Edges, edge(n.Name, graph.End))
		}
		return compile(t, d)
	}
	twice := graph.Node{Name: "twice", Run: writes(writes2...)}
	res, err := start(t, kept(def(twice)))
	is(t, graph.Done, res, err)
	if v, ok := res.State.Value("k59"); !ok || v != 2 {
		t.Errorf("k59 is %v", v)
	}
	_, err = start(t, kept(def(twice, graph.Node{Name: "other", Run: writes(last...)})))
	var conflict *graph.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != "k59" {
		t.Errorf("%v", err)
	}
}

// Children that ask are a part of the state until they are dropped, and are counted once after a resume.
func TestTheSizeOfChildrenThatAsk(t *testing.T) {
	text := graph.Last[string]("text")
	note := graph.Last[string]("note")
	child := compile(t, graph.Def{
		Name: "child",
		Keys: []graph.AnyKey{text, note},
		Nodes: []graph.Node{
			{Name: "write", Run: writes(text.Set(strings.Repeat("x", 600)))},
			{Name: "ask", Run: asks(nil)},
			{Name: "more", Run: writes(note.Set("a little more"))},
		},
		Start: []string{"write"},
		Edges: []graph.Edge{edge("write", "ask"), edge("ask", "more"), edge("more", graph.End)},
	})
	node := func(drops bool) *graph.Graph {
		return parallel(t, graph.Node{
			Name:     "n",
			Children: map[string]graph.ChildGraph{"k": {Graph: child}},
			Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				var err error
				for i := range 5 {
					name := fmt.Sprint("c", i)
					_, err = graph.CallChild(ctx, name, "k")
					if !errors.Is(err, graph.ErrWaiting) || !drops {
						return graph.Update{}, err
					}
					if err = graph.DropChild(ctx, name); err != nil {
						return graph.Update{}, err
					}
				}
				return graph.Put(list.Set([]string{"dropped"})), nil
			},
		})
	}
	r := kept(node(true))
	r.MaxState = 1000
	res, err := start(t, r)
	if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), []string{"dropped"}) {
		t.Error(list.Get(res.State))
	}
	r = kept(node(false))
	r.MaxState = 1000
	res, err = start(t, r)
	is(t, graph.Waiting, res, err)
	_, err = resume(t, r, says(res.Questions[0].ID, "yes"))
	var large *graph.StateSizeError
	if errors.As(err, &large) {
		t.Errorf("one child at a time is too large: %v", err)
	}
}

// A value that a resume sets and that cannot be read again is refused, with Debug, before anything is recorded.
func TestResumeSetsWhatCannotBeReadAgain(t *testing.T) {
	half := graph.Last[string]("half").WithCodec(graph.Codec[string]{
		Tag:    "half",
		Encode: func(dst []byte, v string) ([]byte, error) { return append(dst, v...), nil },
		Decode: func([]byte) (string, error) { return "", errors.New("cannot be read") },
	})
	r := kept(compile(t, graph.Def{
		Name:  "half",
		Keys:  append(slices.Clone(all), half),
		Nodes: []graph.Node{{Name: "n", Run: asker("a")}},
		Start: []string{"n"},
		Edges: []graph.Edge{edge("n", graph.End)},
	}))
	res, err := start(t, r)
	is(t, graph.Waiting, res, err)
	before := len(journalOf(t, r.Store, thread))
	r.Debug = true
	_, err = r.InvokeResume(t.Context(), graph.Resume{Thread: thread, Set: []graph.Write{half.Set("x")}})
	if err == nil || !strings.Contains(err.Error(), `key "half": cannot be read`) {
		t.Error(err)
	}
	if after := len(journalOf(t, r.Store, thread)); after != before {
		t.Errorf("%d records were added", after-before)
	}
}

// With Debug, a reducer of one's own gets no stored form of a value that is not there: its codec may refuse the zero
// value.
func TestDebugOfAReducerWithoutAnOldValue(t *testing.T) {
	k := graph.Fold("k", func(old string, _ bool, upd string) (string, error) { return old + upd, nil }).WithCodec(graph.Codec[string]{
		Tag: "never empty",
		Encode: func(dst []byte, v string) ([]byte, error) {
			if v == "" {
				return nil, errors.New("the value is empty")
			}
			return append(dst, v...), nil
		},
		Decode: func(b []byte) (string, error) { return string(b), nil },
	})
	g := compile(t, graph.Def{
		Name:  "reducer",
		Keys:  []graph.AnyKey{k},
		Nodes: []graph.Node{{Name: "a", Run: writes(k.Set("x"))}, {Name: "b", Run: writes(k.Set("y"))}},
		Start: []string{"a"},
		Edges: []graph.Edge{edge("a", "b"), edge("b", graph.End)},
	})
	res, err := debugged(g, journal.NewMemory()).Invoke(t.Context(), graph.Input{Thread: thread})
	if is(t, graph.Done, res, err); k.Get(res.State) != "xy" {
		t.Errorf("%q", k.Get(res.State))
	}
}

// A reader that panics at any event gets no further one, and its own panic.
func TestAReaderThatPanicsAtAnyEvent(t *testing.T) {
	for at := 1; ; at++ {
		seen := 0
		settled(t, func(t *testing.T) {
			emits := func(ctx context.Context, _ graph.State) (graph.Update, error) {
				for i := range 3 {
					graph.Emit(ctx, i)
				}
				return graph.Update{}, nil
			}
			r := kept(parallel(t, graph.Node{Name: "a", Run: emits}, graph.Node{Name: "b", Run: emits}))
			defer func() {
				if p := recover(); p != nil && p != "the reader" {
					t.Errorf("at event %d: %v", at, p)
				}
			}()
			for range r.Run(t.Context(), graph.Input{Thread: thread, Topics: graph.AllTopics}) {
				if seen++; seen == at {
					panic("the reader")
				}
			}
		})
		if seen < at {
			if at < 10 {
				t.Errorf("only %d events", seen)
			}
			return
		}
		if seen > at {
			t.Errorf("%d events after the panic at %d", seen-at, at)
		}
	}
}
