//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/graph/journal"
	"raddle.dev/store/sqlite"
)

// asksToRun is an agent that wants to run a command, or to change a file outside of its workspace.
const asksToRun = `
-- here/build/a --
-- here/build/deep/b --
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
inject_user_instructions: false
global_tools: [execute_command, fs_write]
-- dev/transcript.yaml --
- {match: remove, turn: 1, tool_calls: [{name: execute_command, args: {command: "mkdir made && rm -rf build"}}]}
- {match: remove, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: make, turn: 1, tool_calls: [{name: execute_command, args: {command: "mkdir made"}}]}
- {match: make, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: write, turn: 1, tool_calls: [{name: fs_write, args: {path: ../outside.txt, contents: "hello\n"}}]}
- {match: write, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: push, turn: 1, tool_calls: [{name: execute_command, args: {command: "git push origin main"}}]}
- {match: push, turn: 2, tool_calls: [{name: execute_command, args: {command: "git push origin dev"}}]}
- {match: push, turn: 3, tool_calls: [{name: execute_command, args: {command: "git push --force"}}]}
- {match: push, turn: 4, text: "RESULT={{outcome.-1}}"}
- {match: hidden, turn: 1, tool_calls: [{name: execute_command, args: {command: "mkdir made \u001b[8m; touch hidden\u202e"}}]}
- {match: hidden, turn: 2, text: "RESULT={{outcome.-1}}"}
`

func newAsksToRun(t *testing.T) *workplace {
	t.Helper()
	needBash(t)
	w := newWorkplace(t, asksToRun)
	w.dir = filepath.Join(w.dir, "here")
	return w
}

func (w *workplace) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, name))
	return err == nil
}

// The box says who wants what, shows the command, and why each part asks. A command that may do harm can be allowed once only.
func TestPermissionBox(t *testing.T) {
	w := newAsksToRun(t)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "../dev", "remove it")
	s.await("answer later")
	for _, want := range []string{
		"┌ dev wants to run a command ──", "│   mkdir made && rm -rf build", "│ ! removes files permanently: build/ (2 files)",
		"│ mkdir made is not a command that raddle knows to only read", "│   1 Allow once", "> 2 No", "3 No, and say why", "e Edit the command", "? Explain why it asks",
	} {
		if !strings.Contains(s.seen.String(), want) {
			t.Errorf("%q is missing in\n%s", want, s.seen)
		}
	}
	if strings.Contains(s.seen.String(), "in this run") || strings.Contains(s.seen.String(), "Always") {
		t.Errorf("a dangerous command can be allowed for longer:\n%s", s.seen)
	}
	s.press("?")
	s.await("It may do harm that cannot be undone")
	s.await("decided by: no rule is about it; this is the default")
	s.awaitNext("Enter to choose")
	s.press("3")
	s.await("Reason: ")
	s.awaitNext("Esc: back")
	s.press("keep the build", enter)
	s.ends(0, "RESULT=")
	if !strings.Contains(s.seen.String(), "Reason: keep the build") || !strings.Contains(s.seen.String(), "does not want this call of execute_command: keep the build") {
		t.Errorf("the reason did not reach the model:\n%s", s.seen)
	}
	if !w.exists("build/a") || w.exists("made") {
		t.Error("the command ran")
	}
}

// A person can change the command; raddle decides about the new one, and the model reads what was changed.
func TestEditedCommand(t *testing.T) {
	for name, env := range map[string][]string{"form": {"TERM=xterm-256color", "NO_COLOR=1"}, "lines": {"TERM=dumb"}} {
		t.Run(name, func(t *testing.T) {
			w := newAsksToRun(t)
			s := w.screen(env, "run", "../dev", "remove it")
			if name == "lines" {
				s.await("Number [1-3 e ?]: ")
				s.press("edit\n")
				s.await("now: mkdir made && rm -rf build")
				s.await("command: ")
				s.press("mkdir other\n")
				s.await("dev wants to run a command (with your arguments)")
				s.await("  4) No\r\n  5) No, and say why\r\n  e) Edit the command")
				s.await("Number [1-5 e ?]: ")
				s.press("1\n")
			} else {
				s.await("answer later")
				s.press("e")
				s.await("command: mkdir made")
				s.awaitNext("Esc: back")
				s.press(strings.Repeat("\x7f", len("made && rm -rf build")), "other", enter)
				s.await("dev wants to run a command (with your arguments)")
				s.awaitNext("answer later")
				s.press("1")
			}
			s.ends(0, "RESULT=")
			if !w.exists("other") || w.exists("made") || !w.exists("build/a") {
				t.Errorf("another command ran\n%s", s.seen)
			}
			shown := w.run("runs", "show", w.runs()[0].Run).out
			if !strings.Contains(shown, `It was made with: {"command":"mkdir other"}`) {
				t.Errorf("the model does not read what was changed:\n%s", shown)
			}
		})
	}
}

