//go:build unix

package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/testkit/termtest"
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
- {match: Write it, turn: 1, repeat: true, tool_calls: [{name: fs_write, args: {path: ../outside.txt, contents: x}}]}
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
		"form":  {nil, "Enter sends", "yz"}, // it keeps the text
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
	s.await("Enter sends")
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

// talking is an agent that asks in every way, and one that needs variables.
const talking = `
-- ask/config.yaml --
name: ask
model: script:transcript.yaml
global_tools: [fs_write]
inject_user_instructions: false
variables: [{name: city, description: Where to?}]
instructions: Go to {{city}}.
conversation_starters: [hi there, choose something]
-- ask/transcript.yaml --
- {match: choose, turn: 1, tool_calls: [{name: user__checkbox, args: {question: "Extras?", options: [bow, card, ink]}}]}
- {match: choose, turn: 2, tool_calls: [{name: user__confirm, args: {question: "Sure\u001b[2J?"}}]}
- {match: choose, turn: 3, text: chosen}
- {match: write, turn: 1, tool_calls: [{name: fs_write, args: {path: ../outside.txt, contents: "hello\n"}}]}
- {match: write, turn: 2, text: over}
- {match: [hi, Go to Oslo], text: to Oslo}
`

func TestPromptsOfTools(t *testing.T) {
	w := newWorkplace(t, talking)
	w.write("here/x", "")
	city := []string{"--agent-variable", "city", "Oslo"}
	tests := map[string]struct {
		env  []string
		args []string
		keys func(s *screen)
		want string // in the output of runs show
	}{
		"several options": {args: append(city, "choose"), keys: func(s *screen) {
			s.await("Space chooses")
			s.answer(" ", down, down, " ", enter)
			s.await("bow, ink")
			s.await("yes")
			s.answer(down, enter)
		}, want: `{"answers":["bow","ink"]}`},
		"none of them": {args: append(city, "choose"), keys: func(s *screen) {
			s.await("Space chooses")
			s.answer(enter)
			s.await(" none")
			s.await("yes")
			s.answer(enter)
		}, want: `{"answers":[]}`},
		"lines: several options, and yes by default": {env: []string{"TERM=dumb"}, args: append(city, "choose"), keys: func(s *screen) {
			s.await("Numbers [1-3], or nothing for none of them: ")
			s.press("4\n")
			s.await(`There is no option "4".`)
			s.press("1, ink\n")
			s.await("Number [1-2]: ")
			s.press("\n")
		}, want: `{"answer":"yes"}`},
		"permission once": {args: append(city, "write"), keys: func(s *screen) {
			s.await("+hello")
			s.await("No, and say why")
			s.answer("1")
		}, want: "● fs_write "},
		"permission, Enter alone": {args: append(city, "write"), keys: func(s *screen) {
			s.await("No, and say why")
			s.answer(enter)
		}, want: "the user does not want this call of fs_write"},
		"lines: permission, with a reason against": {env: []string{"TERM=dumb"}, args: append(city, "write"), keys: func(s *screen) {
			s.await("1) Allow once")
			s.await("Number [1-5 e ?]: ")
			s.press("5\n")
			s.await("Reason: ")
			s.press("not there\n")
		}, want: "the user does not want this call of fs_write: not there"},
		"a conversation starter": {args: city, keys: func(s *screen) {
			s.await("What shall ask do?")
			s.await("hi there")
			s.answer(enter)
		}, want: "to Oslo"},
		"a variable": {args: []string{"hi"}, keys: func(s *screen) {
			s.await("⚙ Init agent variables...")
			s.await("city (Where to?): ")
			s.answer("Oslo", enter)
		}, want: "to Oslo"},
		"lines: a variable": {env: []string{"TERM=dumb"}, args: []string{"hi"}, keys: func(s *screen) {
			s.await("city (Where to?): ")
			s.press(" \n")
			s.await("This field is required")
			s.awaitNext("city (Where to?): ")
			s.press("Oslo\n")
		}, want: "to Oslo"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := &workplace{t: t, program: w.program, dir: w.dir + "/here", env: w.env}
			s := w.screen(test.env, append([]string{"run", "../ask"}, test.args...)...)
			test.keys(s)
			s.ends(0, "")
			if strings.Contains(s.seen.String(), "Sure\x1b") {
				t.Errorf("a question moves the cursor: %q", s.seen)
			}
			if shown := w.run("runs", "show", w.runs()[0].Run).out; !strings.Contains(shown, test.want) {
				t.Errorf("the run lacks %q:\n%s", test.want, shown)
			}
		})
	}
}

