//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// inboxAgents ask: one a question with options, one two questions at the same time.
const inboxAgents = `
-- ask/graph.yaml --
name: ask
start: review
nodes:
  review: {type: approval, question: "Send it?", options: [yes, no], routes: {yes: sent, no: refused}, on_other: sent}
  sent: {type: end, output: "RESULT=sent"}
  refused: {type: end, output: "RESULT=refused", exit_code: 70}
-- both/graph.yaml --
name: both
start: fork
nodes:
  fork: {type: script, script: fork.sh, next: [a, b]}
  a: {type: script, script: fork.sh, state_updates: {}, next: left}
  b: {type: script, script: fork.sh, state_updates: {}, next: right}
  left: {type: input, question: Left?, state_updates: {l: "{{input}}"}, next: join}
  right: {type: input, question: Right?, state_updates: {r: "{{input}}"}, next: join}
  join: {type: script, script: fork.sh, next: done}
  done: {type: end, output: "RESULT={{l}} {{r}}"}
-- both/fork.sh --
echo '{}'
`

// newInbox starts runs that wait for answers.
func newInbox(t *testing.T, agents ...string) *workplace {
	t.Helper()
	w := newWorkplace(t, inboxAgents)
	for _, a := range agents {
		if cmd := w.command("run", "-q", a); cmd.Run() == nil || cmd.ProcessState.ExitCode() != 5 {
			t.Fatalf("run %s: %v", a, cmd.ProcessState)
		}
	}
	return w
}

// listed returns the output of a command that reads runs.
func (w *workplace) listed(args ...string) string {
	w.t.Helper()
	out, err := w.command(args...).Output()
	if err != nil {
		w.t.Fatalf("%v: %v", args, err)
	}
	return string(out)
}

// The inbox asks one run after the other, and each continues after its answers. A question that
// is left open stays open.
func TestInbox(t *testing.T) {
	w := newInbox(t, "./ask", "./both", "./ask")
	s := w.screen(nil, "inbox")
	s.await("(1/3) run ")
	s.answer(enter)
	s.await("RESULT=sent")
	s.await("(2/3) run ")
	s.await("Left?")
	s.answer(esc)
	s.await("Right?")
	s.answer("R", enter)
	s.await("(3/3) run ")
	s.answer(enter)
	s.ends(0, "")
	if got := w.listed("inbox", "--output", "json"); strings.Count(got, `"question":`) != 1 || !strings.Contains(got, `"id":"left"`) {
		t.Errorf("open questions: %s", got)
	}
	s = w.screen(nil, "inbox")
	s.await("Left?")
	s.answer("L", enter)
	s.ends(0, "RESULT=L R")
}

// Ctrl-C ends the inbox; the exit code of a run that does not end well is that of the command.
func TestInboxEnds(t *testing.T) {
	w := newInbox(t, "./ask", "./ask")
	s := w.screen(nil, "inbox")
	s.await("Send it?")
	s.answer(ctrlC)
	s.ends(130, "")
	if all := s.seen.String(); strings.Contains(all, "(2/2)") {
		t.Errorf("the second run was asked after Ctrl-C:\n%s", all)
	}
	s = w.screen(nil, "answer")
	s.answer(down, enter)
	s.await("RESULT=refused")
	s.await("(2/2)")
	s.answer(enter)
	s.ends(70, "RESULT=sent")
}

// With --no-resume, the inbox records answers, and resume continues with them. Questions without
// an answer stay in the inbox.
func TestInboxRecords(t *testing.T) {
	w := newInbox(t, "./ask", "./both")
	s := w.screen(nil, "inbox", "--no-resume")
	s.answer(enter)
	s.await("1 answer of run ")
	s.await("Left?")
	s.answer("L", enter)
	s.await("Right?")
	s.answer(esc)
	s.ends(0, "1 answer of run ")
	if all := s.seen.String(); strings.Contains(all, "RESULT") {
		t.Errorf("a run continued:\n%s", all)
	}
	if got := w.listed("inbox", "--output", "json"); strings.Count(got, `"question":`) != 1 || !strings.Contains(got, `"id":"right"`) {
		t.Errorf("open questions: %s", got)
	}
	if got := w.listed("resume", "-q", "last~1"); got != "RESULT=sent\n" {
		t.Errorf("the first run returned %q", got)
	}
	if got := w.listed("resume", "-q", "last", "--answer", "R"); got != "RESULT=L R\n" {
		t.Errorf("the second run returned %q", got)
	}
}

// A question that another terminal shows can be answered in the inbox, and with resume: that terminal continues.
func TestInboxOfADrivenRun(t *testing.T) {
	for name, answer := range map[string]func(w *workplace){
		"inbox": func(w *workplace) {
			s := w.screen(nil, "inbox")
			s.answer(enter)
			s.ends(0, "the process that drives it continues")
		},
		"resume": func(w *workplace) {
			w.screen(nil, "resume", "last", "--answer", "yes").ends(0, "the process that drives it continues")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newInbox(t, "./ask")
			other := w.screen(nil, "resume", "last")
			other.await("answer later")
			if got := w.listed("inbox", "--output", "json"); !strings.Contains(got, `"status":"running"`) || !strings.Contains(got, `"resume":null`) {
				t.Errorf("the inbox lists %s", got)
			}
			answer(w)
			other.await("answered elsewhere")
			other.ends(0, "RESULT=sent")
		})
	}
}
