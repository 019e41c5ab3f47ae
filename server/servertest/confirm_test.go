package servertest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	acpsdk "github.com/coder/acp-go-sdk"
	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
	"raddle.dev/server/a2a"
	"raddle.dev/server/acp"
	"raddle.dev/server/agui"
	"raddle.dev/server/api"
	"raddle.dev/server/mcp"
	"raddle.dev/server/openai"
	"raddle.dev/server/servertest"
)

// confirmGraph asks at once, and ends with the answer.
const confirmGraph = `
name: confirm
start: ask
nodes:
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "Hello {{who}}"}
`

// keptStore stays open when a process closes it.
type keptStore struct{ *journal.Memory }

func (keptStore) Close() error { return nil }

// A site is a service with a store that fails when a test says so, and what it offers.
type site struct {
	t       *testing.T
	home    *servertest.Home
	inside  *keptStore
	failing *graphtest.Failing
	service *server.Service
	close   func()

	task    string // of A2A
	editor  *editor
	session acpsdk.SessionId
	tools   *mcpsdk.ClientSession
	ask     string // id of the interrupt of AG-UI
	run     string // what an operation is about
}

func newSite(t *testing.T) *site {
	s := &site{t: t, home: servertest.NewHome(t, map[string]string{"confirm/graph.yaml": confirmGraph}), inside: &keptStore{journal.NewMemory()}}
	s.serve()
	return s
}

// serve starts a service, which continues what the one before has left.
func (s *site) serve() {
	s.t.Helper()
	s.failing = &graphtest.Failing{Store: s.inside}
	p, err := app.Open(app.Options{Work: s.home.Work, Environ: []string{"HOME=" + s.home.Dir, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}})
	if err == nil {
		err = p.Runs.AttachStore(s.failing)
	}
	if err == nil {
		s.service, err = server.New(p, server.Options{Recover: true})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.close = func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := s.service.Close(ctx); err != nil {
			s.t.Error(err)
		}
		if err := p.Close(); err != nil {
			s.t.Error(err)
		}
	}
}

// restart ends the service, as if all leases ended meanwhile, and starts another one.
func (s *site) restart() {
	s.t.Helper()
	s.failing.Arm(graphtest.StoreFault{}, 0, 0)
	s.close()
	for thread, err := range s.inside.Threads(s.t.Context(), "") {
		if err != nil {
			s.t.Fatal(err)
		}
		if l, err := s.inside.ReadLease(s.t.Context(), thread.Name); err == nil && l.Owner != "" {
			_ = s.inside.ReleaseLease(s.t.Context(), thread.Name, l.Owner)
		}
	}
	s.serve()
}

// post sends a body as JSON to a handler.
func (s *site) post(h http.Handler, path string, in any, headers ...string) (status int, header http.Header, text string) {
	s.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), "POST", path, bytes.NewReader(b))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Header(), w.Body.String()
}

// api sends a request to the API. ok reports whether the answer confirms it.
func (s *site) api(path string, in any) (ok bool, text string) {
	status, _, text := s.post(api.NewHandler(s.service), "/api/v1"+path, in)
	return status < 300, text
}

type object = map[string]any

func (s *site) openai(text string) (ok bool, answer string) {
	status, header, answer := s.post(openai.NewHandler(s.service), "/v1/chat/completions", object{"model": "confirm", "messages": []object{{"role": "user", "content": text}}}, openai.HeaderRun, s.run)
	s.run = header.Get(openai.HeaderRun)
	return status == http.StatusOK, answer
}

