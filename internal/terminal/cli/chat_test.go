//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/termtest"
	"raddle.dev/internal/testkit/testneed"
)

// A chatModel is a strict provider whose model does what the last message says:
//
//	call NAME ARGS   calls a tool, and then repeats its result
//	hold PHASE       stops in a phase, until the client leaves or the test continues
//	say TEXT         answers TEXT
//	refuse           refuses the key
//
// It answers everything else with "heard: " and the message.
type chatModel struct {
	t    *testing.T
	url  string
	here chan string   // receives the phase in which a reply is held
	hold chan struct{} // closing it lets all replies continue

	mu     sync.Mutex
	bodies []string
}

// chatRequest is the part of a request that the model looks at.
type chatRequest struct {
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
}

// lastText returns the text of the newest message of a role.
func (r *chatRequest) lastText(role string) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == role {
			var text string
			var parts []struct{ Text string }
			if json.Unmarshal(m.Content, &text) != nil && json.Unmarshal(m.Content, &parts) == nil {
				for _, p := range parts {
					text += p.Text
				}
			}
			return text
		}
	}
	return ""
}

func startChatModel(t *testing.T) *chatModel {
	m := &chatModel{t: t, here: make(chan string, 8), hold: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *chatModel) serve(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/responses") {
		llmtest.OpenAIResponses().NewHandler(m.answerResponse).ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = llmtest.OpenAI().Check(body)
	}
	var req chatRequest
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		m.t.Errorf("the request is refused: %v\n%s", err, body)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.bodies = append(m.bodies, string(body))
	m.mu.Unlock()
	if word, _, _ := strings.Cut(req.lastText("user"), " "); word == "refuse" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"no such key"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	write := func(delta any, finish string) {
		line, _ := json.Marshal(map[string]any{"id": "r", "object": "chat.completion.chunk", "model": "small",
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finishReason(finish)}}})
		fmt.Fprintf(w, "data: %s\n\n", line)
		w.(http.Flusher).Flush()
	}
	held := func(phase string) {
		w.(http.Flusher).Flush()
		m.here <- phase
		select {
		case <-m.hold:
		case <-r.Context().Done():
		}
	}
	said := req.lastText("user")
	word, rest, _ := strings.Cut(said, " ")
	switch {
	case req.Messages[len(req.Messages)-1].Role == "tool":
		write(map[string]any{"content": "The tool said: " + req.lastText("tool")}, "stop")
	case word == "call":
		name, args, _ := strings.Cut(rest, " ")
		write(map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "c1", "type": "function", "function": map[string]any{"name": name, "arguments": args}}}}, "")
		write(map[string]any{}, "tool_calls")
	case word == "hold":
		if rest == "first" {
			held(rest)
		}
		if rest == "reasoning" {
			write(map[string]any{"reasoning_content": "thinking about it"}, "")
			held(rest)
		}
		write(map[string]any{"content": "The first half. "}, "")
		if rest == "text" {
			held(rest)
		}
		write(map[string]any{"content": "The second half."}, "stop")
	case word == "say":
		for part := range slices.Chunk([]rune(rest), 7) {
			write(map[string]any{"content": string(part)}, "")
		}
		write(map[string]any{}, "stop")
	default:
		write(map[string]any{"content": "heard: " + said}, "stop")
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// answerResponse answers a request of OpenAI's Responses API, after a thought that must come back.
func (m *chatModel) answerResponse(body []byte) (llmtest.Turn, int) {
	var r struct {
		Input []struct {
			Type, Role, Output string
			Content            []struct{ Text string }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return llmtest.Turn{Text: err.Error()}, http.StatusBadRequest
	}
	m.mu.Lock()
	m.bodies = append(m.bodies, string(body))
	m.mu.Unlock()
	last := r.Input[len(r.Input)-1]
	if last.Type == "function_call_output" {
		return llmtest.Turn{Thought: "read it", Text: "The tool said: " + last.Output}, http.StatusOK
	}
	said := ""
	for _, part := range last.Content {
		said += part.Text
	}
	if rest, ok := strings.CutPrefix(said, "call "); ok {
		name, args, _ := strings.Cut(rest, " ")
		return llmtest.Turn{Thought: "look", Calls: []llmtest.Call{{ID: fmt.Sprintf("c%d", len(r.Input)), Name: name, Args: args}}}, http.StatusOK
	}
	return llmtest.Turn{Thought: "hear", Text: "heard: " + said}, http.StatusOK
}

func finishReason(reason string) any {
	if reason == "" {
		return nil
	}
	return reason
}

// awaitHeld waits until a reply is held.
func (m *chatModel) awaitHeld() {
	m.t.Helper()
	select {
	case <-m.here:
	case <-time.After(20 * time.Second):
		m.t.Fatal("no reply is held")
	}
}

// requests returns the requests so far.
func (m *chatModel) requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.bodies...)
}

