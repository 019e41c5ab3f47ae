package graph_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/internal/testkit/testneed"
)

// TestExploreRandomGraphs explores random graphs, as any program can explore its own: 8, or as many as RADDLE_EXPLORE says,
// with 60 runs each, or 600 in make soak.
func TestExploreRandomGraphs(t *testing.T) {
	n := 8
	if text := os.Getenv("RADDLE_EXPLORE"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	runs := 60
	if testneed.Soaks() {
		runs = 600
	}
	for seed := range n {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := sketches(where{depth: seed % 3, routed: true}).Example(seed)
			graphtest.Explore(t, func() graphtest.Subject {
				w := newWorld()
				return graphtest.Subject{
					Runner: func() (*graph.Runner, error) {
						w.mu.Lock()
						defer w.mu.Unlock()
						w.names = 0 // another process makes the same names
						g, err := w.build(s)
						return &graph.Runner{Graph: g}, err
					},
					Answer: func(q graph.Question) any { return answerTo(q).Value },
				}
			}, graphtest.ExploreOptions{Seed: uint64(seed), Runs: runs})
		})
	}
}
