package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"raddle.dev/graph"
	"raddle.dev/store/sqlite"
)

// A run asks a question and its process ends; another one answers.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "runs.db")

	name := graph.Last[string]("name")
	g, err := graph.Compile(graph.Def{
		Name: "hello", Keys: []graph.AnyKey{name}, Start: []string{"ask"},
		Nodes: []graph.Node{{Name: "ask", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
			answer, err := graph.Interrupt[string](ctx, graph.Ask{Prompt: "Who are you?"})
			return graph.Put(name.Set(answer)), err
		}}},
		Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}},
	})
	if err != nil {
		log.Fatal(err)
	}

	store, err := sqlite.Open(path)
	if err != nil {
		log.Fatal(err)
	}
	asked, err := (&graph.Runner{Graph: g, Store: store}).Invoke(ctx, graph.Input{Thread: "t1"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(asked.Status, asked.Questions[0].Prompt)
	if err := store.Close(); err != nil {
		log.Fatal(err)
	}

	store, err = sqlite.Open(path) // as another process would
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	answers := []graph.Answer{{ID: asked.Questions[0].ID, Value: "ada"}}
	done, err := (&graph.Runner{Graph: g, Store: store}).InvokeResume(ctx, graph.Resume{Thread: "t1", Answers: answers})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(done.Status, name.Get(done.State))
	// Output:
	// waiting Who are you?
	// done ada
}
