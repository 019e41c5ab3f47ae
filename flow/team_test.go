//go:build unix

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// A view is a request as a role sees it.
type view struct {
	request llm.Request
	asked   string   // the first message to the agent
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
	requests map[string]int // by agent, its first message, and round
}

func newTroupe(t *testing.T, files map[string]string, roles map[string]role) *troupe {
	t.Helper()
	x := &troupe{t: t, root: t.TempDir(), roles: roles, requests: map[string]int{}}
	for name, text := range files {
		writeCaseFile(t, x.root, name, text)
	}
	return x
}

func (x *troupe) IsKnown(_, id string) bool       { return strings.HasPrefix(id, "m:") }
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
func (x *troupe) runner(name string, h Host, s journal.Store) (*Agent, *graph.Runner) {
	x.t.Helper()
	a := x.load(name, h)
	g, err := a.CompileGraph()
	if err != nil {
		x.t.Fatal(err)
	}
	return a, &graph.Runner{Graph: g, Store: s}
}

// run runs an agent to its end and returns what it says.
func (x *troupe) run(name, prompt string) string {
	x.t.Helper()
	a, r := x.runner(name, Host{}, journal.NewMemory())
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

// once makes the calls of one reply, then says what they came to.
func once(pairs ...string) role {
	return func(_ context.Context, v view) llm.Message {
		if v.round == 0 {
			return calls(v, pairs...)
		}
		return words(strings.Join(v.results, "\n"))
	}
}

var digest = regexp.MustCompile(`_[0-9a-f]{8}\b`)

// What an agent in files reads about its calls, letter by letter.
func TestTextsOfTeamTools(t *testing.T) {
	for name, c := range map[string]struct {
		file, tool, args, want string
	}{
		"spawned":    {"", "agent__spawn", `{"agent":"a","prompt":"x","task_id":"1"}`, `{"status":"ok","id":"agent_a_#","agent":"a","message":"Agent 'a' spawned as 'agent_a_#'. Use agent__check or agent__collect to get results."}`},
		"no agent":   {"", "agent__spawn", `{"prompt":"x"}`, `{"tool_call_error":"Supervisor tool failed: 'agent' is required"}`},
		"no prompt":  {"", "agent__spawn", `{"agent":"a"}`, `{"tool_call_error":"Supervisor tool failed: 'prompt' is required"}`},
		"no such":    {"", "agent__spawn", `{"agent":"z","prompt":"x"}`, `{"status":"error","message":"There is no agent 'z'. Agents: a, b, lead."}`},
		"not listed": {"spawnable_agents: [a, z]", "agent__spawn", `{"agent":"b","prompt":"x"}`, "{\"status\":\"error\",\"message\":\"Agent 'b' is not in this agent's `spawnable_agents` whitelist. Allowed: a, z. Call `agent__list_available` to see what you can spawn.\"}"},
		"none":       {"spawnable_agents: []", "agent__spawn", `{"agent":"a","prompt":"x"}`, "{\"status\":\"error\",\"message\":\"Agent 'a' is not in this agent's `spawnable_agents` whitelist. Allowed: (none). Call `agent__list_available` to see what you can spawn.\"}"},
		"too deep":   {"max_agent_depth: 0", "agent__spawn", `{"agent":"a","prompt":"x"}`, `{"status":"error","message":"Max agent depth exceeded (1/0)"}`},
		"no place":   {"max_concurrent_agents: 0", "agent__spawn", `{"agent":"a","prompt":"x"}`, `{"status":"error","message":"At capacity: 0/0 agents running. Wait for one to finish or cancel one."}`},
		"check":      {"", "agent__check", `{"id":"x"}`, `{"status":"error","message":"No agent found with id 'x'"}`},
		"collect":    {"", "agent__collect", `{"id":"x"}`, `{"status":"error","message":"Agent 'x' not found. Use agent__check to verify it exists and is finished."}`},
		"list":       {"max_concurrent_agents: 7", "agent__list", `{}`, `{"active_count":0,"max_concurrent":7,"agents":[]}`},
		"available":  {"spawnable_agents: [b, z]", "agent__list_available", `{}`, `{"count":1,"agents":[{"name":"b","description":"the second"}]}`},
		"unknown":    {"spawnable_agents: []", "agent__list_available", `{}`, `{"count":0,"agents":[]}`},
		"cancel":     {"", "agent__cancel", `{"id":"x"}`, `{"status":"error","message":"No agent found with id 'x'"}`},
		"task":       {"", "agent__task_create", `{"subject":"s","blocked_by":["task_9"]}`, `{"status":"ok","task_id":"1","warnings":["Dependency task 'task_9' does not exist"]}`},
		"half task":  {"", "agent__task_create", `{"subject":"s","agent":"a"}`, `{"tool_call_error":"Supervisor tool failed: 'prompt' is required when 'agent' is set"}`},
		"tasks":      {"", "agent__task_list", `{}`, `{"tasks":[]}`},
		"complete":   {"", "agent__task_complete", `{"task_id":"task_1"}`, `{"status":"error","message":"Task '1' not found"}`},
		"fail":       {"", "agent__task_fail", `{"task_id":"1"}`, `{"status":"error","message":"Task '1' not found"}`},
		"reply":      {"", "agent__reply_escalation", `{"escalation_id":"e","reply":"r"}`, `{"status":"error","message":"No pending escalation found with id 'e'. It may have already been replied to or timed out."}`},
		"message":    {"", "agent__send_message", `{"to":"x","message":"m"}`, `{"status":"error","message":"No agent found with id 'x'. Agent may not exist or may have already completed."}`},
		"inbox":      {"", "agent__check_inbox", `{}`, `{"messages":[],"count":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTroupe(t, map[string]string{"lead/config.yaml": leadFile + c.file + "\n",
				"a/config.yaml": "name: a\n", "b/config.yaml": "name: b\ndescription: the second\n"},
				map[string]role{"lead": once(c.tool, c.args), "a": func(context.Context, view) llm.Message { return words("done") }})
			if said := strings.Trim(digest.ReplaceAllString(x.run("lead", "Go."), "_#"), "\n"); said != c.want {
				t.Errorf("got  %s\nwant %s", said, c.want)
			}
		})
	}
}

// What the system prompt says of a team follows from what it is and what its file
// switches off; the tools stay.
func TestInstructionsOfTeams(t *testing.T) {
	const spawn, mail, user = "## Agents of your own", "## Messages", "## Questions to the user"
	for name, c := range map[string]struct {
		file string
		want []string // of the lead, in this order
		less []string
	}{
		"all":          {"auto_continue: true\n", []string{"You lead.", "## Todo", spawn, "The agents are:\n- a: the first of two\n- lead", mail, user}, nil},
		"no spawn":     {"inject_spawn_instructions: false\n", []string{"You lead.", mail, user}, []string{spawn, "The agents are"}},
		"no teammates": {"inject_teammate_instructions: false\n", []string{spawn, user}, []string{mail}},
		"alone":        {"can_spawn_agents: false\n", []string{"You lead.", user}, []string{spawn, mail}},
	} {
		t.Run(name, func(t *testing.T) {
			file := leadFile + c.file
			if name == "alone" {
				file = "name: lead\ninstructions: You lead.\n" + c.file
			}
			var system string
			var names []string
			x := newTroupe(t, map[string]string{"lead/config.yaml": file, "a/config.yaml": "name: a\ndescription: |\n  the first\n  of two\n"},
				map[string]role{"lead": func(_ context.Context, v view) llm.Message {
					system = v.request.System
					for _, t := range v.request.Tools {
						names = append(names, t.Name)
					}
					return words("ok")
				}})
			x.run("lead", "Go.")
			told := x.load("lead", Host{}).Instructions()
			if told != system {
				t.Errorf("a run says %q, Instructions says %q", system, told)
			}
			from := 0
			for _, text := range c.want {
				at := strings.Index(system[from:], text)
				if at < 0 {
					t.Fatalf("%q is not behind the others in %q", text, system)
				}
				from += at
			}
			for _, text := range c.less {
				if strings.Contains(system, text) {
					t.Errorf("%q is in %q", text, system)
				}
			}
			if slices.Contains(names, "agent__spawn") != (name != "alone") || slices.Contains(names, "agent__check_inbox") != (name != "alone") {
				t.Error(names)
			}
		})
	}
}

func TestFindingsOfSpawnableAgents(t *testing.T) {
	x := newTroupe(t, map[string]string{
		"lead/config.yaml":    "name: lead\nsummarization_model: none:here\ncan_spawn_agents: true\nspawnable_agents: [explore, explor, broken, b]\n",
		"explore/config.yaml": "name: explore\ndocuments: [none.md]\n",
		"broken/config.yaml":  "nome: x\n",
		"unnamed/graph.yaml":  "not a graph\n",
		"b/config.yaml":       "name: b\ncan_spawn_agents: true\nspawnable_agents:\n  - lead\n  - unknown\n",
	}, nil)
	a := x.load("lead", Host{})
	var got []string
	for _, a := range a.Agents() {
		for _, f := range a.Findings {
			head, _, _ := strings.Cut(f.String(), " Hint:")
			head, _, _ = strings.Cut(head, "\n")
			got = append(got, strings.ReplaceAll(head, x.root+"/", ""))
		}
	}
	want := []string{
		"lead/config.yaml:2:22: warning: summarization_model: unknown chat model 'none:here'; long outputs of agents will be cut",
		"lead/config.yaml:4:29: warning: spawnable_agents: there is no agent 'explor' (did you mean `explore`?)",
		"lead/config.yaml:4:37: warning: spawnable_agents: 'broken' cannot be spawned: Agent 'broken' failed: Failed to load agent config at 'broken/config.yaml': YAML parsing error: missing field `name` at line 1 column 1",
		"explore/config.yaml:2:13: warning: documents: there is no file or folder 'none.md' (relative paths start at the agent's directory)",
		"b/config.yaml:5:5: warning: spawnable_agents: there is no agent 'unknown'",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if a.ValidationFailure() != nil || len(a.Agents()) != 3 {
		t.Errorf("%v, %v", a.ValidationFailure(), a.Agents())
	}
	nameless, err := Load(filepath.Join(x.root, "lead"), Host{Models: x})
	if err != nil || len(nameless.Findings) != len(a.Findings) || !strings.Contains(nameless.Instructions(), "\n- explore") {
		t.Errorf("without a model: %v, %v, %q", err, nameless.Findings, nameless.Instructions())
	}
	var files []string
	for _, f := range a.Sources() {
		files = append(files, strings.TrimPrefix(f.Path, x.root+"/"))
	}
	if want := []string{"config.yaml", "explore/config.yaml", "b/config.yaml"}; !slices.Equal(files, want) {
		t.Errorf("it depends on %v, want %v", files, want)
	}
	shape := a.Structure()
	if n := shape.Nodes[1]; n.Name != "team" || len(n.Children) != 3 || len(n.Children["explore"].Nodes) == 0 || len(n.Children["lead"].Nodes) != 2 {
		t.Errorf("%+v", shape)
	}
}

// An agent node may run an agent that starts others, an llm node of a graph that runs
// agents may start some too, and a graph may be started: all of them count on from
// the agent above.
func TestDepthContinuesThroughGraphs(t *testing.T) {
	graphText := func(start string) string {
		return "name: g\nstart: " + start + "\nnodes:\n" +
			"  run: {type: agent, agent: lead, prompt: \"{{initial_prompt}}.run\", next: e, state_updates: {x: \"{{output}}\"}}\n" +
			"  ask: {type: llm, prompt: \"{{initial_prompt}}.ask\", tools: [agent__spawn, agent__collect], next: e, state_updates: {x: \"{{output}}\"}}\n" +
			"  e: {type: end, output: \"{{x}}\"}\n"
	}
	files := map[string]string{"lead/config.yaml": leadFile, "run/graph.yaml": graphText("run"), "ask/graph.yaml": graphText("ask")}
	over := `Max agent depth exceeded (4/3)`
	for name, c := range map[string]struct {
		root string
		next map[string]string // the first message by which an agent starts another one
		want []string          // who got a message, in addition to the refusal
	}{
		"agent nodes":   {"run", map[string]string{"0.run": "run", "0.run>run.run": "a"}, []string{"lead/0.run", "lead/0.run>run.run"}},
		"llm nodes":     {"ask", map[string]string{"0.ask": "ask", "0.ask>ask.ask": "ask", "0.ask>ask.ask>ask.ask": "a", "0.ask>ask.ask>ask.ask>a": "a"}, []string{"ask/0.ask", "ask/0.ask>ask.ask", "ask/0.ask>ask.ask>ask.ask"}},
		"both":          {"lead", map[string]string{"0": "run", "0>run.run": "ask", "0>run.run>ask.ask": "a"}, []string{"lead/0", "lead/0>run.run", "ask/0>run.run>ask.ask"}},
		"deep in teams": {"lead", map[string]string{"0": "lead", "0>lead": "lead", "0>lead>lead": "run"}, []string{"lead/0", "lead/0>lead", "lead/0>lead>lead"}},
	} {
		t.Run(name, func(t *testing.T) {
			var last string
			r := func(_ context.Context, v view) llm.Message {
				to, starts := c.next[v.asked]
				switch {
				case starts && v.round == 0:
					return calls(v, spawn(to, v.asked+">"+to)...)
				case starts && v.round == 1 && v.field(0, "status") == "ok":
					return calls(v, collect(v.field(0, "id"))...)
				case starts:
					last = v.results[len(v.results)-1]
					return words(last)
				}
				return words("the end")
			}
			x := newTroupe(t, files, map[string]role{"lead": r, "ask": r, "a": r})
			writeCaseFile(t, x.root, "a/config.yaml", "name: a\ncan_spawn_agents: true\n")
			said := x.run(c.root, "0")
			if !strings.Contains(said, over) {
				t.Errorf("%s\nis not refused: %s", said, last)
			}
			for _, want := range c.want {
				if x.requests[want+"/0"] != 1 {
					t.Errorf("%s was not asked: %v", want, x.requests)
				}
			}
		})
	}
}

// The loop of an llm node that starts agents has the tools that it lists, four places,
// and the reminders count among its iterations; what still runs ends with the node,
// however that ends.
func TestLLMNodesThatStartAgents(t *testing.T) {
	const hang = "# @describe Waits\n# @cmd Waits\nhang() { mkfifo never; echo $$ > ready; read -r _ < never; }\n"
	for name, c := range map[string]struct {
		node   string
		rounds int
		want   string
	}{
		"reminded":    {"", 5, "said round 1\nsaid round 2\nsaid round 3\nsaid round 4"},
		"too often":   {"max_iterations: 3, fallback: f", 3, "fell: LLM node failed: llm node hit max_iterations (3) before LLM concluded"},
		"timeout":     {"timeout: 1, fallback: f", 1, "fell: LLM node failed: llm node timed out after 1s"},
		"model fails": {"fallback: f", 2, "fell: LLM node failed: panic in node think: it has had enough"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTroupe(t, map[string]string{"hang/config.yaml": "name: hang\n", "hang/tools.sh": hang, "g/graph.yaml": `
name: g
start: l
nodes:
  l: {type: llm, prompt: go, tools: [agent__spawn, agent__list_running], state_updates: {x: "{{output}}"}, next: e, ` + c.node + `}
  a: {type: agent, agent: hang, prompt: x, next: e}
  f: {type: end, output: "fell: {{x}}"}
  e: {type: end, output: "{{x}}"}
`}, nil)
			ready := filepath.Join(x.root, "ready")
			if err := syscall.Mkfifo(ready, 0o600); err != nil {
				t.Fatal(err)
			}
			pid, rounds := 0, 0
			x.roles = map[string]role{"hang": once("hang", "{}"), "g": func(ctx context.Context, v view) llm.Message {
				switch rounds++; {
				case rounds == 1:
					if len(v.request.Tools) != 2 {
						t.Errorf("it has %v", v.request.Tools)
					}
					return calls(v, spawn("hang", "x")...)
				case rounds == 2:
					text, err := os.ReadFile(ready)
					if pid, _ = strconv.Atoi(strings.TrimSpace(string(text))); err != nil || pid == 0 {
						t.Errorf("%q, %v", text, err)
					}
					switch name {
					case "timeout":
						<-ctx.Done()
					case "model fails":
						panic(errors.New("it has had enough"))
					}
				}
				return words(fmt.Sprint("said round ", rounds-1))
			}}
			a, r := x.runner("g", Host{Tooling: Tooling{Box: ownScripts{x.root}}}, journal.NewMemory())
			res, err := r.Invoke(t.Context(), a.Input("Go."))
			if said := OutcomeOf(res).Output; err != nil || said != c.want {
				t.Errorf("%q, %v; want %q", said, err, c.want)
			}
			if name != "timeout" && name != "model fails" && rounds != c.rounds {
				t.Errorf("%d rounds, want %d", rounds, c.rounds)
			}
			if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("process %d is still there: %v", pid, err)
			}
		})
	}
}

// The timeout of an agent node ends the team below it.
func TestTimeoutsOfAgentNodesEndTeams(t *testing.T) {
	t.Parallel()
	x := newTroupe(t, map[string]string{"lead/config.yaml": leadFile, "hang/config.yaml": "name: hang\n",
		"hang/tools.sh": "# @describe Waits\n# @cmd Waits\nhang() { mkfifo never; echo $$ > ready; read -r _ < never; }\n",
		"g/graph.yaml":  "name: g\nstart: a\nnodes:\n  a: {type: agent, agent: lead, prompt: x, timeout: 1, next: e}\n  e: {type: end}\n"}, nil)
	ready := filepath.Join(x.root, "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	pids := make(chan int, 1)
	go func() {
		text, _ := os.ReadFile(ready)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
		pids <- pid
	}()
	x.roles = map[string]role{"hang": once("hang", "{}"), "lead": spawnAll("hang")}
	a, r := x.runner("g", Host{Tooling: Tooling{Box: ownScripts{x.root}}}, journal.NewMemory())
	_, err := r.Invoke(t.Context(), a.Input("Go."))
	if err == nil || !strings.Contains(a.Explain(err).Error(), "Agent 'lead' timed out after 1s") {
		t.Error(err)
	}
	if err := syscall.Kill(<-pids, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}

// leaky is a toolbox whose scripts fail and say the secret.
type leaky string

// Open implements Toolbox.
func (s leaky) Open(ToolNeed) (*Toolset, error) {
	return &Toolset{Instructions: func(context.Context) (string, error) { return "", errors.New("no entry with " + string(s)) }}, nil
}

// What agents and the models of summaries say, and why an agent failed, is passed from agent to
// agent without secrets: none is in the journal, in the events of a team, or in requests.
func TestSecretsOfTeams(t *testing.T) {
	const secret = "tok-very-secret-2"
	asked := []string{}
	x := newTroupe(t, map[string]string{
		"lead/config.yaml":  leadFile + "summarization_threshold: 20\n",
		"fails/config.yaml": "name: fails\ndynamic_instructions: true\n",
		"says/config.yaml":  "name: says\n",
	}, map[string]role{
		"says": func(context.Context, view) llm.Message { return words("It is " + secret + ", at length.") },
		"lead": func(ctx context.Context, v view) llm.Message {
			asked = append(asked, v.asked+strings.Join(v.results, " "))
			if strings.HasPrefix(v.asked, "The report") {
				return words("In short: " + secret)
			}
			return spawnAll("fails", "says")(ctx, v)
		},
	})
	store := journal.NewMemory()
	a, r := x.runner("lead", Host{Redactor: NewRedactor(secret), Tooling: Tooling{Box: leaky(secret)}}, store)
	in := withThread(a.Input("Go."))
	in.Topics = graph.TopicEmit | graph.TopicRun
	said := ""
	for ev, err := range r.Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if text, _ := json.Marshal(b.Value); strings.Contains(string(text), secret) {
				t.Errorf("an event of %s holds the secret: %s", ev.Path, text)
			}
		case graph.RunEnded:
			said = OutcomeOf(b.Result).Output
		}
	}
	if !strings.Contains(said, "no entry with [redacted]") || !strings.Contains(said, "In short: [redacted]") {
		t.Errorf("the lead says %s", said)
	}
	for _, text := range asked {
		if strings.Contains(text, secret) {
			t.Errorf("the lead's model is told %s", text)
		}
	}
	for rec, err := range store.Read(t.Context(), "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if all := string(rec.Head) + string(rec.Data); strings.Contains(all, secret) {
			t.Errorf("record %d (%s) holds the secret: %s", rec.Seq, rec.Kind, rec.Data)
		}
	}
}
