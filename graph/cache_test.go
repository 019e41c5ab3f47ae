package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
)

func TestACachedNodeIsSkipped(t *testing.T) {
	x, other, y := graph.Last[int]("x"), graph.Last[int]("other"), graph.Last[int]("y")
	runs := 0
	def := func(version string) graph.Def {
		return graph.Def{Name: "cache", Keys: []graph.AnyKey{x, other, y}, Start: []string{"a"}, Nodes: []graph.Node{
			{Name: "a", Ends: map[string]string{"small": "s", "large": "l"}, Cache: &graph.CachePolicy{Keys: []graph.AnyKey{x}, Version: version, TTL: time.Minute}, Run: func(_ context.Context, s graph.State) (graph.Update, error) {
				runs++
				if x.Get(s) < 0 {
					return graph.Update{}, errors.New("negative")
				}
				u := graph.Put(y.Set(x.Get(s) * 2))
				u.Goto = []string{"small"}
				return u, nil
			}},
			{Name: "s", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }},
			{Name: "l", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }},
		}, Edges: []graph.Edge{edge("s", graph.End), edge("l", graph.End)}}
	}
	clock := &graphtest.Clock{}
	cache := &graph.MemoryCache{Clock: clock}
	run := func(version string, xv, ov int) (hit bool) {
		t.Helper()
		for e, err := range (&graph.Runner{Graph: compile(t, def(version)), Cache: cache}).Run(t.Context(), graph.Input{Topics: graph.TopicTask, Set: []graph.Write{x.Set(xv), other.Set(ov)}}) {
			if err != nil && xv >= 0 {
				t.Fatal(err)
			}
			switch b := e.Body.(type) {
			case graph.TaskDone:
				hit = hit || b.Cached
			case graph.RunEnded:
				if xv >= 0 && y.Get(b.Result.State) != 2*xv {
					t.Errorf("y = %d", y.Get(b.Result.State))
				}
			}
		}
		return hit
	}
	for i, c := range []struct {
		version   string
		x, other  int
		hit       bool
		totalRuns int
	}{
		{"1", 3, 0, false, 1}, {"1", 3, 9, true, 1}, {"1", 4, 0, false, 2}, {"2", 3, 0, false, 3}, {"2", 3, 0, true, 3},
		{"1", -1, 0, false, 4}, {"1", -1, 0, false, 5},
	} {
		if hit := run(c.version, c.x, c.other); hit != c.hit || runs != c.totalRuns {
			t.Errorf("case %d: hit %v, %d runs", i, hit, runs)
		}
	}
	if err := clock.Wait(t.Context(), 2*time.Minute); err != nil {
		t.Fatal(err)
	}
	if run("1", 3, 0) {
		t.Error("an expired entry was used")
	}
	if err := cache.Clear(t.Context(), graph.CacheKey("cache", "a")); err != nil {
		t.Fatal(err)
	}
	if run("1", 3, 0) {
		t.Error("a cleared entry was used")
	}
}

func TestACacheThatFailsFailsTheNode(t *testing.T) {
	x := graph.Last[int]("x")
	g := compile(t, graph.Def{Name: "c", Keys: []graph.AnyKey{x}, Start: []string{"a"}, Nodes: []graph.Node{{Name: "a", Cache: &graph.CachePolicy{Keys: []graph.AnyKey{x}},
		Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }}}, Edges: []graph.Edge{edge("a", graph.End)}})
	_, err := (&graph.Runner{Graph: g, Cache: brokenCache{}}).Invoke(t.Context(), graph.Input{})
	if !errors.Is(err, errBrokenCache) {
		t.Error(err)
	}
}

var errBrokenCache = errors.New("the cache is away")

type brokenCache struct{ graph.Cache }

func (brokenCache) Get(context.Context, string) ([]byte, bool, error) {
	return nil, false, errBrokenCache
}

func TestEndsAndCachesAreChecked(t *testing.T) {
	nop := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	k := graph.Last[int]("k")
	_, err := graph.Compile(graph.Def{Name: "bad", Start: []string{"a"}, Nodes: []graph.Node{
		{Name: "a", Run: nop, Routes: []string{"b"}, Ends: map[string]string{"b": "a", "away": "ghost"}, Cache: &graph.CachePolicy{}},
		{Name: "b", Run: nop, Cache: &graph.CachePolicy{Keys: []graph.AnyKey{k}}},
	}, Edges: []graph.Edge{edge("b", graph.End)}})
	if err == nil {
		t.Fatal("compiled")
	}
	for _, want := range []string{`end "b" of node "a" leads to "a"`, `end "away" of node "a" names node "ghost"`, `cache of node "a" names no Keys`, `cache of node "b" names a key`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %s:\n%v", want, err)
		}
	}
}

// garbledCache has an entry for everything, and none that can be read.
type garbledCache struct{ graph.Cache }

func (garbledCache) Get(context.Context, string) ([]byte, bool, error) {
	return []byte{0xff}, true, nil
}

// A result that cannot be kept, or that was kept and cannot be read, fails the node: it is not taken for an empty one.
func TestResultsThatACacheCannotKeep(t *testing.T) {
	k := graph.Last[string]("k").WithCodec(graph.Codec[string]{
		Tag:    "write only",
		Encode: func([]byte, string) ([]byte, error) { return nil, errors.New("it cannot be stored") },
		Decode: func([]byte) (string, error) { return "", nil },
	})
	x := graph.Last[int]("x")
	for want, c := range map[string]struct {
		cache graph.Cache
		node  graph.Func
	}{
		`key "k": it cannot be stored`: {cache: &graph.MemoryCache{}, node: writes(k.Set("v"))},
		"cache: ":                      {cache: garbledCache{}, node: idle},
	} {
		g := compile(t, graph.Def{
			Name:  "kept",
			Keys:  []graph.AnyKey{x, k},
			Start: []string{"a"},
			Nodes: []graph.Node{{Name: "a", Cache: &graph.CachePolicy{Keys: []graph.AnyKey{x}}, Run: c.node}},
			Edges: []graph.Edge{edge("a", graph.End)},
		})
		res, err := (&graph.Runner{Graph: g, Cache: c.cache}).Invoke(t.Context(), graph.Input{})
		if err == nil || res.Status != graph.Failed || !strings.Contains(err.Error(), want) {
			t.Errorf("%s, %v; want %q", res.Status, err, want)
		}
	}
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
