package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// TestEffectsOfManyNames makes more effects in one task than the fast path for names knows, each name twice, and drives the task again: each effect keeps
// its own result.
func TestEffectsOfManyNames(t *testing.T) {
	const names = 30
	var c tally
	failing := true
	var got []string
	g := parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		got = nil
		for range 2 {
			for i := range names {
				name := fmt.Sprint("effect", i)
				v, err := graph.Do(ctx, name, func(context.Context) (string, error) { return fmt.Sprint(name, " ", c.add(name)), nil })
				if err != nil {
					return graph.Update{}, err
				}
				got = append(got, v)
			}
		}
		if failing {
			return graph.Update{}, errors.New("not yet")
		}
		return graph.Update{}, nil
	}})
	r := kept(g)
	res, err := start(t, r)
	if err == nil || res.Status != graph.Failed {
		t.Fatal(res.Status, err)
	}
	first := slices.Clone(got)
	failing = false
	res, err = resume(t, r)
	if is(t, graph.Done, res, err); !slices.Equal(got, first) {
		t.Errorf("the second drive has %q, the first had %q", got, first)
	}
	for i := range names {
		if n := c.of(fmt.Sprint("effect", i)); n != 2 {
			t.Errorf("effect%d happened %d times", i, n)
		}
	}
}

// TestDelaysOfRetries compares the pauses between attempts.
func TestDelaysOfRetries(t *testing.T) {
	plain := graph.Retry{Delay: time.Second}
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 6: 30 * time.Second} {
		if got := plain.DelayAfter(attempt, "a"); got != want {
			t.Errorf("after attempt %d: %v, want %v", attempt, got, want)
		}
		if got := plain.DelayAfter(attempt, "b"); got != want {
			t.Errorf("with another seed after attempt %d: %v, want %v", attempt, got, want)
		}
	}
	none, tripled := graph.Retry{}, graph.Retry{Delay: time.Second, Factor: 3, MaxDelay: 5 * time.Second}
	if got := none.DelayAfter(5, "a"); got != 0 {
		t.Errorf("without a delay: %v", got)
	}
	for attempt, want := range map[int]time.Duration{1: time.Second, 2: 3 * time.Second, 3: 5 * time.Second} {
		if got := tripled.DelayAfter(attempt, "a"); got != want {
			t.Errorf("with a factor after attempt %d: %v, want %v", attempt, got, want)
		}
	}
	seen := map[time.Duration]bool{}
	jittered := graph.Retry{Delay: time.Second, Jitter: 0.5}
	for i := range 50 {
		seed := fmt.Sprint(i)
		got := jittered.DelayAfter(1, seed)
		if got < time.Second/2 || got >= time.Second || got != jittered.DelayAfter(1, seed) {
			t.Errorf("seed %s: %v and %v", seed, got, jittered.DelayAfter(1, seed))
		}
		seen[got] = true
	}
	if len(seen) < 40 {
		t.Errorf("50 seeds have %d pauses", len(seen))
	}
	if whole := (&graph.Retry{Delay: time.Second, Jitter: 7}); whole.DelayAfter(1, "a") >= time.Second {
		t.Error("a share above 1 makes pauses longer")
	}
}

// TestDropOfChildrenWithoutAStore drops a child that is known, and one that is not, where nothing is recorded.
func TestDropOfChildrenWithoutAStore(t *testing.T) {
	run := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		for range 2 { // what was dropped can be called again
			child, err := graph.CallChild(ctx, "kept", "worker", only.Set("x"))
			if err != nil || only.Get(child.State) != "x" {
				return graph.Update{}, fmt.Errorf("the child has %q, %v", only.Get(child.State), err)
			}
			if err := errors.Join(graph.DropChild(ctx, "kept"), graph.DropChild(ctx, "unknown")); err != nil {
				return graph.Update{}, err
			}
		}
		return graph.Update{}, nil
	}
	inner := parallel(t, graph.Node{Name: "b", Run: idle})
	g := parallel(t, graph.Node{Name: "a", Run: run, Children: map[string]graph.ChildGraph{"worker": {Graph: inner}}})
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{})
	is(t, graph.Done, res, err)
}

