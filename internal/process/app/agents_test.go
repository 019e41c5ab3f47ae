//go:build unix

package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/flow"
)

// sent is what the server received in the request with a number.
type sent struct {
	Messages []struct {
		Role    string
		Content any
	}
	Tools []struct{ Function struct{ Name string } }
}

func (m *model) request(i int) (s sent) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if i >= len(m.bodies) {
		m.t.Fatalf("there were %d requests", len(m.bodies))
	}
	if err := json.Unmarshal(m.bodies[i], &s); err != nil {
		m.t.Fatal(err)
	}
	return s
}

func (s *sent) tools() (names []string) {
	for _, t := range s.Tools {
		names = append(names, t.Function.Name)
	}
	return names
}

func (s *sent) system() string { return fmt.Sprint(s.Messages[0].Content) }

// Instructions come from the file or from a script. They contain variables and special
// variables, including the tools of servers.
func TestInstructions(t *testing.T) {
	bash := "# @cmd Looks.\nlook() { :; }\n# @cmd Says what to do.\n_instructions() { echo \"Serve $LLM_AGENT_VAR_WHO from bash. {{__tools__}}\" >>\"$LLM_OUTPUT\"; }\n"
	python := "import os\ndef look():\n    \"\"\"Looks.\"\"\"\ndef _instructions():\n    return 'Serve ' + os.environ['LLM_AGENT_VAR_WHO'] + ' from python. {{__tools__}}'\n"
	for name, c := range map[string]struct{ config, script, text, want string }{
		"file":   {"instructions: 'Serve {{who}} on {{__os__}}. {{__tools__}}'\n", "tools.sh", bash, "Serve Ada on linux. 1. look: Looks."},
		"bash":   {"dynamic_instructions: true\ninstructions: unused\n", "tools.sh", bash, "Serve Ada from bash. 1. look: Looks."},
		"python": {"dynamic_instructions: true\n", "tools.py", python, "Serve Ada from python. 1. look: Looks."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPlace(t)
			m := &model{t: t, text: "done"}
			w.serve(m)
			w.write("a/config.yaml", "name: A\nvariables: [{name: who, description: whom to serve}]\n"+c.config)
			w.write("a/"+c.script, c.text)
			p, _ := w.process(-1)
			if _, out := w.finish(p, Request{Agent: "./a", Prompt: "go", Variables: map[string]string{"who": "Ada"}}, nil); out != "done" {
				t.Fatal(out)
			}
			req := m.request(0)
			want := strings.Replace(c.want, "linux", osNow(), 1)
			if got := req.system(); !strings.HasPrefix(got, want) {
				t.Errorf("the system prompt is %q, want %q", got, want)
			}
			if got := req.tools(); slices.Contains(got, "_instructions") || got[0] != "look" {
				t.Errorf("tools %v", got)
			}
		})
	}
	w := newPlace(t)
	w.serve(&model{t: t})
	w.write("a/config.yaml", "name: A\ndynamic_instructions: true\n")
	w.write("a/tools.sh", "# @cmd Looks.\nlook() { :; }\n# @cmd Says what to do.\n_instructions() { :; }\n")
	p, _ := w.process(-1)
	run, err := p.StartRun(Request{Agent: "./a", Prompt: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Drive(t.Context(), Driver{}); err == nil || !strings.Contains(err.Error(), "_instructions") {
		t.Errorf("a script that gives nothing: %v", err)
	}
}

// Global tools lie next to the agent, among the user's functions, or in the
// program; names work with and without extension. Errors are reported, and
// the other tools work. The same is true for servers.
func TestToolsOfAnAgent(t *testing.T) {
	server, err := shopServer()
	if err != nil {
		t.Fatal(err)
	}
	w := newPlace(t)
	m := &model{t: t, text: "done", rounds: [][]call{{
		{"1", "near", "{}"}, {"2", "far", `{"n":2}`}, {"3", "get_current_time", "{}"}, {"4", "mcp_invoke_shop", `{"tool":"check_stock","arguments":{"sku":"R-210"}}`}, {"5", "mcp_invoke_dead", "{}"},
	}}}
	w.serve(m)
	w.write("a/config.yaml", "name: A\nglobal_tools: [near, far.py, get_current_time, broken.sh, nowhere]\nmcp_servers: [all]\n")
	w.write("a/tools/near.sh", "# @describe Near.\n# raddle: read-only\nmain() { echo near >>\"$LLM_OUTPUT\"; }\n")
	w.write("home/.config/raddle/functions/tools/near.sh", "# @describe Not this one.\nmain() { :; }\n")
	w.write("home/.config/raddle/functions/tools/far.py", "def run(n: int):\n    \"\"\"Far.\"\"\"\n    return {'far': n + 1}\n")
	w.write("a/tools/broken.sh", "main() { :; }\n")
	w.write("a/mcp.json", `{"mcpServers": {"shop": {"command": "`+server+`"}, "dead": {"command": "/nowhere/at/all"}}}`)
	w.write("home/.config/raddle/functions/mcp.json", `{"mcpServers": {"shop": {"command": "/not/this/one"}}}`)
	p, _ := w.process(-1)
	run, err := p.StartRun(Request{Agent: "./a", Prompt: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	problems := fmt.Sprint(run.Agent.Findings)
	for _, want := range []string{"broken", `there is no tool "nowhere"`} {
		if !strings.Contains(problems, want) {
			t.Errorf("the findings lack %q: %s", want, problems)
		}
	}
	res, err := run.Drive(t.Context(), answering(pickFirst))
	if err != nil || flow.OutcomeOf(res).Output != "done" {
		t.Fatalf("%+v %v", res, err)
	}
	said := fmt.Sprint(agent.History(res.State))
	for _, want := range []string{`"near\n"`, `{"far":3}`, `"pieces":12`, "Unexpected call: mcp_invoke_dead"} {
		if !strings.Contains(said, want) {
			t.Errorf("the outcomes lack %q: %s", want, said)
		}
	}
	req := m.request(0)
	want := []string{"near", "far", "get_current_time", "user__ask", "user__confirm", "user__input", "user__checkbox", "mcp_invoke_shop", "mcp_search_shop", "mcp_describe_shop"}
	if got := req.tools(); !slices.Equal(got[:len(want)], want) {
		t.Errorf("tools %v", got)
	}
}

// The environment replaces values of the file before tools are opened, under the
// name of the directory or of the file.
func TestOverridesOfAnAgent(t *testing.T) {
	for _, prefix := range []string{"MY_BOT", "HELPER"} {
		w := newPlace(t, prefix+`_GLOBAL_TOOLS=["get_current_time"]`, prefix+"_INSTRUCTIONS=From outside {{a}}.", prefix+`_VARIABLES=[{"name":"a","value":"1"}]`)
		m := &model{t: t, text: "done"}
		w.serve(m)
		w.write("my-bot/config.yaml", "name: Helper\ninstructions: unused\nglobal_tools: [fs_read]\n")
		p, _ := w.process(-1)
		w.finish(p, Request{Agent: "./my-bot", Prompt: "go"}, nil)
		req := m.request(0)
		if got := req.tools(); got[0] != "get_current_time" || slices.Contains(got, "fs_read") || !strings.HasPrefix(req.system(), "From outside 1.") {
			t.Errorf("%s: tools %v, system %q", prefix, got, req.system())
		}
	}
}

// A graph runs such an agent as a child, and its llm nodes get the tools
// that they list: by name, by file, and the functions of a server.
func TestGraphWithTools(t *testing.T) {
	server, err := shopServer()
	if err != nil {
		t.Fatal(err)
	}
	w := newPlace(t)
	m := &model{t: t, text: "found", rounds: [][]call{{{"1", "look", "{}"}}}}
	w.serve(m)
	w.write("agents/g/graph.yaml", `
name: g
start: find
global_tools: [far.py, get_current_time]
mcp_servers: [shop]
nodes:
  find: {type: llm, prompt: find, tools: [look, far.py, "mcp:shop"], state_updates: {seen: "{{output}}"}, next: child}
  child: {type: agent, agent: helper, prompt: "check {{seen}}", state_updates: {checked: "{{output}}"}, next: done}
  done: {type: end, output: "{{seen}} {{checked}}"}
`)
	w.write("agents/g/tools.sh", "# @cmd Looks.\n# raddle: read-only\nlook() { echo seen >>\"$LLM_OUTPUT\"; }\n# @cmd Hides.\nhide() { :; }\n")
	w.write("agents/g/tools/far.py", "def run(n: int):\n    \"\"\"Far.\"\"\"\n")
	w.write("agents/g/mcp.json", `{"mcpServers": {"shop": {"command": "`+server+`"}}}`)
	w.write("agents/helper/config.yaml", "name: Helper\nauto_continue: true\n")
	w.write("agents/helper/tools.sh", "# @cmd Looks too.\n# raddle: read-only\nlook() { echo child >>\"$LLM_OUTPUT\"; }\n")
	p, _ := w.process(-1)
	if _, out := w.finish(p, Request{Agent: "agents/g", Prompt: "go"}, pickFirst); out != "found found" {
		t.Fatalf("%q", out)
	}
	req := m.request(0)
	got := req.tools()
	for _, name := range []string{"look", "far", "mcp_invoke_shop"} {
		if !slices.Contains(got, name) {
			t.Errorf("the node was not given %s: %v", name, got)
		}
	}
	if slices.Contains(got, "hide") || slices.Contains(got, "get_current_time") || slices.Contains(got, "user__ask") {
		t.Errorf("the node was given what it does not list: %v", got)
	}
	child := m.request(2)
	if got := child.tools(); !slices.Contains(got, "todo__init") || slices.Contains(got, "far") {
		t.Errorf("the child was given %v", got)
	}
}

// A long result and a long conversation are cut at the limits of the file.
func TestLimitsOfAnAgent(t *testing.T) {
	w := newPlace(t)
	m := &model{t: t, text: "done", rounds: [][]call{{{"1", "talk", "{}"}}}}
	w.serve(m)
	w.write("a/config.yaml", "name: A\nmax_tool_result_chars: 90\ncompression_threshold: 700\ncompression_keep_last: 2\nagent_session: s\n")
	w.write("a/tools.sh", "# @cmd Talks.\n# raddle: read-only\ntalk() { printf 'begin%0500dend' 0 >>\"$LLM_OUTPUT\"; }\n")
	for i := range 6 {
		p, _ := w.process(-1)
		w.finish(p, Request{Agent: "./a", Prompt: fmt.Sprint("turn ", i, strings.Repeat(" please", 150))}, nil)
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	req := m.request(1)
	result := fmt.Sprint(req.Messages[len(req.Messages)-1].Content)
	if !strings.HasPrefix(result, `{"output":"begin0`) || !strings.Contains(result, "[431 characters are left out]") || !strings.HasSuffix(result, `end"}`) {
		t.Errorf("the model was told %q", result)
	}
	last := m.request(m.requests() - 1)
	if note := fmt.Sprint(last.Messages[1].Content); !strings.Contains(note, "Summary of ") {
		t.Errorf("the last request begins with %q and has %d messages", note, len(last.Messages))
	}
}
