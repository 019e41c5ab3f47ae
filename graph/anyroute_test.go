package graph_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// anyRouteDef is a graph whose first node names the next one itself, and may
// name any.
func anyRouteDef(choose string) graph.Def {
	end := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	return graph.Def{
		Name: "any", Start: []string{"first"},
		Nodes: []graph.Node{
			{Name: "first", AnyRoute: true, Run: func(context.Context, graph.State) (graph.Update, error) {
				return graph.Update{Goto: []string{choose}}, nil
			}},
			{Name: "a", Run: end},
			{Name: "b", Run: end},
		},
		Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}, {From: []string{"b"}, To: []string{graph.End}}},
	}
}

func runAnyRoute(t *testing.T, choose string) (path []string, err error) {
	r := &graph.Runner{Graph: compileDef(t, anyRouteDef(choose))}
	for e, runErr := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics}) {
		if runErr != nil {
			err = runErr
			break
		}
		if _, ok := e.Body.(graph.TaskStarted); ok {
			path = append(path, e.Node)
		}
	}
	return path, err
}

func TestAnyRoute(t *testing.T) {
	for choose, want := range map[string][]string{"a": {"first", "a"}, "b": {"first", "b"}, graph.End: {"first"}} {
		if path, err := runAnyRoute(t, choose); err != nil || !slices.Equal(path, want) {
			t.Errorf("Goto %s: path %q, %v", choose, path, err)
		}
	}
	_, err := runAnyRoute(t, "c")
	var route *graph.RouteError
	if !errors.As(err, &route) || !slices.Equal(route.Allowed, []string{graph.End, "a", "b", "first"}) {
		t.Errorf("Goto c: %v, allowed %q", err, route.Allowed)
	}
}

func TestAnyRouteIsPartOfTheDigest(t *testing.T) {
	with, without := anyRouteDef("a"), anyRouteDef("a")
	without.Nodes[0].AnyRoute, without.Nodes[0].Routes = false, []string{"a", "b"}
	if compileDef(t, with).Digest() == compileDef(t, without).Digest() {
		t.Error("the same digest for a node with AnyRoute and one with Routes")
	}
}

// A structure of a graph whose nodes may name any other does not grow with the
// square of its nodes.
func TestAnyRouteStructure(t *testing.T) {
	s := compileDef(t, anyRouteDef("a")).Structure()
	if !s.Nodes[0].AnyRoute || s.Nodes[1].AnyRoute || strings.Contains(fmt.Sprint(s.Edges), "first") {
		t.Errorf("%+v", s)
	}
}

func compileDef(t *testing.T, d graph.Def) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return g
}
