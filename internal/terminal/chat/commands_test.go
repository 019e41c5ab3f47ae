package chat

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/term/editor"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/tool/permission"
)

// expect runs a line, and compares the errors, and parts of what is shown; "": nothing is shown.
func (x *stage) expect(line, wantErr string, shown ...string) {
	x.t.Helper()
	x.errors = nil
	x.shown()
	x.submit(x.t.Context(), line)
	if got := strings.Join(x.errors, "; "); got != wantErr {
		x.t.Errorf("%s: the error is %q, want %q", line, got, wantErr)
	}
	got := x.shown()
	for _, part := range shown {
		if !strings.Contains(got, part) || part == "" && got != "" {
			x.t.Errorf("%s shows %q, want %q", line, got, part)
		}
	}
}

// Commands go back and forth in a conversation, and say what they did, or why not.
func TestBackAndForth(t *testing.T) {
	x := newStage(t, nil)
	x.expect("/undo", "there is no message yet", "")
	x.expect("/branches", "there is no message yet, and no branch", "")
	x.expect("/copy", "there is no answer yet", "")
	x.sends("one")
	x.sends("two")
	x.expect("/undo 0", "the number of messages must be 1 or more", "")
	x.expect("/undo 9", "", `Took back 2 messages, from "one" on.`)
	x.expect("/redo", "", "> two")
	x.expect("/undo", "", `Took back 1 message, from "two" on.`)
	x.sends("three")
	x.choice = -1
	x.expect("/branches", "", "")
	x.expect("/branches nowhere", x.errorOf("/branches nowhere"), "")
	x.choice = 0
	x.expect("/edit", "", "Back to before message 2. The old way stays as a branch: /branches")
	if got := x.edit.Text(); got != "three" {
		t.Errorf("the editor has %q", got)
	}
	x.edit.SetText("")
	x.submit(t.Context(), "/retry")
	x.finish(nil)
	if got := x.lastAsked(); got != "one" {
		t.Errorf("the model got %q again", got)
	}
	x.expect("/fork", "", "This is a new branch.")
	x.expect("/name", "/name: the name is missing", "")
	x.expect("/name nightly", "", "raddle -s nightly")
	x.expect("/info", "", "nightly", "helper", "ask: changes of files ask first")
	x.expect("/save out.md", "", "Wrote out.md.")
	b, err := os.ReadFile(filepath.Join(x.Process.Dirs.Work, "out.md"))
	if err != nil || strings.TrimSpace(string(b)) != "You said: one" {
		t.Errorf("saved %q, %v", b, err)
	}
}

// errorOf returns the error of a line.
func (x *stage) errorOf(line string) string {
	x.errors = nil
	if x.submit(x.t.Context(), line); len(x.errors) != 1 || x.errors[0] == "" {
		x.t.Errorf("%s: errors %q", line, x.errors)
		return ""
	}
	return x.errors[0]
}

// Commands about the agent change what the next message is sent with.
func TestCommandsOfAgents(t *testing.T) {
	x := newStage(t, nil)
	x.expect("/variables", "", "tone", "dry", "of replies")
	x.expect("/variables tone", "there is no value", "")
	x.expect("/variables other x", `helper has no variable "other"`, "")
	x.expect("/variables tone  very warm ", "", "Set for a new conversation")
	if got := declaredValues(x.vars, x.agent); len(got) != 1 || got["tone"] != "very warm" {
		t.Errorf("variables %q", got)
	}
	x.expect("/mode", "", "Permission mode: ask")
	x.expect("/mode wild", `unknown permission mode "wild"`, "")
	x.expect("/set mode plan", "", "plan: the agent only reads")
	x.expect("/set speed 3", `"speed" cannot be set here`, "")
	if x.mode.Mode() != permission.ModePlan {
		t.Errorf("mode %s", x.mode.Mode())
	}
	x.expect("/model local:small", "", "The next message goes to local:small.")
	if got := x.currentModel(); got != "small" {
		t.Errorf("the model is %q", got)
	}
	x.expect("/starters 3", "there is no suggestion 3", "")
	x.submit(t.Context(), "/starters 2")
	x.finish(nil)
	if got := x.asked(); !slices.Equal(got, []string{"Go on."}) {
		t.Errorf("the model got %q", got)
	}
	x.expect("/cost", "", "MODEL", "gpt-x", "unknown")
	x.expect("/mcp", "", "helper uses no MCP servers.")
	x.expect("/todo", "", "There is no list of tasks")
	x.expect("/jobs", "", "no command in the background")
	x.expect("/jobs end", "/jobs knows only stop", "")
	x.expect("/context", "", "your messages", "tokens, estimated")
	x.edit = nil // the terminal is not given to the command
	for line, want := range map[string]string{
		"/tools": "tools ls helper", "/runs": "runs ls -n 10", "/runs r1": "runs show r1", "/watch": "watch last",
		"/graph":            "graph helper",
		"/run other do  it": "run --model local:small other -- do  it", "/run other": "run --model local:small other",
	} {
		x.commands = nil
		if x.expect(line, ""); len(x.commands) != 1 || strings.Join(x.commands[0], " ") != want {
			t.Errorf("%s: %q, want %q", line, x.commands, want)
		}
	}
	x.expect("/run", "/run: the agent is missing", "")
	x.expect("/install tools", "only agents can be installed; tools are built in", "")
}

