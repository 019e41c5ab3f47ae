package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

const (
	chatConfig = `
name: chat
description: Talks.
model: script:transcript.yaml
global_tools: [execute_command]
variables:
  - {name: place, description: where it is, default: here}
`
	chatTranscript = `
- match: say hello
  text: |
    Hello there.
    How are you?
  repeat: true
- match: make a file
  turn: 1
  text: I make it.
  tool_calls: [{id: c1, name: execute_command, args: {command: touch made}}]
- match: make a file
  turn: 2
  text: The file is made.
- match: fail now
  error: {class: bad_request, message: the model refuses}
- match: take long
  delay_ms: 60000
  text: done
`
	greetGraph = `
name: greet
description: Greets.
variables:
  - {name: word, description: how to greet}
start: first
nodes:
  first: {type: script, script: first.sh, next: ask}
  ask: {type: input, question: Who?, validation: len(input) > 2, state_updates: {who: "{{input}}"}, next: sure}
  sure: {type: approval, question: "Greet {{who}}?", options: ["yes", "no"], routes: {"yes": done, "no": not}, on_other: not}
  done: {type: end, output: "Hello {{who}}"}
  not: {type: end, output: Not greeted, exit_code: 70}
`
	waitGraph = `
name: wait
start: work
nodes:
  work: {type: script, script: work.sh, timeout: 60, next: done}
  done: {type: end, output: finished}
`
)

// A world is a home directory with agents, and a service.
type world struct {
	*servertest.Home
	t       *testing.T
	service *server.Service
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, Home: servertest.NewHome(t, map[string]string{
		"chat/config.yaml": chatConfig, "chat/transcript.yaml": chatTranscript,
		"greet/graph.yaml": greetGraph, "greet/first.sh": "echo '{}'",
		"wait/graph.yaml": waitGraph, "wait/work.sh": "touch started\nsleep 60\necho '{}'",
	})}
	w.service, _ = w.Serve()
	return w
}

// A client is one of the SDK, with the progress that it was notified of.
type client struct {
	*sdk.ClientSession
	t        *testing.T
	progress chan string
	hangUp   func() // closes the pipe to the server
}

// An asker answers elicitations; nil: the client cannot ask.
type asker func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error)

// connect starts a client over a transport. version is that of the protocol, "": the newest.
func (w *world) connect(transport sdk.Transport, ask asker, version string) *client {
	w.t.Helper()
	c := &client{t: w.t, progress: make(chan string, 100)}
	o := &sdk.ClientOptions{ElicitationHandler: ask, ProgressNotificationHandler: func(_ context.Context, n *sdk.ProgressNotificationClientRequest) {
		c.progress <- n.Params.Message
	}}
	var err error
	if c.ClientSession, err = sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(w.t.Context(), transport, &sdk.ClientSessionOptions{ProtocolVersion: version}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = c.Close() })
	return c
}

// overHTTP connects a client to the handler.
func (w *world) overHTTP(ask asker, version string) *client {
	return w.overHTTPAs(server.Caller{Name: "test", Scopes: server.Scopes}, ask, version)
}

// overHTTPAs connects a client to the handler behind what checks its token.
func (w *world) overHTTPAs(caller server.Caller, ask asker, version string) *client {
	handler := NewHandler(w.service, nil)
	web := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(out, r.WithContext(server.WithCaller(r.Context(), caller)))
	}))
	w.t.Cleanup(web.Close)
	return w.connect(&sdk.StreamableClientTransport{Endpoint: web.URL}, ask, version)
}

// overPipes connects a client to Serve.
func (w *world) overPipes(ask asker, version string) *client {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), w.service, fromClient, toClient, nil) }()
	w.t.Cleanup(func() {
		_ = toServer.Close()
		_ = fromServer.Close()
		if err := <-served; err != nil {
			w.t.Errorf("Serve: %v", err)
		}
	})
	c := w.connect(&sdk.IOTransport{Reader: fromServer, Writer: toServer}, ask, version)
	c.hangUp = func() { _ = toServer.Close() }
	w.t.Cleanup(c.hangUp)
	return c
}

