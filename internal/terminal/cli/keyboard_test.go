//go:build linux

package cli_test

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"raddle.dev/internal/testkit/termtest"
	"raddle.dev/internal/testkit/testneed"
)

// A mode is how a terminal treats what is typed.
type mode struct{ echo, lines, signals bool }

var (
	cooked = mode{echo: true, lines: true, signals: true}
	quiet  = mode{signals: true} // while a run works
)

func (s *screen) mode() mode {
	s.t.Helper()
	m, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		s.t.Fatal(err)
	}
	return mode{echo: m.Lflag&unix.ECHO != 0, lines: m.Lflag&unix.ICANON != 0, signals: m.Lflag&unix.ISIG != 0}
}

// turns waits until the terminal is in a mode.
func (s *screen) turns(want mode) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got := s.mode()
		if got == want {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("the terminal's mode is %+v, want %+v\n%s", got, want, s.seen)
		}
	}
}

// typeAhead writes keys, and waits until the terminal has received them.
func (s *screen) typeAhead(keys string) {
	s.t.Helper()
	s.press(keys)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		n, err := unix.IoctlGetInt(int(s.slave().Fd()), unix.TIOCINQ)
		if err == nil && n >= len(keys) {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%d of %d keys arrived (%v)\n%s", n, len(keys), err, s.seen)
		}
	}
}

// slave opens the side of the terminal that programs use.
func (s *screen) slave() *os.File {
	s.t.Helper()
	name, err := os.Readlink("/proc/" + itoa(s.cmd.Process.Pid) + "/fd/0")
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = f.Close() })
	return f
}

const keysAhead = "\n\rjj\x1b[B y\nzzz\n"

// asksLater is a step that waits at a gate, and a question of each kind after it.
const asksLater = `
-- choose/graph.yaml --
name: choose
start: wait
nodes:
  wait: {type: script, script: wait.sh, next: ask, timeout: 100}
  ask: {type: approval, question: Deploy?, options: ["no", "yes"], routes: {"no": done, "yes": done}, on_other: done, state_updates: {said: "{{choice}}"}}
  done: {type: end, output: "RESULT={{said}}."}
-- input/graph.yaml --
name: input
start: wait
nodes:
  wait: {type: script, script: wait.sh, next: ask, timeout: 100}
  ask: {type: input, question: A note?, default: none, state_updates: {said: "{{input}}"}, next: done}
  done: {type: end, output: "RESULT={{said}}."}
-- choose/wait.sh --
cat "$RADDLE_WORKSPACE/gate" >/dev/null
echo '{}'
-- input/wait.sh --
cat "$RADDLE_WORKSPACE/gate" >/dev/null
echo '{}'
-- here/empty.txt --
-- agent/config.yaml --
name: agent
model: script:transcript.yaml
inject_user_instructions: false
global_tools: [fs_write]
-- agent/tools.sh --
# @cmd Waits.
# raddle: read-only
hold() { cat gate >/dev/null; echo held >> "$LLM_OUTPUT"; }
-- agent/transcript.yaml --
- {match: write, turn: 1, tool_calls: [{name: hold, args: {}}]}
- {match: write, turn: 2, tool_calls: [{name: fs_write, args: {path: ../outside.txt, contents: "hello\n"}}]}
- {match: write, turn: 3, text: RESULT=over.}
- {match: several, turn: 1, tool_calls: [{name: hold, args: {}}]}
- {match: several, turn: 2, tool_calls: [{name: user__checkbox, args: {question: "Extras?", options: [bow, card]}}]}
- {match: several, turn: 3, text: RESULT=over.}
- {match: confirm, turn: 1, tool_calls: [{name: hold, args: {}}]}
- {match: confirm, turn: 2, tool_calls: [{name: user__confirm, args: {question: "Sure?"}}]}
- {match: confirm, turn: 3, text: RESULT=over.}
- {match: words, turn: 1, tool_calls: [{name: hold, args: {}}]}
- {match: words, turn: 2, tool_calls: [{name: user__input, args: {question: "Which words?"}}]}
- {match: words, turn: 3, text: RESULT=over.}
`