func (s *site) a2a(method string, params object) (ok bool, text string) {
	_, _, text = s.post(a2a.NewHandler(s.service), "/a2a/confirm", object{"jsonrpc": "2.0", "id": "1", "method": method, "params": params}, "A2A-Version", "1.0")
	var answer struct {
		Result struct {
			Task struct {
				ID     string
				Status struct{ State string }
			}
		}
		Error any
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	s.task = answer.Result.Task.ID
	return answer.Error == nil && !strings.Contains(answer.Result.Task.Status.State, "FAILED"), text
}

func (s *site) say(text string) object {
	m := object{"messageId": "m", "role": "ROLE_USER", "parts": []object{{"text": text}}}
	if s.task != "" {
		m["taskId"] = s.task
	}
	return object{"message": m}
}

func (s *site) agui(id string, more object) (ok bool, text string) {
	in := object{"threadId": "t", "runId": id, "messages": []any{}, "tools": []any{}, "context": []any{}, "forwardedProps": object{}}
	for k, v := range more {
		in[k] = v
	}
	status, _, text := s.post(agui.NewHandler(s.service), "/agui/confirm", in)
	for line := range strings.Lines(text) {
		var ev struct {
			Type    string
			Outcome struct{ Interrupts []struct{ ID string } }
		}
		if data, is := strings.CutPrefix(line, "data: "); is && json.Unmarshal([]byte(data), &ev) == nil && len(ev.Outcome.Interrupts) > 0 {
			s.ask = ev.Outcome.Interrupts[0].ID
		}
	}
	return status == http.StatusOK && !strings.Contains(text, `"RUN_ERROR"`), text
}

func (s *site) mcp(tool string, args object) (ok bool, text string) {
	if s.tools == nil {
		web := httptest.NewServer(mcp.NewHandler(s.service, nil))
		s.t.Cleanup(web.Close)
		var err error
		if s.tools, err = mcpsdk.NewClient(&mcpsdk.Implementation{Name: "test", Version: "1"}, nil).Connect(s.t.Context(), &mcpsdk.StreamableClientTransport{Endpoint: web.URL}, nil); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { _ = s.tools.Close() })
	}
	res, err := s.tools.CallTool(s.t.Context(), &mcpsdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return false, err.Error()
	}
	b, _ := json.Marshal(res)
	return !res.IsError, string(b)
}

// An editor is a client of ACP that can nothing but talk.
type editor struct{ *acpsdk.ClientSideConnection }

func (*editor) SessionUpdate(context.Context, acpsdk.SessionNotification) error { return nil }

func (*editor) RequestPermission(context.Context, acpsdk.RequestPermissionRequest) (r acpsdk.RequestPermissionResponse, err error) {
	return r, acpsdk.NewMethodNotFound("session/request_permission")
}

func (*editor) ReadTextFile(context.Context, acpsdk.ReadTextFileRequest) (r acpsdk.ReadTextFileResponse, err error) {
	return r, acpsdk.NewMethodNotFound("fs/read_text_file")
}

func (*editor) WriteTextFile(context.Context, acpsdk.WriteTextFileRequest) (r acpsdk.WriteTextFileResponse, err error) {
	return r, acpsdk.NewMethodNotFound("fs/write_text_file")
}

func (*editor) CreateTerminal(context.Context, acpsdk.CreateTerminalRequest) (r acpsdk.CreateTerminalResponse, err error) {
	return r, acpsdk.NewMethodNotFound("terminal/create")
}

func (*editor) KillTerminal(context.Context, acpsdk.KillTerminalRequest) (r acpsdk.KillTerminalResponse, err error) {
	return r, acpsdk.NewMethodNotFound("terminal/kill")
}

func (*editor) ReleaseTerminal(context.Context, acpsdk.ReleaseTerminalRequest) (r acpsdk.ReleaseTerminalResponse, err error) {
	return r, acpsdk.NewMethodNotFound("terminal/release")
}

func (*editor) TerminalOutput(context.Context, acpsdk.TerminalOutputRequest) (r acpsdk.TerminalOutputResponse, err error) {
	return r, acpsdk.NewMethodNotFound("terminal/output")
}

func (*editor) WaitForTerminalExit(context.Context, acpsdk.WaitForTerminalExitRequest) (r acpsdk.WaitForTerminalExitResponse, err error) {
	return r, acpsdk.NewMethodNotFound("terminal/wait_for_exit")
}

