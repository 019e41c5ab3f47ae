package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

// What follows is a whole protocol, as a program would speak it: POST /AGENT starts a run with the body as its prompt, POST /runs/RUN answers its
// question with the body, and both answer with a line of JSON for each thing that happens, as it happens. Another protocol needs another switch over
// the updates, and no fold of events: TestSixthProtocol says how long this file may be.

// lineHandler serves the protocol.
type lineHandler struct{ service *server.Service }

// A line is what a client reads.
type line struct {
	Run     string          `json:"run,omitempty"`
	Say     string          `json:"say,omitempty"`
	Think   string          `json:"think,omitempty"`
	Again   string          `json:"again,omitempty"`
	Call    string          `json:"call,omitempty"`
	Args    json.RawMessage `json:"args,omitempty"`
	Prints  string          `json:"prints,omitempty"`
	Result  string          `json:"result,omitempty"`
	Node    string          `json:"node,omitempty"`
	Left    string          `json:"left,omitempty"`
	Ask     string          `json:"ask,omitempty"`
	Options []string        `json:"options,omitempty"`
	Status  string          `json:"status,omitempty"`
	Output  string          `json:"output,omitempty"`
	Failed  string          `json:"failed,omitempty"`
}

// ServeHTTP starts a run or answers one, and writes its lines until it ends or asks.
func (h *lineHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c := &lineClient{w: w, encoder: json.NewEncoder(w)}
	if id, ok := strings.CutPrefix(r.URL.Path, "/runs/"); ok {
		err = h.answerRun(r.Context(), c, id, string(body))
	} else {
		c.run, err = h.service.StartRun(r.Context(), server.StartRequest{Agent: strings.TrimPrefix(r.URL.Path, "/"), Prompt: string(body)})
		c.write(line{Run: c.run})
	}
	if err == nil {
		err = h.follow(r.Context(), c)
	}
	if err != nil {
		c.write(line{Failed: err.Error()})
	}
}

// answerRun answers the first open question of a run.
func (h *lineHandler) answerRun(ctx context.Context, c *lineClient, id, answer string) error {
	state, err := h.service.ReadState(ctx, id)
	if err != nil {
		return err
	}
	c.run = state.Run
	c.after = state.Position()
	req := server.AnswerRequest{Run: c.run, Protocol: true}
	for _, q := range state.Questions[:min(1, len(state.Questions))] {
		req.Answers = []graph.Answer{{ID: q.ID, Value: answer}}
	}
	_, err = h.service.AnswerRun(ctx, req)
	return err
}

// follow writes what a run says, and how it ends.
func (h *lineHandler) follow(ctx context.Context, c *lineClient) error {
	sub, err := h.service.Subscribe(ctx, c.run, server.SubscribeOptions{After: c.after, UntilQuestion: true})
	if err != nil {
		return err
	}
	for ev, err := range sub.Events() {
		if err != nil {
			return err
		}
		for _, u := range c.tracker.HandleEvent(ev.Event) {
			c.handleUpdate(u)
		}
	}
	state, err := h.service.ReadState(ctx, c.run)
	if err != nil {
		return err
	}
	c.write(line{Status: state.Status, Output: state.Output, Failed: state.Error})
	return nil
}

// A lineClient is who reads the lines of a run.
type lineClient struct {
	w       http.ResponseWriter
	encoder *json.Encoder
	run     string
	after   string // the last event before the request
	tracker updates.Tracker
}

// handleUpdate writes the line of an update. A client cannot take back what it has read: a reply that begins again does so with a line of its own.
func (c *lineClient) handleUpdate(u updates.RunUpdate) {
	switch u := u.(type) {
	case updates.TextAdded:
		if u.Reply.Path == "" {
			c.write(line{Say: u.Text})
		}
	case updates.ReasoningAdded:
		if u.Reply.Path == "" {
			c.write(line{Think: u.Text})
		}
	case updates.ReplyWithdrawn:
		if u.Reply.Path == "" && !u.Reasoning {
			c.write(line{Again: u.Why})
		}
	case updates.CallStarted:
		c.write(line{Call: u.Call.Name, Args: u.Call.Args})
	case updates.CallOutput:
		c.write(line{Prints: u.Text})
	case updates.CallEnded:
		c.write(line{Result: u.Done.Text})
	case updates.StepStarted:
		c.write(line{Node: u.Step.Name})
	case updates.StepEnded:
		c.write(line{Left: u.Step.Name})
	case updates.QuestionAsked:
		c.write(line{Ask: u.Question.Prompt, Options: u.Question.Options})
	}
}

// write writes a line. It is not lost if the client has gone: the journal has it.
func (c *lineClient) write(l line) {
	_ = c.encoder.Encode(l)
	if f, ok := c.w.(http.Flusher); ok {
		f.Flush()
	}
}

// The end of the protocol. Its test follows.

