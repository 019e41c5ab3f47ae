//go:build unix

package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
)

// traceRun drives a run to its end and returns its spans.
func (p *place) traceRun(agent, prompt string) []tracedSpan {
	p.t.Helper()
	proc, _ := p.process(-1)
	if err := proc.WriteTrace("trace"); err != nil {
		p.t.Fatal(err)
	}
	run, err := proc.StartRun(Request{Agent: agent, Prompt: prompt})
	if err != nil {
		p.t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(p.t.Context(), Driver{}); err != nil || res.Status != graph.Done {
		p.t.Fatalf("%v %v", res.Status, err)
	}
	if err := proc.CloseTrace(); err != nil {
		p.t.Fatal(err)
	}
	return readTrace(p.t, filepath.Join(p.dir, "trace"))
}

// Each agent of a team has a span below that of the agent that started it, and what it does is below its span.
func TestTraceOfTeams(t *testing.T) {
	w := newPlace(t)
	spawn := func(agent string) string {
		return "- {match: Ask, turn: 1, tool_calls: [{name: agent__spawn, args: {agent: " + agent + ", prompt: Ask again}}]}\n" +
			"- {match: Ask, turn: 2, tool_calls: [{name: agent__collect, args: {id: \"{{outcome.1.id}}\"}}]}\n" +
			"- {match: Ask, turn: 3, text: over}\n"
	}
	for name, below := range map[string]string{"lead": "mid", "mid": "leaf", "leaf": ""} {
		config, transcript := "name: "+name+"\nmodel: script:t.yaml\n", "- {text: done}\n"
		if below != "" {
			config += "can_spawn_agents: true\nspawnable_agents: [" + below + "]\n"
			transcript = spawn(below)
		}
		w.write(name+"/config.yaml", config)
		w.write(name+"/t.yaml", transcript)
	}
	spans := w.traceRun("./lead", "Ask them")
	var agents, chats []string
	for _, s := range spans {
		above := ancestors(spans, s)
		switch s.text("gen_ai.operation.name") {
		case "invoke_agent":
			if s.Name != "invoke_agent lead" && (!strings.HasPrefix(s.text("gen_ai.agent.id"), "agent_") || s.text("raddle.agent.status") != "completed") {
				t.Errorf("%s: %+v", s.Name, s)
			}
			agents = append(agents, s.Name+" < "+strings.Join(above, " < "))
		case "chat":
			i := slices.IndexFunc(above, func(name string) bool { return strings.HasPrefix(name, "invoke_agent ") })
			chats = append(chats, above[i])
		}
	}
	slices.Sort(agents)
	want := []string{
		"invoke_agent lead < ",
		"invoke_agent leaf < invoke_agent mid < task team < step < invoke_agent lead",
		"invoke_agent mid < task team < step < invoke_agent lead",
	}
	if !slices.Equal(agents, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(agents, "\n"), strings.Join(want, "\n"))
	}
	slices.Sort(chats)
	if got := strings.Join(chats, ", "); got != "invoke_agent lead, invoke_agent lead, invoke_agent lead, invoke_agent leaf, invoke_agent mid, invoke_agent mid, invoke_agent mid" {
		t.Errorf("requests to models are below %s", got)
	}
}

// Requests to an embedding model have spans: those that build a base, and that of a search, which is below its search.
func TestTraceOfEmbeddings(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var body struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		type vector struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		}
		reply := map[string][]vector{"data": {}}
		for i, text := range body.Input {
			reply["data"] = append(reply["data"], vector{i, []float32{1, float32(len(text)), 2}})
		}
		_ = json.NewEncoder(rw).Encode(reply)
	}))
	defer server.Close()
	w := newPlace(t, "NO_PROXY=*")
	w.write("home/.config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [{name: counts, type: embedding}]}]\n")
	w.write("finder/graph.yaml", `
name: finder
start: find
nodes:
  find: {type: rag, documents: [facts.txt], embedding_model: "local:counts", chunk_size: 100, chunk_overlap: 0, query: "shuttle", next: done}
  done: {type: end, output: x}
`)
	w.write("finder/facts.txt", "A shuttle carries the weft.")
	spans := w.traceRun("./finder", "x")
	var places []string
	for _, s := range spans {
		if s.text("gen_ai.operation.name") != "embeddings" {
			continue
		}
		if s.Kind != 3 || s.text("gen_ai.provider.name") != "local" || s.text("gen_ai.request.model") != "counts" {
			t.Errorf("%+v", s)
		}
		places = append(places, s.Name+" < "+strings.Join(ancestors(spans, s), " < "))
	}
	slices.Sort(places)
	want := []string{
		"embeddings counts < invoke_workflow finder",
		"embeddings counts < retrieval find < task find < step < invoke_workflow finder",
	}
	if !slices.Equal(places, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(places, "\n"), strings.Join(want, "\n"))
	}
}