// A graph with conversation starters offers them; one without is not asked about, as it may need no prompt.
func TestStartersOfAGraph(t *testing.T) {
	w := newWorkplace(t, `
-- knots/graph.yaml --
name: knots
start: done
conversation_starters: [tie a knot, whip it]
nodes: {done: {type: end, output: "asked: {{initial_prompt}}"}}
-- plain/graph.yaml --
name: plain
start: done
nodes: {done: {type: end, output: "asked: {{initial_prompt}}."}}
`)
	s := w.screen(nil, "run", "./knots")
	s.await("What shall knots do?")
	s.await("tie a knot")
	s.answer(down, enter)
	s.ends(0, "asked: whip it")
	w.screen(nil, "run", "./plain").ends(0, "asked: .")
}

// A run loads its agent once, also if a starter is chosen at the terminal. The value of a variable makes a second load.
func TestLoadsOfARun(t *testing.T) {
	w := newWorkplace(t, talking)
	trace := []string{"RADDLE_LOG=trace"}
	loads := func(seen string) int { return strings.Count(seen, "loading the agent") }
	city := []string{"run", "./ask", "--agent-variable", "city", "Oslo"}
	plain := w.run(append(city, "hi", "--no-stdin", "--log-level", "trace")...)
	if n := loads(plain.err); plain.code != 0 || n != 1 {
		t.Errorf("a run loads its agent %d times, want 1: exit code %d\n%s", n, plain.code, plain.err)
	}
	s := w.screen(trace, city...)
	s.await("What shall ask do?")
	s.answer(enter)
	s.ends(0, "to Oslo")
	if n := loads(s.seen.String()); n != 1 {
		t.Errorf("a run with a starter loads its agent %d times, want 1", n)
	}
	s = w.screen(trace, "run", "./ask", "hi")
	s.await("city (Where to?): ")
	s.answer("Oslo", enter)
	s.ends(0, "to Oslo")
	if n := loads(s.seen.String()); n != 2 {
		t.Errorf("a run with a variable from the terminal loads its agent %d times, want 2", n)
	}
}

// A variable that is left open is the same error as without a terminal.
func TestLeavingAVariable(t *testing.T) {
	w := newWorkplace(t, talking)
	s := w.screen(nil, "run", "./ask", "hi")
	s.await("city (Where to?): ")
	s.answer(esc)
	s.ends(2, "The following agent variables are required:")
	if len(w.runs()) != 0 {
		t.Errorf("a run was begun: %v", w.runs())
	}
}

// At a terminal, the variables of the agents below are asked for before the run.
func TestVariablesOfAChild(t *testing.T) {
	w := newWorkplace(t, `
-- above/graph.yaml --
name: above
variables: [{name: town, description: Where to?}]
start: kid
nodes:
  kid: {type: agent, agent: kid, prompt: p, state_updates: {reply: "{{output}}"}, next: done}
  done: {type: end, output: "{{reply}}"}
-- kid/graph.yaml --
name: kid
variables: [{name: day, description: When?}, {name: town, description: Where?}]
start: look
nodes:
  look: {type: script, script: look.sh, next: done}
  done: {type: end, output: "{{text}}"}
-- kid/look.sh --
echo "{\"text\": \"in $LLM_AGENT_VAR_TOWN on $LLM_AGENT_VAR_DAY\"}"
`)
	s := w.screen(nil, "run", "./above")
	s.await("town (Where to?): ")
	s.answer("Oslo", enter)
	s.await("day (When?): ")
	s.answer("Friday", enter)
	s.await("kid was not named by you")
	s.answer(down, enter)
	s.ends(0, "in Oslo on Friday")
}

const speaking = `
-- speak/config.yaml --
name: speak
model: local:small
-- speak/tools.sh --
# @cmd Wait.
# raddle: read-only
wait_for() { echo waited >> "$LLM_OUTPUT"; }
`

