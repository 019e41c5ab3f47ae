package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
)

// Values of keys are in no event and no error, and in the cache only as their
// codec has them.
func TestValuesStayInTheirKeys(t *testing.T) {
	const word = "whisper"
	secret := graph.Last[string]("secret").WithCodec(redacted())
	refuses := graph.Fold("refuses", func(_ string, _ bool, _ string) (string, error) { return "", errors.New("refused") })
	stranger := graph.Last[string]("stranger")
	mistyped := graph.Last[[]string]("secret")
	tells := func(ctx context.Context, _ graph.State) (graph.Update, error) {
		_, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "?"})
		return graph.Put(secret.Set(word)), err
	}
	cache := &listedCache{}
	for name, nodes := range map[string][]graph.Node{
		"written":  {{Name: "a", Run: writes(secret.Set(word)), Cache: &graph.CachePolicy{Keys: []graph.AnyKey{secret}}}},
		"asked":    {{Name: "a", Run: tells}},
		"conflict": {{Name: "a", Run: writes(secret.Set(word))}, {Name: "b", Run: writes(secret.Set(word))}},
		"refused":  {{Name: "a", Run: writes(refuses.Set(word))}},
		"unknown":  {{Name: "a", Run: writes(stranger.Set(word))}},
		"mistyped": {{Name: "a", Run: writes(mistyped.Set([]string{word}))}},
		"child":    {{Name: "a", Inherit: true, Graph: compile(t, graph.Def{Name: "c", Keys: []graph.AnyKey{secret}, Start: []string{"x"}, Nodes: []graph.Node{{Name: "x", Run: tells}}, Edges: []graph.Edge{edge("x", graph.End)}})}},
	} {
		d := graph.Def{Name: "g", Keys: []graph.AnyKey{secret, refuses}, Nodes: nodes}
		for _, n := range nodes {
			d.Start, d.Edges = append(d.Start, n.Name), append(d.Edges, edge(n.Name, graph.End))
		}
		r := &graph.Runner{Graph: compile(t, d), Store: graph.NewMemory(), Cache: cache}
		var told bytes.Buffer
		for e, err := range r.Run(t.Context(), graph.Input{Thread: thread, Set: []graph.Write{secret.Set(word)}, Topics: graph.AllTopics}) {
			line, fault := json.Marshal(e)
			if fault != nil {
				t.Fatal(fault)
			}
			fmt.Fprintln(&told, string(line), err)
		}
		for e, err := range graph.History(t.Context(), r.Store, thread) {
			fmt.Fprintln(&told, e, err)
		}
		if bytes.Contains(told.Bytes(), []byte(word)) || told.Len() < 200 {
			t.Errorf("%s: %s", name, &told)
		}
	}
	if len(cache.values) == 0 || bytes.Contains(bytes.Join(cache.values, nil), []byte(word)) {
		t.Errorf("the cache holds %q", cache.values)
	}
}

// listedCache keeps what it is given, and finds nothing.
type listedCache struct {
	mu     sync.Mutex
	values [][]byte
}

func (c *listedCache) Get(context.Context, string) ([]byte, bool, error) { return nil, false, nil }

func (c *listedCache) Set(_ context.Context, key string, value []byte, _ time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.values = append(c.values, []byte(key), bytes.Clone(value))
	return nil
}

func (c *listedCache) Clear(context.Context, string) error { return nil }