// call calls a tool.
func (c *client) call(name string, args map[string]any) *sdk.CallToolResult {
	c.t.Helper()
	params := &sdk.CallToolParams{Name: name, Arguments: args}
	params.SetProgressToken("p")
	res, err := c.CallTool(c.t.Context(), params)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// structured returns the structured content of a result.
func structured(t *testing.T, res *sdk.CallToolResult) (r runResult) {
	t.Helper()
	text, err := json.Marshal(res.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func textOf(res *sdk.CallToolResult) string { return res.Content[0].(*sdk.TextContent).Text }

// The connections that each test of a behaviour uses: both transports, and the protocol before and since servers stopped sending requests.
var connections = []struct {
	name    string
	version string
	connect func(*world, asker, string) *client
}{
	{"http", "", (*world).overHTTP},
	{"pipes", "", (*world).overPipes},
	{"http 2025", "2025-11-25", (*world).overHTTP},
	{"pipes 2025", "2025-11-25", (*world).overPipes},
}

// Each agent is a tool with its arguments; agents that come later are tools, too.
func TestTools(t *testing.T) {
	w := newWorld(t)
	c := w.overPipes(nil, "")
	list := func() map[string]*sdk.Tool {
		res, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		tools := map[string]*sdk.Tool{}
		for _, tool := range res.Tools {
			tools[tool.Name] = tool
		}
		return tools
	}
	tools := list()
	schema := func(name string) string {
		text, _ := json.Marshal(tools[name].InputSchema)
		return string(text)
	}
	if got, want := schema("greet"), `{"additionalProperties":false,"properties":{"prompt":{"description":"the input of the graph; it may have one of its own","type":"string"},"word":{"description":"how to greet","type":"string"}},"required":["word"],"type":"object"}`; got != want {
		t.Errorf("greet: %s", got)
	}
	if got := schema("chat"); !strings.Contains(got, `"place":{"default":"here","description":"where it is","type":"string"}`) || !strings.Contains(got, `"required":["prompt"]`) {
		t.Errorf("chat: %s", got)
	}
	if tools["chat"].Description != "Talks." || tools[answerTool] == nil {
		t.Errorf("tools: %v", tools)
	}
	w.Write("späte.agent/config.yaml", "name: late\nmodel: script:t.yaml\n")
	w.Write("späte.agent/t.yaml", chatTranscript)
	w.Write("broken/config.yaml", "name: [\n")
	if tools = list(); tools["sp_te_agent"] == nil || tools["broken"] != nil {
		t.Errorf("later: %v", tools)
	}
	if err := os.RemoveAll(filepath.Join(w.Dir, ".config/raddle/agents/späte.agent")); err != nil {
		t.Fatal(err)
	}
	if tools = list(); tools["sp_te_agent"] != nil {
		t.Errorf("still there: %v", tools)
	}
}

// A name has only letters that tools may have, at most 64 of them, and is not used twice.
func TestNameTool(t *testing.T) {
	taken := map[string]bool{answerTool: true}
	for _, c := range [][2]string{{"a b", "a_b"}, {"a.b", "a_b_2"}, {answerTool, answerTool + "_2"}, {strings.Repeat("x", 70), strings.Repeat("x", 64)}, {strings.Repeat("x", 71), strings.Repeat("x", 62) + "_2"}} {
		got := nameTool(c[0], taken)
		if got != c[1] {
			t.Errorf("%q: %q", c[0], got)
		}
		taken[got] = true
	}
}

// A call returns the reply of an agent, and notifies the client of its lines before.
func TestReply(t *testing.T) {
	for _, conn := range connections {
		t.Run(conn.name, func(t *testing.T) {
			c := conn.connect(newWorld(t), nil, conn.version)
			res := c.call("chat", map[string]any{"prompt": "say hello", "place": "there"})
			r := structured(t, res)
			if res.IsError || r.Status != "done" || r.Run == "" || strings.TrimSpace(r.Output) != "Hello there.\nHow are you?" || textOf(res) != r.Output {
				t.Errorf("result: %+v %s", r, textOf(res))
			}
			var lines []string
			for len(lines) < 4 {
				lines = append(lines, <-c.progress)
			}
			if !slices.Contains(lines, "Hello there.") || !strings.HasPrefix(lines[0], "agent: chat") {
				t.Errorf("progress: %q", lines)
			}
		})
	}
}

// A question of a graph is asked through the client; an answer that does not fit is asked for again, with the reason.
func TestElicitation(t *testing.T) {
	for _, conn := range connections {
		t.Run(conn.name, func(t *testing.T) {
			var asked []string
			answers := []string{"x", "Ada", "yes"}
			ask := func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				asked = append(asked, req.Params.Message)
				return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": answers[len(asked)-1]}}, nil
			}
			c := conn.connect(newWorld(t), ask, conn.version)
			r := structured(t, c.call("greet", map[string]any{"word": "hi"}))
			if r.Status != "done" || r.Output != "Hello Ada" {
				t.Errorf("result: %+v", r)
			}
			if len(asked) != 3 || asked[0] != "Who?" || !strings.HasPrefix(asked[1], "Who?\n\n") || asked[2] != "Greet Ada?" {
				t.Errorf("asked: %q", asked)
			}
		})
	}
}

// A client that cannot ask gets the run and its questions, and answers with a tool.
func TestAnswerTool(t *testing.T) {
	w := newWorld(t)
	c := w.overHTTP(nil, "")
	res := c.call("greet", map[string]any{"word": "hi"})
	r := structured(t, res)
	if r.Status != "waiting" || len(r.Questions) != 1 || r.Questions[0].ID != "ask" || !strings.Contains(textOf(res), "Question ask: Who?") {
		t.Fatalf("result: %+v %s", r, textOf(res))
	}
	if res = c.call(answerTool, map[string]any{"run": r.Run, "question": "ask", "answer": "x"}); !res.IsError || !strings.Contains(textOf(res), r.Run) {
		t.Errorf("an answer that does not fit: %s", textOf(res))
	}
	if res = c.call(answerTool, map[string]any{"run": r.Run, "question": "other", "answer": "x"}); !res.IsError {
		t.Errorf("another question: %s", textOf(res))
	}
	if r = structured(t, c.call(answerTool, map[string]any{"run": r.Run, "answer": "Ada"})); r.Status != "waiting" || !slices.Equal(r.Questions[0].Options, []string{"yes", "no"}) {
		t.Fatalf("second question: %+v", r)
	}
	if r = structured(t, c.call(answerTool, map[string]any{"run": r.Run, "question": "sure", "answer": "no"})); r.Status != "done" || r.Output != "Not greeted" || r.ExitCode != 70 {
		t.Errorf("end: %+v", r)
	}
}

// What a caller may do depends on the scopes of its token: one that may not answer is not asked.
func TestScopes(t *testing.T) {
	for _, conn := range connections[:1] { // over HTTP
		w := newWorld(t)
		ask := func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			t.Error("the client was asked")
			return &sdk.ElicitResult{Action: "decline"}, nil
		}
		c := w.overHTTPAs(server.Caller{Name: "starter", Scopes: []server.Scope{server.ScopeStart, server.ScopeRead}}, ask, conn.version)
		r := structured(t, c.call("greet", map[string]any{"word": "hi"}))
		if r.Status != "waiting" {
			t.Fatalf("result: %+v", r)
		}
		if res := c.call(answerTool, map[string]any{"run": r.Run, "answer": "Ada"}); !res.IsError || !strings.Contains(textOf(res), `"answer"`) {
			t.Errorf("answer: %s", textOf(res))
		}
		c = w.overHTTPAs(server.Caller{Name: "reader", Scopes: []server.Scope{server.ScopeRead}}, ask, conn.version)
		if res := c.call("greet", map[string]any{"word": "hi"}); !res.IsError || !strings.Contains(textOf(res), `"start"`) {
			t.Errorf("start: %s", textOf(res))
		}
	}
}

// Over the protocol, a call is allowed once or refused, and nothing else.
func TestPermission(t *testing.T) {
	for _, action := range []string{"accept", "always", "decline", "cancel"} {
		t.Run(action, func(t *testing.T) {
			ask := func(_ context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
				switch action {
				case "accept":
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "once"}}, nil
				case "always": // the schema of the form does not allow it: the SDK of the client refuses it
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": "always"}}, nil
				}
				return &sdk.ElicitResult{Action: action}, nil
			}
			w := newWorld(t)
			c := w.overPipes(ask, "2025-11-25")
			r := structured(t, c.call("chat", map[string]any{"prompt": "make a file"}))
			_, err := os.Stat(filepath.Join(w.Work, "made"))
			if want := map[string]string{"accept": "done", "decline": "done", "cancel": "waiting", "always": "waiting"}[action]; r.Status != want {
				t.Errorf("status: %+v", r)
			}
			if (err == nil) != (action == "accept") {
				t.Errorf("file: %v", err)
			}
			if r.Status == "waiting" {
				if res := c.call(answerTool, map[string]any{"run": r.Run, "answer": "always"}); !res.IsError || !strings.Contains(textOf(res), "more than one call") {
					t.Errorf("always: %s", textOf(res))
				}
				if r = structured(t, c.call(answerTool, map[string]any{"run": r.Run, "answer": "once"})); r.Status != "done" {
					t.Errorf("once: %+v", r)
				}
			}
		})
	}
}

