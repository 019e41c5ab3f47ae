//go:build unix

package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

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
			s.await("> bow, ink")
			s.await("yes")
			s.answer(down, enter)
		}, want: `{"answers":["bow","ink"]}`},
		"none of them": {args: append(city, "choose"), keys: func(s *screen) {
			s.await("Space chooses")
			s.answer(enter)
			s.await("> none")
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
			s.await("no, and say why")
			s.answer(up, up, up, enter)
		}, want: "done: "},
		"permission, Enter alone": {args: append(city, "write"), keys: func(s *screen) {
			s.await("no, and say why")
			s.answer(enter)
		}, want: "the user does not want this call of fs_write"},
		"lines: permission, with a reason against": {env: []string{"TERM=dumb"}, args: append(city, "write"), keys: func(s *screen) {
			s.await("1) once (allow this call)")
			s.await("Number [1-5]: ")
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
			w := &workplace{t: t, dir: w.dir + "/here", env: w.env}
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
	s.await("I have ") // and the reply is not over
	close(said)
	s.ends(0, "model calls")
	screen := regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]").ReplaceAllString(strings.ReplaceAll(s.seen.String(), "\r", ""), "")
	for _, line := range []string{"\nI have to wait.\n", "\nThe wait is over.\n", "0.0000 USD"} {
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
		if got := strings.Contains(s.seen.String(), "may run or decide what runs: permissions.yaml"); got != step.asked {
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
