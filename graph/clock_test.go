package graph_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// setClock is the wall clock of a machine, which may be set by several nodes at the same time.
type setClock struct{ ahead atomic.Int64 }

func (c *setClock) Now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *setClock) Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A clock that jumps at any moment, forward or back, ends no run, and is no work: not in the drive in which it jumps, nor in one that reads
// what that has recorded, however it has ended. Time that really passes counts as before.
func TestClockThatJumps(t *testing.T) {
	const each, limit = 10 * time.Second, 5 * time.Minute
	jumps := []time.Duration{0, time.Second, -time.Second, time.Hour, 365 * 24 * time.Hour, -time.Hour, -365 * 24 * time.Hour}
	places := []string{"in a node", "in an effect", "before a retry", "in a child", "beside a question", "between the drives", "twice"}
	for _, crash := range []bool{false, true} {
		for _, jump := range jumps {
			for _, place := range places {
				t.Run(fmt.Sprintf("%v %s, crash %v", jump, place, crash), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						clock := &setClock{}
						at := func(here string) {
							if here == place || place == "twice" && (here == "in a node" || here == "in a child") {
								clock.ahead.Add(int64(jump))
							}
						}
						work := func(here string) graph.Func {
							return func(ctx context.Context, _ graph.State) (graph.Update, error) {
								time.Sleep(each / 2)
								at(here)
								time.Sleep(each / 2)
								return graph.Update{}, nil
							}
						}
						child := compile(t, graph.Def{Name: "child", Keys: all, Timeout: limit, Start: []string{"x", "beside"}, Nodes: []graph.Node{{Name: "x", Run: work("in a child")},
							{Name: "beside", Run: asks(func(string) { at("beside a question") })}, {Name: "y", Run: work("")}}, Edges: []graph.Edge{join("y", "x", "beside"), edge("y", graph.End)}})
						g := compile(t, graph.Def{Name: "g", Keys: all, Timeout: limit, Start: []string{"node"}, Nodes: []graph.Node{{Name: "node", Run: work("in a node")},
							{Name: "effect", Retry: graph.Retry{Attempts: 3, Delay: each, Factor: 1, Within: limit}, Run: func(ctx context.Context, s graph.State) (graph.Update, error) {
								if _, err := graph.Do(ctx, "e", func(ctx context.Context) (int, error) { _, err := work("in an effect")(ctx, s); return 1, err }); err != nil {
									return graph.Update{}, err
								}
								if graph.Attempt(ctx) == 1 {
									at("before a retry")
									return graph.Update{}, errors.New("again")
								}
								return graph.Update{}, nil
							}},
							{Name: "sub", Graph: child}, {Name: "last", Run: work("")}},
							Edges: []graph.Edge{edge("node", "effect"), edge("effect", "sub"), edge("sub", "last"), edge("last", graph.End)}})
						r := &graph.Runner{Graph: g, Store: journal.NewMemory(), Clock: clock}
						res, err := r.Invoke(t.Context(), graph.Input{Thread: thread})
						is(t, graph.Waiting, res, err)
						if crash { // before the drive could say that it waits
							r.Store = copyBefore(t, r.Store, nth(journal.KindEnd, 1))
						}
						at("between the drives")
						time.Sleep(time.Hour) // no drive works
						s, err := history.Inspect(t.Context(), r.Store, thread, 0)
						if err != nil || s.Active < each || s.Active > 5*each || jump == 0 && s.Active != 4*each {
							t.Errorf("it has worked %v, %v", s.Active, err)
						}
						res, err = resume(t, r, graph.Answer{ID: s.Questions[0].ID, Value: "yes"})
						is(t, graph.Done, res, err)
						if s, err = history.Inspect(t.Context(), r.Store, thread, 0); err != nil || s.Active < 2*each || s.Active > 7*each || jump == 0 && s.Active != 6*each {
							t.Errorf("in the end it has worked %v, %v", s.Active, err)
						}
					})
				})
			}
		}
	}
}