// TestDropOfAnUnknownChildIsNotRecorded counts the records of a node that drops nothing.
func TestDropOfAnUnknownChildIsNotRecorded(t *testing.T) {
	count := func(drop bool) (n int) {
		r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			if drop {
				return graph.Update{}, graph.DropChild(ctx, "unknown")
			}
			return graph.Update{}, nil
		}}))
		res, err := start(t, r)
		is(t, graph.Done, res, err)
		for range r.Store.Read(t.Context(), thread, journal.Range{}) {
			n++
		}
		return n
	}
	if with, without := count(true), count(false); with != without {
		t.Errorf("%d records with a drop of nothing, %d without", with, without)
	}
}

// TestDigestsOfEnds compares graphs that differ only in where a node ends.
func TestDigestsOfEnds(t *testing.T) {
	digest := func(ends map[string]string) string {
		g, err := graph.Compile(graph.Def{
			Name:  "g",
			Keys:  all,
			Start: []string{"a"},
			Nodes: []graph.Node{{Name: "a", Run: idle, Ends: ends}, {Name: "b", Run: idle}, {Name: "c", Run: idle}},
			Edges: []graph.Edge{edge("b", graph.End), edge("c", graph.End)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return g.Digest()
	}
	one := digest(map[string]string{"x": "b", "y": "c"})
	if again := digest(map[string]string{"y": "c", "x": "b"}); again != one {
		t.Error("the same ends have two digests")
	}
	if other := digest(map[string]string{"x": "c", "y": "b"}); other == one {
		t.Error("ends that lead elsewhere have one digest")
	}
}

// TestHaltsUnderDebug reads the value of a halt back, as a resume would.
func TestHaltsUnderDebug(t *testing.T) {
	halting := func(v any) (graph.Result, error) {
		g := parallel(t, graph.Node{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
			return graph.Update{Halt: &graph.Halt{Value: v}}, nil
		}})
		r := kept(g)
		r.Debug = true
		return start(t, r)
	}
	res, err := halting([]any{"x", true})
	if is(t, graph.Done, res, err); fmt.Sprint(res.Value) != "[x true]" {
		t.Errorf("the run ends with %v", res.Value)
	}
	if _, err := halting(func() {}); err == nil || !strings.Contains(err.Error(), "halt: ") {
		t.Errorf("a value that cannot be stored: %v", err)
	}
}

// TestResumeWithoutAStore says what is missing.
func TestResumeWithoutAStore(t *testing.T) {
	r := &graph.Runner{Graph: parallel(t, graph.Node{Name: "a", Run: idle})}
	if _, err := r.InvokeResume(t.Context(), graph.Resume{Thread: thread}); err == nil || !strings.Contains(err.Error(), "resuming needs a store") {
		t.Error(err)
	}
}

// TestEffectsThatCannotBeStored makes an effect whose result has no JSON.
func TestEffectsThatCannotBeStored(t *testing.T) {
	for _, debug := range []bool{false, true} {
		r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			_, err := graph.Do(ctx, "odd", func(context.Context) (any, error) { return make(chan int), nil })
			return graph.Update{}, err
		}}))
		r.Debug = debug
		if _, err := start(t, r); err == nil || !strings.Contains(err.Error(), `effect "odd"`) {
			t.Errorf("debug %t: %v", debug, err)
		}
	}
}

// A leaseless store fails when a lease is read.
type leaseless struct {
	journal.Store
	journal.Leaser
	err error
}

func (l leaseless) ReadLease(context.Context, string) (journal.Lease, error) {
	return journal.Lease{}, l.err
}

// TestALeaseThatCannotBeRead ends a run before it begins.
func TestALeaseThatCannotBeRead(t *testing.T) {
	m := journal.NewMemory()
	wrong := errors.New("the disk broke")
	ran := false
	r := &graph.Runner{Store: leaseless{m, m, wrong}, Graph: parallel(t, graph.Node{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) {
		ran = true
		return graph.Update{}, nil
	}})}
	res, err := start(t, r)
	if !errors.Is(err, wrong) || !strings.Contains(err.Error(), "lease of thread t") || res.Status != graph.NotStarted || ran {
		t.Errorf("%v %v, the node ran: %t", res.Status, err, ran)
	}
}

