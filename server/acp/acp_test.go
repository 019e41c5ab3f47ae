package acp

import (
	"context"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"raddle.dev/internal/process/app"
	"raddle.dev/llm"
	"raddle.dev/server"
)

const (
	chatConfig = `
name: chat
model: script:transcript.yaml
global_tools: [execute_command, fs_write]
auto_continue: true
max_auto_continues: 1
`
	chatTranscript = `
- match: say hello
  reasoning: I greet.
  text: Hello there.
- match: make a file
  turn: 1
  text: I make it.
  tool_calls: [{id: c1, name: fs_write, args: {path: made.txt, contents: "one\n"}}]
- match: make a file
  turn: 2
  text: The file is made.
- match: run a command
  turn: 1
  tool_calls: [{id: c2, name: execute_command, args: {command: touch made.txt}}]
- match: run a command
  turn: 2
  text: It has run.
- match: plan it
  turn: 1
  tool_calls: [{id: p1, name: todo__init, args: {goal: All}}, {id: p2, name: todo__add, args: {task: First}}]
- match: plan it
  turn: 2
  tool_calls: [{id: p3, name: todo__done, args: {id: 1}}]
- match: plan it
  turn: 3
  text: Planned.
- match: please ask
  turn: 1
  tool_calls: [{id: q1, name: user__ask, args: {question: Which?, options: [red, blue]}}]
- match: please ask
  turn: 2
  text: Noted.
- match: fail now
  error: {class: bad_request, message: the model refuses}
- match: take long
  delay_ms: 60000
  text: done
`
	greetGraph = `
name: greet
start: ask
nodes:
  ask: {type: input, question: Who?, validation: len(input) > 2, state_updates: {who: "{{input}}"}, next: done}
  done: {type: end, output: "Hello {{who}}"}
`
)

// An editor of the tests: it collects updates, and answers requests for permission.
type testEditor struct {
	*sdk.ClientSideConnection
	t       *testing.T
	dir     string
	permit  string // the option to select
	updates chan sdk.SessionUpdate
	started chan struct{} // gets a value with each request for permission
}

func (c *testEditor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	c.updates <- n.Update
	return nil
}

func (c *testEditor) RequestPermission(ctx context.Context, req sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	for _, o := range req.Options {
		if o.Kind != sdk.PermissionOptionKindAllowOnce && o.Kind != sdk.PermissionOptionKindRejectOnce {
			c.t.Errorf("an option for longer: %+v", o)
		}
	}
	if c.permit == "" {
		c.started <- struct{}{}
		<-ctx.Done()
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(c.permit))}, nil
}

func (c *testEditor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/read_text_file")
}

func (c *testEditor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/write_text_file")
}

func (c *testEditor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/create")
}

func (c *testEditor) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/kill")
}

func (c *testEditor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/release")
}

func (c *testEditor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/output")
}

func (c *testEditor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/wait_for_exit")
}