func (s *site) acp(text string) (ok bool, answer string) {
	if s.editor == nil {
		fromEditor, toAgent := io.Pipe()
		fromAgent, toEditor := io.Pipe()
		served := make(chan error, 1)
		service := s.service
		go func() {
			served <- acp.Serve(context.Background(), func(string) (*server.Service, error) { return service, nil }, "confirm", fromEditor, toEditor)
		}()
		s.t.Cleanup(func() {
			_ = toAgent.Close()
			<-served
			_ = toEditor.Close()
		})
		s.editor = &editor{}
		s.editor.ClientSideConnection = acpsdk.NewClientSideConnection(s.editor, toAgent, fromAgent)
		s.editor.SetLogger(slog.New(slog.DiscardHandler))
		if _, err := s.editor.Initialize(s.t.Context(), acpsdk.InitializeRequest{ProtocolVersion: acpsdk.ProtocolVersionNumber}); err != nil {
			s.t.Fatal(err)
		}
		opened, err := s.editor.NewSession(s.t.Context(), acpsdk.NewSessionRequest{Cwd: s.home.Work, McpServers: []acpsdk.McpServer{}})
		if err != nil {
			s.t.Fatal(err)
		}
		s.session = opened.SessionId
	}
	res, err := s.editor.Prompt(s.t.Context(), acpsdk.PromptRequest{SessionId: s.session, Prompt: []acpsdk.ContentBlock{acpsdk.TextBlock(text)}})
	if err != nil {
		return false, err.Error()
	}
	return res.StopReason == acpsdk.StopReasonEndTurn, string(res.StopReason)
}

// An operation is something that a protocol confirms. do reports whether it was confirmed.
type operation struct {
	name    string
	prepare func(s *site) // begins the run that it is about; nil: there is none
	do      func(s *site) (ok bool, text string)
	there   func(list []runs.OpenRun, all []runs.Info) bool // whether it is in the store
	silent  bool                                            // it may write nothing to the store
}

func isWaiting(open []runs.OpenRun, all []runs.Info) bool { return len(open) == 1 && len(all) == 1 }

func hasStatus(status graph.Status) func([]runs.OpenRun, []runs.Info) bool {
	return func(_ []runs.OpenRun, all []runs.Info) bool { return len(all) == 1 && all[0].Status == status.String() }
}

// startAPI starts the run that an operation is about.
func startAPI(s *site) {
	s.t.Helper()
	ok, text := s.api("/runs?wait=30s", object{"agent": "confirm", "prompt": "p"})
	var st struct{ Run string }
	if err := json.Unmarshal([]byte(text), &st); !ok || err != nil {
		s.t.Fatal(text)
	}
	s.run = st.Run
}

func must(do func(s *site) (bool, string)) func(*site) {
	return func(s *site) {
		s.t.Helper()
		if ok, text := do(s); !ok {
			s.t.Fatal(text)
		}
	}
}

var (
	startOpenAI = func(s *site) (bool, string) { return s.openai("p") }
	startA2A    = func(s *site) (bool, string) { return s.a2a("SendMessage", s.say("p")) }
	startAGUI   = func(s *site) (bool, string) {
		return s.agui("r1", object{"messages": []object{{"id": "m1", "role": "user", "content": "p"}}})
	}
	startMCP = func(s *site) (bool, string) { return s.mcp("confirm", object{"prompt": "p"}) }
	startACP = func(s *site) (bool, string) { return s.acp("p") }
)