// The text of the agent's model appears on a terminal while the model writes it, and only once.
func TestTextAsItComes(t *testing.T) {
	needBash(t)
	chunk := func(w http.ResponseWriter, delta, finish string) {
		end := "null"
		if finish != "" {
			end = `"` + finish + `"`
		}
		fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", delta, end)
		w.(http.Flusher).Flush()
	}
	said := make(chan struct{})
	var turn atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first := turn.Add(1) == 1
		w.Header().Set("Content-Type", "text/event-stream")
		if first {
			chunk(w, `{"content":"I have "}`, "")
			<-said
			chunk(w, `{"content":"to wait."}`, "")
			chunk(w, `{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"wait_for","arguments":"{}"}}]}`, "")
			chunk(w, `{}`, "tool_calls")
		} else {
			chunk(w, `{"content":"The wait "}`, "")
			chunk(w, `{"content":"is over."}`, "")
			chunk(w, `{}`, "stop")
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	w := newWorkplace(t, speaking)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", api_key: k, models: [{name: small, input_price: 1, output_price: 2}]}]\n")
	s := w.screen(nil, "run", "./speak", "go")
	s.await("I have") // and the reply is not over
	close(said)
	s.ends(0, "speak done in")
	screen := termtest.Render(80, s.seen.String())
	for _, line := range []string{"\nI have to wait.\n", "\nThe wait is over.\n", "\n● wait_for  ", "\n    waited\n"} {
		if strings.Count(screen, line) != 1 {
			t.Errorf("%q is not there once:\n%s", line, screen)
		}
	}
	turn.Store(1)
	if s := w.screen(nil, "run", "-q", "-S", "./speak", "go"); true {
		s.ends(0, "The wait is over.")
		if got := strings.TrimSpace(s.seen.String()); got != "The wait is over." {
			t.Errorf("with -S and -q: %q", got)
		}
	}
}

// What the user did not name is used after consent, until it changes.
func TestConsent(t *testing.T) {
	w := newWorkplace(t, asking)
	w.write("hi/graph.yaml", "name: hi\nstart: done\nnodes:\n  done: {type: end, output: RESULT}\n")
	w.write(".raddle/permissions.yaml", "allow: [execute_command(make *)]\n")
	steps := []struct {
		key   string
		asked bool
	}{{key: "\n", asked: true}, {key: "yes\n", asked: true}, {}}
	for i, step := range steps {
		s := w.screen([]string{"TERM=dumb"}, "run", "./hi")
		if step.asked {
			s.await("Number [1-2]: ")
			s.press(step.key)
		}
		s.ends(0, "RESULT")
		if got := strings.Contains(s.seen.String(), "This project brings its own rules (.raddle/permissions.yaml)"); got != step.asked {
			t.Errorf("step %d: asked: %v\n%s", i, got, s.seen)
		}
	}
	w.write(".raddle/permissions.yaml", "allow: [execute_command(*)]\n")
	s := w.screen([]string{"TERM=dumb"}, "run", "./hi")
	s.await("Number [1-2]: ")
	s.press("\x04")
	s.ends(130, "")
	if n := len(w.runs()); n != 3 {
		t.Errorf("%d runs, want 3", n)
	}
}

// raddle asks about programs and packages of the workspace once: it remembers a no, a
// yes is valid until a file changes, and --answer gives none.
func TestConsentToPackages(t *testing.T) {
	w := newWorkplace(t, asking)
	w.write("hi/graph.yaml", "name: hi\nstart: done\nnodes:\n  done: {type: end, output: RESULT}\nglobal_tools: [t]\n")
	w.write("hi/tools/t.py", "def run():\n    'T.'\n")
	w.write(".venv/bin/python", "")
	const question = "The programs and packages in .venv were not named by you."
	refused := w.run("run", "./hi", "--answer", "yes")
	if !strings.Contains(refused.err, question) || !strings.Contains(refused.err, "raddle does not use them until you consent at a terminal.") {
		t.Errorf("without a terminal: %s", refused.err)
	}
	steps := []struct {
		change, key string
		asked       bool
	}{{key: "yes\n", asked: true}, {}, {change: "x", key: "no\n", asked: true}, {}, {change: "y"}}
	for i, step := range steps {
		if step.change != "" {
			w.write(".venv/lib.py", step.change)
		}
		s := w.screen([]string{"TERM=dumb"}, "run", "./hi")
		if step.asked {
			s.await("Number [1-2]: ")
			s.press(step.key)
		}
		s.ends(0, "RESULT")
		if got := strings.Contains(s.seen.String(), question); got != step.asked {
			t.Errorf("step %d: asked: %v\n%s", i, got, s.seen)
		}
	}
}