// connect starts an editor that talks with an agent. Editors of the same home see the same conversations.
func connect(t *testing.T, home, agent string) *testEditor {
	t.Helper()
	for path, text := range map[string]string{"chat/config.yaml": chatConfig, "chat/transcript.yaml": chatTranscript, "greet/graph.yaml": greetGraph} {
		file := filepath.Join(home, ".config", "raddle", "agents", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var closers []func()
	open := func(dir string) (*server.Service, error) {
		p, err := app.Open(app.Options{Work: dir, Environ: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}})
		if err != nil {
			return nil, err
		}
		s, err := server.New(p, server.Options{})
		closers = append(closers, func() {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
			defer cancel()
			if err := s.Close(ctx); err != nil {
				t.Error(err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return s, err
	}
	fromEditor, toAgent := io.Pipe()
	fromAgent, toEditor := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- Serve(context.Background(), open, agent, fromEditor, toEditor) }()
	c := &testEditor{t: t, dir: t.TempDir(), updates: make(chan sdk.SessionUpdate, 1000), started: make(chan struct{}, 1)}
	c.ClientSideConnection = sdk.NewClientSideConnection(c, toAgent, fromAgent)
	t.Cleanup(func() {
		_ = toAgent.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		for _, end := range closers {
			end()
		}
		_ = toEditor.Close()
	})
	res, err := c.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil || !res.AgentCapabilities.LoadSession {
		t.Fatalf("initialize: %+v %v", res, err)
	}
	return c
}

func (c *testEditor) newSession() sdk.SessionId {
	c.t.Helper()
	res, err := c.NewSession(c.t.Context(), sdk.NewSessionRequest{Cwd: c.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		c.t.Fatal(err)
	}
	return res.SessionId
}

// prompt makes a turn and returns what was shown.
func (c *testEditor) prompt(id sdk.SessionId, text string) (shown []string, reason sdk.StopReason) {
	c.t.Helper()
	res, err := c.Prompt(c.t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.collect(), res.StopReason
}

// collect returns the updates that have come, as lines. Pieces of one text are joined.
func (c *testEditor) collect() (lines []string) {
	for {
		select {
		case u := <-c.updates:
			lines = append(lines, describe(u))
		default:
			return lines
		}
	}
}

func describe(u sdk.SessionUpdate) string {
	switch {
	case u.AgentMessageChunk != nil:
		return "text " + u.AgentMessageChunk.Content.Text.Text
	case u.AgentThoughtChunk != nil:
		return "thought " + u.AgentThoughtChunk.Content.Text.Text
	case u.UserMessageChunk != nil:
		return "user " + u.UserMessageChunk.Content.Text.Text
	case u.ToolCall != nil:
		return "call " + string(u.ToolCall.Kind) + " " + u.ToolCall.Title
	case u.ToolCallUpdate != nil:
		line := "update"
		if u.ToolCallUpdate.Status != nil {
			line += " " + string(*u.ToolCallUpdate.Status)
		}
		for _, part := range u.ToolCallUpdate.Content {
			if part.Diff != nil {
				line += " diff " + filepath.Base(part.Diff.Path) + " " + part.Diff.NewText
			}
		}
		return line
	case u.Plan != nil:
		line := "plan"
		for _, e := range u.Plan.Entries {
			line += " " + e.Content + ":" + string(e.Status)
		}
		return line
	}
	return "?"
}

// textOf returns the text of a reply.
func textOf(lines []string) string {
	var text strings.Builder
	for _, l := range lines {
		if piece, ok := strings.CutPrefix(l, "text "); ok {
			text.WriteString(piece)
		}
	}
	return text.String()
}

// A reply comes as text and reasoning; another process loads the conversation and sees it again.
func TestReply(t *testing.T) {
	home := t.TempDir()
	c := connect(t, home, "chat")
	id := c.newSession()
	shown, reason := c.prompt(id, "say hello")
	if reason != sdk.StopReasonEndTurn || textOf(shown) != "Hello there." || !strings.HasPrefix(shown[0], "thought ") {
		t.Errorf("%s: %q", reason, shown)
	}
	other := connect(t, home, "chat")
	other.dir = c.dir
	if _, err := other.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: c.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if shown = other.collect(); !slices.Equal(shown, []string{"user say hello", "text Hello there."}) {
		t.Errorf("loaded: %q", shown)
	}
	list, err := other.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id {
		t.Errorf("list: %+v %q %v", list, *list.Sessions[0].Title, err)
	}
	if _, err := other.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "nothing", Cwd: c.dir, McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a session that does not exist was loaded")
	}
}

// The change of a file is shown as a diff.
func TestDiff(t *testing.T) {
	c := connect(t, t.TempDir(), "chat")
	shown, _ := c.prompt(c.newSession(), "make a file")
	if !slices.Contains(shown, "update completed diff made.txt one\n") || !slices.ContainsFunc(shown, func(l string) bool { return strings.HasPrefix(l, "call edit fs_write") }) {
		t.Errorf("%q", shown)
	}
}

// A call that needs permission is asked in the editor.
func TestPermission(t *testing.T) {
	for permit, want := range map[string]string{optionAllow: "update completed", optionDeny: "update failed"} {
		t.Run(permit, func(t *testing.T) {
			c := connect(t, t.TempDir(), "chat")
			c.permit = permit
			shown, reason := c.prompt(c.newSession(), "run a command")
			if reason != sdk.StopReasonEndTurn || !slices.Contains(shown, want) || !slices.Contains(shown, "call execute touch made.txt") {
				t.Errorf("%s: %q", reason, shown)
			}
			if _, err := os.Stat(filepath.Join(c.dir, "made.txt")); (err == nil) != (permit == optionAllow) {
				t.Errorf("file: %v", err)
			}
		})
	}
}

// The todo list is a plan.
func TestPlan(t *testing.T) {
	c := connect(t, t.TempDir(), "chat")
	shown, _ := c.prompt(c.newSession(), "plan it")
	if !slices.Contains(shown, "plan First:completed") {
		t.Errorf("%q", shown)
	}
}

// A question ends the turn, and the next prompt answers it. An answer that does not fit is asked for again.
func TestQuestion(t *testing.T) {
	c := connect(t, t.TempDir(), "chat")
	id := c.newSession()
	shown, reason := c.prompt(id, "please ask")
	if reason != sdk.StopReasonEndTurn || !strings.Contains(textOf(shown), "Which?") || !strings.Contains(textOf(shown), "- blue") {
		t.Fatalf("%s: %q", reason, shown)
	}
	if shown, _ = c.prompt(id, "Blue"); textOf(shown) != "Noted." {
		t.Errorf("%q", shown)
	}
	g := connect(t, t.TempDir(), "greet")
	id = g.newSession()
	if shown, _ = g.prompt(id, ""); textOf(shown) != "Who?" {
		t.Errorf("%q", shown)
	}
	if shown, _ = g.prompt(id, "x"); textOf(shown) == "" || strings.Contains(textOf(shown), "Hello") {
		t.Errorf("%q", shown)
	}
	if shown, _ = g.prompt(id, "Ada"); strings.TrimSpace(textOf(shown)) != "Hello Ada" {
		t.Errorf("%q", shown)
	}
}

// A prompt can be cancelled while the model works, and while permission is requested; the next prompt works.
func TestCancel(t *testing.T) {
	for _, text := range []string{"take long", "run a command"} {
		t.Run(text, func(t *testing.T) {
			c := connect(t, t.TempDir(), "chat")
			id := c.newSession()
			done := make(chan sdk.PromptResponse, 1)
			go func() {
				res, err := c.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
				if err != nil {
					t.Error(err)
				}
				done <- res
			}()
			if text == "run a command" {
				<-c.started
			} else {
				awaitRun(t, c)
			}
			if err := c.Cancel(t.Context(), sdk.CancelNotification{SessionId: id}); err != nil {
				t.Fatal(err)
			}
			if res := <-done; res.StopReason != sdk.StopReasonCancelled {
				t.Errorf("reason: %s", res.StopReason)
			}
			c.collect()
			if shown, reason := c.prompt(id, "say hello"); reason != sdk.StopReasonEndTurn || textOf(shown) != "Hello there." {
				t.Errorf("next: %s %q", reason, shown)
			}
		})
	}
}

// awaitRun waits until a session is listed: its run has started.
func awaitRun(t *testing.T, c *testEditor) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		list, err := c.ListSessions(t.Context(), sdk.ListSessionsRequest{})
		if err != nil || time.Now().After(end) {
			t.Fatalf("the run does not start: %v", err)
		}
		if len(list.Sessions) > 0 {
			return
		}
	}
}

// A failure is an error of the prompt with the run, and the next prompt works.
func TestErrors(t *testing.T) {
	c := connect(t, t.TempDir(), "chat")
	id := c.newSession()
	ask := func(id sdk.SessionId, text string) error {
		_, err := c.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
		return err
	}
	if err := ask(id, "fail now"); err == nil || !strings.Contains(err.Error(), "the model refuses") || !strings.Contains(err.Error(), "run ") {
		t.Errorf("failed run: %v", err)
	}
	if shown, _ := c.prompt(id, "say hello"); textOf(shown) != "Hello there." {
		t.Errorf("next: %q", shown)
	}
	if err := ask("other", "say hello"); err == nil {
		t.Error("an unknown session has a prompt")
	}
	if _, err := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "relative", McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a relative directory")
	}
}

// Prompts carry links and embedded files as text.
func TestReadPrompt(t *testing.T) {
	got, err := readPrompt([]sdk.ContentBlock{
		sdk.TextBlock("Look at"), sdk.ResourceLinkBlock("a.go", "file:///a.go"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///b.go", Text: "package b\n"}}),
	})
	if want := "Look at [a.go](file:///a.go) \nfile:///b.go:\n```\npackage b\n```"; got.text != want || err != nil {
		t.Errorf("%q %v", got.text, err)
	}
}

// Prompts carry pictures and documents by their bytes; what is neither is refused, and nothing is read from an address.
func TestReadPictures(t *testing.T) {
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08"))
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\n"))
	blob := func(mime, data string) sdk.ContentBlock {
		return sdk.ResourceBlock(sdk.EmbeddedResourceResource{BlobResourceContents: &sdk.BlobResourceContents{Uri: "file:///d/paper.pdf", MimeType: &mime, Blob: data}})
	}
	got, err := readPrompt([]sdk.ContentBlock{sdk.TextBlock("Look"), sdk.ImageBlock(png, "image/png"), blob("application/pdf", pdf)})
	if err != nil || got.text != "Look" || len(got.files) != 2 || got.files[0].Name != "attachment 1" || got.files[1].Name != "paper.pdf" {
		t.Fatalf("%+v %v", got, err)
	}
	if _, ok := got.files[0].Media.(llm.Image); !ok {
		t.Errorf("%T", got.files[0].Media)
	}
	for wrong, b := range map[string]sdk.ContentBlock{
		"its content is something else": sdk.ImageBlock(base64.StdEncoding.EncodeToString([]byte("text")), "image/png"),
		"base64":                        sdk.ImageBlock("no base64", "image/png"),
		"may have 10 MB":                sdk.ImageBlock(strings.Repeat("A", 15<<20), "image/png"),
		"no audio":                      sdk.AudioBlock("AAAA", "audio/wav"),
	} {
		if _, err := readPrompt([]sdk.ContentBlock{b}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%v, want %q", err, wrong)
		}
	}
}

// Errors that an editor shows do not say where things lie on the machine of the agent.
func TestErrorsHidePaths(t *testing.T) {
	home := t.TempDir()
	c := connect(t, home, "greet")
	id := c.newSession()
	file := filepath.Join(home, ".config", "raddle", "agents", "greet", "graph.yaml")
	if err := os.WriteFile(file, []byte("start: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	_, prompted := c.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("x")}})
	_, opened := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: c.dir, McpServers: []sdk.McpServer{}})
	_, loaded := c.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "other", Cwd: c.dir, McpServers: []sdk.McpServer{}})
	for name, err := range map[string]error{"prompt": prompted, "new": opened, "load": loaded} {
		if err == nil || strings.Contains(err.Error(), home) || strings.Contains(err.Error(), ".config") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