var operations = []operation{
	{name: "api start", there: isWaiting, do: func(s *site) (bool, string) { return s.api("/runs", object{"agent": "confirm", "prompt": "p"}) }},
	{name: "api answer", prepare: startAPI, there: hasStatus(graph.Done), do: func(s *site) (bool, string) {
		return s.api("/runs/"+s.run+"/answers", object{"answers": []object{{"value": "Ada"}}})
	}},
	{name: "api cancel", prepare: startAPI, there: hasStatus(graph.Abandoned), do: func(s *site) (bool, string) { return s.api("/runs/"+s.run+"/cancel", object{}) }},
	{name: "api edit", prepare: startAPI, there: hasStatus(graph.Paused), do: func(s *site) (bool, string) {
		return s.api("/runs/"+s.run+"/edit", object{"state": object{"who": "Bob"}})
	}},
	{name: "api breaks", prepare: startAPI, there: isWaiting, silent: true, do: func(s *site) (bool, string) {
		return s.api("/runs/"+s.run+"/breaks", object{"breaks": []object{{"node": "done"}}})
	}},
	{name: "api fork", prepare: startAPI, there: func(open []runs.OpenRun, _ []runs.Info) bool { return len(open) == 2 }, do: func(s *site) (bool, string) {
		return s.api("/runs/"+s.run+"/fork", object{"start": true, "prompt": "q", "breaks": []object{{"node": "done"}}})
	}},
	{name: "openai start", there: isWaiting, do: startOpenAI},
	{name: "openai answer", prepare: must(startOpenAI), there: hasStatus(graph.Done), do: func(s *site) (bool, string) { return s.openai("Ada") }},
	{name: "a2a start", there: isWaiting, do: startA2A},
	{name: "a2a answer", prepare: must(startA2A), there: hasStatus(graph.Done), do: func(s *site) (bool, string) { return s.a2a("SendMessage", s.say("Ada")) }},
	{name: "a2a cancel", prepare: must(startA2A), there: hasStatus(graph.Abandoned), do: func(s *site) (bool, string) { return s.a2a("CancelTask", object{"id": s.task}) }},
	{name: "agui start", there: isWaiting, do: startAGUI},
	{name: "agui answer", prepare: must(startAGUI), there: hasStatus(graph.Done), do: func(s *site) (bool, string) {
		return s.agui("r2", object{"resume": []object{{"interruptId": s.ask, "status": "resolved", "payload": "Ada"}}})
	}},
	{name: "mcp start", there: isWaiting, do: startMCP},
	{name: "mcp answer", prepare: func(s *site) { must(startMCP)(s); s.run = "last" }, there: hasStatus(graph.Done), do: func(s *site) (bool, string) {
		return s.mcp("raddle_answer", object{"run": s.run, "answer": "Ada"})
	}},
	{name: "acp start", there: isWaiting, do: startACP},
	{name: "acp answer", prepare: must(startACP), there: hasStatus(graph.Done), do: func(s *site) (bool, string) { return s.acp("Ada") }},
}

// Over each protocol, at each write of the store and for each way to fail: what was confirmed is there after a restart, and nothing that was not
// confirmed is there twice.
func TestConfirmedMeansStoredOverEachProtocol(t *testing.T) {
	for _, op := range operations {
		for _, fault := range graphtest.StoreFaults {
			if fault.Name == "I/O error" || fault.Name == "busy" {
				continue // to a protocol they are like a full disk; package server has all of them
			}
			t.Run(op.name+"/"+fault.Name, func(t *testing.T) {
				t.Parallel()
				for n := 1; ; n++ {
					if hit := confirmWithFault(t, &op, fault, n); !hit {
						if n == 1 && !op.silent {
							t.Error("nothing was written")
						}
						return
					}
				}
			})
		}
	}
}

// confirmWithFault does an operation on a service whose store fails at one write.
func confirmWithFault(t *testing.T, op *operation, fault graphtest.StoreFault, n int) (hit bool) {
	s := newSite(t)
	if op.prepare != nil {
		op.prepare(s)
	}
	s.failing.Arm(fault, n, n)
	ok, text := op.do(s)
	hit = s.failing.Hits() > 0
	s.restart()
	defer s.close()
	var open []runs.OpenRun
	var all []runs.Info
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if open, _, _, err = s.service.Process().Runs.ListOpenRuns(t.Context(), runs.OpenPoint{}, 0); err == nil {
			all, err = s.service.Process().Runs.ListRuns(t.Context(), "")
		}
		if err != nil {
			t.Fatal(err)
		}
		if driven, queued := s.service.CountDrives(); driven+queued == 0 && (!ok || op.there(open, all)) {
			break
		}
		if time.Now().After(end) {
			t.Errorf("write %d: it was confirmed with %s, and is not there: %+v", n, text, all)
			break
		}
	}
	most := 1
	if strings.HasSuffix(op.name, "fork") {
		most = 2
	}
	if len(all) > most {
		t.Errorf("write %d: there are %d runs: %s", n, len(all), text)
	}
	if !hit && !ok {
		t.Errorf("without a fault: %s", text)
	}
	if parts, err := filepath.Glob(filepath.Join(s.home.Dir, ".local", "state", "raddle", "serve", "*", "*", "*.part")); err != nil || len(parts) > 0 {
		t.Errorf("files that were being written remain: %v, %v", parts, err)
	}
	return hit
}
