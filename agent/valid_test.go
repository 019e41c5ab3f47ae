package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// TestWhateverIsWritten writes conversations that no loop would make, in any order
// and with every operation. A strict server accepts the resulting histories.
func TestWhateverIsWritten(t *testing.T) {
	s := strict(t, func(w http.ResponseWriter, _ *http.Request, _ []wireMessage) { saying(w, "Well.") })
	g := compile(t, agent.Config{Model: s.model(), Window: agent.Window{Tokens: 3000}})
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 2))
		var writes []graph.Write
		for range 1 + rng.IntN(12) {
			writes = append(writes, anything(rng))
		}
		writes = append(writes, agent.AppendMessages(llm.User("And now?")))
		for range rng.IntN(2) {
			writes = append(writes, agent.AppendMessages(say("I was faster.")))
		}
		r := &graph.Runner{Graph: g}
		if _, err := r.Invoke(t.Context(), graph.Input{Set: writes}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	s.check()
}

func anything(rng *rand.Rand) graph.Write {
	id := func() string { return fmt.Sprint("c", rng.IntN(4)) }
	switch rng.IntN(9) {
	case 0:
		return agent.AppendMessages(llm.User(words(rng.IntN(200), "hear")))
	case 1:
		return agent.AppendMessages(say(words(rng.IntN(3), "aha")))
	case 2, 3:
		m := both(say(words(rng.IntN(2), "look")), call("a"+id(), "look", `{}`))
		for i := range rng.IntN(3) {
			m = both(m, call(fmt.Sprint("c", i), "look", []string{`{"n":1}`, `[1]`, `"text"`, `null`}[rng.IntN(4)]))
		}
		return agent.AppendMessages(m)
	case 4, 5:
		m := llm.Message{Role: llm.RoleTool}
		for range 1 + rng.IntN(4) {
			m.Parts = append(m.Parts, tool.TextResult(words(rng.IntN(300), "seen")).MessagePart(llm.ToolCall{ID: id(), Name: "look", Args: json.RawMessage(`{}`)}))
		}
		return agent.AppendMessages(m)
	case 6:
		return agent.ReplaceLastUser(words(1+rng.IntN(5), "rather"))
	case 7:
		return agent.RemoveAll()
	}
	return agent.AppendMessages(llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Reasoning{Text: "hm"}}}, llm.Message{Role: llm.RoleUser})
}