// A macro types its steps one after the other, and leaves the further ones out when one is refused.
func TestMacros(t *testing.T) {
	const dir = "home/.config/raddle/macros/"
	x := newStage(t, map[string]string{
		dir + "good.yaml": "steps: [/mode plan, hello]\n",
		dir + "bad.yaml":  "steps: [/mode wild, hello, /info]\n",
	})
	x.submit(t.Context(), "/good")
	if x.mode.Mode() != permission.ModePlan || x.turn == nil {
		t.Fatalf("mode %s, %q", x.mode.Mode(), x.errors)
	}
	x.submit(t.Context(), "/bad")
	if got := x.queued(); got != "/bad" {
		t.Errorf("while a turn works: %s", got)
	}
	x.shown()
	x.finish(nil)
	got := x.shown()
	if !strings.Contains(got, "Left out: hello") || !strings.Contains(got, "Left out: /info") || x.turn != nil {
		t.Errorf("%q is shown", got)
	}
	if !slices.Equal(x.asked(), []string{"hello"}) || len(x.errors) != 1 {
		t.Errorf("the model got %q, errors %q", x.asked(), x.errors)
	}
}

// Without an editor, the steps after a message that has failed are left out, and not sent after the next message.
func TestMacroWithoutEditor(t *testing.T) {
	x := newStage(t, map[string]string{"home/.config/raddle/macros/two.yaml": "steps: [hello, world]\n"})
	x.edit = nil
	x.submit(t.Context(), "/two")
	x.shown()
	x.finish(errors.New("no network"))
	if got := x.shown(); !strings.Contains(got, "Left out: world") || x.queued() != "" {
		t.Errorf("%q is shown, and queued is %s", got, x.queued())
	}
	x.sends("other")
	if got := x.asked(); x.turn != nil || !slices.Equal(got, []string{"other"}) {
		t.Errorf("the model got %q", got)
	}
}

// Esc and Ctrl-C empty the editor first, and count twice only if they come soon after each other.
func TestKeysThatStop(t *testing.T) {
	x := newStage(t, nil)
	synctest.Test(t, func(t *testing.T) {
		interrupt := tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		x.edit.SetText("draft")
		x.handleKey(t.Context(), interrupt)
		if !x.edit.IsEmpty() || x.leaving || x.notice.text != "" {
			t.Errorf("the editor has %q, leaving %v, notice %q", x.edit.Text(), x.leaving, x.notice.text)
		}
		x.handleKey(t.Context(), interrupt)
		if x.leaving || x.notice.text != "Press Ctrl-C again to leave." {
			t.Errorf("once: leaving %v, notice %q", x.leaving, x.notice.text)
		}
		time.Sleep(twice)
		x.handleKey(t.Context(), interrupt)
		if x.leaving {
			t.Error("two keys that are not soon after each other leave")
		}
		time.Sleep(twice - time.Millisecond)
		if x.handleKey(t.Context(), interrupt); !x.leaving {
			t.Error("two keys soon after each other do not leave")
		}
		for ago, want := range map[time.Duration]string{
			time.Second: "just now", time.Minute: "1 minute ago", 119 * time.Minute: "1 hour ago", 49 * time.Hour: "2 days ago",
		} {
			if got := describeAge(time.Now().Add(-ago)); got != want {
				t.Errorf("%v: %q, want %q", ago, got, want)
			}
		}
	})
}

// A line of the plain conversation continues after a backslash and inside a block; a last line without an end counts.
func TestReadMessage(t *testing.T) {
	x := newStage(t, nil)
	lines := bufio.NewReader(strings.NewReader("one\r\ntwo \\\nmore\n:::\na\nb\n:::\nlast"))
	for _, want := range []string{"one", "two \nmore", ":::\na\nb\n:::", "last"} {
		if got, err := x.readMessage(lines); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	if got, err := x.readMessage(lines); err == nil {
		t.Errorf("after the end: %q", got)
	}
	if editor.TrimBlock(":::\na\nb\n:::") != "a\nb" {
		t.Error("the marks of a block are part of the message")
	}
}

// The output of a command and a file are for the next message only.
func TestAttachments(t *testing.T) {
	x := newStage(t, map[string]string{"a b.txt": "content"})
	t.Setenv("SHELL", "sh")
	x.expect("/file", "/file: the path is missing", "")
	x.expect(`/file "a b.txt"`, "", "Your next message gets "+attach.Mark)
	x.expect("/file `printf '%s' out`", "", "Your next message gets the output of printf")
	if x.expect("/file missing.txt", x.errorOf("/file missing.txt"), ""); len(x.attached.texts) != 2 {
		t.Errorf("%q", x.attached.texts)
	}
	x.sends("look")
	x.sends("again")
	got := x.asked()[0]
	if !strings.Contains(got, "content") || !strings.Contains(got, "```\nout\n```") || !strings.HasSuffix(got, "look") {
		t.Errorf("the model got %q", got)
	}
	if x.asked()[1] != "again" {
		t.Errorf("the next message is %q", x.asked()[1])
	}
	files := walkFiles(t.Context(), x.Process.Dirs.Work)
	if !slices.Contains(files, "a b.txt") || slices.Contains(files, "home/.config/raddle/config.yaml") {
		t.Errorf("files %q", files)
	}
}