// "Always" shows the rule. It can be made narrower; a wider one is refused, and asked for again.
func TestAlwaysShowsTheRule(t *testing.T) {
	w := newAsksToRun(t)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "../dev", "make it")
	s.await("answer later")
	s.press("3")
	s.await("Rule: execute_command(mkdir made)")
	s.awaitNext("Esc: back")
	s.press("\x7f\x7f\x7f\x7f\x7f*)", enter)
	s.await("may allow more than execute_command(mkdir made)")
	s.awaitNext("Esc: back")
	s.press(esc) // back to the choices
	s.awaitNext("Enter to choose")
	s.press("3")
	s.awaitNext("Rule: execute_command(mkdir made)")
	s.awaitNext("Esc: back")
	s.press(enter)
	s.ends(0, "RESULT=")
	rules := w.read("../.config/raddle/permissions.yaml")
	if !strings.Contains(rules, "execute_command(mkdir made)") || strings.Contains(rules, "*") || !w.exists("made") {
		t.Errorf("the rules are %q", rules)
	}
	if err := os.RemoveAll(filepath.Join(w.dir, "made")); err != nil {
		t.Fatal(err)
	}
	if r := w.run("run", "../dev", "make it"); r.code != 0 || !w.exists("made") {
		t.Errorf("the rule does not count: exit code %d\n%s", r.code, r.err)
	}
}

// The command line can give every answer.
func TestPermissionAnswersOfTheCommandLine(t *testing.T) {
	w := newAsksToRun(t)
	if r := w.run("run", "-q", "../dev", "remove it", "--answer", `act={"choice": "edit", "args": {"command": "ls"}}`); r.code != 0 || !strings.Contains(r.out, `It was made with: {"command":"ls"}`) || !w.exists("build/a") {
		t.Errorf("edit: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
	if r := w.run("run", "-q", "../dev", "make it", "--answer", `act={"choice": "always", "rules": ["execute_command"]}`); r.code != 2 || !strings.Contains(r.err, "may allow more than execute_command(mkdir made)") || w.exists("made") {
		t.Errorf("a wider rule: exit code %d\n%s", r.code, r.err)
	}
	if r := w.run("resume", "-q", "last", "--answer", `act={"choice": "edit", "args": "ls"}`); r.code != 2 || !strings.Contains(r.err, "needs the new arguments as an object") {
		t.Errorf("no arguments: exit code %d\n%s", r.code, r.err)
	}
	if r := w.run("resume", "-q", "last", "--answer", `{"choice": "once"}`); r.code != 2 || w.exists("made") {
		t.Errorf("an object that names no question: exit code %d\n%s", r.code, r.err)
	}
	if r := w.run("resume", "-q", "last", "--answer", `act={"choice": "once"}`); r.code != 0 || !w.exists("made") {
		t.Errorf("once: exit code %d\n%s", r.code, r.err)
	}
}

// A change is shown as one, at every width, and nothing in the box is hidden.
func TestPermissionBoxShowsEverything(t *testing.T) {
	w := newAsksToRun(t)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "../dev", "write it")
	s.await("answer later")
	for _, want := range []string{"┌ dev wants to change ../outside.txt ──", "│   --- ../outside.txt", "│   +hello", "│ ../outside.txt is outside the workspace"} {
		if !strings.Contains(s.seen.String(), want) {
			t.Errorf("%q is missing in\n%s", want, s.seen)
		}
	}
	s.press(enter)
	s.ends(0, "RESULT=")
	s = w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "../dev", "hidden")
	s.await("answer later")
	if got := s.seen.String(); !strings.Contains(got, `│   mkdir made \x1b[8m; touch hidden\u202e`) || strings.Contains(got, "\x1b[8m") || strings.Contains(got, "\u202e") {
		t.Errorf("the box is %q", got)
	}
	s.press("2")
	s.ends(0, "RESULT=")
}

// A question that was left open at the terminal is not printed again when the run parks.
func TestLeftOpenQuestionIsNotRepeated(t *testing.T) {
	w := newWorkplace(t, asking)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "./ask")
	s.await("answer later")
	s.press(esc)
	s.ends(5, "next: raddle resume")
	if got := s.seen.String(); strings.Count(got, "Send it to the printer?") != 1 || !strings.Contains(got, "  review\r\n    answers: yes, no, later, or any other text\r\n") {
		t.Errorf("the screen is\n%s", got)
	}
}

// A text that is pasted keeps its lines.
func TestPastedAnswerKeepsItsLines(t *testing.T) {
	w := newWorkplace(t, asking)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "./ask", "--answer", "yes")
	s.await("Enter sends")
	s.press("\x1b[200~first line\rsecond line\x1b[201~", enter)
	s.ends(0, "RESULT=yes/first line\r\nsecond line.")
}

