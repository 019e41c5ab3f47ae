package agent_test

import (
	"context"
	"fmt"
	"iter"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// BenchmarkRound is the cost of one reply and one call, with the journal in
// memory, in a conversation of so many rounds.
func BenchmarkRound(b *testing.B) {
	for _, rounds := range []int{1, 10, 100} {
		b.Run(fmt.Sprint("rounds ", rounds), func(b *testing.B) {
			look := tool.Tool{Name: "look", Effect: tool.ReadOnly, Polls: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.TextResult("nothing new"), nil
			}}
			model := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
				return func(yield func(llm.Delta, error) bool) {
					m := say("done")
					if len(r.Messages) < 2*rounds {
						m = call("x", "look", `{"n":1}`)
					}
					yield(llm.Delta{Done: &llm.Reply{Message: m}}, nil)
				}
			})
			g := compile(b, agent.Config{Model: model, Tools: []tool.Tool{look}, MaxIterations: 2 * rounds})
			b.ReportAllocs()
			for b.Loop() {
				r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
				if _, err := r.Invoke(b.Context(), graph.Input{Set: agent.Turn("Go.")}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rounds), "ns/round")
		})
	}
}

// BenchmarkFold is what every node pays to read a long conversation.
func BenchmarkFold(b *testing.B) {
	var messages []llm.Message
	for i := range 200 {
		messages = append(messages, llm.User(words(20, "please")), call(fmt.Sprint(i), "look", `{}`),
			llm.Message{Role: llm.RoleTool, Parts: []llm.Part{tool.TextResult(words(60, "seen")).MessagePart(llm.ToolCall{ID: fmt.Sprint(i)})}}, say(words(30, "fine")))
	}
	var state graph.State
	g, err := graph.Compile(graph.Def{Name: "g", Keys: agent.Keys(), Start: []string{"n"}, Nodes: []graph.Node{{Name: "n", Run: func(_ context.Context, s graph.State) (graph.Update, error) {
		state = s
		return graph.Update{}, nil
	}}}, Edges: []graph.Edge{{From: []string{"n"}, To: []string{graph.End}}}})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g}).Invoke(b.Context(), graph.Input{Set: []graph.Write{agent.AppendMessages(messages...)}}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		agent.History(state)
	}
}