// Failures are results that name the run.
func TestErrors(t *testing.T) {
	c := newWorld(t).overHTTP(nil, "")
	res := c.call("chat", map[string]any{"prompt": "fail now"})
	if r := structured(t, res); !res.IsError || r.Status != "failed" || !strings.Contains(textOf(res), "the model refuses") || !strings.Contains(textOf(res), r.Run) {
		t.Errorf("failed run: %s", textOf(res))
	}
	for _, args := range []map[string]any{{}, {"prompt": 1}, {"prompt": "x", "other": "y"}} {
		if res := c.call("chat", args); !res.IsError || res.StructuredContent != nil {
			t.Errorf("%v: %s", args, textOf(res))
		}
	}
	if res := c.call("greet", map[string]any{"prompt": "x"}); !res.IsError || !strings.Contains(textOf(res), "word") {
		t.Errorf("missing variable: %s", textOf(res))
	}
	if res := c.call(answerTool, map[string]any{"run": "none", "answer": "x"}); !res.IsError {
		t.Errorf("unknown run: %s", textOf(res))
	}
	if _, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "nothing"}); err == nil {
		t.Error("an unknown tool can be called")
	}
}

// Cancelling a call ends its run while it works: the turn of an agent, and a graph permanently. A lost connection does not.
func TestCancel(t *testing.T) {
	for _, conn := range connections {
		for _, name := range []string{"chat", "wait"} {
			t.Run(conn.name+" "+name, func(t *testing.T) {
				w := newWorld(t)
				c := conn.connect(w, nil, conn.version)
				ctx, cancel := context.WithCancel(t.Context())
				params := &sdk.CallToolParams{Name: name, Arguments: map[string]any{"prompt": "take long"}}
				params.SetProgressToken("p")
				ended := make(chan error, 1)
				go func() {
					_, err := c.CallTool(ctx, params)
					ended <- err
				}()
				for line := range c.progress { // the run works
					if strings.HasPrefix(line, "agent: chat") || strings.Contains(line, "work") {
						break
					}
				}
				cancel()
				if err := <-ended; err == nil {
					t.Error("the call returned")
				}
				st := w.awaitEnd(t)
				if want := map[string]string{"chat": "done", "wait": "abandoned"}[name]; st.Status != want {
					t.Errorf("status: %s %s", st.Status, st.Error)
				}
			})
		}
	}
}