// An edit that is only recorded counts when the run continues, in another process.
func TestEditInTheInbox(t *testing.T) {
	w := newAsksToRun(t)
	if r := w.run("run", "-q", "../dev", "remove it"); r.code != 5 {
		t.Fatalf("exit code %d\n%s", r.code, r.err)
	}
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "inbox", "--no-resume")
	s.await("dev wants to run a command")
	s.awaitNext("answer later")
	s.press("e")
	s.await("command: mkdir made")
	s.awaitNext("Esc: back")
	s.press(strings.Repeat("\x7f", len("mkdir made && rm -rf build")), "ls", enter)
	s.ends(0, "1 answer of run")
	if r := w.run("resume", "-q", "last"); r.code != 0 || !strings.Contains(r.out, `It was made with: {"command":"ls"}`) || !w.exists("build/a") || w.exists("made") {
		t.Errorf("exit code %d, %q\n%s", r.code, r.out, r.err)
	}
}

// What begins with the same words can be allowed for the run: it asks no more, and what may do harm still does.
func TestAllowByFirstWords(t *testing.T) {
	w := newAsksToRun(t)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "../dev", "push it")
	awaitAll(s, "git push origin main", "1 Allow once", "2 Allow in this run", "3 Allow git push … in this run", "4 Always allow …", "> 5 No", "answer later")
	s.press("?")
	s.await("adds: execute_command(git push *)")
	s.answer("3")
	s.await("git push --force")
	s.answer(enter)
	if strings.Count(s.seen.String(), "┌ dev wants to run a command") != 2 {
		t.Errorf("it asks about what was allowed:\n%s", s.seen)
	}
	s.ends(0, "RESULT=")
	r := w.run("runs", "show", "last", "--why")
	for _, want := range []string{"you allowed it for this run, with the rule execute_command(git push *)", "earlier answer", "asked, not allowed"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s", want, r.out)
		}
	}
	for _, answer := range []string{"words", `act={"choice": "words"}`} {
		if r := w.run("run", "-q", "../dev", "push it", "--answer", answer); r.code != 5 || !strings.Contains(r.err, "git push --force") {
			t.Errorf("%s: exit code %d: %s", answer, r.code, r.err)
		}
	}
	if r := w.run("run", "-q", "../dev", "remove it", "--answer", "words"); r.code == 0 || w.exists("made") {
		t.Errorf("an answer that is not offered counts: %s%s", r.out, r.err)
	}
}

// permissionRecord is what the records of calls have about permission since that is recorded.
var permissionRecord = regexp.MustCompile(`,"permission":\{"verdict":"(allow|deny|ask)"[^\n]*\}\]\}`)

// A journal of an older version says nothing about calls that did not ask, and what is not there is not made up from the rules of today. What its questions and
// answers say counts.
func TestWhyOfAnOldJournal(t *testing.T) {
	w := newAsksToRun(t)
	if r := w.run("run", "-q", "../dev", "make it", "--answer", "run"); r.code != 0 {
		t.Fatal(r.err)
	}
	w.agesJournal(w.runs()[0].Run)
	if r := w.run("runs", "show", "last", "--why"); !strings.Contains(r.out, "asked, allowed in this run: mkdir made is not a command that raddle knows to only read") ||
		!strings.Contains(r.out, "you allowed it for this run, with the rule execute_command(mkdir made)") {
		t.Errorf("%s%s", r.out, r.err)
	}
	w.write("../home-rules.yaml", "deny: [execute_command]\n")
	if r := w.run("run", "-q", "../dev", "--mode", "plan", "make it"); r.code != 0 {
		t.Fatal(r.err)
	}
	w.agesJournal(w.runs()[0].Run)
	r := w.run("runs", "show", "last", "--why")
	if !strings.Contains(r.out, "refused, not recorded why: the run is from an older version of raddle") || !strings.Contains(r.out, "1 call: 1 not recorded") {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := w.run("replay", "last", "--with-rules", "../home-rules.yaml"); r.code != 0 || !strings.Contains(r.out, "1 would be denied; changed: 0") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// agesJournal makes the journal of a run what an older version would have written, which did not record permissions. Other runs go.
func (w *workplace) agesJournal(run string) {
	w.t.Helper()
	path := filepath.Join(w.state(), "runs.db")
	db, err := sqlite.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []journal.Record
	aged := 0
	for r, err := range db.Read(w.t.Context(), run, journal.Range{}) {
		if err != nil {
			w.t.Fatal(err)
		}
		if data := permissionRecord.ReplaceAll(r.Data, nil); r.Kind == journal.KindEffect && len(data) < len(r.Data) {
			r.Data = data
			aged++
		}
		r.Sum = 0 // those of later records depend on it
		all = append(all, r)
	}
	if err := db.Close(); err != nil || aged == 0 {
		w.t.Fatalf("%v: %d records have a permission", err, aged)
	}
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + end)
	}
	w.stopped(run, all)
}
