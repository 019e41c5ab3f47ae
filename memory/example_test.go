package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/memory"
)

// A node keeps a value for the user of the run. The next run of this user reads it, and no other
// does. Inside graph.Do a value is read and written once, also when the node runs again.
func Example() {
	st := memory.New() // store/sqlite, store/postgres and store/redis keep values next to runs
	city := graph.Last[string]("city")
	node := func(ctx context.Context, s graph.State) (graph.Update, error) {
		mine := memory.UserNamespace(graph.UserOf(ctx))
		known, err := graph.Do(ctx, "read the city", func(ctx context.Context) (string, error) {
			e, err := st.GetEntry(ctx, mine, "city")
			if errors.Is(err, memory.ErrNotFound) {
				return "", nil
			}
			return string(e.Value), err
		})
		if err != nil || known != "" {
			fmt.Println("known:", known)
			return graph.Update{}, err
		}
		_, err = graph.Do(ctx, "save the city", func(ctx context.Context) (bool, error) {
			value, err := json.Marshal(city.Get(s))
			if err != nil {
				return false, err
			}
			return true, st.PutEntry(ctx, memory.Entry{Namespace: mine, Key: "city", Value: value}, 0)
		})
		fmt.Println("saved:", city.Get(s))
		return graph.Update{}, err
	}
	g, err := graph.Compile(graph.Def{
		Name: "city", Keys: []graph.AnyKey{city},
		Nodes: []graph.Node{{Name: "ask", Run: node}},
		Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}, Start: []string{"ask"},
	})
	if err != nil {
		panic(err)
	}
	r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
	for _, user := range []string{"ada", "ada", "bob"} {
		if _, err := r.Invoke(context.Background(), graph.Input{User: user, Set: []graph.Write{city.Set("Kyiv")}}); err != nil {
			panic(err)
		}
	}
	// Output:
	// saved: Kyiv
	// known: "Kyiv"
	// saved: Kyiv
}
