//go:build unix

package cli_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/termtest"
	"raddle.dev/internal/testkit/testneed"
)

// atHome returns the variables of a new user whose only key is one for a model.
func atHome(m *chatModel) []string {
	return []string{"OPENAI_API_BASE=" + m.url + "/v1", "OPENAI_API_KEY=" + testKey, "OLLAMA_HOST=127.0.0.1:1", "SHELL=/bin/sh", "TERM=xterm-256color"}
}

// initAssistant sets raddle up with the model of a key and the assistant that comes with raddle, and fails the test if the setup does not say texts.
func initAssistant(w *workplace, texts ...string) {
	s := w.chat(columns, "init")
	s.await("Which model shall raddle use? (found: OPENAI_API_KEY)")
	s.answer(enter)
	awaitAll(s, append(texts, "Send one short request")...)
	s.answer(enter)
	s.await("Create a first agent")
	s.answer(down, enter)
	s.ends(0, "")
}

// The first hour of a new user, with the assistant that comes with raddle: the setup, a first question, a file that is changed with a
// diff, tests that the shell tool runs, a message that is taken back, the conversation after a restart, and a graph whose question
// is answered in place.
func TestFirstHour(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	m := startChatModel(t)
	w := newWorkplace(t, chatAgents)
	w.env = append(w.env, atHome(m)...)
	w.write("cart.sh", "total() {\n  echo $(( $1 * 2 ))\n}\n")
	w.write("test.sh", ". ./cart.sh\n[ \"$(total 2)\" = 6 ] && echo PASSED || echo FAILED\n")

	initAssistant(w)

	s := w.chat(columns)
	s.shows(columns, chatPrompt)
	s.shows(columns, "raddle · assistant")
	s.press("What is in cart.sh?", enter)
	s.shows(columns, "heard: What is in cart.sh?")
	s.idle()
	s.press(`call fs_read {"path":"cart.sh"}`, enter)
	s.shows(columns, "The tool said:")
	s.idle()

	s.press(`call fs_write {"path":"cart.sh","contents":"total() {\n  echo $(( $1 * 3 ))\n}\n"}`, enter)
	s.await("cart.sh")
	s.answer("1")
	s.shows(columns, "+   echo $(( $1 * 3 ))")
	s.idle()
	s.press(`call execute_command {"command":"bash test.sh"}`, enter)
	s.await("bash test.sh")
	s.answer("1")
	s.shows(columns, "    PASSED")
	s.idle()

	s.press("a message that was a mistake", enter)
	s.shows(columns, "heard: a message that was a mistake")
	s.idle()
	s.press("/undo", enter)
	s.shows(columns, "Took back 1 message")
	s.press("/name cart", enter)
	s.shows(columns, "raddle -s cart")
	s.leave()

	s = w.chat(columns, "-s", "cart")
	s.shows(columns, `Continuing "cart", 4 messages.`)
	s.press("/run ./asks a page", enter)
	s.await("Print a page?")
	s.answer(enter)
	s.shows(columns, "RESULT=yes")
	s.shows(columns, chatPrompt)
	s.press("Good. What did we do?", enter)
	s.shows(columns, "heard: Good. What did we do?")
	s.idle()
	shown := termtest.Render(columns, s.seen.String())
	s.leave()
	if strings.Contains(shown, "a mistake") {
		t.Errorf("what was taken back is shown:\n%s", shown)
	}
	all := m.requests()
	if last := all[len(all)-1]; strings.Contains(last, "a mistake") || !strings.Contains(last, "PASSED") {
		t.Errorf("the last request: %s", last)
	}
	if got, err := os.ReadFile(filepath.Join(w.dir, "cart.sh")); err != nil || !strings.Contains(string(got), "* 3") {
		t.Errorf("cart.sh: %q, %v", got, err)
	}
}

// recorded is the conversation of the recording.
const recorded = `
-- shop/cart.sh --
total() {
  echo $(( $1 * 2 ))
}
-- shop/test.sh --
. ./cart.sh
[ "$(total 2)" = 6 ] && echo "ok: total of 2" || { echo "FAILED: total of 2 is $(total 2), not 6"; exit 1; }
-- shop/talk.yaml --
- tool_calls:
    - {name: execute_command, args: {command: bash test.sh}}
    - {name: fs_read, args: {path: cart.sh}}
- text: |
    The test expects **6** for two items, and ` + "`total`" + ` in ` + "`cart.sh`" + ` multiplies by 2:

    | items | expected | is |
    |---|---|---|
    | 2 | 6 | 4 |

    The price is 3, so the factor must be 3. Shall I change it?
- tool_calls:
    - {name: fs_write, args: {path: cart.sh, contents: "total() {\n  echo $(( $1 * 3 ))\n}\n"}}
- tool_calls:
    - {name: execute_command, args: {command: bash test.sh}}
- text: "Done: ` + "`total`" + ` multiplies by 3, and the test passes."
`

// The recording in the README is what raddle shows. Run with UPDATE_SCREENS=1 to record it again.
func TestRecording(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := newWorkplace(t, recorded)
	w := &workplace{t: t, program: home.program, dir: filepath.Join(home.dir, "shop"), env: append(home.env, "TERM=xterm-256color", "HOME="+home.dir)}
	const cols, rows = 84, 26
	r := &termtest.Recording{Cols: cols, Rows: rows, Title: "A conversation with raddle: a test that fails, a change that asks first and is shown, and a message that is taken back"}
	cmd := w.command("chat", "--model", "script:"+filepath.Join(w.dir, "talk.yaml"))
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: rows, Cols: cols})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, cmd: cmd, tty: tty, seen: newConsole()}
	go func() { _, _ = io.Copy(s.seen, tty) }() // until the process closes its side
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	frame := func(seconds float64) {
		s.settle()
		text := changingText.ReplaceAllString(s.seen.String(), "0.1 s")
		r.AddFrame("$ raddle\r\n"+text, seconds)
	}
	write := func(text string) {
		half := len(text) / 2
		s.press(text[:half])
		frame(0.5)
		s.press(text[half:])
		frame(0.7)
		s.press(enter)
	}
	s.shows(cols, chatPrompt)
	frame(1.5)
	write("Why does test.sh fail?")
	s.answer()
	frame(2.5)
	s.press("1")
	s.shows(cols, "Shall I change it?")
	s.idleAt(cols)
	frame(4)
	write("Yes, and run the test.")
	s.answer()
	frame(3)
	s.press("1")
	s.shows(cols, "+   echo $(( $1 * 3 ))")
	s.answer()
	frame(2.5)
	s.press("1")
	s.shows(cols, "the test passes")
	s.idleAt(cols)
	frame(4)
	write("/undo")
	s.shows(cols, "Took back 1 message")
	frame(4)
	s.leave()
	path := filepath.Join("..", "..", "..", "docs", "chat.svg")
	got := r.SVG()
	if os.Getenv("UPDATE_SCREENS") != "" {
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
}
