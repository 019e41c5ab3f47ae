// Command toolloop is an agent that looks, asks and acts. Its model replays a
// transcript; everything else is real: the journal in a SQLite file, the question
// that outlives the process, and the call that is made once.
//
//	go run ./examples/go/toolloop -dir /tmp/stock
//	go run ./examples/go/toolloop -dir /tmp/stock once
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"
	"slices"

	"raddle.dev/agent"
	"raddle.dev/agent/shape"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/store/sqlite"
	"raddle.dev/tool"
)

const thread = "stock"

//go:embed transcript.yaml
var transcript []byte

// tools are what the model may call. Their schemas come from the types of the
// functions.
func tools() ([]tool.Tool, error) {
	type article struct {
		Article string `json:"article"`
	}
	count, err := shape.NewTool("count", "How many of an article are in stock.", func(_ context.Context, in article) (map[string]int, error) {
		return map[string]int{in.Article: len(in.Article)}, nil
	})
	if err != nil {
		return nil, err
	}
	count.Effect = tool.ReadOnly
	count.Parallel = true // calls of it run in parallel, and again after a crash

	type quantity struct {
		Article string `json:"article"`
		N       int    `json:"n" jsonschema:"how many"`
	}
	order, err := shape.NewTool("order", "Order articles.", func(_ context.Context, in quantity) (string, error) {
		// a real tool would send the shop graph.EffectKey of its context
		fmt.Printf("  ordering %d %s\n", in.N, in.Article)
		return "ordered", nil
	})
	order.Effect = tool.Dangerous // it must not happen twice, and not without permission
	return []tool.Tool{count, order}, err
}

// clerk gives permission for everything that does no harm, and asks for
// everything else.
type clerk struct{}

func (clerk) Decide(_ context.Context, t tool.Tool, c tool.Call, granted []string) (agent.Decision, error) {
	if t.Effect == tool.ReadOnly || slices.Contains(granted, t.Name) {
		return agent.Decision{Verdict: agent.Allow}, nil
	}
	return agent.Decision{Verdict: agent.Ask, Prompt: fmt.Sprintf("May I %s %s?", t.Name, c.Args), Grant: []string{t.Name}}, nil
}

// Always is never called: what is allowed here applies only once.
func (clerk) Always(context.Context, []string) error { return nil }

// tell prints what happens.
func tell(ev graph.Event) {
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		switch v := b.Value.(type) {
		case agent.TextDelta:
			fmt.Print(v.Text)
		case agent.ReplyDone:
			fmt.Println()
			for _, c := range v.Message.ToolCalls() {
				fmt.Printf("  calls %s %s\n", c.Name, c.Args)
			}
		}
	case graph.QuestionAsked:
		fmt.Printf("%s %q\nContinue with one of these as the argument.\n", b.Question.Prompt, b.Question.Options)
	case graph.RunEnded:
		fmt.Println("the run is", b.Result.Status)
	}
}

func run(ctx context.Context, dir, answer string) (err error) {
	st, err := sqlite.Open(filepath.Join(dir, "stock.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	model, err := script.Parse("transcript.yaml", transcript)
	if err != nil {
		return err
	}
	list, err := tools()
	if err != nil {
		return err
	}
	g, err := agent.Config{
		Name:    "stock",
		Model:   model,
		Request: llm.Request{System: "You keep the stock."},
		Tools:   list,
		Gate:    clerk{},
		Window:  agent.Window{Tokens: 8000},
	}.Compile()
	if err != nil {
		return err
	}
	r := &graph.Runner{Graph: g, Store: st}
	topics := graph.TopicEmit | graph.TopicQuestion
	events := r.Run(ctx, graph.Input{Thread: thread, Set: agent.Turn("Order what is short of five."), Topics: topics})
	if answer != "" {
		events = r.Resume(ctx, graph.Resume{Thread: thread, Topics: topics, Answers: []graph.Answer{{ID: "act", Value: answer}}})
	}
	for ev, err := range events {
		if err != nil {
			return err
		}
		tell(ev)
	}
	return nil
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "where the journal is")
	flag.Parse()
	if err := run(context.Background(), *dir, flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}
