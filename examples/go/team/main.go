// Command team plans an outing: a lead starts two agents, which work at the same
// time, and combines what they find. One of them asks, while the other continues
// and the lead waits; the answer may come in another process. The models replay
// transcripts; everything else is real.
//
//	go run ./examples/go/team -dir /tmp/outing
//	go run ./examples/go/team -dir /tmp/outing Leeds
package main

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"path/filepath"

	"raddle.dev/agent"
	"raddle.dev/agent/shape"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/store/sqlite"
	"raddle.dev/team"
	"raddle.dev/tool"
)

const thread = "outing"

//go:embed *.yaml
var transcripts embed.FS

// forecast makes the tool of the weather agent. It only reads: it is called again
// after a crash.
func forecast() (tool.Tool, error) {
	type question struct {
		Day string `json:"day"`
	}
	t, err := shape.NewTool("forecast", "The weather of a day.", func(context.Context, question) (map[string]string, error) {
		return map[string]string{"morning": "sun", "evening": "rain"}, nil
	})
	t.Effect = tool.ReadOnly
	return t, err
}

// outing returns the lead and the agents that it may start. All of them share the
// lead's budget.
func outing() (*graph.Graph, error) {
	models := map[string]llm.Model{}
	for _, name := range []string{"lead", "weather", "trains"} {
		text, err := transcripts.ReadFile(name + ".yaml")
		if err != nil {
			return nil, err
		}
		if models[name], err = script.Parse(name+".yaml", text); err != nil {
			return nil, err
		}
	}
	weather, err := forecast()
	if err != nil {
		return nil, err
	}
	return team.Config{
		Lead: team.Member{
			Agent: agent.Config{Model: models["lead"], Request: llm.Request{System: "You plan outings."}, Budget: agent.Budget{Calls: 20}},
			Spawn: &team.Spawn{Max: 2},
		},
		Agents: map[string]team.Member{
			"weather": {Description: "knows the weather", Agent: agent.Config{Model: models["weather"], Tools: []tool.Tool{weather}}},
			"trains":  {Description: "knows the trains", Agent: agent.Config{Model: models["trains"], Tools: agent.UserTools(false)}},
		},
	}.Compile()
}

// tell prints the events that come in the same order every time.
func tell(ev graph.Event) {
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		if v, ok := b.Value.(team.AgentStarted); ok && v.Resumed {
			fmt.Println(v.ID, "continues")
		} else if ok {
			fmt.Println(v.ID, "starts")
		}
	case graph.RunEnded:
		fmt.Println("the run is", b.Result.Status)
		for _, q := range b.Result.Questions {
			fmt.Printf("%s: %s\nContinue with the answer as the argument.\n", q.ID, q.Prompt)
		}
		if b.Result.Status == graph.Done {
			report(b.Result.State)
		}
	}
}

// report prints what the lead received, what it says, and what all have cost.
func report(s graph.State) {
	for _, m := range agent.History(s) {
		for _, p := range m.Parts {
			var found struct{ Agent, Status, Output string }
			if r, ok := p.(llm.ToolResult); ok && json.Unmarshal([]byte(llm.Message{Parts: r.Content}.Text()), &found) == nil && found.Output != "" {
				fmt.Printf("%s, %s: %s\n", found.Agent, found.Status, found.Output)
			}
		}
	}
	fmt.Printf("%s (%d replies in all)\n", agent.LastResponse(s), agent.Spent.Get(s).Calls)
}

func run(ctx context.Context, dir, answer string) (err error) {
	st, err := sqlite.Open(filepath.Join(dir, "outing.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	g, err := outing()
	if err != nil {
		return err
	}
	r := &graph.Runner{Graph: g, Store: st}
	events := r.Run(ctx, graph.Input{Thread: thread, Run: thread, Set: agent.Turn("Plan a day in the hills."), Topics: graph.TopicEmit})
	if answer != "" {
		s, err := history.Inspect(ctx, st, thread, 0)
		if err != nil {
			return err
		}
		in := graph.Resume{Thread: thread, Topics: graph.TopicEmit}
		for _, q := range s.Questions {
			in.Answers = append(in.Answers, graph.Answer{ID: q.ID, Value: answer})
		}
		events = r.Resume(ctx, in)
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
