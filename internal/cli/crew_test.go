//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/llmtest"
	"raddle.dev/internal/term/termtest"
)

// crewed is a boss that spawns, and agents whose tool waits at a gate.
const crewed = `
-- .config/raddle/agents/boss/config.yaml --
name: boss
model: local:small
can_spawn_agents: true
max_concurrent_agents: 4
instructions: I am boss.
-- .config/raddle/agents/explore/config.yaml --
name: explore
model: local:small
description: looks
instructions: I am explore.
-- .config/raddle/agents/explore/tools.sh --
# @cmd Waits at a gate.
# raddle: idempotent
# @option --at! <TEXT>  which one
hold() {
  echo "begun $argc_at" >> log
  cat "gate-$argc_at" > /dev/null
  echo "held $argc_at" >> log
  echo "held $argc_at" >> "$LLM_OUTPUT"
}
`

// A wish is a call that a model requests.
type wish struct {
	name string
	args map[string]any
}

// said is a reply: a text, or calls, or a refusal of the request.
type said struct {
	text    string
	calls   []wish
	refused string
}

// A request is what a crew's model receives, as a test decides about it.
type request struct {
	agent   string // boss or explore
	prompt  string
	round   int      // replies so far
	results []string // of calls
}

// A crewModel is a strict server of a model that plays several agents. It answers by the
// request alone, so that a repeated one gets the same reply.
type crewModel struct {
	*workplace
	mu    sync.Mutex
	asked map[string]int // how often each request was made: agent/prompt/round
}

func serveCrew(t *testing.T, reply func(r request) said) *crewModel {
	m := &crewModel{workplace: newWorkplace(t, crewed), asked: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = llmtest.OpenAI().Check(body)
		}
		q, parsed := parseRequest(body)
		if err != nil || parsed != nil {
			t.Errorf("the request is refused: %v %v\n%s", err, parsed, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		m.asked[fmt.Sprint(q.agent, "/", q.prompt, "/", q.round)]++
		m.mu.Unlock()
		a := reply(q)
		if a.refused != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%q}}`, a.refused)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		delta := map[string]any{"content": a.text}
		finish := "stop"
		if a.calls != nil {
			var calls []any
			for i, c := range a.calls {
				args, _ := json.Marshal(c.args) // it consists of texts
				calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("r%dc%d", q.round, i), "type": "function",
					"function": map[string]any{"name": c.name, "arguments": string(args)}})
			}
			delta, finish = map[string]any{"tool_calls": calls}, "tool_calls"
		}
		chunk, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "small", "usage": nil,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		usage := `{"id":"1","object":"chat.completion.chunk","model":"small","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2,"total_tokens":12}}`
		fmt.Fprintf(w, "data: %s\n\ndata: %s\n\ndata: [DONE]\n\n", chunk, usage)
	}))
	t.Cleanup(server.Close)
	m.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", api_key: k, models: [{name: small, input_price: 1, output_price: 2}]}]\n")
	return m
}

func parseRequest(body []byte) (q request, err error) {
	var in struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return q, err
	}
	for _, m := range in.Messages {
		text := string(m.Content)
		_ = json.Unmarshal(m.Content, &text) // otherwise it is a list of parts, and its JSON is enough
		switch m.Role {
		case "system", "developer":
			q.agent = "boss"
			if strings.Contains(text, "I am explore.") {
				q.agent = "explore"
			}
		case "assistant":
			q.round++
		case "user":
			if q.prompt == "" {
				q.prompt = text
			}
		case "tool":
			q.results = append(q.results, text)
		}
	}
	return q, nil
}

var spawnedID = regexp.MustCompile(`agent_explore_[0-9a-f]{8}`)

// ids returns the agents that the boss has spawned.
func (r request) ids() (ids []string) {
	for _, text := range r.results {
		if strings.Contains(text, "spawned as") {
			ids = append(ids, spawnedID.FindString(text))
		}
	}
	return ids
}

// fanOut is a boss that spawns an agent for each prompt, collects all and reports.
func fanOut(prompts ...string) func(r request) said {
	return func(r request) (s said) {
		switch r.round {
		case 0:
			for _, p := range prompts {
				s.calls = append(s.calls, wish{"agent__spawn", map[string]any{"agent": "explore", "prompt": p}})
			}
		case 1:
			for _, id := range r.ids() {
				s.calls = append(s.calls, wish{"agent__collect", map[string]any{"id": id}})
			}
		default:
			var heard []string
			for _, text := range r.results {
				for _, p := range prompts {
					if strings.Contains(text, "did "+p) {
						heard = append(heard, p)
					}
				}
			}
			slices.Sort(heard)
			s.text = "all of them: " + strings.Join(slices.Compact(heard), " ")
		}
		return s
	}
}