// chatAgents are the agents of the tests of conversations.
const chatAgents = `
-- helper/config.yaml --
name: helper
instructions: You help.
global_tools: [fs_read, fs_write, execute_command]
conversation_starters: [say one, say two]
-- asks/graph.yaml --
name: asks
start: ask
nodes:
  ask: {type: approval, question: "Print {{initial_prompt}}?", options: [yes, no], routes: {yes: done, no: done}, on_other: done, state_updates: {said: "{{choice}}"}}
  done: {type: end, output: "RESULT={{said}}"}
`

// workplace returns a directory with the agents, whose model is this one.
func (m *chatModel) workplace() *workplace {
	w := newWorkplace(m.t, chatAgents)
	w.write(".config/raddle/config.yaml", "model: local:small\nclients: [{name: local, type: openai-compatible, api_base: \""+m.url+"/v1\", api_key: k}]\n")
	return w
}

// chat starts a conversation on a terminal of some width.
func (w *workplace) chat(cols uint16, args ...string) *screen {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: cols})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &screen{t: w.t, cmd: cmd, tty: tty, seen: newConsole()}
	go func() { _, _ = io.Copy(s.seen, tty) }() // until the process closes its side
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	return s
}

// shows waits until the terminal displays a text.
func (s *screen) shows(cols int, text string) {
	s.t.Helper()
	s.seen.until(s.t, text, func(all string) bool { return strings.Contains(termtest.Render(cols, all), text) })
}

// hasMode matches a status line, which names the mode.
var hasMode = regexp.MustCompile(` · (ask|edits|box) · `)

// idle waits until no turn works.
func (s *screen) idle() {
	s.t.Helper()
	s.idleAt(80)
}

// idleAt is idle for a terminal of another width.
func (s *screen) idleAt(cols int) {
	s.t.Helper()
	s.seen.until(s.t, "the end of the turn", func(all string) bool {
		shown := termtest.Render(cols, all)
		last := shown[strings.LastIndexByte(shown, '\n')+1:]
		return hasMode.MatchString(last) && !strings.HasSuffix(last, "Esc stops")
	})
}

// leave ends the conversation.
func (s *screen) leave() {
	s.t.Helper()
	s.press("\x04")
	s.ends(0, "")
}

const chatPrompt = "Ask or describe a task"

// A conversation keeps what was said, also for the next process.
func TestChat(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("first message", enter)
	s.shows(80, "heard: first message")
	s.press("second\\", enter, "line", enter)
	s.shows(80, "heard: second")
	s.shows(80, "> second\n  line")
	s.press("/nosuch", enter)
	s.shows(80, "unknown command /nosuch")
	s.press("\x15/starters 2", enter)
	s.shows(80, "\ntwo")
	s.leave()
	s = w.chat(80, "-c")
	s.shows(80, `Continuing "first message", 3 messages.`)
	s.shows(80, "> say two")
	s.press("third", enter)
	s.shows(80, "heard: third")
	s.leave()
	all := m.requests()
	if last := all[len(all)-1]; len(all) != 4 || !strings.Contains(last, "heard: first message") || !strings.Contains(last, "third") {
		t.Errorf("%d requests, the last one: %s", len(all), last)
	}
}

