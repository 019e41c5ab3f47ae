//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"raddle.dev/internal/testkit/termtest"
	"raddle.dev/internal/testkit/testneed"
)

// asking is a question with options, one for a text, and their answers.
const asking = `
-- ask/graph.yaml --
name: ask
start: review
nodes:
  review:
    type: approval
    question: Send it to the printer?
    options: [yes, no, later]
    routes: {yes: name, no: done, later: done}
    on_other: name
    state_updates: {said: "{{choice}}"}
  name:
    type: input
    question: Who signs?
    default: Bob
    state_updates: {who: "{{input}}"}
    next: done
  done: {type: end, output: "RESULT={{said}}/{{who}}."}
`

const (
	up    = "\x1b[A"
	down  = "\x1b[B"
	enter = "\r"
	esc   = "\x1b"
	ctrlC = "\x03"
)

// columns is the width of the terminal.
const columns = 100

// A screen is a process on a terminal.
type screen struct {
	t    *testing.T
	cmd  *exec.Cmd
	tty  *os.File
	seen *console
	at   int // how far the test has read
}

func (w *workplace) screen(env []string, args ...string) *screen {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, env...)
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: columns})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &screen{t: w.t, cmd: cmd, tty: tty, seen: newConsole()}
	go func() { _, _ = io.Copy(s.seen, tty) }() // until the process closes its side
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	return s
}

// await waits for a text that the process writes, or that its terminal shows.
func (s *screen) await(text string) {
	s.t.Helper()
	s.seen.until(s.t, text, func(all string) bool {
		shown := termtest.Render(columns, all)
		return strings.Contains(all, text) || strings.Contains(shown, text) || strings.Contains(joinWords(shown), joinWords(text))
	})
	if at := strings.LastIndex(s.seen.String(), text); at >= 0 {
		s.at = at + len(text)
	}
}

// joinWords returns a text in one line: lines for people are broken between words, wherever the edge of a screen is.
func joinWords(text string) string { return strings.Join(strings.Fields(text), " ") }

// awaitNext waits for a text after what the test has read.
func (s *screen) awaitNext(text string) {
	s.t.Helper()
	s.seen.until(s.t, text, func(all string) bool { return strings.Contains(all[s.at:], text) })
	s.at = len(s.seen.String())
}

// answer presses keys as soon as the question on the screen accepts them.
func (s *screen) answer(keys ...string) {
	s.t.Helper()
	const hint = "Esc: "
	s.awaitNext(hint)
	s.press(keys...)
}

func (s *screen) press(keys ...string) {
	s.t.Helper()
	for _, k := range keys {
		if _, err := s.tty.WriteString(k); err != nil {
			s.t.Fatal(err)
		}
	}
}

// ends waits for the end of the process.
func (s *screen) ends(code int, output string) {
	s.t.Helper()
	if got := wait(s.t, s.cmd); got != code {
		s.t.Errorf("exit code %d, want %d\n%s", got, code, s.seen)
	}
	if output != "" {
		s.await(output)
	}
}

func TestPrompts(t *testing.T) {
	w := newWorkplace(t, asking)
	tests := map[string]struct {
		env  []string
		keys func(s *screen)
		want string
	}{
		"the first option is chosen": {keys: func(s *screen) {
			s.await("later")
			s.answer(enter)
			s.await("Your answer:")
			s.answer("Zoë", enter)
		}, want: "RESULT=yes/Zoë."},
		"arrow keys choose": {keys: func(s *screen) {
			s.await("later")
			s.answer(down, down, enter)
		}, want: "RESULT=later/."},
		"another answer, and the default": {keys: func(s *screen) {
			s.await("Other…")
			s.answer(down, down, down, enter)
			s.await("Your answer:")
			s.answer("maybe", enter)
			s.await("Who signs?")
			s.answer(enter)
		}, want: "RESULT=maybe/Bob."},
		"no colours": {env: []string{"NO_COLOR=1"}, keys: func(s *screen) {
			s.await("later")
			s.answer(down, enter)
		}, want: "RESULT=no/."},
		"a terminal that prints lines only": {env: []string{"TERM=dumb"}, keys: func(s *screen) {
			s.await("4) Other…")
			s.await("Number [1-4]: ")
			s.press("7\n")
			s.await("There is no option")
			s.press("4\n")
			s.await("Your answer: ")
			s.press("maybe\n")
			s.await("Who signs?")
			s.awaitNext("Your answer: ")
			s.press("Ann\n")
		}, want: "RESULT=maybe/Ann."},
		"lines: the option's own words": {env: []string{"TERM=dumb"}, keys: func(s *screen) {
			s.await("Number [1-4]: ")
			s.press("later\n")
		}, want: "RESULT=later/."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := (&workplace{t: t, program: w.program, dir: w.dir, env: w.env}).screen(test.env, "run", "./ask")
			s.await("Send it to the printer?")
			test.keys(s)
			s.ends(0, test.want)
			if dumb := len(test.env) > 0 && test.env[0] == "TERM=dumb"; dumb && strings.Contains(s.seen.String(), "\x1b") {
				t.Errorf("escapes on a terminal that has none: %q", s.seen)
			}
		})
	}
}

var resumeHint = regexp.MustCompile(`next: raddle resume ([0-9a-z]+) --answer TEXT`)