// A sixth protocol is one short file: replies, calls, steps, questions, answers and failures arrive, each once.
func TestSixthProtocol(t *testing.T) {
	source, err := os.ReadFile("sixth_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(source), "\n"); lines > 300 {
		t.Errorf("the protocol and its test have %d lines: 300 are enough for one", lines)
	}
	home := servertest.NewHome(t, map[string]string{
		"helper/config.yaml": "name: helper\nmodel: script:t.yaml\nglobal_tools: [fs_ls]\n",
		"helper/t.yaml":      "- {reasoning: Hm., text: I look., tool_calls: [{name: fs_ls, args: {path: .}}]}\n- {text: It is done.}\n",
		"ask/graph.yaml": "name: ask\nstart: review\nnodes:\n  review: {type: approval, question: Send it?, options: [yes, no], routes: {yes: sent, no: refused}, on_other: sent}\n" +
			"  sent: {type: end, output: It is sent.}\n  refused: {type: end, output: No.}\n",
		"fails/graph.yaml": "name: fails\nstart: run\nnodes:\n  run: {type: script, script: no.sh, next: done}\n  done: {type: end}\n",
		"fails/no.sh":      "echo '{\"_next\": \"nowhere\"}'\n",
		"boss/config.yaml": "name: boss\nmodel: script:t.yaml\ncan_spawn_agents: true\n",
		"boss/t.yaml":      "- {text: I lead.}\n",
	})
	service, _ := home.Serve()
	caller := server.Caller{Name: "test", Scopes: []server.Scope{server.ScopeRead, server.ScopeStart, server.ScopeAnswer}}
	url := servertest.Listen(t, &lineHandler{service}, func() *server.Caller { return &caller })

	lines, _ := sendLines(t, url+"/helper", "hi")
	for _, want := range []string{`{"think":"Hm."}`, `{"say":"I look."}`, `{"call":"fs_ls","args":{"path":"."}}`, `{"say":"It is done."}`, `{"status":"done","output":"It is done."}`} {
		if n := strings.Count(lines, want+"\n"); n != 1 {
			t.Errorf("the line %s came %d times in\n%s", want, n, lines)
		}
	}
	lines, run := sendLines(t, url+"/ask", "")
	if want := `{"ask":"Send it?","options":["yes","no"]}` + "\n"; strings.Count(lines, want) != 1 || !strings.Contains(lines, `{"node":"review"}`) || !strings.HasSuffix(lines, `{"status":"waiting"}`+"\n") {
		t.Errorf("a question is\n%s", lines)
	}
	lines, _ = sendLines(t, url+"/runs/"+run, "no")
	if !strings.Contains(lines, `{"node":"refused"}`) || strings.Contains(lines, `"ask"`) || !strings.HasSuffix(lines, `{"status":"done","output":"No."}`+"\n") {
		t.Errorf("after the answer:\n%s", lines)
	}
	lines, _ = sendLines(t, url+"/fails", "")
	if !strings.Contains(lines, `{"status":"failed","failed":"`) {
		t.Errorf("a failure is\n%s", lines)
	}
	lines, _ = sendLines(t, url+"/boss", "hi") // the lead of a team speaks for the agent
	if n := strings.Count(lines, `{"say":"I lead."}`+"\n"); n != 1 {
		t.Errorf("the reply of a lead came %d times in\n%s", n, lines)
	}
	lines, _ = sendLines(t, url+"/nobody", "")
	if !strings.Contains(lines, `{"failed":"`) {
		t.Errorf("an unknown agent is\n%s", lines)
	}
}

// sendLines sends a request, and returns the lines of the answer and the run that it started. Texts that follow each other are one line.
func sendLines(t *testing.T, url, body string) (lines, run string) {
	t.Helper()
	resp, err := http.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	all := ""
	for scanner := bufio.NewScanner(resp.Body); scanner.Scan(); {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			t.Fatal(err)
		}
		run += l.Run
		before, open := strings.CutSuffix(all, "\"}\n")
		if more, ok := strings.CutPrefix(scanner.Text(), `{"say":"`); ok && open && strings.Contains(before[strings.LastIndexByte(before, '\n')+1:], `{"say":`) {
			all = before + more + "\n"
			continue
		}
		all += scanner.Text() + "\n"
	}
	return all, run
}

// The events of a team's lead have the path of its team, whether they come from the drive or from the journal.
func TestPathOfALead(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{
		"boss/config.yaml": "name: boss\nmodel: script:t.yaml\ncan_spawn_agents: true\n",
		"boss/t.yaml":      "- {text: I lead.}\n",
	})
	service, _ := home.Serve()
	ctx := server.WithCaller(t.Context(), server.Caller{Name: "test", Scopes: []server.Scope{server.ScopeRead, server.ScopeStart}})
	run, err := service.StartRun(ctx, server.StartRequest{Agent: "boss", Prompt: "hi"})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := service.Subscribe(ctx, run, server.SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range sub.Events() {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(ev.Path, "lead") || strings.Contains(string(ev.Line), "team/lead/") {
			t.Errorf("an event has the path %q: %s", ev.Path, ev.Line)
		}
	}
}