// TestSharedValuesOutsideOfNodes asks for a value, and waits for one, where it cannot come.
func TestSharedValuesOutsideOfNodes(t *testing.T) {
	if _, err := graph.Share[int](t.Context(), "n"); err == nil || !strings.Contains(err.Error(), "Share needs the context of a node") {
		t.Errorf("outside of a node: %v", err)
	}
	gone := errors.New("no longer")
	r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.Share[int](ctx, "n")
		if err != nil {
			return graph.Update{}, err
		}
		ended, end := context.WithCancelCause(ctx)
		end(gone)
		if err := v.Await(ended, func(*int) (bool, error) { return false, nil }); !errors.Is(err, gone) {
			return graph.Update{}, fmt.Errorf("Await has %v", err)
		}
		return graph.Update{}, nil
	}}))
	res, err := start(t, r)
	is(t, graph.Done, res, err)
}

// TestSharedValuesThatCannotBeRecorded uses a value whose JSON does not exist.
func TestSharedValuesThatCannotBeRecorded(t *testing.T) {
	r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.Share[any](ctx, "n")
		if err != nil {
			return graph.Update{}, err
		}
		return graph.Update{}, v.Use(func(v *any) bool {
			*v = make(chan int)
			return true
		})
	}}))
	if _, err := start(t, r); err == nil || !strings.Contains(err.Error(), `shared value "n"`) {
		t.Error(err)
	}
}

// TestAwaitOfANodeThatHangs lets a node wait for a value after its context has ended and its drive has given it up.
func TestAwaitOfANodeThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		r := kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			v, err := graph.Share[int](ctx, "n")
			if err != nil {
				late <- err
				return graph.Update{}, err
			}
			cancel()
			time.Sleep(time.Hour) // of the bubble
			late <- v.Await(context.Background(), func(*int) (bool, error) { return true, nil })
			return graph.Update{}, nil
		}}))
		r.HungAfter = time.Minute
		if _, err := r.Invoke(ctx, graph.Input{Thread: thread}); err == nil {
			t.Error("the drive does not say that the node hangs")
		}
		if err := <-late; err == nil {
			t.Error("Await works in a node that was given up")
		}
	})
}

// TestWrittenValueOfAnotherKey asks a key for writes of keys that share only its name or only its type.
func TestWrittenValueOfAnotherKey(t *testing.T) {
	text, same, number, other := graph.Last[string]("a"), graph.Last[string]("a"), graph.Last[int]("a"), graph.Last[string]("b")
	if v, ok := text.WrittenValue(same.Set("x")); !ok || v != "x" {
		t.Errorf("a key of the same name and type: %q, %t", v, ok)
	}
	for name, w := range map[string]graph.Write{"another type": number.Set(1), "another name": other.Set("x"), "nothing": {}} {
		if v, ok := text.WrittenValue(w); ok || v != "" {
			t.Errorf("%s: %q, %t", name, v, ok)
		}
	}
}

// TestIntegersOfQuestions says which type of whole number an answer must fit.
func TestIntegersOfQuestions(t *testing.T) {
	ask := func(run graph.Func) graph.Question {
		t.Helper()
		res, err := start(t, kept(parallel(t, graph.Node{Name: "a", Run: run})))
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Fatal(res.Questions)
		}
		return res.Questions[0]
	}
	small := ask(func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[int8](ctx, graph.Ask{})
		return graph.Update{}, err
	})
	real := ask(func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[float64](ctx, graph.Ask{})
		return graph.Update{}, err
	})
	text := ask(asks(nil))
	if small.Type != "number" || small.Integer != "int8" || real.Type != "number" || real.Integer != "" || text.Type != "string" || text.Integer != "" {
		t.Errorf("int8 is %q %q, float64 %q %q, string %q %q", small.Type, small.Integer, real.Type, real.Integer, text.Type, text.Integer)
	}
}

// TestResetsOfOneStep resets a list in two tasks of a step, and in one of them only.
func TestResetsOfOneStep(t *testing.T) {
	for _, second := range []graph.Write{list.Reset([]string{"b"}), list.Set([]string{"b"})} {
		r := kept(parallel(t, graph.Node{Name: "a", Run: writes(list.Reset([]string{"a"}))}, graph.Node{Name: "b", Run: writes(second)}))
		res, err := start(t, r)
		var conflict *graph.ConflictError
		if second.IsReset() {
			if !errors.As(err, &conflict) || conflict.Key != "list" || !slices.Equal(conflict.Nodes, []string{"a", "b"}) {
				t.Errorf("two resets: %v", err)
			}
			continue
		}
		if is(t, graph.Done, res, err); !slices.Equal(list.Get(res.State), []string{"a", "b"}) {
			t.Errorf("a reset and a write: %q", list.Get(res.State))
		}
	}
}