// holds is an agent that waits at the gate that its prompt names.
func holds(r request) said {
	if r.round == 0 {
		return said{calls: []wish{{"hold", map[string]any{"at": r.prompt}}}}
	}
	return said{text: "did " + r.prompt}
}

func atWork(prompts ...string) func(r request) said {
	boss := fanOut(prompts...)
	return func(r request) said {
		if r.agent == "boss" {
			return boss(r)
		}
		return holds(r)
	}
}

// Each agent has a line of its own, the other lines stay complete, and the final screen
// shows what happened.
func TestCrewOnATerminal(t *testing.T) {
	needBash(t)
	w := serveCrew(t, atWork("a", "b", "c"))
	gates := []gate{w.gate("gate-a"), w.gate("gate-b"), w.gate("gate-c")}
	s := w.screen(nil, "run", "boss", "go")
	var pass []func()
	for _, g := range gates {
		pass = append(pass, g.arrive())
	}
	for _, line := range []string{"… boss", "tool hold", "waiting for 3 agents"} {
		s.await(line)
	}
	for _, p := range pass {
		p()
	}
	s.ends(0, "9 model calls")
	left := termtest.Render(100, s.seen.String())
	counts := map[string]int{}
	for line := range strings.Lines(left) {
		line = regexp.MustCompile(`agent_explore_[0-9a-f]{8}`).ReplaceAllString(strings.TrimSpace(line), "ID")
		line = regexp.MustCompile(` in \d+\.\d\ds`).ReplaceAllString(line, "")
		counts[regexp.MustCompile(`^raddle: run \w+$`).ReplaceAllString(line, "run")]++
	}
	want := map[string]int{"run": 1, "▸ agent: boss (model: local:small)": 1, `▸   tool call: agent__collect {"id":"ID"}`: 3,
		"▸ agent done": 1, "all of them: a b c": 1, "▸ 9 model calls, 90 tokens in, 18 out, 0.0001 USD": 1}
	for _, p := range []string{"a", "b", "c"} {
		want[`▸   tool call: agent__spawn {"agent":"explore","prompt":"`+p+`"}`] = 1
		want["▸ explore (ID: "+p+") started"] = 1
		want["▸ explore (ID: "+p+") completed (2 model calls, 24 tokens)"] = 1
		want[`▸   [ID: `+p+`] tool call: hold {"at":"`+p+`"}`] = 1
	}
	if d := cmp.Diff(want, counts); d != "" {
		t.Errorf("%s\n%s", d, left)
	}
}

// Events that are written to the same screen are not torn by the live lines.
func TestCrewEventsOnATerminal(t *testing.T) {
	needBash(t)
	w := serveCrew(t, atWork("a", "b"))
	gates := []gate{w.gate("gate-a"), w.gate("gate-b")}
	s := w.screen(nil, "run", "boss", "go", "--output", "stream-json")
	pass := []func(){gates[0].arrive(), gates[1].arrive()}
	s.await("waiting for 2 agents")
	for _, p := range pass {
		p()
	}
	s.ends(0, `"kind":"result"`)
	events := 0
	for line := range strings.Lines(termtest.Render(1<<20, s.seen.String())) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "▸") || strings.HasPrefix(line, "raddle: ") {
			continue
		}
		if events++; !json.Valid([]byte(line)) {
			t.Errorf("this is no event: %q", line)
		}
	}
	if events < 50 {
		t.Errorf("there are %d events", events)
	}
}

// A terminal without colours gets none, and one that can only print lines only gets lines.
func TestCrewOnPlainTerminals(t *testing.T) {
	needBash(t)
	w := serveCrew(t, atWork("a"))
	g := w.gate("gate-a")
	for env, never := range map[string]*regexp.Regexp{"NO_COLOR=1": regexp.MustCompile("\x1b\\[[0-9;]*m"), "TERM=dumb": regexp.MustCompile("\x1b|… boss")} {
		s := (&workplace{t: t, dir: w.dir, env: w.env}).screen([]string{env}, "run", "boss", "go")
		pass := g.arrive()
		if env == "TERM=dumb" {
			s.await("tool call: agent__collect")
		} else {
			s.await("… boss")
		}
		pass()
		s.ends(0, "all of them: a")
		if got := never.FindString(s.seen.String()); got != "" {
			t.Errorf("%s: %q in %q", env, got, s.seen)
		}
	}
	if s := w.screen(nil, "run", "-q", "boss", "go"); true {
		g.arrive()()
		s.ends(0, "all of them: a")
		if got := strings.TrimSpace(s.seen.String()); got != "all of them: a" {
			t.Errorf("with -q: %q", got)
		}
	}
}