// Messages that are typed while a reply is being written are queued, shown, and can be taken back.
func TestChatQueue(t *testing.T) {
	m := startChatModel(t)
	s := m.workplace().chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("hold text", enter)
	m.awaitHeld()
	s.press("next one", enter)
	s.shows(80, "queued: next one")
	s.press("too much", enter)
	s.shows(80, "queued: too much")
	s.press(up)
	s.shows(80, "> too much")
	s.press("\x15")
	close(m.hold)
	s.shows(80, "The first half. The second half.")
	s.shows(80, "heard: next one")
	s.leave()
	if all := m.requests(); len(all) != 2 {
		t.Errorf("%d requests", len(all))
	}
}

// Undo, redo, retry and branches move in the conversation.
func TestChatGoesBack(t *testing.T) {
	m := startChatModel(t)
	s := m.workplace().chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("one", enter)
	s.shows(80, "heard: one")
	s.press("two", enter)
	s.shows(80, "heard: two")
	s.press("/undo", enter)
	s.shows(80, `Took back 1 message, from "two" on.`)
	s.press("three", enter)
	s.shows(80, "heard: three")
	s.press("/branches main", enter)
	s.shows(80, `2 messages.`)
	s.press("four", enter)
	s.shows(80, "heard: four")
	s.press("/retry", enter)
	s.seen.until(t, "the reply again", func(all string) bool { return strings.Count(all, "heard: four") >= 2 })
	s.leave()
	all := m.requests()
	if len(all) != 5 {
		t.Fatalf("%d requests", len(all))
	}
	for i, want := range []struct{ with, without string }{2: {"three", "two"}, 3: {"two", "three"}, 4: {"four", "three"}} {
		if want.with != "" && (!strings.Contains(all[i], want.with) || strings.Contains(all[i], want.without)) {
			t.Errorf("request %d: %s", i, all[i])
		}
	}
}

// A message gets the files that it names, and the output of !!command; !command only shows its output.
func TestChatAttachments(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	w.write("notes/plan.md", "the plan of the week")
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("!echo only shown", enter)
	s.shows(80, "\nonly shown\n> Ask")
	s.press("!!printf 'sent %s' too; exit 3", enter)
	s.shows(80, "Your next message gets this output.\n> Ask")
	s.press("read @pla\t please", enter)
	s.shows(80, "> read @notes/plan.md please")
	s.shows(80, "heard: ")
	s.leave()
	all := m.requests()
	var req chatRequest
	if err := json.Unmarshal([]byte(all[0]), &req); err != nil {
		t.Fatal(err)
	}
	const want = "Output of `printf 'sent %s' too; exit 3`:\n```\nsent too\n```\n(exit code 3)\n\nread @notes/plan.md please\n\nFile notes/plan.md:\nthe plan of the week"
	if got := req.lastText("user"); got != want {
		t.Errorf("the message is %q", got)
	}
}

// Commands in a conversation without a message say what is missing. A text that begins with a space is a message, also if it looks
// like a command, and /file takes a path with spaces.
func TestChatBeforeTheFirstMessage(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	w.write("my plan.md", "the plan of the week")
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("/branches", enter)
	s.shows(80, "there is no message yet, and no branch")
	s.press("/fork", enter)
	s.shows(80, "raddle: there is no message yet\n")
	s.press("/tmp is full", enter)
	s.shows(80, "send it as a message: begin with a space")
	s.press("\x15", ` /file "my plan.md"`, enter)
	s.shows(80, "heard: /file")
	s.press(`/file "my plan.md"`, enter)
	s.shows(80, "Your next message gets 📎 my plan.md · 20 bytes")
	s.press(" !read it", enter)
	s.shows(80, ">  !read it")
	s.shows(80, "the plan of the week")
	s.leave()
	if all := m.requests(); len(all) != 2 || !strings.Contains(all[1], "!read it") {
		t.Errorf("%d requests: %s", len(all), all)
	}
}