// What is typed while a step runs answers no question, moves no selection and is not echoed. Enter then gives the preselected answer.
func TestKeysTypedAhead(t *testing.T) {
	needBash(t)
	tests := map[string]struct {
		args     []string
		question string
		line     string // the prompt of a terminal that can only print lines
		lineKeys string // and the answer there
		want     string // in the output of runs show
	}{
		"approval":   {[]string{"./choose"}, "Deploy?", "Number [1-3]: ", "1\n", "RESULT=no."},
		"input":      {[]string{"./input"}, "A note?", "Your answer: ", "\n", "RESULT=none."},
		"permission": {[]string{"./agent", "write"}, "+hello", "Number [1-", "no\n", "the user does not want this call of fs_write"},
		"several":    {[]string{"./agent", "several"}, "Extras?", "Numbers [1-", "\n", `{"answers":[]}`},
		"confirm":    {[]string{"./agent", "confirm"}, "Sure?", "Number [1-2]: ", "\n", `{"answer":"yes"}`},
		"words":      {[]string{"./agent", "words"}, "Which words?", "Your answer: ", "mine\n", `{"answer":"mine"}`},
	}
	for name, test := range tests {
		for _, dumb := range []bool{false, true} {
			t.Run(map[bool]string{false: "form ", true: "lines "}[dumb]+name, func(t *testing.T) {
				t.Parallel()
				w := newWorkplace(t, asksLater)
				w.dir += "/here"
				g := w.gate("gate")
				env := []string{"TERM=xterm-256color"}
				if dumb {
					env = []string{"TERM=dumb"}
				}
				args := append([]string{"run", "." + test.args[0]}, test.args[1:]...)
				s := w.screen(env, args...)
				pass := g.arrive()
				s.turns(quiet)
				s.typeAhead(keysAhead)
				pass()
				s.await(test.question)
				if dumb {
					s.await(test.line)
					s.press(test.lineKeys)
				} else {
					keys := "\n"  // a line feed is Enter, and moves nothing
					switch name { // in a text it adds a line
					case "words":
						keys = "mine\r"
					case "input":
						keys = "\r"
					}
					s.answer(keys)
				}
				s.ends(0, "RESULT=")
				if shown := w.run("runs", "show", w.runs()[0].Run).out; !strings.Contains(shown, test.want) {
					t.Errorf("the run lacks %q:\n%s\n%s", test.want, shown, s.seen)
				}
				if strings.Contains(s.seen.String(), "zzz") {
					t.Errorf("the keys are echoed: %q", s.seen)
				}
				if got := s.mode(); got != cooked {
					t.Errorf("the terminal is left in mode %+v", got)
				}
			})
		}
	}
}

// After any end of a process, the terminal is in its own mode.
func TestModeIsRestored(t *testing.T) {
	needBash(t)
	kill := func(signals ...syscall.Signal) func(s *screen, pass func()) {
		return func(s *screen, _ func()) {
			for _, sig := range signals {
				if err := s.cmd.Process.Signal(sig); err != nil {
					s.t.Fatal(err)
				}
				if sig == syscall.SIGINT {
					s.await("Press Ctrl-C again")
				}
			}
		}
	}
	tests := map[string]struct {
		end  func(s *screen, pass func())
		code int
	}{
		"done":   {func(_ *screen, pass func()) { pass() }, 0},
		"ctrl-c": {func(s *screen, pass func()) { s.press(ctrlC); s.await("Press Ctrl-C again to stop now."); pass() }, 130},
		"cut":    {func(s *screen, _ func()) { s.press(ctrlC); s.await("to stop now."); s.press(ctrlC) }, 130},
		"quit": {func(s *screen, _ func()) {
			s.press(ctrlC)
			s.await("to stop now.")
			s.press(ctrlC)
			s.await("to quit at once.")
			s.press(ctrlC)
		}, 130},
		"ctrl-\\": {func(s *screen, _ func()) { s.press("\x1c") }, 131},
		"SIGTERM": {func(s *screen, pass func()) {
			kill(syscall.SIGTERM)(s, nil)
			s.await("Stopping after this step.")
			pass()
		}, 143},
		"SIGHUP": {func(s *screen, pass func()) {
			kill(syscall.SIGHUP)(s, nil)
			s.await("Stopping after this step.")
			pass()
		}, 129},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archive := gated
			if name == "quit" {
				archive = strings.Replace(gated, "cat ", "trap '' TERM\ncat ", 1)
			}
			w := newWorkplace(t, archive)
			g := w.gate("gate")
			s := w.screen([]string{"TERM=xterm-256color"}, "run", "./slow")
			pass := g.arrive()
			s.turns(quiet)
			test.end(s, pass)
			if got := wait(t, s.cmd); got != test.code {
				t.Errorf("exit code %d, want %d\n%s", got, test.code, s.seen)
			}
			if got := s.mode(); got != cooked {
				t.Errorf("the terminal is left in mode %+v\n%s", got, s.seen)
			}
			if name != "done" && name != "cut" && name != "ctrl-c" {
				pass()
			}
		})
	}
}

