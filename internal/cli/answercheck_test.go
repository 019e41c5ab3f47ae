//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
)

// checkReport is a graph with a text with a rule, a question of a model, and an approval after it.
const checkReport = `
-- note/graph.yaml --
name: note
start: note
nodes:
  note: {type: input, question: Anything to add?, validation: "len(input) > 2", state_updates: {said: "{{input}}"}, next: ok}
  ok: {type: approval, question: Send it?, options: [yes, no], routes: {yes: done, no: done}, on_other: done, state_updates: {ok: "{{choice}}"}}
  done: {type: end, output: "RESULT={{said}}/{{ok}}."}
-- llm/graph.yaml --
name: llm
model: script:t.yaml
start: a
nodes:
  a: {type: llm, prompt: Which colour?, tools: [user__ask], state_updates: {said: "{{output}}"}, next: ok}
  ok: {type: approval, question: Send it?, options: [yes, no], routes: {yes: done, no: done}, on_other: done, state_updates: {ok: "{{choice}}"}}
  done: {type: end, output: "{{said}}/{{ok}}"}
-- llm/t.yaml --
- {match: Which colour, turn: 1, repeat: true, tool_calls: [{name: user__ask, args: {question: Which?, options: [red, blue]}}]}
- {match: Which colour, turn: 2, repeat: true, text: "{{outcome.-1}}"}
-- consent/graph.yaml --
name: consent
model: script:t.yaml
global_tools: [fs_write]
start: a
nodes:
  a: {type: llm, prompt: Write it, tools: [fs_write], state_updates: {said: "{{output}}"}, next: ok}
  ok: {type: approval, question: Send it?, options: [yes, no], routes: {yes: done, no: done}, on_other: done, state_updates: {ok: "{{choice}}"}}
  done: {type: end, output: "{{said}}/{{ok}}"}
-- consent/t.yaml --
- {match: Write it, turn: 1, repeat: true, tool_calls: [{name: fs_write, args: {path: ../outside.txt, content: x}}]}
- {match: Write it, turn: 2, repeat: true, text: "{{outcome.-1}}"}
`

const againPrompt = "Another answer: "

const fixedText = "at node 'note': Input failed validation 'len(input) > 2' (got 1 chars)"

// A wrong answer of the command line is exit code 2 and says why. The question stays
// open, no other question takes the answer, and the run continues with a right one.
func TestWrongAnswersOfTheCommandLine(t *testing.T) {
	for name, given := range map[string][]string{"bare": {"x", "yes"}, "named": {"note=x", "ok=yes"}} {
		w := newWorkplace(t, checkReport)
		r := w.run("run", "./note", "--answer", given[0], "--answer", given[1], "--output", "json")
		var report struct {
			Run, Status, Error, Resume string
			Exit                       int `json:"exit_code"`
			Questions                  []struct{ ID, Rejected string }
		}
		if err := json.Unmarshal([]byte(r.out), &report); err != nil {
			t.Fatal(err, r)
		}
		if r.code != 2 || report.Exit != 2 || report.Status != "waiting" || !strings.Contains(report.Error, fixedText) || len(report.Questions) != 1 || report.Questions[0].ID != "note" ||
			!strings.Contains(r.err, fixedText) || !strings.Contains(r.err, "next: raddle resume "+report.Run+" --answer TEXT\n") {
			t.Errorf("%s: %+v\n%s", name, report, r.err)
		}
		for _, wrong := range []string{"y", "note=y", "=y"} {
			if r := w.run("resume", "-q", report.Run, "--answer", wrong); r.code != 2 || !strings.Contains(r.err, fixedText) || r.out != "" {
				t.Errorf("%s, resumed with %s: exit code %d\n%s", name, wrong, r.code, r.err)
			}
		}
		if r := w.run("resume", "-q", report.Run, "--answer", "note=abc"); r.code != 0 || r.out != "RESULT=abc/yes.\n" {
			t.Errorf("%s, resumed: exit code %d, %q\n%s", name, r.code, r.out, r.err)
		}
	}
}

// On a terminal a wrong answer is asked for again, with the reason in plain words.
func TestWrongAnswersAtATerminal(t *testing.T) {
	for name, k := range map[string]struct {
		env          []string
		ready, again string
	}{
		"form":  {nil, "Enter is done", "yz"}, // it keeps the text
		"lines": {[]string{"TERM=dumb"}, "Your answer: ", "xyz"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newWorkplace(t, checkReport).screen(k.env, "run", "./note", "--answer", "ok=yes")
			s.await(k.ready)
			s.press("x", enter)
			s.await("Too short: at least 3 characters.")
			s.await(againPrompt)
			s.press(k.again, enter)
			s.ends(0, "RESULT=xyz/yes.")
		})
	}
}

// The first answer is asked for again if it was given ahead.
func TestWrongAnswersGivenAheadAtATerminal(t *testing.T) {
	s := newWorkplace(t, checkReport).screen(nil, "run", "./note", "--answer", "note=x", "--answer", "ok=yes")
	s.await("Too short: at least 3 characters.")
	s.await("Enter is done")
	s.press("xyz", enter)
	s.ends(0, "RESULT=xyz/yes.")
}

