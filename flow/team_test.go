package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A view is a request as a role sees it.
type view struct {
	request llm.Request
	asked   string   // what the agent was told first
	round   int      // replies since the user spoke
	results []string // of the calls since then
}

func look(r llm.Request) view {
	v := view{request: r}
	for _, m := range r.Messages {
		if m.Role == llm.RoleAssistant {
			v.round++
		}
		if m.Role == llm.RoleUser && len(m.Parts) > 0 {
			if _, said := m.Parts[0].(llm.Text); said && !strings.HasPrefix(m.Text(), "[system reminder") {
				v.asked, v.round, v.results = m.Text(), 0, nil
			}
		}
		for _, p := range m.Parts {
			if t, ok := p.(llm.ToolResult); ok {
				v.results = append(v.results, llm.Message{Parts: t.Content}.Text())
			}
		}
	}
	return v
}

// field is a field of a result.
func (v view) field(i int, name string) string {
	var o map[string]any
	_ = json.Unmarshal([]byte(v.results[i]), &o)
	return fmt.Sprint(o[name])
}

// A role is what an agent's model says, made of the request alone.
type role func(ctx context.Context, v view) llm.Message

func words(text string) llm.Message {
	return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}
}

// calls is a reply with calls, each a name and its arguments.
func calls(v view, pairs ...string) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant}
	for i := 0; i < len(pairs); i += 2 {
		m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprintf("m%dc%d", len(v.request.Messages), i/2), Name: pairs[i], Args: json.RawMessage(pairs[i+1])})
	}
	return m
}

// A troupe is agents in files whose models play roles, by the names of their
// directories. It counts the requests.
type troupe struct {
	t        *testing.T
	root     string
	roles    map[string]role
	mu       sync.Mutex
	requests map[string]int // by agent, what it was told, and round
}

func newTroupe(t *testing.T, files map[string]string, roles map[string]role) *troupe {
	t.Helper()
	x := &troupe{t: t, root: t.TempDir(), roles: roles, requests: map[string]int{}}
	for name, text := range files {
		writeCaseFile(t, x.root, name, text)
	}
	return x
}

func (x *troupe) Known(_, id string) bool         { return strings.HasPrefix(id, "m:") }
func (x *troupe) Facts(string, string) ModelFacts { return ModelFacts{} }
func (x *troupe) Open(_ context.Context, dir, id string) (llm.Model, error) {
	name := filepath.Base(dir)
	if id != "m:own" {
		name = strings.TrimPrefix(id, "m:")
	}
	return agent.ModelFunc(func(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			v := look(r)
			x.mu.Lock()
			x.requests[fmt.Sprint(name, "/", v.asked, "/", v.round)]++
			x.mu.Unlock()
			m := x.roles[name](ctx, v)
			if err := ctx.Err(); err != nil {
				yield(llm.Delta{}, context.Cause(ctx))
				return
			}
			yield(llm.Delta{Done: &llm.Reply{Message: m, Usage: llm.Usage{Input: 10, Output: 1}}}, nil)
		}
	}), nil
}

// load loads the agent of a directory.
func (x *troupe) load(name string, h Host) *Agent {
	x.t.Helper()
	h.Models = x
	if h.Model == "" {
		h.Model = "m:own"
	}
	a, err := Load(filepath.Join(x.root, name), h)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { _ = a.Close() })
	return a
}

// runner loads an agent to run it in a store.
func (x *troupe) runner(name string, h Host, s graph.Store) (*Agent, *graph.Runner) {
	x.t.Helper()
	a := x.load(name, h)
	g, err := a.Graph()
	if err != nil {
		x.t.Fatal(err)
	}
	return a, &graph.Runner{Graph: g, Store: s}
}

// run runs an agent to its end and returns what it says.
func (x *troupe) run(name, prompt string) string {
	x.t.Helper()
	a, r := x.runner(name, Host{}, graph.NewMemory())
	res, err := r.Invoke(x.t.Context(), a.Input(prompt))
	if err != nil {
		x.t.Fatal(a.Explain(err))
	}
	if res.Status != graph.Done {
		x.t.Fatalf("%v: %+v", res.Status, res.Questions)
	}
	return OutcomeOf(res).Output
}

const leadFile = "name: lead\ncan_spawn_agents: true\ninstructions: You lead.\n"

func TestAConfigSpawnsAgents(t *testing.T) {
	x := newTroupe(t, map[string]string{
		"lead/config.yaml":     leadFile,
		"explore/config.yaml":  "name: explore\ndescription: looks for things\ninstructions: You explore.\n",
		"shout/graph.yaml":     "name: shout\ndescription: says it louder\nstart: s\nnodes:\n  s: {type: script, script: s.sh, next: e}\n  e: {type: end, output: \"{{loud}}\"}\n",
		"shout/s.sh":           `echo '{"loud": "HEY"}'` + "\n",
		"broken/config.yaml":   "description: no name\n",
		"needy/config.yaml":    "name: needy\nvariables: [{name: dsn, description: the database}]\n",
		"elsewhere/readme.txt": "no agent",
	}, map[string]role{
		"lead": func(_ context.Context, v view) llm.Message {
			switch v.round {
			case 0:
				return calls(v, "agent__list_available", "{}", "agent__spawn", `{"agent":"explore","prompt":"where?"}`, "agent__spawn", `{"agent":"shout","prompt":"hey"}`,
					"agent__spawn", `{"agent":"broken","prompt":"x"}`, "agent__spawn", `{"agent":"needy","prompt":"x"}`, "agent__spawn", `{"agent":"elsewhere","prompt":"x"}`)
			case 1:
				return calls(v, "agent__send_message", fmt.Sprintf(`{"id":%q,"message":"look left"}`, v.field(1, "id")),
					"agent__collect", fmt.Sprintf(`{"id":%q}`, v.field(1, "id")), "agent__collect", fmt.Sprintf(`{"id":%q}`, v.field(2, "id")))
			}
			return words(strings.Join(v.results, "\n"))
		},
		"explore": func(_ context.Context, v view) llm.Message {
			if last := len(v.results) - 1; last < 0 || v.field(last, "count") == "0" {
				return calls(v, "agent__check_inbox", "{}")
			}
			return words("told: " + v.results[len(v.results)-1])
		},
	})
	said := x.run("lead", "Go.")
	for _, want := range []string{
		`{"count":3,"agents":[{"name":"explore","description":"looks for things"},{"name":"lead"},{"name":"shout","description":"says it louder"}]}`,
		"Agent 'explore' spawned as 'agent_explore_", "look left", `"output":"HEY"`, `"exit_status":"Completed"`,
		"Supervisor tool failed: Agent 'broken' failed: Failed to load agent config at", "missing field `name`",
		`Supervisor tool failed: Agent 'needy' failed: The following agent variables are required:\n  - dsn: the database`,
		"There is no agent 'elsewhere'. Agents: explore, lead, shout.",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in:\n%s", want, said)
		}
	}
}
