//go:build linux

package cli_test

import (
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testneed"
)

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

func TestScriptAsksNobody(t *testing.T) {
	w := askingPlace(t)
	for name, c := range map[string]struct {
		args []string
		why  string
	}{
		"python":           {[]string{"run", "./python", "how many?"}, "EOF when reading a line"},
		"bash":             {[]string{"run", "./bash", "how many?"}, "because the standard input of raddle is not a terminal"},
		"nobody answers":   {[]string{"run", "--headless", "./bash", "how many?"}, "because raddle was started with --headless"},
		"an agent's child": {[]string{"run", "./lead", "how many?"}, "because another agent has started this one"},
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