// serveDesk serves an MCP server over streamable HTTP whose tool look asks for a color. A
// server of an older protocol asks while the call waits, one of the newest asks in its answer.
func serveDesk(t *testing.T, old bool) string {
	t.Helper()
	form := &sdk.ElicitParams{Message: "Which color?", RequestedSchema: map[string]any{"type": "object", "required": []string{"color"},
		"properties": map[string]any{"color": map[string]any{"type": "string", "enum": []string{"red", "blue"}}}}}
	server := sdk.NewServer(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	tool := &sdk.Tool{Name: "look", InputSchema: map[string]any{"type": "object"}, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}
	server.AddTool(tool, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var res *sdk.ElicitResult
		switch {
		case old:
			var err error
			if res, err = r.Session.Elicit(ctx, form); err != nil {
				return nil, err
			}
		case r.Params.InputResponses == nil:
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"which": form}}, nil
		default:
			res, _ = r.Params.InputResponses["which"].(*sdk.ElicitResult)
		}
		if res == nil {
			return nil, errors.New("there is no answer")
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(res.Action, " ", res.Content["color"])}}}, nil
	})
	if old {
		server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
				if method == "server/discover" {
					return nil, errors.New("unknown")
				}
				return next(ctx, method, r)
			}
		})
	}
	return serveTools(t, server)
}

// A tool of a server on the network asks: the person at the terminal answers; without one the run
// waits, and resume continues it, with an answer on the command line or at a terminal.
func TestElicitationOverHTTP(t *testing.T) {
	for name, old := range map[string]bool{"the newest protocol": false, "an older protocol": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t, `
-- shop/config.yaml --
name: Shop
model: script:t.yaml
mcp_servers: [desk]
-- shop/t.yaml --
- tool_calls: [{name: mcp__desk__look, args: {}}]
- text: "It is {{outcome.1}}."
`)
			w.write("shop/mcp.json", fmt.Sprintf(`{"mcpServers": {"desk": {"type": "http", "url": %q}}}`, serveDesk(t, old)))
			s := w.screen(nil, "run", "./shop", "look")
			s.await("MCP server desk asks: Which color?")
			s.answer(down, enter)
			s.ends(0, "It is accept blue.")

			park := func() string {
				t.Helper()
				parked := w.run("run", "./shop", "look")
				m := resumeHint.FindStringSubmatch(parked.err)
				if parked.code != 5 || m == nil {
					t.Fatalf("exit code %d\n%s", parked.code, parked.err)
				}
				return m[1]
			}
			if r := w.run("resume", "-q", park(), "--answer", "red"); r.code != 0 || r.out != "It is accept red.\n" {
				t.Errorf("exit code %d, output %q\n%s", r.code, r.out, r.err)
			}
			s = w.screen(nil, "resume", park())
			s.await("MCP server desk asks: Which color?")
			s.answer(enter)
			s.ends(0, "It is accept red.")
		})
	}
}

// Markdown is formatted on a terminal, once, also where it arrives in pieces; --raw and terminals without colours show it as it is written.
func TestMarkdownOnATerminal(t *testing.T) {
	w := newWorkplace(t, `
-- say/config.yaml --
name: say
model: script:said.yaml
-- say/said.yaml --
- {text: "# Title\n\nA **bold** word.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- one\n- two\n"}
-- end/graph.yaml --
name: end
start: done
nodes: {done: {type: end, output: "It is **done**."}}
-- json/graph.yaml --
name: json
start: done
nodes: {done: {type: end, output: '{"a": "**b**"}'}}
`)
	const formatted = "\nTitle\n\nA bold word.\n\na  b\n────\n1  2\n\n• one\n• two\n"
	for _, test := range []struct {
		env  []string
		args []string
		want string
	}{
		{args: []string{"./say", "go"}, want: formatted},
		{args: []string{"-q", "./say", "go"}, want: formatted},
		{args: []string{"-S", "./say", "go"}, want: formatted},
		{args: []string{"--raw", "./say", "go"}, want: "\nA **bold** word.\n"},
		{env: []string{"NO_COLOR=1"}, args: []string{"./say", "go"}, want: "\nA **bold** word.\n"},
		{env: []string{"TERM=dumb"}, args: []string{"./say", "go"}, want: "\nA **bold** word.\n"},
		{args: []string{"./end", "go"}, want: "\nIt is done.\n"},
		{args: []string{"./json", "go"}, want: `{"a": "**b**"}`},
	} {
		s := w.screen(test.env, append([]string{"run"}, test.args...)...)
		s.ends(0, "")
		if screen := "\n" + termtest.Render(80, s.seen.String()) + "\n"; strings.Count(screen, test.want) != 1 {
			t.Errorf("run %q with %q: %q is not there once:\n%s", test.args, test.env, test.want, screen)
		}
	}
}
