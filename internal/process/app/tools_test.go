//go:build unix

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/store/sqlite"
)

// A call is what the model of a test requests.
type call struct{ ID, Name, Args string }

// A model is a server that speaks the wire of OpenAI, checks histories against its
// rules, and answers by the number of messages with outcomes that it receives.
type model struct {
	t      *testing.T
	rounds [][]call // by the number of finished rounds; then text
	text   string

	mu     sync.Mutex
	bodies [][]byte
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // an interrupt has ended the request
	}
	if err := llmtest.OpenAI().Check(body); err != nil {
		m.t.Errorf("a request was refused: %v\n%s", err, body)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.bodies = append(m.bodies, body)
	m.mu.Unlock()
	var req struct {
		Messages []struct{ Role string }
		Tools    []any
	}
	_ = json.Unmarshal(body, &req) // Check has read it
	done := 0
	for _, msg := range slices.Backward(req.Messages) {
		if msg.Role == "user" {
			break
		}
		if msg.Role == "assistant" {
			done++
		}
	}
	delta, reason := any(map[string]string{"content": m.text}), "stop"
	if done < len(m.rounds) && req.Tools != nil {
		var calls []any
		for i, c := range m.rounds[done] {
			calls = append(calls, map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]string{"name": c.Name, "arguments": c.Args}})
		}
		delta, reason = map[string]any{"tool_calls": calls}, "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, chunk := range []any{
		map[string]any{"index": 0, "delta": delta}, map[string]any{"index": 0, "delta": struct{}{}, "finish_reason": reason},
	} {
		line, _ := json.Marshal(map[string]any{"id": "1", "object": "chat.completion.chunk", "model": "small", "choices": []any{chunk}})
		fmt.Fprintf(w, "data: %s\n\n", line)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *model) requests() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.bodies)
}

// A place is a working directory with a home directory for a process of raddle.
type place struct {
	t   *testing.T
	dir string
	env []string
}

func newPlace(t *testing.T, env ...string) *place {
	dir := t.TempDir()
	return &place{t, dir, append([]string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}, env...)}
}

func (p *place) write(name, text string) {
	p.t.Helper()
	testfile.WriteFile(p.t, filepath.Join(p.dir, name), text)
}

func (p *place) lines(name string) []string {
	text, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}

// serve sets up a server as the client "local".
func (p *place) serve(m *model) {
	server := httptest.NewServer(m)
	p.t.Cleanup(server.Close)
	p.write("home/.config/raddle/config.yaml", "model: local:small\nclients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [small]}]\n")
}

// process opens a process whose store fails after a number of records; negative: never.
func (p *place) process(limit int) (*Process, *graphtest.Crash) {
	p.t.Helper()
	proc, err := Open(Options{Work: p.dir, Environ: p.env})
	if err != nil {
		p.t.Fatal(err)
	}
	file := filepath.Join(p.dir, "runs.db")
	st, err := sqlite.Open(file)
	if err != nil {
		p.t.Fatal(err)
	}
	crash := &graphtest.Crash{Store: st, Limit: limit}
	proc.Runs = runs.NewArchive(proc.Dirs, "sqlite:"+file)
	if err := proc.Runs.AttachStore(crash); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = proc.Close() })
	return proc, crash
}

// answering answers each question with the answer that pick has for its kind.
func answering(pick func(q graph.Question) string) Driver {
	return Driver{Ask: func(_ context.Context, open []graph.Question) (answers []graph.Answer, _ bool, _ error) {
		for _, q := range open {
			answers = append(answers, graph.Answer{ID: q.ID, Value: pick(q)})
		}
		return answers, false, nil
	}}
}

// A five is an agent with five tools, each of which records that it has run.
const (
	fiveConfig = "name: Five\nmodel: local:small\ninstructions: Do it.\n"
	fiveTools  = `
set -e
note() { echo "$1 $RADDLE_IDEMPOTENCY_KEY" >>"$PWD/ran"; echo "did $1" >>"$LLM_OUTPUT"; }
# @cmd Looks.
# raddle: read-only
look() { note look; }
# @cmd Sets.
# raddle: idempotent
put() { note put; }
# @cmd Sends.
# @option --to! Who
send() { note send; }
# @cmd Pays.
pay() { note pay; }
# @cmd Looks again.
# raddle: read-only
peek() { note peek; }
`
)

