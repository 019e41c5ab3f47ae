//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Commands of the person, macros of the reference and roles work in a conversation; a command of the project asks first.
func TestChatOwnCommands(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	w.write(".config/raddle/commands/fix.md", "---\ndescription: Fixes something\n---\nFix $1 now")
	w.write(".config/raddle/macros/commit.yaml", "variables: [{name: how}]\nsteps: ['.file `echo a diff` -- message for {{how}}', second step]\n")
	w.write(".config/raddle/macros/broken.yaml", "steps: [.nosuch, never sent]\n")
	w.write(".config/raddle/macros/loop.yaml", "steps: [.loop]\n")
	w.write(".config/raddle/roles/poet.md", "Write verse.")
	w.write(".raddle/commands/deploy.md", "Deploy \x1b[2Jit")
	s := w.chat(100, "chat", "./helper")
	s.shows(100, chatPrompt)
	s.press("/fix it", enter)
	s.shows(100, "heard: Fix it now")
	s.press("/help fix", enter)
	s.shows(100, "Fixes something")
	s.press(".commit us", enter)
	s.shows(100, "heard: second step")
	s.press("/commit", enter)
	s.shows(100, "how is missing")
	s.press("\x15.macro broken", enter)
	s.shows(100, "a step with the command .nosuch")
	s.shows(100, "Left out: never sent")
	s.press("/loop", enter)
	s.shows(100, "a step of a macro cannot run the macro loop")
	s.press("\x15/deploy", enter)
	s.shows(100, "This command comes with the project")
	s.answer(enter)
	s.shows(100, "/deploy was not run")
	s.press("\x15/role poet a line", enter)
	s.shows(100, "heard: a line")
	s.leave()
	all := strings.Join(m.requests(), "\n")
	for _, want := range []string{"a diff", "message for us", "Write verse."} {
		if !strings.Contains(all, want) {
			t.Errorf("%q was not sent", want)
		}
	}
	if strings.Contains(all, "Deploy") {
		t.Error("a command of the project was sent without consent")
	}
}

// On a terminal the whole command is shown before it runs, and only a key that is pressed afterwards runs it.
func TestShellCommandOnATerminal(t *testing.T) {
	m := startChatModel(t)
	w := m.workplace()
	s := w.chat(100, "-e", "say ```\necho ran-$((40+2)) >out.txt\n```\nWrites a file")
	s.press(enter) // it is pressed before the command is there
	s.shows(100, "echo ran-$((40+2)) >out.txt")
	s.shows(100, "Writes a file")
	s.answer(enter)
	s.ends(0, "")
	if text, err := os.ReadFile(filepath.Join(w.dir, "out.txt")); string(text) != "ran-42\n" {
		t.Errorf("the command has written %q, %v", text, err)
	}
}