// Leaving a question open parks the run.
func TestLeavingAPromptParks(t *testing.T) {
	w := newWorkplace(t, asking)
	tests := map[string]struct {
		env   []string
		leave func(s *screen)
		code  int
	}{
		"esc":                 {leave: func(s *screen) { s.answer(esc) }, code: 5},
		"ctrl-c":              {leave: func(s *screen) { s.press(ctrlC) }, code: 5},
		"sigint":              {leave: func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGINT) }, code: 5},
		"sigterm":             {leave: func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGTERM) }, code: 143},
		"lines, end of input": {env: []string{"TERM=dumb"}, leave: func(s *screen) { s.press("\x04") }, code: 5},
		"lines, ctrl-c":       {env: []string{"TERM=dumb"}, leave: func(s *screen) { s.press(ctrlC) }, code: 5},
		"lines, sigterm":      {env: []string{"TERM=dumb"}, leave: func(s *screen) { _ = s.cmd.Process.Signal(syscall.SIGTERM) }, code: 143},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &workplace{t: t, program: w.program, dir: w.dir, env: w.env}
			s := w.screen(test.env, "run", "./ask")
			if test.env == nil {
				s.await("later")
			} else {
				s.await("Number [1-4]: ")
			}
			test.leave(s)
			s.ends(test.code, "next: raddle resume ")
			m := resumeHint.FindStringSubmatch(s.seen.String())
			if m == nil {
				t.Fatalf("no line to go on with:\n%s", s.seen)
			}
			// The person on the same terminal is asked when the run is resumed there.
			again := w.screen(nil, "resume", m[1])
			again.await("later")
			again.answer(down, enter)
			again.ends(0, "RESULT=no/.")
		})
	}
}

// A picture is not printed on a terminal.
func TestPNGOnATerminal(t *testing.T) {
	w := newWorkplace(t, asking)
	w.screen(nil, "graph", "./ask", "--format", "png").ends(2, "-o graph.png")
}

// TestOptionalTmux answers questions in another terminal program, and checks what that shows.
func TestOptionalTmux(t *testing.T) {
	testneed.RequirePrograms(t, "tmux")
	w := newWorkplace(t, asking)
	if err := os.Symlink(w.program, filepath.Join(w.dir, "raddle")); err != nil {
		t.Fatal(err)
	}
	tmux := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("tmux", append([]string{"-S", "socket", "-f", os.DevNull}, args...)...)
		cmd.Dir, cmd.Env = w.dir, append(w.env, "TERM=xterm-256color", "LANG=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	// The shell says when raddle is over: now and then tmux misses the end of its child.
	tmux("new-session", "-d", "-x", "80", "-y", "24", "./raddle run ./ask; echo over: $?; exec cat")
	t.Cleanup(func() { tmux("kill-server") })
	await := func(text string) string {
		t.Helper()
		deadline := time.Now().Add(patience)
		for {
			shown := tmux("capture-pane", "-p")
			if strings.Contains(shown, text) {
				return shown
			}
			if time.Now().After(deadline) {
				t.Fatalf("tmux never shows %q:\n%s", text, shown)
			}
			time.Sleep(20 * time.Millisecond) // tmux does not report when its screen changes
		}
	}
	await("later")
	time.Sleep(time.Second / 2) // keys in the first moments of a question are ignored
	tmux("send-keys", "Down", "Down", "Down", "Enter")
	await("Your answer:")
	time.Sleep(time.Second / 2)
	tmux("send-keys", "-l", "möglich 日本")
	tmux("send-keys", "Enter")
	await("Who signs?")
	time.Sleep(time.Second / 2)
	tmux("send-keys", "Enter")
	shown := await("over: 0")
	if !strings.Contains(shown, "RESULT=möglich 日本/Bob.") {
		t.Errorf("the screen shows\n%s", shown)
	}
}

// TestBuildOnATerminal expects one live line instead of a line for each document, and nothing of it in the end.
func TestBuildOnATerminal(t *testing.T) {
	s := newEmbeddings(t)
	w := s.shelf(t, "docs")
	const documents = 100
	for i := range documents {
		w.write(fmt.Sprintf("agent/docs/%03d.md", i), fmt.Sprintf("Document %d.", i))
	}
	w.write("agent/docs/broken.pdf", "no")
	reached, goOn, asked := make(chan struct{}), make(chan struct{}), atomic.Int32{}
	s.set(func(http.ResponseWriter, *http.Request) bool {
		if asked.Add(1) == 9 { // the last batches, when the others are there
			close(reached)
			<-goOn
		}
		return false
	})
	screen := w.screen(nil, "rag", "build", "./agent")
	<-reached
	screen.await("… find: ")
	screen.await(" of 101 documents")
	close(goOn)
	screen.ends(0, "Saved RAG")
	out := screen.seen.String()
	if strings.Contains(out, "Load ") || !strings.Contains(out, "broken.pdf: a broken PDF") {
		t.Errorf("output\n%q", out)
	}
	if draws := strings.Count(out, "… find: "); draws > 2*documents/3 {
		t.Errorf("%d redraws\n%q", draws, out)
	}
	if i := strings.LastIndex(out, "… find: "); !strings.Contains(out[i:], "\r\x1b[J") {
		t.Errorf("the line stays\n%q", out[i:])
	}
}