// In a pipeline another program may read the keyboard: raddle does not change its mode.
func TestPipelineKeepsTheMode(t *testing.T) {
	needBash(t)
	w := newWorkplace(t, gated)
	g := w.gate("gate")
	cmd := w.command("run", "./slow")
	r, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer out.Close()
	master, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	defer tty.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, out, tty
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, cmd: cmd, tty: master, seen: newConsole()}
	pass := g.arrive()
	if got := s.mode(); got != cooked {
		t.Errorf("mode %+v", got)
	}
	pass()
	wait(t, cmd)
}

// In a shell: Ctrl-Z gives the shell its terminal, fg takes it again; a run in the background is not stopped because of the terminal;
// and after a kill -9 the shell restores the mode itself.
func TestJobControl(t *testing.T) {
	w := newWorkplace(t, strings.Replace(gated, "cat ", "echo $PPID > \"$RADDLE_WORKSPACE/pid\"\ncat ", 1))
	g := w.gate("gate")
	s := w.underShell()
	// The shell's own mode while it reads a line is raw: what counts is what its children get.
	ask := func(want string) {
		t.Helper()
		s.at = len(s.seen.String())
		s.press("stty -a | tr ' ' '\\n' | grep -xE -- '-?(echo|icanon);?' | tr -d ';\\n'; echo \" =$((6*7))=\"\n")
		s.awaitNext("=42=")
		if all := s.seen.String(); !strings.Contains(all[strings.LastIndex(all[:strings.LastIndex(all, "=42=")], "\n"):], want+" =42=") {
			t.Errorf("want the mode %s:\n%s", want, all)
		}
	}
	ask("icanonecho")
	s.press("bash raddle.sh run ./slow\n")
	pass := g.arrive()
	s.turns(quiet)
	s.press("\x1a")
	s.await("Stopped")
	ask("icanonecho")
	s.press("fg\n")
	s.turns(quiet)
	s.await("… a")
	pass()
	s.await("a ran 1 times")
	ask("icanonecho")

	s.press("rm log; bash raddle.sh run ./slow &\n")
	pass = g.arrive()
	s.press("jobs; echo =$((40+3))=\n")
	s.await("=43=")
	if all := s.seen.String(); !strings.Contains(all, "Running") || strings.Count(all, "Stopped") != 1 {
		t.Errorf("the run in the background is not running:\n%s", all)
	}
	pass()
	s.press("wait; echo =$((40+4))=\n")
	s.await("=44=")
	ask("icanonecho")

	s.press("rm log; bash raddle.sh run ./slow\n")
	pass = g.arrive()
	s.turns(quiet)
	s.at = len(s.seen.String())
	pid, err := strconv.Atoi(strings.TrimSpace(w.read("pid")))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.awaitNext("Killed")
	pass()
	ask("icanonecho")
	s.press("exit\n")
	wait(t, s.cmd)
}