// After a reply that the provider refuses, the next message is sent as always, and /retry sends the one that failed.
func TestChatAfterAFailure(t *testing.T) {
	m := startChatModel(t)
	s := m.workplace().chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("refuse this", enter)
	s.shows(80, "no such key")
	s.shows(80, "To send it again: /retry")
	s.idle()
	s.press("hello", enter)
	s.shows(80, "heard: hello")
	s.press("refuse more", enter)
	s.seen.until(t, "the second failure", func(all string) bool { return strings.Count(all, "To send it again: /retry") == 2 })
	s.press("/retry", enter)
	s.seen.until(t, "the third failure", func(all string) bool { return strings.Count(all, "To send it again: /retry") == 3 })
	s.leave()
}

// A conversation that another command opens continues the reply that a kill has cut; a command that leaves the conversation waits for the
// end of the reply.
func TestChatOpensAKilledConversation(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	s := w.chat(80, "chat", "./helper", "-s", "one")
	s.shows(80, chatPrompt)
	s.press("hold text", enter)
	m.awaitHeld()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = s.cmd.Wait()
	s = w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("/session one", enter)
	s.shows(80, "Continuing where the last reply stopped.")
	m.awaitHeld()
	s.press(".exit session", enter)
	s.shows(80, "queued: .exit session")
	close(m.hold)
	s.shows(80, "The first half. The second half.")
	s.idle()
	s.press("fresh", enter)
	s.shows(80, "heard: fresh")
	s.leave()
	all := m.requests()
	if last := all[len(all)-1]; strings.Contains(last, "hold text") {
		t.Errorf("the new conversation sends the old one: %s", last)
	}
}

// Only one terminal has a conversation.
func TestChatOnTwoTerminals(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	s := w.chat(80, "chat", "./helper", "-s", "shared")
	s.shows(80, chatPrompt)
	s.press("hello", enter)
	s.shows(80, "heard: hello")
	other := w.chat(80, "chat", "./helper", "-s", "shared")
	other.ends(8, "close it there, or start another conversation")
	s.leave()
	other = w.chat(80, "chat", "./helper", "-s", "shared")
	other.shows(80, "heard: hello")
	other.leave()
}

// Nothing that a model, a tool or a file writes reaches the terminal as a control sequence.
func TestChatWithHostileTexts(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	hostile := "\x1b]0;title\x07\x1b[2Jgone\x1b[31m\u202e\u009b2J"
	w.write("bad.txt", hostile)
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("say before "+strings.ReplaceAll(`ESC]0;titleBEL ESC[2Jgone`, "ESC", `\u001b`)+" after", enter)
	s.shows(80, "after")
	s.press(`call fs_read {"path":"bad.txt"}`, enter)
	s.shows(80, "The tool said:")
	s.leave()
	all := s.seen.String()
	for _, bad := range []string{"\x1b]0;", "\x1b[2J", "\u009b", "\u202e"} {
		if strings.Contains(all, bad) {
			t.Errorf("the terminal got %q", bad)
		}
	}
}

// A graph runs from its start for each message. Its questions are asked in place, and it has no sessions.
func TestChatWithAGraph(t *testing.T) {
	m := startChatModel(t)
	s := m.workplace().chat(80, "chat", "./asks")
	s.shows(80, "Each message runs this graph from its start.")
	for i, answer := range []string{enter, down + enter} {
		s.press(fmt.Sprint("page ", i), enter)
		s.shows(80, fmt.Sprintf("Print page %d?", i))
		s.answer(answer)
		s.shows(80, "\nRESULT="+[]string{"yes", "no"}[i]+"\n>") // above the editor
	}
	s.press("/session work", enter)
	s.shows(80, "session")
	s.press("\x15")
	s.press("/undo", enter)
	s.shows(80, "asks is a graph")
	s.press("\x15")
	s.leave()
}

