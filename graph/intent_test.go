package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
)

// slowIntents is a store that needs a long time to answer an append of an intent. Another process takes the lease meanwhile.
type slowIntents struct {
	*journal.Memory
}

func (s slowIntents) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	err := s.Memory.Append(ctx, thread, after, recs)
	if slices.ContainsFunc(recs, func(r journal.Record) bool { return r.Kind == journal.KindIntent }) {
		by, _ := s.ReadLease(ctx, thread)
		if _, taken := s.AcquireLease(ctx, thread, "another", by.Owner, time.Hour); taken != nil {
			return taken
		}
		time.Sleep(3 * time.Second)
	}
	return err
}

// A drive that has lost its lease while it recorded the intent of an effect does not make the effect, under any policy.
func TestNoEffectAfterAnIntentThatTookLong(t *testing.T) {
	for _, policy := range []graph.InDoubt{graph.DoubtAsk, graph.DoubtSkip, graph.DoubtFail} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				made := 0
				g := compile(t, graph.Def{Name: "g", Start: []string{"a"}, Edges: []graph.Edge{edge("a", graph.End)}, Nodes: []graph.Node{{Name: "a", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					_, err := graph.DoEffect(ctx, graph.Effect{Name: "pay", InDoubt: policy}, func(context.Context) (int, error) { made++; return made, nil })
					return graph.Update{}, err
				}}}})
				_, err := start(t, &graph.Runner{Graph: g, Store: slowIntents{journal.NewMemory()}})
				if !errors.Is(err, graph.ErrLeaseLost) || made != 0 {
					t.Errorf("made %d times, %v", made, err)
				}
			})
		})
	}
}