// underShell returns a shell with job control on a terminal, in which "bash raddle.sh" is raddle.
func (w *workplace) underShell() *screen {
	w.t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		w.t.Skip("no bash to start jobs with")
	}
	// A shell cannot run the test binary under another name: this script does.
	w.write("raddle.sh", "exec -a raddle '"+w.command().Path+"' \"$@\"\n")
	cmd := exec.Command(bash, "--norc", "--noprofile", "-i")
	cmd.Dir, cmd.Env = w.dir, append(w.env, "TERM=xterm-256color", "PS1=ready> ", "HISTFILE=", "BASH_SILENCE_DEPRECATION_WARNING=1")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	s := &screen{t: w.t, cmd: cmd, tty: tty, seen: newConsole()}
	go func() { _, _ = io.Copy(s.seen, tty) }()
	w.t.Cleanup(func() { _ = cmd.Process.Kill(); _, _ = cmd.Process.Wait(); _ = tty.Close() })
	return s
}

// A terminal that reports neither columns nor rows shows a question, once.
func TestTerminalWithoutSize(t *testing.T) {
	w := newWorkplace(t, asking)
	cmd := w.command("run", "./ask")
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, cmd: cmd, tty: tty, seen: newConsole()}
	go func() { _, _ = io.Copy(s.seen, tty) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	s.await("later")
	s.answer(down, down, enter)
	s.ends(0, "RESULT=later/.")
	if n := len(s.seen.String()); n > 4000 {
		t.Errorf("%d bytes for one question", n)
	}
}