// awaitEnd waits until the newest run does not work any more.
func (w *world) awaitEnd(t *testing.T) *server.RunState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		st, err := w.service.WaitRun(ctx, "last")
		if err != nil {
			t.Fatal(err)
		}
		if st.Final || st.Status == "done" {
			return st
		}
		time.Sleep(5 * time.Millisecond) // it has been stopped, and is not yet marked as cancelled
	}
}

// A client that closes the stream it reads from has hung up, as one that closes the stream it writes to; another failure to write is one.
func TestHangUp(t *testing.T) {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}` + "\n"
	full := errors.New("no space left")
	for _, c := range []struct {
		name        string
		fails, want error
	}{
		{"pipe", io.ErrClosedPipe, nil},
		{"process", &fs.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}, nil},
		{"other", full, full},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			in, client := io.Pipe()
			t.Cleanup(func() { _ = client.Close() })
			go func() { _, _ = io.WriteString(client, hello) }()
			err := Serve(t.Context(), w.service, in, failingWriter{c.fails}, nil)
			if !errors.Is(err, c.want) || (c.want == nil) != (err == nil) {
				t.Errorf("Serve: %v", err)
			}
		})
	}
}

// A failingWriter takes nothing.
type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }
func (failingWriter) Close() error                { return nil }

// A client that leaves cancels nothing.
func TestDisconnect(t *testing.T) {
	w := newWorld(t)
	c := w.overPipes(nil, "2025-11-25")
	params := &sdk.CallToolParams{Name: "wait"}
	params.SetProgressToken("p")
	ended := make(chan error, 1)
	go func() {
		_, err := c.CallTool(t.Context(), params)
		ended <- err
	}()
	for line := range c.progress {
		if strings.Contains(line, "work") {
			break
		}
	}
	c.hangUp()
	<-ended
	if st, err := w.service.ReadState(t.Context(), "last"); err != nil || st.Status != "running" {
		t.Errorf("state: %+v %v", st, err)
	}
	if err := w.service.CancelRun(t.Context(), "last"); err != nil {
		t.Error(err)
	}
}
