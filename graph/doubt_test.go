package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// doubtful is a graph whose effect dies with its process: calls counts the calls,
// and the first ends the drive as a kill would, with the journal as it was then.
func doubtful(t testing.TB, policy graph.InDoubt, calls *int, recorded func()) *graph.Graph {
	return parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		v, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: policy}, func(ctx context.Context) (string, error) {
			if *calls++; *calls == 1 {
				if err := graph.Note(ctx, []byte("pid 7")); err != nil {
					return "", err
				}
				recorded()
			}
			return fmt.Sprint("paid ", *calls), nil
		})
		return graph.Put(only.Set(v)), err
	}})
}

func TestAnEffectInDoubt(t *testing.T) {
	for _, c := range []struct {
		policy graph.InDoubt
		answer string
		want   graph.Status
		calls  int
		only   string
	}{
		{graph.DoubtRetry, "", graph.Done, 2, "paid 2"},
		{graph.DoubtSkip, "", graph.Done, 1, ""},
		{graph.DoubtFail, "", graph.Failed, 1, ""},
		{graph.DoubtAsk, "retry", graph.Done, 2, "paid 2"},
		{graph.DoubtAsk, "skip", graph.Done, 1, ""},
		{graph.DoubtAsk, "fail", graph.Failed, 1, ""},
	} {
		calls := 0
		r := kept(nil)
		var killed *journal.Memory
		r.Graph = doubtful(t, c.policy, &calls, func() { killed = copyBefore(t, r.Store, func(journal.Record) bool { return false }) })
		_, err := start(t, r)
		if err != nil {
			t.Fatal(err)
		}
		calls, r.Store = 1, killed
		s, err := history.Inspect(t.Context(), killed, thread, 0)
		if err != nil || len(s.InDoubt) != 1 || string(s.InDoubt[0].Note) != "pid 7" || s.InDoubt[0].ID != "0.a.0\x00pay\x000" || s.Status != graph.Crashed {
			t.Fatalf("%+v, %v", s, err)
		}
		res, err := resume(t, r)
		if c.answer != "" {
			is(t, graph.Waiting, res, err)
			if diff := cmp.Diff([]string{"retry", "skip", "fail"}, res.Questions[0].Options); diff != "" {
				t.Error(diff)
			}
			res, err = resume(t, r, says(res.Questions[0].ID, c.answer))
		}
		if is(t, c.want, res, err); calls != c.calls || only.Get(res.State) != c.only {
			t.Errorf("policy %v %s: %d calls, %q", c.policy, c.answer, calls, only.Get(res.State))
		}
	}
}

// An effect whose function said that it failed is made again whatever the policy,
// in the same drive and in the next.
func TestAnEffectThatFailedIsNotInDoubt(t *testing.T) {
	for _, policy := range []graph.InDoubt{graph.DoubtRetry, graph.DoubtAsk, graph.DoubtSkip, graph.DoubtFail} {
		for attempts := range 2 {
			calls := 0
			r := kept(parallel(t, graph.Node{Name: "a", Retry: graph.Retry{Attempts: attempts + 1}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				v, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: policy}, func(ctx context.Context) (string, error) {
					if calls++; calls < 4 {
						return "", errors.Join(graph.Note(ctx, []byte("pid 7")), errors.New("declined"))
					}
					return fmt.Sprint("paid ", calls), nil
				})
				return graph.Put(only.Set(v)), err
			}}))
			res, err := start(t, r)
			for calls < 3 {
				is(t, graph.Failed, res, err)
				res, err = resume(t, r)
			}
			if s, err := history.Inspect(t.Context(), r.Store, thread, 0); err != nil || len(s.InDoubt) != 0 {
				t.Errorf("policy %v: in doubt %v, %v", policy, s.InDoubt, err)
			}
			if res.Status == graph.Failed {
				res, err = resume(t, r)
			}
			if is(t, graph.Done, res, err); only.Get(res.State) != "paid 4" {
				t.Errorf("policy %v: %q", policy, only.Get(res.State))
			}
		}
	}
}

// An effect whose context ended while it ran cannot know: it is in doubt.
func TestAnEffectThatWasCutShortIsInDoubt(t *testing.T) {
	for _, timeout := range []bool{false, true} {
		settled(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			n := graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
				_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: graph.DoubtAsk}, func(ctx context.Context) (string, error) {
					if !timeout {
						cancel()
					}
					<-ctx.Done()
					return "", ctx.Err()
				})
				return graph.Update{}, err
			}}
			want := graph.Canceled
			if timeout {
				n.Timeout, n.Retry.Attempts, want = time.Second, 2, graph.Waiting // the second attempt asks
			}
			r := kept(parallel(t, n))
			res, err := r.Invoke(ctx, graph.Input{Thread: thread})
			if is(t, want, res, err); !timeout {
				res, err = resume(t, r)
			}
			if is(t, graph.Waiting, res, err); len(res.Questions) != 1 || !strings.Contains(res.Questions[0].Prompt, "pay") {
				t.Errorf("timeout %v: %v", timeout, res.Questions)
			}
			res, err = resume(t, r, says("a", "skip"))
			is(t, graph.Done, res, err)
			cancel()
		})
	}
}

// What a person said of a doubt does not decide the next one, and a run that was
// failed by the answer can be resumed. What was skipped stays skipped.
func TestAnAnswerToADoubtHoldsForOneDrive(t *testing.T) {
	var r *graph.Runner
	calls, crashed := 0, journal.Store(nil)
	failing := errors.New("later")
	r = kept(parallel(t, graph.Node{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: graph.DoubtAsk}, func(ctx context.Context) (string, error) {
			calls++
			crashed = copyBefore(t, r.Store, func(journal.Record) bool { return false })
			return "", nil
		})
		return graph.Update{}, errors.Join(err, failing)
	}}))
	_, _ = start(t, r)
	for i, said := range []string{"retry", "fail", "retry", "skip"} {
		if said != "fail" && crashed != nil {
			r.Store, crashed = crashed, nil // the process died in the effect
		}
		res, err := resume(t, r)
		if is(t, graph.Waiting, res, err); len(res.Questions) != 1 {
			t.Fatalf("%d: %v", i, res.Questions)
		}
		if said == "retry" {
			crashed = nil
		}
		res, err = resume(t, r, says(res.Questions[0].ID, said))
		is(t, graph.Failed, res, err)
		if said == "retry" {
			r.Store, crashed = crashed, nil
		}
	}
	failing = nil
	res, err := resume(t, r)
	if is(t, graph.Done, res, err); calls != 3 {
		t.Errorf("%d calls", calls)
	}
}