// A terminal that can only print lines gets lines.
func TestChatOnADumbTerminal(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	for name, start := range map[string]func() *screen{
		"dumb":          func() *screen { return w.screen([]string{"TERM=dumb"}, "chat", "./helper") },
		"screen reader": func() *screen { return w.screen([]string{"TERM=xterm"}, "chat", "./helper", "--screen-reader") },
	} {
		t.Run(name, func(t *testing.T) {
			s := start()
			s.await("> ")
			s.press("hello\n")
			s.await("heard: hello")
			s.press("/quit\n")
			s.ends(0, "")
			if all := s.seen.String(); strings.Contains(strings.NewReplacer("\x1b[2m", "", "\x1b[1m", "", "\x1b[0m", "", "\x1b[36m", "").Replace(all), "\x1b[") {
				t.Errorf("the cursor moved: %q", all)
			}
		})
	}
}

// Keys that leave: Ctrl-D, Ctrl-C twice, and the end of the terminal. Esc never does.
func TestLeavingAChat(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press(esc)
	s.shows(80, "Press Esc again")
	s.press("text", ctrlC)
	s.press(ctrlC)
	s.shows(80, "Press Ctrl-C again to leave.")
	s.press(ctrlC)
	s.ends(0, "")

	s = w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends(143, "")
}

// Without a terminal there is no conversation, and raddle alone prints its help.
func TestChatNeedsATerminal(t *testing.T) {
	w := startChatModel(t).workplace()
	if r := w.run("chat", "./helper"); r.code != 2 || !strings.Contains(r.err, "a conversation needs a terminal") {
		t.Errorf("%+v", r)
	}
	if r := w.run(); r.code != 0 || !strings.Contains(r.out, "raddle COMMAND") {
		t.Errorf("%+v", r)
	}
}

// Wrong flags are refused before anything starts.
func TestChatFlags(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"chat", "--theme", "pink"}, "--theme pink: it must be one of auto, dark, light, mono"},
		{[]string{"chat", "--mode", "all"}, "--mode all: it must be one of plan, ask, edits, box"},
		{[]string{"-c", "-s", "x"}, "--continue and --session exclude each other"},
		{[]string{"chat", "./helper", "-s", "a/b"}, "a/b"},
		{[]string{"chat", "nosuch"}, "nosuch"},
	} {
		s := w.chat(80, test.args...)
		s.ends(2, "")
		s.shows(80, test.want)
	}
}