func fiveModel(t *testing.T) *model {
	return &model{t: t, text: "all done", rounds: [][]call{{
		{"c1", "look", "{}"}, {"c2", "put", "{}"}, {"c3", "send", `{"to":"Ada"}`}, {"c4", "pay", "{}"}, {"c5", "peek", "{}"},
	}}}
}

// A run with five calls that is killed after any record and resumed repeats no call whose
// outcome is recorded, and requests no recorded reply again. A call in doubt
// runs again with its key if it was declared harmless; otherwise a person is asked.
func TestFiveCallsKilledAtEveryRecord(t *testing.T) {
	whole := newPlace(t)
	whole.write("five/config.yaml", fiveConfig)
	whole.write("five/tools.sh", fiveTools)
	whole.serve(fiveModel(t))
	p, crash := whole.process(-1)
	if _, out := whole.finish(p, Request{Agent: "./five", Prompt: "go"}, nil); out != "all done" || len(whole.lines("ran")) != 5 {
		t.Fatalf("%q, ran %v", out, whole.lines("ran"))
	}
	for limit := range crash.RecordCount() {
		t.Run(fmt.Sprint(limit), func(t *testing.T) { killFive(t, limit) })
	}
}

// finish runs a request to its end.
func (p *place) finish(proc *Process, req Request, pick func(graph.Question) string) (*Run, string) {
	p.t.Helper()
	run, err := proc.StartRun(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer run.Close()
	d := Driver{}
	if pick != nil {
		d = answering(pick)
	}
	res, err := run.Drive(p.t.Context(), d)
	if err != nil && !errors.Is(err, graphtest.ErrCrash) {
		p.t.Fatal(err)
	}
	return run, flow.OutcomeOf(res).Output
}

func killFive(t *testing.T, limit int) {
	w := newPlace(t)
	w.write("five/config.yaml", fiveConfig)
	w.write("five/tools.sh", fiveTools)
	m := fiveModel(t)
	w.serve(m)
	p, crash := w.process(limit)
	killed, _ := w.finish(p, Request{Agent: "./five", Prompt: "go"}, nil)
	if !crash.HasCrashed() {
		t.Fatal("the run was not killed")
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p, _ = w.process(-1)
	if crash.RecordCount() == 0 || limit == 0 {
		return // nothing was recorded: there is no run to resume
	}
	before, asked := w.lines("ran"), m.requests()
	recorded := w.effects(p, killed.ID)
	run, err := p.ResumeRun(t.Context(), killed.ID, ResumeOptions{})
	if over, ok := errors.AsType[*runs.EndedError](err); ok && over.Output == "all done" {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var doubted []string
	res, err := run.Drive(t.Context(), answering(func(q graph.Question) string {
		doubted = append(doubted, q.Kind)
		return "skip"
	}))
	if err != nil || flow.OutcomeOf(res).Output != "all done" {
		t.Fatalf("%+v %v", res, err)
	}
	if got, want := m.requests()-asked, 2-recorded["model"]; got != want {
		t.Errorf("%d replies were recorded, and %d requests were made afterwards, want %d", recorded["model"], got, want)
	}
	keys := map[string]string{}
	for _, line := range w.lines("ran") {
		name, key, _ := strings.Cut(line, " ")
		if keys[name] == "" {
			keys[name] = key
		}
		if key == "" || keys[name] != key {
			t.Errorf("%s ran with the keys %q and %q", name, keys[name], key)
		}
	}
	for _, name := range []string{"look", "put", "send", "pay", "peek"} {
		was, is := count(before, name), count(w.lines("ran"), name)
		harmless := name != "send" && name != "pay"
		switch {
		case recorded["tool "+name] > 0 && is != was:
			t.Errorf("the outcome of %s was recorded, and it ran again", name)
		case recorded["tool "+name] == 0 && was > 0 && harmless && is != was+1:
			t.Errorf("%s was in doubt and may run again: it ran %d times, and %d before", name, is, was)
		case !harmless && is > 1:
			t.Errorf("%s ran %d times", name, is)
		case !harmless && was == 1 && recorded["tool "+name] == 0 && !slices.Contains(doubted, agent.KindDoubt):
			t.Errorf("%s was in doubt, and raddle asked only about %v", name, doubted)
		}
	}
}

func count(lines []string, name string) (n int) {
	for _, l := range lines {
		if strings.HasPrefix(l, name+" ") {
			n++
		}
	}
	return n
}

// effects counts the effects of a run that have an outcome, by their names.
func (p *place) effects(proc *Process, id string) map[string]int {
	p.t.Helper()
	_, entries, err := proc.Runs.ReadHistory(p.t.Context(), id)
	if err != nil {
		p.t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range entries {
		if e.Kind != journal.KindEffect {
			continue
		}
		for _, what := range []string{"model", "tool look", "tool put", "tool send", "tool pay", "tool peek"} {
			if strings.Contains(e.ID, what) {
				n[what]++
			}
		}
	}
	return n
}

// shopServer is the example's MCP server, built once.
var shopServer = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "raddle-shop")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "shop")
	build := exec.Command("go", "build", "-trimpath", "-o", path, "raddle.dev/examples/assistant/server") // as make build compiles it
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// assistant writes the example to a place, with its server built.
func (p *place) assistant() {
	p.t.Helper()
	server, err := shopServer()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(p.dir, "assistant"), os.DirFS("../../../examples/assistant")); err != nil {
		p.t.Fatal(err)
	}
	p.write("assistant/mcp.json", `{"mcpServers": {"shop": {"command": "`+server+`"}}}`)
}

// assistantPrompts are the prompts of the example, and their questions.
var assistantPrompts = map[string]string{
	"Where is order 1007, and what would two raddles cost?": "Order 1007 is in the workshop until Friday. Two raddles cost 49.00 EUR if you pick them up.\n",
	"Reserve a raddle for Ada.":                             "A raddle is reserved for Ada, and my colleagues know.",
}

func pickAssistant(q graph.Question) string {
	if q.Kind == agent.KindDoubt {
		return "retry"
	}
	return q.Options[0]
}

// The example works as its text says: bash, Python, a server, a question, the list.
func TestAssistant(t *testing.T) {
	for prompt, want := range assistantPrompts {
		w := newPlace(t, "RADDLE_NOTES=notes")
		w.assistant()
		p, crash := w.process(-1)
		run, err := p.StartRun(Request{Agent: "./assistant", Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range run.Agent.Findings {
			t.Errorf("%s", f)
		}
		var permitted []string
		res, err := run.Drive(t.Context(), answering(func(q graph.Question) string {
			if q.Kind == agent.KindPermission {
				permitted = append(permitted, q.Prompt)
			}
			return pickAssistant(q)
		}))
		run.Close()
		// The server is in the agent's own file. A tool that only reads does not ask, although
		// another one of the server changes something; a tool that changes something asks.
		if reserves := strings.HasPrefix(prompt, "Reserve"); len(permitted) > 0 != reserves || reserves && !strings.Contains(permitted[0], "calls reserve, which may change something") {
			t.Errorf("%q asks for permission: %q", prompt, permitted)
		}
		if err != nil || flow.OutcomeOf(res).Output != want {
			t.Fatalf("%q %v", flow.OutcomeOf(res).Output, err)
		}
		said := fmt.Sprint(agent.History(res.State))
		if strings.Contains(said, "Error:true") {
			t.Errorf("a call failed: %s", said)
		}
		if strings.Contains(prompt, "1007") && (!strings.Contains(said, `"total":49`) || !strings.Contains(said, "in the workshop until Friday") || !strings.Contains(said, `"pieces":12`)) {
			t.Errorf("outcomes are missing: %s", said)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		for limit := 1; limit < crash.RecordCount(); limit++ {
			crashAssistant(t, prompt, want, limit)
		}
	}
}

func crashAssistant(t *testing.T, prompt, want string, limit int) {
	t.Helper()
	w := newPlace(t, "RADDLE_NOTES=notes")
	w.assistant()
	p, _ := w.process(limit)
	killed, _ := w.finish(p, Request{Agent: "./assistant", Prompt: prompt}, pickAssistant)
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	p, _ = w.process(-1)
	run, err := p.ResumeRun(t.Context(), killed.ID, ResumeOptions{})
	if over, ok := errors.AsType[*runs.EndedError](err); ok && over.Output == want {
		return
	}
	if err != nil {
		t.Fatalf("killed after %d records: %v", limit, err)
	}
	defer run.Close()
	res, err := run.Drive(t.Context(), answering(pickAssistant))
	if got := flow.OutcomeOf(res).Output; err != nil || got != want {
		t.Errorf("killed after %d records: %q %v", limit, got, err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// No secret reaches the journal, the events, the log or the model, even if a
// tool prints its environment and a server returns what it knows.
func TestSecretsStayOut(t *testing.T) {
	const key, token = "sk-local-0123456789", "ghp-token-abcdefghijk"
	w := newPlace(t, "LOCAL_API_KEY="+key, "TRACKER_TOKEN="+token)
	w.write("leaky/config.yaml", "name: Leaky\nmodel: local:small\ninstructions: 'Token {{t}}.'\nmcp_servers: [broken]\nvariables: [{name: t, description: a token, default: '{{TRACKER_TOKEN}}'}]\n")
	w.write("leaky/tools.sh", "# @cmd Shows all.\n# raddle: read-only\nshow() { echo \"length ${#LLM_AGENT_VAR_T}\" >>\"$LLM_OUTPUT\"; env >>\"$LLM_OUTPUT\"; env >&2; env; }\n# @cmd Fails.\n# raddle: read-only\nfails() { echo \"$TRACKER_TOKEN\" >&2; return 3; }\n")
	w.write("leaky/mcp.json", `{"mcpServers": {"broken": {"command": "bash", "args": ["-c", "echo $T >&2; exit 1"], "env": {"T": "${TRACKER_TOKEN}"}}}}`)
	m := &model{t: t, text: "the key is " + key + " and " + token, rounds: [][]call{{{"a", "show", "{}"}, {"b", "fails", "{}"}}}}
	w.serve(m)
	p, _ := w.process(-1)
	var log, events bytes.Buffer
	run, err := p.StartRun(Request{Agent: "./leaky", Prompt: "tell me " + token, UIHooks: UIHooks{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Drive(t.Context(), Driver{Topics: graph.AllTopics, Event: func(ev graph.Event) { fmt.Fprintf(&events, "%+v\n", ev) }})
	run.Close()
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%+v %v", res, err)
	}
	var written bytes.Buffer
	for r, err := range openStore(t, p).Read(t.Context(), run.Thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		written.Write(r.Head)
		written.Write(r.Data)
	}
	for name, text := range map[string]string{"journal": written.String(), "events": events.String(), "log": log.String(), "requests": string(bytes.Join(m.bodies, nil)), "output": flow.OutcomeOf(res).Output} {
		if text == "" && name != "log" {
			t.Errorf("%s: empty", name)
		}
		for _, secret := range []string{key, token} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s: a secret is in it: …%q", name, text[max(0, i-60):min(len(text), i+60)])
			}
		}
	}
	if all := string(bytes.Join(m.bodies, nil)); !strings.Contains(all, fmt.Sprint("length ", len(token))) || !strings.Contains(all, "Token {{TRACKER_TOKEN}}.") {
		t.Error("the variable that names a token has not reached the tool, or not the prompt")
	}
	if !strings.Contains(log.String(), "broken") {
		t.Errorf("the log does not tell of the server: %s", log.String())
	}
	if !strings.Contains(string(bytes.Join(m.bodies, nil)), "[redacted]") {
		t.Error("the tool has shown nothing")
	}
}

func pickFirst(q graph.Question) string { return q.Options[0] }

// osNow returns the name of this system in instructions.
func osNow() string {
	if runtime.GOOS == "darwin" {
		return "macos"
	}
	return runtime.GOOS
}

// In the example whose nodes use tools, every call does its work.
func TestResearch(t *testing.T) {
	w := newPlace(t)
	if err := os.CopyFS(filepath.Join(w.dir, "examples", "research"), os.DirFS("../../../examples/research")); err != nil {
		t.Fatal(err)
	}
	p, _ := w.process(-1)
	run, err := p.StartRun(Request{Agent: "examples/research", Prompt: "Why do warp threads break?"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	var done []string
	res, err := run.Drive(t.Context(), Driver{Topics: graph.AllTopics, Event: func(ev graph.Event) {
		if e, ok := ev.Body.(graph.ValueEmitted); ok {
			if d, ok := e.Value.(agent.ToolDone); ok {
				done = append(done, d.Name)
				if d.Error || !strings.Contains(d.Text, "break") && !strings.Contains(d.Text, "humidity.md") && d.Name != "title_of" {
					t.Errorf("%s: %s", d.Name, d.Text)
				}
			}
		}
	}})
	if err != nil || !strings.Contains(flow.OutcomeOf(res).Output, "Sources: Sizing a warp; Air in the weaving room.") {
		t.Errorf("%+v %v", res, err)
	}
	slices.Sort(done)
	if got := strings.Join(done, " "); got != "fs_grep fs_read fs_read list_documents title_of title_of" {
		t.Errorf("calls: %s", got)
	}
}
