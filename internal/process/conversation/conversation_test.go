package conversation_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/testkit/llmtest"
)

// A place is a home, a workspace, and a provider that answers with what answer returns.
type place struct {
	t    testing.TB
	work string
	env  []string

	mu     sync.Mutex
	bodies []string
	answer func(body []byte) llmtest.Turn // nil: the number of the message and its text
}

// newPlace has the agent helper, which speaks with the provider.
func newPlace(t testing.TB) *place {
	x := &place{t: t, work: t.TempDir()}
	home := filepath.Join(x.work, "home")
	server := httptest.NewServer(llmtest.OpenAI().NewHandler(func(body []byte) (llmtest.Turn, int) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.bodies = append(x.bodies, string(body))
		if x.answer != nil {
			return x.answer(body), http.StatusOK
		}
		return replyTo(t, body), http.StatusOK
	}))
	t.Cleanup(server.Close)
	x.env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	x.write("home/.config/raddle/config.yaml", "model: local:small\nclients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [{name: small, input_price: 1, output_price: 2}]}]\n")
	x.write("home/.config/raddle/agents/helper/config.yaml", "name: helper\ninstructions: You help.\nglobal_tools: [fs_cat, fs_write, fs_patch, fs_rm]\n")
	x.write("home/.config/raddle/permissions.yaml", "allow: [fs_write(**), fs_patch(**), fs_rm(**)]\n")
	return x
}