// The first Ctrl-C interrupts the reply of an agent, and the next lines are below it.
func TestCtrlCCutsAReply(t *testing.T) {
	p := serveHeld(t, midReply, "never told", "all is well")
	w := p.workplace()
	s := w.screen([]string{"TERM=xterm-256color"}, "run", "./stop", "go")
	<-p.here
	s.await("ne")
	s.turns(quiet)
	s.press(ctrlC)
	s.ends(130, "is saved")
	run := w.runs()[0].Run
	shown := termtest.Render(100, s.seen.String())
	if !strings.Contains(shown, "\nne\nraddle: run "+run+" was stopped, and is saved\nnext: raddle resume "+run) {
		t.Errorf("the screen is\n%s", shown)
	}
	if r := w.run("resume", "-q", run); r.code != 0 || r.out != "all is well\n" {
		t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
}

// An agent whose script asks which file it is for, in Python and in bash, and a model that shows what it was given.
const askingScripts = `
-- words/genson.py --
class SchemaBuilder:
    def add_object(self, value):
        self.kind = type(value).__name__
    def to_schema(self):
        return {"type": self.kind}
-- python/config.yaml --
name: python
model: script:../words/t.yaml
dynamic_instructions: true
-- python/tools.py --
import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "words"))
from genson import SchemaBuilder


def _instructions():
    """Makes the instructions."""
    value = input("Which JSON? ").strip()
    if not value:
        raise SystemExit("Name a file.")
    text = Path(value).read_text(encoding="utf-8")
    builder = SchemaBuilder()
    builder.add_object(json.loads(text))
    return f"You filter JSON.\nfile: {value}\nschema: {json.dumps(builder.to_schema())}\n"
-- bash/config.yaml --
name: bash
model: script:../words/t.yaml
dynamic_instructions: true
-- bash/tools.sh --
#!/usr/bin/env bash
set -e
# @meta require-tools cat
# @env LLM_OUTPUT=/dev/stdout The output path

# @cmd Makes the instructions
_instructions() {
  read -r -p "Which JSON? " value
  if [[ -z "${value}" ]]; then
    echo "Name a file." >&2
    exit 1
  fi
  copy="$(mktemp)"
  tidy() {
    [[ -n "" ]] && echo never
  }
  trap tidy EXIT # it ends with a false condition
  cat "${value}" >"${copy}"
  cat <<END >>"$LLM_OUTPUT"
You filter JSON.
file: ${value}
schema: $(head -c 1 "${copy}")
END
}
-- words/t.yaml --
- {match: ["You filter JSON", "file: data.json"], text: The answer is 42., repeat: true}
- {text: "I was not told what to do.", repeat: true}
-- lead/graph.yaml --
name: lead
start: child
nodes:
  child: {type: agent, agent: kid, prompt: go, next: done}
  done: {type: end, output: done}
-- data.json --
{"a": 1}
`

func askingPlace(t *testing.T) *workplace {
	testneed.RequirePrograms(t, "bash", "python3")
	w := newWorkplace(t, askingScripts)
	for _, file := range []string{"config.yaml", "tools.sh"} {
		w.write(".config/raddle/agents/kid/"+file, strings.ReplaceAll(w.read("bash/"+file), "../words", w.dir+"/words"))
	}
	return w
}

func TestScriptAsksOnATerminal(t *testing.T) {
	w := askingPlace(t)
	for _, agent := range []string{"./python", "./bash"} {
		t.Run(agent, func(t *testing.T) {
			s := w.screen(nil, "run", agent, "how many?")
			s.await("Which JSON? ")
			s.press("data.json\n")
			s.ends(0, "The answer is 42.")
		})
	}
}

// Ctrl-C goes to the script alone, and must stop the run as well.
func TestCtrlCWhileAScriptAsks(t *testing.T) {
	w := askingPlace(t)
	for _, agent := range []string{"./python", "./bash"} {
		t.Run(agent, func(t *testing.T) {
			s := w.screen(nil, "run", agent, "how many?")
			s.await("Which JSON? ")
			defer s.pressAgain(ctrlC)()
			s.ends(130, "was stopped, and is saved")
			if all := s.seen.String(); strings.Contains(all, "Traceback") {
				t.Errorf("Ctrl-C is shown as a fault:\n%s", all)
			}
			again := w.screen(nil, "resume", w.runs()[0].Run)
			again.await("Which JSON? ")
			again.press("data.json\n")
			again.ends(0, "The answer is 42.")
		})
	}
}

// A run that ends while a script waits for a person does not wait for them.
func TestTerminatedWhileAScriptAsks(t *testing.T) {
	w := askingPlace(t)
	s := w.screen(nil, "run", "./bash", "how many?")
	s.await("Which JSON? ")
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends(143, "was stopped, and is saved")
}

func TestScriptHasNoPersonToAsk(t *testing.T) {
	w := askingPlace(t)
	for name, c := range map[string]struct {
		args []string
		why  string
	}{
		"python":            {[]string{"run", "./python", "how many?"}, "EOF when reading a line"},
		"bash":              {[]string{"run", "./bash", "how many?"}, "because the standard input of raddle is not a terminal"},
		"no person answers": {[]string{"run", "--headless", "./bash", "how many?"}, "because raddle was started with --headless"},
		"an agent's child":  {[]string{"run", "./lead", "how many?"}, "because another agent has started this one"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.run(c.args...)
			if r.code != 1 || !strings.Contains(r.err, c.why) || !strings.Contains(r.err, "its standard input was empty") {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("a child on a terminal", func(t *testing.T) {
		s := w.screen(nil, "run", "./lead", "how many?")
		s.ends(1, "because another agent has started this one")
	})
}

// Under a shell, Ctrl-Z stops the script and raddle, and the shell has its terminal; in the background both stay stopped.
func TestScriptIsSuspended(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux reports that a child was stopped
	}
	w := askingPlace(t)
	s := w.underShell()
	s.press("bash raddle.sh run ./bash how many\n")
	s.await("Which JSON? ")
	s.press("\x1a")
	s.await("Stopped")
	s.press("echo =$((40+3))=\n")
	s.await("=43=")
	s.press("bg; sleep 0.2; jobs; echo =$((40+4))=\n")
	s.await("=44=")
	s.press("fg\n")
	s.awaitNext("raddle.sh")
	s.press("data.json\n")
	s.await("The answer is 42.")
	s.press("echo =$((40+5))=\n")
	s.await("=45=")
	s.press("exit\n")
	wait(t, s.cmd)
}

// pressAgain presses a key until stop is called: Python misses a Ctrl-C between its prompt and its wait for a line.
func (s *screen) pressAgain(key string) (stop func()) {
	s.press(key)
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-end:
				return
			case <-time.After(2 * time.Second):
				_, _ = s.tty.WriteString(key)
			}
		}
	}()
	return func() { close(end); <-done }
}
