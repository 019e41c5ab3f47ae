package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/term/editor"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// A stage is a conversation whose screen is a file, with a model that repeats the last message, and a backend that
// drives a turn only when the test lets it.
type stage struct {
	*Session
	t       *testing.T
	file    string        // of the screen
	driving chan struct{} // receives when a turn is about to be driven
	release chan error    // lets it: nil, or why it fails
	choice  int           // what the person chooses; -1: nothing

	mu       sync.Mutex
	requests []string // the last messages of the requests to the model
	errors   []string
	commands [][]string
}

// newStage opens a conversation with the agent helper. The files are added to the workspace.
func newStage(t *testing.T, files map[string]string) *stage {
	t.Helper()
	x := &stage{t: t, driving: make(chan struct{}, 1), release: make(chan error, 1)}
	server := httptest.NewServer(llmtest.OpenAI().NewHandler(x.answer))
	t.Cleanup(server.Close)
	work := t.TempDir()
	testfile.WriteFiles(t, work, files)
	testfile.WriteFiles(t, work, map[string]string{
		"home/.config/raddle/config.yaml": "model: local:small\nclients: [{name: local, type: openai-compatible, " +
			"api_base: \"" + server.URL + "/v1\", models: [{name: small}]}]\n",
		"home/.config/raddle/agents/helper/config.yaml": "name: helper\ninstructions: You help.\n" +
			"variables: [{name: tone, description: of replies, default: dry}]\nconversation_starters: [Begin., Go on.]\n",
	})
	env := []string{"HOME=" + filepath.Join(work, "home"), "PATH=" + os.Getenv("PATH")}
	p, err := app.Open(app.Options{Work: work, Environ: env})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	x.file = filepath.Join(work, "screen")
	screen, err := os.Create(x.file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = screen.Close() })
	keep := func(b []byte) []byte { return b }
	x.Session = &Session{Process: p, Backend: x}
	x.Console = console.New(screen, screen, screen, keep)
	x.Prompter = chooser{x}
	x.mode = permission.NewModeSwitch(permission.ModeAsk)
	x.usage.models = p.Models
	x.edit = editor.New(editor.OpenHistory(filepath.Join(work, "history"), func(text string) string { return text }))
	if err := x.openAgent(t.Context(), "helper", ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.closeAgent)
	return x
}

// answer answers a request to the model with its last message.
func (x *stage) answer(body []byte) (llmtest.Turn, int) {
	var r struct{ Messages []struct{ Content any } }
	if err := json.Unmarshal(body, &r); err != nil {
		x.t.Error(err)
	}
	last := fmt.Sprint(r.Messages[len(r.Messages)-1].Content)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.requests = append(x.requests, last)
	return llmtest.Turn{Text: "You said: " + last}, http.StatusOK
}

func (x *stage) Start(_ context.Context, req app.Request, start func(app.Request) (*app.Run, error)) (*app.Run, error) {
	return start(req)
}

func (x *stage) Resume(ctx context.Context, run string, mode *permission.ModeSwitch) (*app.Run, error) {
	o := app.ResumeOptions{AcceptChanges: true}
	o.Mode = mode
	return x.Process.ResumeRun(ctx, run, o)
}

func (x *stage) Drive(run *app.Run, d Drive) (graph.Result, error) {
	x.driving <- struct{}{}
	if err := <-x.release; err != nil {
		return graph.Result{}, err
	}
	driver := app.Driver{Event: d.Event, Topics: graph.TopicEmit, Interrupt: d.Interrupt}
	return run.Drive(x.t.Context(), driver)
}

func (x *stage) Command(_ context.Context, args []string) error {
	x.commands = append(x.commands, args)
	return nil
}

func (x *stage) ShowReply(string)    {}
func (x *stage) ShowError(err error) { x.errors = append(x.errors, err.Error()) }

// A chooser chooses what the stage says.
type chooser struct{ *stage }

func (c chooser) ShowQuestion(context.Context, string, []term.Choice) error { return nil }
func (c chooser) ChooseSeveral(context.Context, []term.Choice) ([]int, error) {
	return nil, errors.New("no such question")
}
func (c chooser) ReadText(context.Context, string, string) (string, error) {
	return "", term.ErrLeftOpen
}
func (c chooser) ReadSecret(context.Context, string) (string, error) { return "", term.ErrLeftOpen }
func (c chooser) ChooseOne(context.Context, term.Menu) (int, error) {
	if c.choice < 0 {
		return 0, term.ErrLeftOpen
	}
	return c.choice, nil
}

// asked returns the last messages of the requests to the model.
func (x *stage) asked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.requests)
}