// An answer may name the node that a question arises in, the node inside it that
// asks, or both, when the run starts and when it continues.
func TestAnswersReachQuestionsInsideOfNodes(t *testing.T) {
	for _, id := range []string{"a", "a/act", "act"} {
		w := newWorkplace(t, checkReport)
		if r := w.run("run", "-q", "./llm", "--answer", "yes", "--answer", id+"=red"); r.code != 0 || r.out != `{"answer":"red"}/yes`+"\n" {
			t.Errorf("%s: exit code %d, %q\n%s", id, r.code, r.out, r.err)
		}
		if r := w.run("run", "-q", "./llm"); r.code != 5 {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
		var run string
		for _, r := range w.runs() {
			if r.Status == "waiting" {
				run = r.Run
			}
		}
		if r := w.run("resume", "-q", run, "--answer", "yes", "--answer", id+"=red"); r.code != 0 || r.out != `{"answer":"red"}/yes`+"\n" {
			t.Errorf("%s, resumed: exit code %d, %q\n%s", id, r.code, r.out, r.err)
		}
	}
	if r := newWorkplace(t, checkReport).run("run", "./llm", "--answer", "a/atc=red"); r.code != 2 || !strings.Contains(r.err, "did you mean a/act=red?") {
		t.Errorf("mistyped: exit code %d\n%s", r.code, r.err)
	}
}

// A question for consent takes a bare answer only if it is one of its options: an answer
// that was meant for a later question stays for that.
func TestBareAnswersAndConsent(t *testing.T) {
	w := newWorkplace(t, checkReport)
	r := w.run("run", "./consent", "--answer", "yes")
	if r.code != 5 || !strings.Contains(r.err, "a/act (fs_write) did not accept the answer yes: it must be one of once, ") || !strings.Contains(r.err, "(it is saved for later questions)") {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	run := w.runs()[0].Run
	if r := w.run("resume", "-q", run, "--answer", "Yes"); r.code != 2 || !strings.Contains(r.err, "it must be one of once, ") {
		t.Errorf("resumed: exit code %d\n%s", r.code, r.err)
	}
	if _, err := os.Stat(w.dir + "/../outside.txt"); err == nil {
		t.Error("the file was written")
	}
	if r := w.run("resume", "-q", run, "--answer", "a/act=not there"); r.code != 0 || !strings.Contains(r.out, "does not want this call of fs_write: not there") || !strings.HasSuffix(r.out, "/yes\n") {
		t.Errorf("refused: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
}

// "Do it again?" accepts retry and skip, and nothing else; --in-doubt and the
// configuration decide in advance.
func TestCallsInDoubt(t *testing.T) {
	needBash(t)
	cutOff := func(t *testing.T, annotation string) (*workplace, string) {
		w := serveHeld(t, notHeld, "hold", "all is well").workplace()
		w.write("stop/tools.sh", "# @cmd Does something once.\n"+annotation+"hold() {\n  echo held >> log\n  if ! test -e again; then touch again; cat gate >/dev/null; fi\n  echo done >> \"$LLM_OUTPUT\"\n}\n")
		g := w.gate("gate")
		cmd, c := w.begin("run", "./stop", "go")
		pass := g.arrive()
		w.send(cmd, syscall.SIGINT)
		c.await(t, "Ctrl-C again")
		w.send(cmd, syscall.SIGINT)
		if got := wait(t, cmd); got != 130 {
			t.Fatalf("exit code %d\n%s", got, c)
		}
		pass()
		return w, w.runs()[0].Run
	}
	for name, k := range map[string]struct {
		annotation, config string
		args               []string
		log                string
	}{
		"a flag, skip":              {args: []string{"--in-doubt", "skip"}, log: "held\n"},
		"a flag, retry":             {args: []string{"--in-doubt", "retry"}, log: "held\nheld\n"},
		"the tool":                  {annotation: "# raddle: in-doubt retry\n", log: "held\nheld\n"},
		"a flag against the tool":   {annotation: "# raddle: in-doubt retry\n", args: []string{"--in-doubt", "skip"}, log: "held\n"},
		"the configuration":         {config: "in_doubt: retry\n", log: "held\nheld\n"},
		"the tool, not the setting": {config: "in_doubt: retry\n", annotation: "# raddle: in-doubt skip\n", log: "held\n"},
	} {
		t.Run(name, func(t *testing.T) {
			w, run := cutOff(t, k.annotation)
			w.write(".config/raddle/config.yaml", k.config+w.read(".config/raddle/config.yaml"))
			r := w.run(append([]string{"resume", "-q", run}, k.args...)...)
			if r.code != 0 || r.out != "all is well\n" || w.read("log") != k.log {
				t.Errorf("exit code %d, %q, log %q\n%s", r.code, r.out, w.read("log"), r.err)
			}
		})
	}
	w, run := cutOff(t, "")
	if r := w.run("resume", run); r.code != 5 || !strings.Contains(r.err, "answers: retry, skip") || !strings.Contains(r.err, "# raddle: idempotent") || !strings.Contains(r.err, "--in-doubt") {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	for _, wrong := range []string{"retyr", "maybe", "act=yes", "Retry"} {
		if r := w.run("resume", "-q", run, "--answer", wrong); r.code != 2 || !strings.Contains(r.err, "it must be one of retry, skip") {
			t.Errorf("%s: exit code %d\n%s", wrong, r.code, r.err)
		}
	}
	if r := w.run("resume", "-q", run, "--in-doubt", "retyr"); r.code != 2 || !strings.Contains(r.err, "did you mean retry?") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if r := w.run("resume", "-q", run, "--in-doubt", "skip"); r.code != 0 || r.out != "all is well\n" || w.read("log") != "held\n" {
		t.Errorf("exit code %d, %q\n%s", r.code, r.out, r.err)
	}
}
