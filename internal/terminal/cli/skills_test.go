//go:build unix

package cli_test

import (
	"strings"
	"testing"
)

// Skills of the project are used after consent, until one of their files changes; a no is remembered.
func TestConsentToSkills(t *testing.T) {
	const files = `
-- .agents/skills/cross/SKILL.md --
---
description: Of the project.
enabled_tools: fs_ls
---
Read more.md.
-- .agents/skills/cross/more.md --
More.
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
-- dev/transcript.yaml --
- {match: ["cross: Of the project.", go], text: RESULT=seen.}
- {match: go, text: RESULT=not seen.}
`
	const question = "The skills in .agents/skills were not named by you. This agent would follow them: cross (brings fs_ls)"
	start := func(w *workplace) *screen {
		return w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "./dev", "go")
	}
	w := newWorkplace(t, files)
	s := start(w)
	s.await(question)
	s.answer(down, enter) // "no" comes first
	s.ends(0, "RESULT=seen.")
	s = start(w)
	s.ends(0, "RESULT=seen.")
	if strings.Contains(s.seen.String(), question) {
		t.Errorf("it asks again:\n%s", s.seen)
	}
	w.write(".agents/skills/cross/more.md", "Changed.")
	if r := w.run("run", "-q", "./dev", "go"); r.out != "RESULT=not seen.\n" {
		t.Errorf("after a change: %q\n%s", r.out, r.err)
	}
	s = start(w)
	s.await(question)
	s.answer(enter)
	s.ends(0, "RESULT=not seen.")
	s = start(w)
	s.ends(0, "RESULT=not seen.")
	if strings.Contains(s.seen.String(), question) {
		t.Errorf("it asks again after a no:\n%s", s.seen)
	}
}

// A skill brings tools while the model uses it: of raddle, and of the agent's directory. What does not exist is a finding and is said to the model. A skill can be
// there from the beginning, and an llm node has the same. What a skill brings asks like everything else.
func TestSkillsBringTools(t *testing.T) {
	t.Parallel()
	const files = `
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
-- dev/skills/look/SKILL.md --
---
description: Looks around: with care.
enabled_tools: fs_ls, git_command, execute_command
enabled_mcp_servers: forge
---
Look.
-- dev/transcript.yaml --
- {turn: 1, text: "", tool_calls: [{name: fs_ls, args: {path: .}}]}
- {after: ["Unexpected call: fs_ls"], tool_calls: [{name: skill__load, args: {name: look}}]}
- {after: ["Look.", "you can also call these tools: fs_ls, execute_command", "which do not exist here: git_command, forge"], tool_calls: [{name: fs_ls, args: {path: dev}}]}
- {after: [transcript.yaml], tool_calls: [{name: execute_command, args: {command: touch made}}]}
- {after: [permission denied], tool_calls: [{name: skill__unload, args: {name: look}}]}
- {after: [is put away], tool_calls: [{name: fs_ls, args: {path: .}}]}
- {after: ["Unexpected call: fs_ls"], text: RESULT}
-- early/config.yaml --
name: early
model: script:transcript.yaml
preload_skills: [look, lok]
-- early/skills/look/SKILL.md --
---
description: d
enabled_tools: [fs_ls]
---
Look early.
-- early/transcript.yaml --
- {turn: 1, match: Look early., tool_calls: [{name: fs_ls, args: {path: early}}]}
- {after: transcript.yaml, text: EARLY}
-- flow/graph.yaml --
name: flow
start: ask
preload_skills: [look]
enabled_skills: [look]
nodes:
  ask: {type: llm, model: "script:transcript.yaml", prompt: go, next: end}
  end: {type: end, output: "{{output}}"}
-- flow/skills/look/SKILL.md --
---
description: d
enabled_tools: [fs_ls]
---
Look early.
-- flow/transcript.yaml --
- {turn: 1, match: Look early., tool_calls: [{name: fs_ls, args: {path: early}}]}
- {after: transcript.yaml, text: NODE}
`
	w := newWorkplace(t, files)
	if r := w.run("run", "-q", "--headless", "./dev", "go"); r.out != "RESULT\n" || w.exists("made") {
		t.Errorf("%q\n%s", r.out, r.err)
	}
	r := w.run("check", "./dev")
	for _, want := range []string{`dev/skills/look/SKILL.md:1:1`, `the skill 'look' brings what does not exist: there is no tool "git_command"`, `there is no MCP server "forge"`} {
		if !strings.Contains(r.out+r.err, want) {
			t.Errorf("check does not say %q:\n%s%s", want, r.out, r.err)
		}
	}
	if r := w.run("run", "./early", "go"); r.out != "EARLY\n" || !strings.Contains(r.err, "the skill 'lok' is not preloaded") {
		t.Errorf("%q\n%s", r.out, r.err)
	}
	if r := w.run("check", "./early"); !strings.Contains(r.out+r.err, "config.yaml:3:24") || !strings.Contains(r.out+r.err, "the skill 'lok' cannot be preloaded") {
		t.Errorf("%s%s", r.out, r.err)
	}
	if r := w.run("run", "-q", "./flow", "go"); r.code != 0 {
		t.Errorf("%q\n%s", r.out, r.err)
	}
}
