package graph_test

import (
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
)

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