func (x *place) write(name, text string) {
	x.t.Helper()
	path := filepath.Join(x.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// open opens a process and a conversation in it.
func (x *place) open(name string) (*app.Process, *conversation.Conversation) {
	x.t.Helper()
	p, err := app.Open(app.Options{Work: x.work, Environ: x.env})
	if err != nil {
		x.t.Fatal(err)
	}
	c, err := conversation.Open(x.t.Context(), p, "helper", name)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() {
		c.Close()
		_ = p.Close()
	})
	return p, c
}

// say makes a turn and returns its output.
func (x *place) say(c *conversation.Conversation, text string) string {
	x.t.Helper()
	run, err := c.StartTurn(app.Request{Prompt: text})
	if err != nil {
		x.t.Fatal(err)
	}
	defer run.Close()
	res, err := run.Drive(x.t.Context(), app.Driver{Reply: func(graph.Question) (any, bool) { return "once", true }})
	if err != nil || res.Status != graph.Done {
		x.t.Fatalf("%v %v", res.Status, err)
	}
	return fmt.Sprint(res.Value)
}

// replyTo calls the tool that a message names ("CALL name {...}", several on lines), and otherwise says which message it is.
func replyTo(t testing.TB, body []byte) (turn llmtest.Turn) {
	var r struct{ Messages []struct{ Role string } }
	must(t, json.Unmarshal(body, &r))
	list := said(t, body)
	last := list[len(list)-1]
	if r.Messages[len(r.Messages)-1].Role == "user" && strings.HasPrefix(last, "CALL ") {
		for i, line := range strings.Split(last, "\n") {
			name, args, _ := strings.Cut(strings.TrimPrefix(line, "CALL "), " ")
			turn.Calls = append(turn.Calls, llmtest.Call{ID: fmt.Sprintf("c%dx%d", len(r.Messages), i), Name: name, Args: args})
		}
		return turn
	}
	return llmtest.Turn{Text: fmt.Sprintf("reply %d to %s", len(list), last)}
}

// said returns the texts of the messages of persons in a request.
func said(t testing.TB, body []byte) (texts []string) {
	var r struct {
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		t.Error(err)
	}
	for _, m := range r.Messages {
		if text, ok := m.Content.(string); ok && m.Role == "user" {
			texts = append(texts, text)
		}
	}
	return texts
}

// prompts returns the prompts of the current branch, as the journal has them.
func prompts(t testing.TB, c *conversation.Conversation) string {
	t.Helper()
	turns, err := c.Turns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, turn := range turns {
		if turn.Reply == "" || turn.Status != graph.Done || turn.Run == "" || turn.At.IsZero() {
			t.Errorf("turn %+v", turn)
		}
		list = append(list, turn.Prompt)
	}
	return strings.Join(list, " ")
}

func check(t testing.TB, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Undo and redo move between branches, nothing is lost, and every process sees the same branch.
func TestBranches(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	p, c := x.open("")
	for _, text := range []string{"one", "two", "three"} {
		x.say(c, text)
	}
	check(t, "title", c.Title(), "one")
	must(t, c.Undo(ctx, 1))
	check(t, "after an undo", prompts(t, c), "one two")
	must(t, c.Undo(ctx, 1))
	check(t, "after two", prompts(t, c), "one")
	must(t, c.Redo(ctx))
	check(t, "after a redo", prompts(t, c), "one two")
	must(t, c.Redo(ctx))
	check(t, "after all of them", prompts(t, c), "one two three")
	if err := c.Redo(ctx); err == nil {
		t.Error("a redo without an undo")
	}
	must(t, c.Undo(ctx, 2))
	check(t, "reply", x.say(c, "other"), "reply 2 to other")
	check(t, "the other way", prompts(t, c), "one other")
	if err := c.Redo(ctx); err == nil {
		t.Error("a redo after another turn")
	}
	c.Close()

	_, again := x.open(c.Name()) // as another process would
	check(t, "opened again", prompts(t, again), "one other")
	branches, err := again.Branches(ctx)
	must(t, err)
	if len(branches) != 2 || branches[0].Name != "main" || branches[0].Turns != 3 || branches[0].Current || branches[1].Turns != 2 || branches[1].From != 1 || !branches[1].Current || branches[1].Last != "other" {
		t.Errorf("branches %+v", branches)
	}
	must(t, again.SwitchBranch(ctx, "main"))
	check(t, "the first branch", prompts(t, again), "one two three")
	again.Close()
	_, third := x.open(c.Name())
	check(t, "a switch is durable", prompts(t, third), "one two three")
	check(t, "reply", x.say(third, "four"), "reply 4 to four")
	must(t, third.BranchAt(ctx, 1))
	check(t, "before the first turn", prompts(t, third), "")
	check(t, "reply", x.say(third, "first"), "reply 1 to first")
	check(t, "another beginning", prompts(t, third), "first")
	third.Close()
	_, last := x.open(c.Name())
	check(t, "another beginning is durable", prompts(t, last), "first")
	if list, err := conversation.List(ctx, p, ""); err != nil || len(list) != 1 || list[0].Turns != 1 || list[0].Title != "one" || list[0].Status != graph.Done || list[0].Agent != "helper" || list[0].Name != c.Name() {
		t.Errorf("list %+v %v", list, err)
	}
}

// A fork has the turns so far on a branch of its own; what is said there is not part of the first one.
func TestAddBranch(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	_, c := x.open("")
	if err := c.AddBranch(ctx); err == nil {
		t.Error("a conversation without a turn is forked")
	}
	x.say(c, "one")
	must(t, c.AddBranch(ctx))
	check(t, "the fork", prompts(t, c), "one")
	branches, err := c.Branches(ctx)
	must(t, err)
	if len(branches) != 2 || branches[0].Current || !branches[1].Current {
		t.Errorf("branches %+v", branches)
	}
	check(t, "reply", x.say(c, "two"), "reply 2 to two")
	check(t, "the fork", prompts(t, c), "one two")
	must(t, c.Undo(ctx, 1))
	check(t, "reply", x.say(c, "other"), "reply 2 to other")
	check(t, "after an undo", prompts(t, c), "one other")
}

// A renamed conversation is found by its new name, with all of its past.
func TestRename(t *testing.T) {
	x := newPlace(t)
	ctx := t.Context()
	p, c := x.open("")
	x.say(c, "one\nline two")
	x.say(c, "two")
	for _, bad := range []string{"a/b", "a b", "", "temp", "x~2"} {
		if err := c.Rename(ctx, bad); err == nil {
			t.Errorf("the name %q was accepted", bad)
		}
	}
	must(t, c.Rename(ctx, "parser"))
	check(t, "name", c.Name()+" "+c.Title(), "parser parser")
	x.say(c, "three")
	must(t, c.Undo(ctx, 2))
	check(t, "undo past the name", prompts(t, c), "one\nline two")
	check(t, "name", c.Name(), "parser")
	must(t, c.Redo(ctx))
	c.Close()
	_, again := x.open("parser")
	check(t, "by the new name", prompts(t, again), "one\nline two two three")
	all, err := p.Runs.ListRuns(ctx, "")
	if err != nil || len(all) != 3 || all[0].Session != "parser" {
		t.Errorf("runs %+v %v", all, err)
	}
	turns, err := again.Turns(ctx)
	must(t, err)
	for i, turn := range turns {
		if d, err := p.Runs.ReadRunDetail(ctx, turn.Run); err != nil || !strings.Contains(fmt.Sprint(d.Snapshot.Result), fmt.Sprint("reply ", i+1)) {
			t.Errorf("the run of turn %d: %v", i+1, err)
		}
		if _, err := p.Runs.ReadModelCalls(ctx, turn.Run); err != nil {
			t.Errorf("the calls of turn %d: %v", i+1, err)
		}
	}
	list, err := conversation.List(ctx, p, x.work)
	if err != nil || len(list) != 1 || list[0].Name != "parser" || list[0].Turns != 3 || list[0].Workspace != x.work {
		t.Errorf("list %+v %v", list, err)
	}
	if s, err := conversation.Latest(ctx, p, x.work); err != nil || s == nil || s.Name != "parser" {
		t.Errorf("the latest one: %+v %v", s, err)
	}
	if s, err := conversation.Latest(ctx, p, "/elsewhere"); err != nil || s != nil {
		t.Errorf("the latest one of another directory: %+v %v", s, err)
	}
	if list, err := conversation.List(ctx, p, "/elsewhere"); err != nil || len(list) != 0 {
		t.Errorf("list of another directory: %+v %v", list, err)
	}
	_, other := x.open("other")
	x.say(other, "hello")
	if err := other.Rename(ctx, "parser"); err == nil {
		t.Error("two conversations have one name")
	}
}

// A conversation that another process has open is refused, with the reason.
func TestOpenTwice(t *testing.T) {
	x := newPlace(t)
	p, c := x.open("talk")
	x.say(c, "one")
	if _, err := conversation.Open(t.Context(), p, "helper", "talk"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("session 'talk' of agent 'helper' is being driven by process %d", os.Getpid())) {
		t.Errorf("opened twice: %v", err)
	}
	c.Close()
	_, c = x.open("talk")
	check(t, "after it was closed", prompts(t, c), "one")
}

// A store that saves nothing still has conversations, and a graph has one without a way back.
func TestConversationsWithoutJournal(t *testing.T) {
	x := newPlace(t)
	x.env = append(x.env, "RADDLE_STORE=memory:")
	_, c := x.open("")
	x.say(c, "one")
	check(t, "reply", x.say(c, "two"), "reply 2 to two")
	must(t, c.Undo(t.Context(), 1))
	check(t, "reply", x.say(c, "other"), "reply 2 to other")

	x.write("flow/graph.yaml", "name: flow\nstart: a\nnodes:\n  a:\n    type: llm\n    prompt: \"Say {{initial_prompt}}\"\n    state_updates: {answer: \"{{output}}\"}\n    next: done\n  done:\n    type: end\n    output: \"{{answer}}\"\n")
	p, err := app.Open(app.Options{Work: x.work, Environ: x.env})
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	if _, err := conversation.Open(t.Context(), p, "./flow", "name"); err == nil || !strings.Contains(err.Error(), "session") {
		t.Errorf("a graph has a session: %v", err)
	}
	g, err := conversation.Open(t.Context(), p, "./flow", "")
	must(t, err)
	defer g.Close()
	x.say(g, "hello")
	turns, err := g.Turns(t.Context())
	if err != nil || len(turns) != 1 || turns[0].Prompt != "hello" || turns[0].Reply != "reply 1 to Say hello" || !g.IsGraph() {
		t.Errorf("turns %+v %v", turns, err)
	}
	if err := g.Undo(t.Context(), 1); err == nil {
		t.Error("a graph goes back")
	}
}