// lastAsked returns the last message of the last request.
func (x *stage) lastAsked() string { return x.asked()[len(x.asked())-1] }

// finish lets the turn that works end, and handles its end.
func (x *stage) finish(err error) {
	x.t.Helper()
	<-x.driving
	x.release <- err
	x.finishTurn(x.t.Context(), <-x.turn.done)
}

// sends submits a text and lets its turn end.
func (x *stage) sends(text string) {
	x.t.Helper()
	if x.submit(x.t.Context(), text); x.turn == nil {
		x.t.Fatalf("%q starts no turn: %q", text, x.errors)
	}
	x.finish(nil)
}

// queued returns what is queued; a star marks what the agent was given.
func (x *stage) queued() string {
	var list []string
	for _, m := range x.queue {
		mark := ""
		if m.sent != "" {
			mark = "*"
		}
		list = append(list, m.shown+mark)
	}
	return strings.Join(list, "|")
}

// shown returns what the screen has shown since the last call.
func (x *stage) shown() string {
	b, err := os.ReadFile(x.file)
	if err != nil {
		x.t.Fatal(err)
	}
	if err := os.Truncate(x.file, 0); err != nil {
		x.t.Fatal(err)
	}
	return strings.Trim(string(b), "\x00")
}

// While a turn works, the agent gets what is only text, up to the first command; the newest is taken back first.
func TestQueueOfMessages(t *testing.T) {
	x := newStage(t, map[string]string{"a.txt": "content"})
	ctx := t.Context()
	x.submit(ctx, "first")
	for _, text := range []string{"second", "third", "/undo", "fourth"} {
		x.submit(ctx, text)
	}
	if got := x.queued(); got != "second*|third*|/undo|fourth" {
		t.Errorf("queued: %s", got)
	}
	lines := queuedLines(x.queue, 80)
	if len(lines) != 4 || !strings.Contains(lines[2], "queued: /undo") {
		t.Errorf("%q", lines)
	}
	for _, want := range []string{"fourth", "/undo", "third"} {
		if x.takeBack(); x.edit.Text() != want {
			t.Errorf("%q was taken back, want %q", x.edit.Text(), want)
		}
	}
	x.submit(ctx, "see @a.txt")
	x.submit(ctx, "last")
	if got := x.queued(); got != "second*|see @a.txt|last" {
		t.Errorf("after a file: %s", got)
	}
	x.finish(nil)
	if got := x.queued(); got != "last*" || len(x.errors) > 0 {
		t.Errorf("after the first turn: %s, %q", got, x.errors)
	}
	x.finish(nil)
	if x.turn != nil || len(x.queue) > 0 || len(x.asked()) != 4 {
		t.Fatalf("at the end: %s, %q", x.queued(), x.asked())
	}
	for i, want := range []string{"first", "second", "see @a.txt\n\n", "last"} {
		if got := x.asked()[i]; !strings.HasPrefix(got, want) || strings.Contains(got, "content") != (i == 2) {
			t.Errorf("request %d is %q, want %q", i, got, want)
		}
	}
	x.takeBack()
	if x.edit.Text() != "third" {
		t.Errorf("nothing is queued, and %q is in the editor", x.edit.Text())
	}
}

// What is queued comes back into the editor, before what it has, if the turn fails or was stopped.
func TestQueueIsKept(t *testing.T) {
	x := newStage(t, nil)
	ctx := t.Context()
	x.submit(ctx, "first")
	x.submit(ctx, "second")
	x.submit(ctx, "/info")
	x.submit(ctx, "/undo")
	x.edit.SetText("draft")
	x.finish(errors.New("no network"))
	if got := x.edit.Text(); got != "second\n/undo\ndraft" || len(x.queue) > 0 {
		t.Errorf("the editor has %q, and queued is %s", got, x.queued())
	}
	if !slices.Equal(x.errors, []string{"no network"}) {
		t.Errorf("errors %q", x.errors)
	}
	if x.turn != nil {
		t.Fatal("a run that has not failed is ended")
	}
	x.edit.SetText("")
	x = newStage(t, nil)
	x.submit(ctx, "first")
	x.interruptTurn()
	x.submit(ctx, "second")
	if got := x.queued(); got != "second" {
		t.Errorf("a turn that was stopped is given %s", got)
	}
	x.interruptTurn()
	if !strings.HasPrefix(x.notice.text, "Stopping.") {
		t.Errorf("the second time: %q", x.notice.text)
	}
	x.finish(nil)
	if got := x.edit.Text(); got != "second" || !strings.Contains(x.shown(), "Stopped. What was said so far is kept.") {
		t.Errorf("the editor has %q", got)
	}
}
