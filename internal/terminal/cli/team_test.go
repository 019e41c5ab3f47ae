//go:build unix

package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/termtest"
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
	for _, line := range []string{"… boss", "calling hold", "waiting for 3 agents"} {
		s.await(line)
	}
	for _, p := range pass {
		p()
	}
	s.ends(0, "boss done in ")
	left := termtest.Render(100, s.seen.String())
	counts := map[string]int{}
	for line := range strings.Lines(left) {
		line = regexp.MustCompile(` +\d+(\.\d)? s\b`).ReplaceAllString(strings.TrimSpace(line), "")
		line = regexp.MustCompile(`^boss · \w+ +`).ReplaceAllString(line, "boss · RUN  ")
		counts[regexp.MustCompile(`explore·\d`).ReplaceAllString(line, "explore·N")]++
	}
	want := map[string]int{"boss · RUN  local:small · ctrl-c to stop": 1, "": 2, "✓ explore·N   24 tokens": 3, "all of them: a b c": 1,
		"✓ boss done in · 108 tokens · $0.0001 · raddle runs show last": 1}
	for _, p := range []string{"a", "b", "c"} {
		want["● explore·N started: "+p] = 1
		want["● explore·N  hold  at "+p] = 1
		want["held "+p] = 1
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
		if !strings.HasPrefix(line, "{") {
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
		s := (&workplace{t: t, program: w.program, dir: w.dir, env: w.env}).screen([]string{env}, "run", "boss", "go")
		pass := g.arrive()
		if env == "TERM=dumb" {
			s.await("explore-1 started: a")
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

// asksPerson is two agents that each ask a person a question, while the boss
// waits for both, and a third task that waits for a place.
func asksPerson(r request) said {
	if r.agent == "explore" {
		switch {
		case r.prompt == "late":
			return said{text: "did late"}
		case r.round == 0:
			return said{calls: []wish{{"user__ask", map[string]any{"question": "Which for " + r.prompt + "?", "options": []string{"red", "blue"}}}}}
		}
		var answer struct{ Answer string }
		_ = json.Unmarshal([]byte(r.results[0]), &answer) // otherwise it is empty, and the test reports that
		return said{text: "did " + r.prompt + " in " + answer.Answer}
	}
	switch r.round {
	case 0:
		s := fanOut("one", "two")(r)
		s.calls = append(s.calls, wish{"agent__task_create", map[string]any{"subject": "Later", "agent": "explore", "prompt": "late"}})
		return s
	case 1:
		return fanOut()(r)
	}
	var told []string
	for _, text := range r.results {
		told = append(told, regexp.MustCompile(`did \w+ in \w+`).FindAllString(text, -1)...)
	}
	slices.Sort(told)
	return said{text: strings.Join(told, ", ")}
}

func serveAsking(t *testing.T) *crewModel {
	m := serveCrew(t, asksPerson)
	config := ".config/raddle/agents/boss/config.yaml"
	m.write(config, strings.Replace(m.read(config), "agents: 4", "agents: 2", 1))
	return m
}

// openQuestions returns the questions of a run by the agent's prompt.
func (m *crewModel) openQuestions(run string) map[string]string {
	m.t.Helper()
	r := m.run("runs", "show", run, "--output", "json")
	var shown struct{ Questions []struct{ ID, Prompt string } }
	if err := json.Unmarshal([]byte(r.out), &shown); err != nil {
		m.t.Fatalf("%v\n%s%s", err, r.out, r.err)
	}
	ids := map[string]string{}
	for _, q := range shown.Questions {
		_, name, _ := strings.Cut(q.Prompt, "Which for ")
		ids[strings.TrimRight(name, "?")] = q.ID
	}
	return ids
}

// Questions of two agents are open together, and each answer reaches the agent that asked.
func TestCrewParks(t *testing.T) {
	for name, answer := range map[string]func(w *crewModel, run string, ids map[string]string) result{
		"both, the second first": func(w *crewModel, run string, ids map[string]string) result {
			return w.run("resume", "-q", run, "--answer", ids["two"]+"=blue", "--answer", ids["one"]+"=red")
		},
		"one after the other": func(w *crewModel, run string, ids map[string]string) result {
			r := w.run("resume", run, "--answer", ids["two"]+"=blue")
			if r.code != 5 || !strings.Contains(r.err, "next: raddle resume "+run+" --answer TEXT\n") || strings.Count(r.err, "asked by") != 1 {
				w.t.Errorf("one is answered: exit code %d\n%s", r.code, r.err)
			}
			return w.run("resume", "-q", run, "--answer", "red")
		},
		"by who asks": func(w *crewModel, run string, ids map[string]string) result {
			return w.run("resume", "-q", run, "--answer", spawnedID.FindString(ids["two"])+"=blue", "--answer", strings.TrimSuffix(ids["one"], "/act")+"=red")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := serveAsking(t)
			r := w.run("run", "boss", "go")
			run := w.runs()[0].Run
			ids := w.openQuestions(run)
			if r.code != 5 || r.out != "" || len(ids) != 2 {
				t.Fatalf("exit code %d, %v\n%s%s", r.code, ids, r.out, r.err)
			}
			all := ""
			for _, id := range slices.Sorted(slices.Values([]string{ids["one"], ids["two"]})) {
				all += " --answer " + id + "=TEXT"
				for _, want := range []string{"  " + id + " (user__ask), asked by explore (" + spawnedID.FindString(id) + "): ", "    alone: raddle resume " + run + " --answer " + id + "=TEXT\n"} {
					if !strings.Contains(r.err, want) {
						t.Errorf("standard error lacks %q:\n%s", want, r.err)
					}
				}
			}
			if want := "next: raddle resume " + run + all + "\n"; !strings.HasSuffix(r.err, want) {
				t.Errorf("the last line is not %q:\n%s", want, r.err)
			}
			w.standing(run, ids)
			if c := w.run("__complete", "resume", run, "--answer", ""); !strings.Contains(c.out, ids["one"]+"=\tWhich for one?") {
				t.Errorf("completion: %s", c.out)
			}
			if r := answer(w, run, ids); r.code != 0 || r.out != "did one in red, did two in blue\n" {
				t.Errorf("exit code %d, %q\n%s", r.code, r.out, r.err)
			}
		})
	}
}

// standing checks what is shown of a run that waits for two of its agents.
func (m *crewModel) standing(run string, ids map[string]string) {
	m.t.Helper()
	shown := m.run("runs", "show", run).out
	_, after, _ := strings.Cut(shown, "\ntree  ")
	lines := regexp.MustCompile(`(?m)^ {5,} ?(\S.*)$`).FindAllStringSubmatch("  "+"   "+strings.TrimLeft(after, " "), 4)
	var tree []string
	for _, l := range lines {
		tree = append(tree, regexp.MustCompile(`\s+`).ReplaceAllString(regexp.MustCompile(`\d+\.\d\ds`).ReplaceAllString(l[1], "TIME"), " "))
	}
	want := []string{"boss waiting TIME 2 calls 24 tokens 0.0000 USD 3 tool calls"}
	for _, prompt := range []string{"one", "two"} {
		id := spawnedID.FindString(ids[prompt])
		want = append(want, fmt.Sprintf("├─ explore (%s) waiting TIME 1 call 12 tokens 0.0000 USD %s asks team/%s/act", id, prompt, id))
	}
	want = append(want, "└─ task 1: Later waiting for a place")
	if !slices.Equal(tree, want) {
		m.t.Errorf("the tree is\n%s\nwant\n%s\n%s", strings.Join(tree, "\n"), strings.Join(want, "\n"), shown)
	}
}

// On a terminal the prompts say who asks.
func TestCrewAsksOnATerminal(t *testing.T) {
	w := serveAsking(t)
	s := w.screen(nil, "run", "boss", "go")
	for _, nth := range []string{"1/2", "2/2"} {
		s.seen.until(t, nth, func(all string) bool {
			_, prompt, asked := strings.Cut(all, nth+" ")
			return asked && strings.Contains(prompt, "Other…")
		})
		said := s.seen.String()
		said = said[strings.LastIndex(said, nth+" "):]
		who := regexp.MustCompile(`^./2 explore \(agent_explore_[0-9a-f]{8}\) asks:`)
		if !who.MatchString(said) {
			t.Errorf("the prompt does not say who asks: %q", said)
		}
		s.answer(enter)
	}
	s.ends(0, "did one in red, did two in red")
}

// Events carry paths and conform to the published schema, and the cost of a run is
// that of all of its agents.
func TestCrewInJSON(t *testing.T) {
	needBash(t)
	w := serveCrew(t, atWork("a", "b"))
	w.write("gate-a", "")
	w.write("gate-b", "")
	schema, err := strictSchema("events")
	if err != nil {
		t.Fatal(err)
	}
	r := w.run("run", "boss", "go", "--output", "stream-json")
	kinds := map[string]int{}
	usage := ""
	for line := range strings.Lines(r.out) {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err == nil {
			err = schema.Validate(v)
		}
		if err != nil {
			t.Errorf("%s\n%v", line, err)
		}
		var e struct {
			Path string
			Data struct {
				Type, ID string
				Usage    json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &e) == nil { // the data of other kinds has another shape
			kinds[spawnedID.ReplaceAllString(e.Path, "ID")+e.Data.Type]++
			usage = string(e.Data.Usage)
		}
	}
	for kind, n := range map[string]int{"agent_started": 2, "agent_ended": 2, "team/lead/replied": 3, "team/ID/replied": 4, "team/ID/tool_done": 2} {
		if kinds[kind] != n {
			t.Errorf("%d events %s, want %d: %v", kinds[kind], kind, n, kinds)
		}
	}
	const all = `{"calls":7,"input_tokens":70,"output_tokens":14,"cached_tokens":0,"written_tokens":0,"reasoning_tokens":0,"cost_usd":0.000098,"unpriced_calls":0,"models":["small"]}`
	if usage != all {
		t.Errorf("usage %s, want %s", usage, all)
	}
	var shown struct {
		Tree struct {
			Usage    struct{ Calls int }
			Children []struct {
				Path, Agent, Status string
				Usage               struct{ Calls int }
			}
		}
	}
	out := w.run("runs", "show", w.runs()[0].Run, "--output", "json").out
	if err := json.Unmarshal([]byte(out), &shown); err != nil || shown.Tree.Usage.Calls != 3 || len(shown.Tree.Children) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range shown.Tree.Children {
		if c.Agent != "explore" || c.Status != "done" || c.Usage.Calls != 2 || !strings.HasPrefix(c.Path, "team/agent_explore_") {
			t.Errorf("%+v", c)
		}
	}
}

// An agent that another has spawned is below it, and one that failed says why, in
// the narration and in later output.
func TestCrewOfCrews(t *testing.T) {
	w := serveCrew(t, func(r request) said {
		spawns := map[string]string{"go": "outer", "outer": "inner"}[r.prompt]
		switch {
		case r.prompt == "inner":
			return said{refused: "there is no such thing"}
		case r.round < 2:
			return fanOut(spawns)(r)
		}
		return said{text: r.prompt + " is over"}
	})
	config := ".config/raddle/agents/explore/config.yaml"
	w.write(config, w.read(config)+"can_spawn_agents: true\n")
	r := w.run("run", "boss", "go")
	ids := spawnedID.FindAllString(r.err, -1)
	if r.code != 0 || r.out != "go is over\n" || len(ids) == 0 {
		t.Fatalf("exit code %d, %q\n%s", r.code, r.out, r.err)
	}
	outer := ids[0]
	if !regexp.MustCompile(`(?m)^▸ explore \(agent_explore_\w+: inner\) started, spawned by `+outer+`$`).MatchString(r.err) ||
		!regexp.MustCompile(`(?m)^▸ explore \(agent_explore_\w+: inner\) failed in .*there is no such thing`).MatchString(r.err) {
		t.Errorf("the narration:\n%s", r.err)
	}
	shown := w.run("runs", "show", w.runs()[0].Run).out
	if !regexp.MustCompile(`(?m)^tree       boss +done .*\n           └─ explore \(` + outer + `\) +done .*\n              └─ explore \(agent_explore_\w+\) +failed .*there is no such thing`).MatchString(shown) {
		t.Errorf("the tree:\n%s", shown)
	}
}

var four = []string{"a", "b", "c", "d"}

// messaged is four running agents, each of which receives a message while it works, and
// reports how often it has received it.
func messaged(r request) said {
	if r.agent == "boss" {
		switch r.round {
		case 1:
			var s said
			for _, id := range r.ids() {
				s.calls = append(s.calls, wish{"agent__send_message", map[string]any{"id": id, "message": "hello"}})
			}
			return s
		case 2:
			return fanOut(four...)(request{agent: "boss", round: 1, results: r.results})
		}
		return fanOut(four...)(r)
	}
	switch r.round {
	case 0:
		return said{calls: []wish{{"hold", map[string]any{"at": r.prompt}}}}
	case 1:
		return said{calls: []wish{{"agent__check_inbox", map[string]any{}}}}
	case 2: // and once more, for what may arrive twice
		return said{calls: []wish{{"agent__check_inbox", map[string]any{}}}}
	}
	if n := strings.Count(strings.Join(r.results, " "), "hello"); n != 1 {
		return said{text: fmt.Sprintf("%s has heard it %d times", r.prompt, n)}
	}
	return said{text: "did " + r.prompt}
}

// countStarts counts how often the tool of each agent has started.
func (m *crewModel) countStarts() map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(m.read("log")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "begun "); ok {
			n[name]++
		}
	}
	return n
}

// deserted requires that no process waits at a gate any more.
func (g gate) deserted() {
	g.w.t.Helper()
	f, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		_ = f.Close()
	}
	if !errors.Is(err, syscall.ENXIO) {
		g.w.t.Errorf("somebody waits at %s (%v)", filepath.Base(g.path), err)
	}
}

