// Command approval stops a run until a person approves it, in another process:
// the question, and everything that was done before it, are in a SQLite file.
//
//	go run ./examples/go/approval -dir /tmp/orders
//	go run ./examples/go/approval -dir /tmp/orders "make it two lines"
//	go run ./examples/go/approval -dir /tmp/orders approve
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

const thread = "letter"

var (
	letter  = graph.Last[string]("letter")
	wanted  = graph.Last[string]("wanted") // what the reviewer wants changed
	verdict = graph.Last[string]("verdict")
)

// draft represents a slow and expensive call. Inside Do it is made once for each
// draft, even if the process ends after it.
func draft(ctx context.Context, s graph.State) (graph.Update, error) {
	text, err := graph.Do(ctx, "write", func(context.Context) (string, error) {
		fmt.Println("drafting …")
		if change, ok := wanted.Lookup(s); ok {
			return "Dear all, (" + change + ")", nil
		}
		return "Dear all,", nil
	})
	return graph.Put(letter.Set(text)), err
}

// review asks. As long as there is no answer, Interrupt returns an error that
// ends the run as Waiting; in the process that has the answer, it returns the
// answer.
func review(ctx context.Context, s graph.State) (graph.Update, error) {
	answer, err := graph.Interrupt[string](ctx, graph.Ask{
		Kind:    "select",
		Prompt:  fmt.Sprintf("Send %q?", letter.Get(s)),
		Options: []string{"approve", "reject"},
		Free:    true, // any other answer is a change to make
	})
	switch {
	case err != nil:
		return graph.Update{}, err
	case answer == "approve":
		return graph.Update{Goto: []string{"send"}}, nil
	case answer == "reject":
		return graph.Update{Writes: []graph.Write{verdict.Set("rejected")}, Goto: []string{graph.End}}, nil
	}
	return graph.Update{Writes: []graph.Write{wanted.Set(answer)}, Goto: []string{"draft"}}, nil
}

func send(context.Context, graph.State) (graph.Update, error) {
	return graph.Put(verdict.Set("sent")), nil
}

var def = graph.Def{
	Name: "approval",
	Keys: []graph.AnyKey{letter, wanted, verdict},
	Nodes: []graph.Node{
		{Name: "draft", Run: draft},
		{Name: "review", Run: review, Routes: []string{"draft", "send", graph.End}},
		{Name: "send", Run: send},
	},
	Edges: []graph.Edge{
		{From: []string{"draft"}, To: []string{"review"}},
		{From: []string{"send"}, To: []string{graph.End}},
	},
	Start: []string{"draft"},
}

// proceed starts the run, or resumes it when the store has it already.
func proceed(ctx context.Context, r *graph.Runner, answer string) (graph.Result, error) {
	in := graph.Resume{Thread: thread}
	snap, err := history.Inspect(ctx, r.Store, thread, 0)
	switch {
	case errors.Is(err, journal.ErrNoThread) && answer == "":
		return r.Invoke(ctx, graph.Input{Thread: thread})
	case err != nil:
		return graph.Result{}, err
	case answer != "" && len(snap.Questions) == 0:
		return graph.Result{}, fmt.Errorf("no question is open: the run is %s", snap.Status)
	case answer != "":
		in.Answers = []graph.Answer{{ID: snap.Questions[0].ID, Value: answer}}
	}
	return r.InvokeResume(ctx, in)
}

func run(dir, answer string) error {
	g, err := graph.Compile(def)
	if err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(dir, "approval.db"))
	if err != nil {
		return err
	}
	defer store.Close()
	res, err := proceed(context.Background(), &graph.Runner{Graph: g, Store: store}, answer)
	if err != nil {
		return err
	}
	fmt.Println("the run is", res.Status)
	for _, q := range res.Questions {
		fmt.Printf("%s: %s\nContinue with one of %q, or a change, as the argument.\n", q.ID, q.Prompt, q.Options)
	}
	if res.Status == graph.Done {
		fmt.Printf("%q was %s\n", letter.Get(res.State), verdict.Get(res.State))
	}
	return nil
}

func main() {
	dir := flag.String("dir", "out", "directory of the file that keeps the run; delete it to start again")
	flag.Parse()
	if err := run(*dir, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}