// The text is edited in another program.
func TestChatEditor(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	w.write("edit.sh", "#!/bin/sh\nprintf ' and more' >> \"$1\"\n")
	if err := os.Chmod(filepath.Join(w.dir, "edit.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "VISUAL="+filepath.Join(w.dir, "edit.sh"))
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("some text", "\x07")
	s.shows(80, "> some text and more")
	s.press(enter)
	s.shows(80, "heard: some text and more")
	s.leave()
}

// git says which files a completion lists.
func TestChatCompletesFiles(t *testing.T) {
	testneed.RequirePrograms(t, "git")
	m := startChatModel(t)
	w := m.workplace()
	w.write("shown.txt", "a")
	w.write("hidden.txt", "b")
	w.write(".gitignore", "hidden.txt\n")
	git := exec.Command("git", "init", "-q", ".")
	git.Dir = w.dir
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := w.chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	s.press("@.txt")
	s.shows(80, "  @shown.txt")
	if strings.Contains(termtest.Render(80, s.seen.String()), "hidden.txt") {
		t.Error("an ignored file is listed")
	}
	s.press("\x15")
	s.leave()
}

// chatPhases are the phases in which a turn can be stopped: what begins it, and what shows that it is there.
var chatPhases = map[string]struct {
	message string
	held    bool // the model says that it is there
}{
	"before the first token": {message: "hold first", held: true},
	"in the reasoning":       {message: "hold reasoning", held: true},
	"in the text":            {message: "hold text", held: true},
	"in a tool":              {message: `call execute_command {"command":"sleep 20"}`},
	"at a permission":        {message: `call fs_write {"path":"new.txt","contents":"x"}`},
	"at a question":          {message: `call user__ask {"question":"Which one?","options":["a","b"]}`},
}

// begin sends a message and waits until its turn is in its phase.
func (m *chatModel) begin(s *screen, phase string) {
	m.t.Helper()
	p := chatPhases[phase]
	s.idle()
	s.press(p.message, enter)
	switch {
	case p.held:
		m.awaitHeld()
	case phase == "in a tool":
		s.shows(80, "calling execute_command") // only while it works; the message alone is there before the turn is saved
	default:
		s.awaitNext("Esc: stop")
	}
}

// Esc and Ctrl-C stop a turn in every phase, and the provider accepts the next one.
func TestChatInterrupts(t *testing.T) {
	for phase := range chatPhases {
		for name, key := range map[string]string{"Esc": esc, "Ctrl-C": ctrlC} {
			t.Run(phase+" with "+name, func(t *testing.T) {
				t.Parallel()
				m := startChatModel(t)
				s := m.workplace().chat(80, "chat", "./helper")
				s.shows(80, chatPrompt)
				for i := range 2 {
					m.begin(s, phase)
					s.press(key)
					s.seen.until(t, "Stopped.", func(all string) bool { return strings.Count(all, "Stopped. What was said so far is kept.") > i })
				}
				s.press("next", enter)
				s.shows(80, "heard: next")
				s.leave()
			})
		}
	}
}

// A killed conversation continues where it was, in every phase; what a model has said is not requested again.
func TestChatIsKilled(t *testing.T) {
	for phase := range chatPhases {
		t.Run(phase, func(t *testing.T) {
			t.Parallel()
			m := startChatModel(t)
			w := m.workplace()
			s := w.chat(80, "chat", "./helper")
			s.shows(80, chatPrompt)
			s.press("hello", enter)
			s.shows(80, "heard: hello")
			m.begin(s, phase)
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = s.cmd.Wait()
			s = w.chat(80, "-c")
			s.shows(80, "heard: hello")
			switch phase {
			case "in a tool": // the command has no effects, so it runs again
			case "at a permission", "at a question":
				s.awaitNext("Esc: stop")
				s.press(enter)
			default:
				m.awaitHeld()
				close(m.hold)
				s.shows(80, "The second half.")
			}
			if !chatPhases[phase].held {
				s.shows(80, "The tool said:")
			}
			s.press("next", enter)
			s.shows(80, "heard: next")
			s.leave()
		})
	}
}

// writesUnread takes the tool that reads files from an agent: then it writes files that it has not read.
func (w *workplace) writesUnread(agent string) {
	file := agent + "/config.yaml"
	w.write(file, strings.Replace(w.read(file), "fs_read, ", "", 1))
}

// A rewind takes back the files that tools changed, and leaves what the person has changed since.
func TestChatRewinds(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	w.write("a.txt", "before\n")
	w.write("b.txt", "before\n")
	w.writesUnread("helper")
	s := w.chat(80, "chat", "./helper", "--mode", "edits")
	s.shows(80, chatPrompt)
	for _, name := range []string{"a", "b", "new"} {
		s.press(fmt.Sprintf(`call fs_write {"path":"%s.txt","contents":"by the agent\n"}`, name), enter)
		s.shows(80, `"`+name+`.txt"`)
		s.seen.until(t, "the result", func(all string) bool {
			return strings.Count(termtest.Render(80, all), "The tool said:") == map[string]int{"a": 1, "b": 2, "new": 3}[name]
		})
	}
	w.write("b.txt", "by the person\n")
	s.press("/rewind", enter)
	s.answer(down + down + enter) // before the first message
	s.answer(enter)               // the conversation and the files
	s.shows(80, "restored a.txt")
	s.shows(80, "removed new.txt")
	s.shows(80, "left b.txt as it is")
	s.press("/info", enter)
	s.shows(80, "messages      0")
	s.leave()
	for name, want := range map[string]string{"a.txt": "before\n", "b.txt": "by the person\n"} {
		if got, err := os.ReadFile(filepath.Join(w.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "new.txt")); !os.IsNotExist(err) {
		t.Errorf("new.txt: %v", err)
	}
}

// A long conversation is replaced by a summary, which later messages begin with. Of the eight messages, the last reply stays.
func TestChatCompacts(t *testing.T) {
	m := startChatModel(t)
	s := m.workplace().chat(80, "chat", "./helper")
	s.shows(80, chatPrompt)
	for i := range 4 {
		s.press(fmt.Sprint("message number ", i), enter)
		s.shows(80, fmt.Sprint("heard: message number ", i))
	}
	s.press("/compact", enter)
	s.shows(80, "Summarizing the conversation.")
	s.idle()
	s.press("after", enter)
	s.shows(80, "heard: after")
	s.leave()
	all := m.requests()
	if last := all[len(all)-1]; !strings.Contains(last, "[Summary of 7 earlier messages") || len(all) != 6 {
		t.Errorf("%d requests, the last one: %s", len(all), last)
	}
}

// changingText matches what differs in each run: times, and identifiers of runs.
var changingText = regexp.MustCompile(`\d+\.\d s\b|\b1m[0-9a-z]{18}\b`)

// The screens of a conversation, from 20 to 200 columns. Run with UPDATE_SCREENS=1 to write them again.
func TestChatScreens(t *testing.T) {
	for _, cols := range []int{20, 40, 80, 200} {
		t.Run(itoa(cols), func(t *testing.T) {
			t.Parallel()
			m := startChatModel(t)
			w := m.workplace()
			w.write("main.go", "package main\n\nfunc main() {\n\tprintln(\"hello\")\n}\n")
			w.writesUnread("helper")
			s := w.chat(uint16(cols), "chat", "./helper", "--mode", "edits")
			s.shows(cols, "> Ask")
			turns := 0
			say := func(text string) {
				turns++
				s.press(text, enter)
				s.seen.until(t, "the end of a turn", func(all string) bool {
					shown := termtest.Render(cols, all)
					return strings.Count(shown, "\n> ") > turns && len(m.requests()) >= turns && strings.Contains(shown[max(0, len(shown)-400):], "> Ask")
				})
				s.settle()
			}
			say("say # Title\n\nA **bold** word, `code`, a [link](https://example.org) and a rather long line that has to be wrapped.")
			say("say | file | 日本語 | note |" + "\n|---|---|---|" + "\n| a.go | 東京 | 🎉 done |" + "\n| long-name-of-a-file.go | שלום | a cell with several words |")
			say("say ```go" + "\nfunc main() { println(\"x\") }" + "\n```")
			say(`call fs_write {"path":"main.go","contents":"package main\n\nfunc main() {\n\tprintln(\"bye\")\n}\n"}`)
			say(`call execute_command {"command":"seq 9"}`)
			s.press("/he")
			s.shows(cols, "> /he")
			s.settle()
			got := changingText.ReplaceAllStringFunc(termtest.Render(cols, s.seen.String()), func(text string) string {
				if strings.HasSuffix(text, "s") && strings.Contains(text, ".") {
					return "0.0 s"
				}
				return "RUN"
			}) + "\n"
			_, got, _ = strings.Cut(got, "\n") // the first line has the directory
			path := filepath.Join("testdata", "screens", fmt.Sprintf("chat-%d.txt", cols))
			if os.Getenv("UPDATE_SCREENS") != "" {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Error(d)
			}
			for line := range strings.Lines(got) {
				if n := term.TextWidth(strings.TrimRight(line, "\n")); n > cols {
					t.Errorf("a line has %d columns: %q", n, line)
				}
			}
			s.press("\x15")
			s.leave()
		})
	}
}

// settle waits until nothing more is written.
func (s *screen) settle() {
	for before := -1; ; {
		all := len(s.seen.String())
		if all == before {
			return
		}
		before = all
		time.Sleep(150 * time.Millisecond)
	}
}