func (m *crewModel) gates() map[string]gate {
	gates := map[string]gate{}
	for _, name := range four {
		gates[name] = m.gate("gate-" + name)
	}
	return gates
}

// requests requires a number of requests for each reply of an agent.
func (m *crewModel) requests(want int, agents ...string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.asked {
		for _, a := range agents {
			if strings.HasPrefix(name, a+"/") && n != want {
				m.t.Errorf("the model was asked %d times for %s, want %d", n, name, want)
			}
		}
	}
}

const allFour = "all of them: a b c d\n"

// The first signal lets the tools of all agents finish. Nothing runs twice.
func TestCrewDrains(t *testing.T) {
	needBash(t)
	w := serveCrew(t, messaged)
	gates := w.gates()
	cmd, c := w.begin("run", "boss", "go")
	pass := map[string]func(){}
	for _, name := range four {
		pass[name] = gates[name].arrive()
	}
	c.await(t, "tool call: agent__collect") // all have received a message
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Stopping after this step.")
	for _, name := range four {
		pass[name]()
	}
	if got := wait(t, cmd); got != 130 {
		t.Fatalf("exit code %d\n%s", got, c)
	}
	r := w.run("resume", "-q", w.runs()[0].Run)
	if r.code != 0 || r.out != allFour {
		t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
	for _, name := range four {
		if w.countStarts()[name] != 1 {
			t.Errorf("the tools have started: %v", w.countStarts())
		}
	}
	w.requests(1, "boss/go", "explore/a", "explore/b", "explore/c", "explore/d")
}

// The second signal interrupts all of them, and no process of theirs is left. Each
// continues inside its own loop.
func TestCrewIsCutShort(t *testing.T) {
	needBash(t)
	w := serveCrew(t, messaged)
	gates := w.gates()
	cmd, c := w.begin("run", "boss", "go")
	pass := map[string]func(){}
	for _, name := range four {
		pass[name] = gates[name].arrive()
	}
	c.await(t, "tool call: agent__collect") // all have received a message
	pass["a"]()
	c.await(t, "completed in")
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Ctrl-C again")
	w.send(cmd, syscall.SIGINT)
	if got := wait(t, cmd); got != 130 {
		t.Fatalf("exit code %d\n%s", got, c)
	}
	for _, name := range four[1:] {
		pass[name]()
		gates[name].deserted()
	}
	w.goOn(gates)
}

// A killed process leaves no process behind once its run is resumed: the agents that
// have finished do not run again, the others continue inside their own loops, and their
// messages arrive once.
func TestCrewIsKilled(t *testing.T) {
	needBash(t)
	w := serveCrew(t, messaged)
	gates := w.gates()
	cmd, c := w.begin("run", "boss", "go")
	pass := map[string]func(){}
	for _, name := range four {
		pass[name] = gates[name].arrive()
	}
	c.await(t, "tool call: agent__collect") // all have received a message
	pass["a"]()
	c.await(t, "completed in")
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	for _, name := range four[1:] {
		pass[name]()
	}
	w.goOn(gates)
}

// goOn resumes a run of four agents, the first of which has finished.
func (m *crewModel) goOn(gates map[string]gate) {
	m.t.Helper()
	run := m.runs()[0].Run
	before := m.countStarts()
	cmd, c := m.begin("resume", run)
	for _, name := range four[1:] {
		gates[name].arrive()()
	}
	if got := wait(m.t, cmd); got != 0 {
		m.t.Fatalf("resumed: exit code %d\n%s", got, c)
	}
	if r := m.run("resume", run); r.out != allFour {
		m.t.Errorf("the run's output is %q\n%s", r.out, c)
	}
	after := m.countStarts()
	for i, name := range four {
		if want := map[bool]int{true: 0, false: 1}[i == 0]; after[name]-before[name] != want || before[name] != 1 {
			m.t.Errorf("the tool of %s has begun %d times, and %d times after the stop", name, before[name], after[name]-before[name])
		}
	}
	m.requests(1, "boss/go", "explore/a", "explore/b", "explore/c", "explore/d")
	for _, want := range []string{"(" + "agent_explore_", ") continues", "completed in"} {
		if !strings.Contains(c.String(), want) {
			m.t.Errorf("standard error lacks %q:\n%s", want, c)
		}
	}
	if n := strings.Count(c.String(), "continues"); n != len(four)-1 {
		m.t.Errorf("%d agents go on\n%s", n, c)
	}
}
