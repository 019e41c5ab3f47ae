package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/internal/base/strictyaml"
)

const mapGraph = `name: g
start: each
initial_state: {items: [1]}
reducers: {total: sum}
settings: {max_concurrency: 2}
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: look, collect_into: out, on_failure: mend, next: more}
  look: {type: llm, prompt: "{{item}}", state_updates: {output: "{{output}}"}}
  mend: {type: llm, prompt: "{{item}} {{error}}"}
  more: {type: llm, prompt: "{{out}} {{each.failed}}", state_updates: {said: "{{output}}"}, next: e}
  e: {type: end, output: "{{said}} {{each.done}}"}
`

// What is wrong with a map is reported at the field that has to change, once.
func TestCheckMaps(t *testing.T) {
	counts := "keeps its counts under its id, {{each.failed}}, and %s has a key of that name"
	for _, tt := range []struct{ old, now, want string }{
		{"", "", ""},
		{"max_concurrency: 2", "max_concurrency: 0", "5:29 settings.max_concurrency must be >= 1 (got 0)"},
		{"as: item,", "as: item, max_concurrency: 0,", "7:67 map node's `max_concurrency` must be >= 1 (got 0)"},
		{"as: item,", "as: item, queue: -fast,", "7:57 map node's `queue` must be a plain name"},
		{"as: item,", "as: item, queue: '',", "7:57 map node's `queue` must be a plain name"},
		{"as: item,", "as: item, queue: " + strings.Repeat("q", 64) + ",", ""},
		{"as: item,", "as: item, queue: " + strings.Repeat("q", 65) + ",", "7:57 map node's `queue` must be a plain name"},
		{"on_failure: mend", "on_failure: look", "7:95 map node's `on_failure` names its own branch 'look'"},
		{"on_failure: mend", "on_failure: e", "7:95 map node's `on_failure` names 'e' which is an end node"},
		{"branch: look", "branch: each", "7:58 map node points to branch 'each' which is itself a map node"},
		{"mend: {type: llm,", "mend: {type: llm, next: e,", "9:27 branch node 'mend' has a `next` declared"},
		{"{output: \"{{output}}\"}", "{output: x, side: y}", "8:68 branch node 'look' writes state key 'side' via state_updates"},
		{"as: item,", "as: each,", "7:95 map node with `on_failure` " + fmt.Sprintf(counts, "its own `as`")},
		{"into: out", "into: each", "7:96 map node with `on_failure` " + fmt.Sprintf(counts, "its own `collect_into`")},
		{", state_updates: {output: \"{{output}}\"}", "", ""},
		{
			"collect_into: out, on_failure: mend, next: more}\n  look: {type: llm, prompt: \"{{item}}\", state_updates: {output: \"{{output}}\"}}",
			"output_key: each, collect_into: out, on_failure: mend, next: more}\n  look: {type: llm, prompt: \"{{item}}\"}",
			"7:113 map node with `on_failure` " + fmt.Sprintf(counts, "its own `output_key`"),
		},
		{"items: [1]", "items: [1], each: 1", "7:95 map node with `on_failure` " + fmt.Sprintf(counts, "`initial_state`")},
		{"{total: sum}", "{total: sum, each: merge}", "7:95 map node with `on_failure` " + fmt.Sprintf(counts, "`reducers`")},
		{"said: \"", "each: \"", "7:95 map node with `on_failure` " + fmt.Sprintf(counts, "node 'more'")},
	} {
		var got []string
		for _, f := range check.ValidateFile(mustParse(t, strings.Replace(mapGraph, tt.old, tt.now, 1)), check.Context{}) {
			if f.Severity == strictyaml.SeverityError && f.Code != "cycle" {
				got = append(got, fmt.Sprintf("%d:%d %s", f.Pos.Line, f.Pos.Col, f.Message))
			}
		}
		if len(got) > 1 || (tt.want == "") != (len(got) == 0) || len(got) == 1 && !strings.HasPrefix(got[0], tt.want) {
			t.Errorf("%s:\n got %q\nwant %s", tt.now, got, tt.want)
		}
	}
}

// The keys of a map have values where it sets them and for the nodes that it runs, and nowhere else.
func TestAdviceAboutMaps(t *testing.T) {
	twin := func(id string) string {
		return "  " + id + ": {type: map, over: '{{items}}', as: item, branch: look, collect_into: same, next: more}\n"
	}
	for _, tt := range []struct{ old, now, want string }{
		{"", "", ""},
		{"on_failure: mend", "on_failure: stop", "template-never-set"},
		{"{total: sum}", "{out: concat}", "reducer-type"},
		{"{total: sum}", "{out: append}", ""},
		{"{total: sum}", "{said: max}", "reducer-type"},
		{"{total: sum}", "{said: concat, output: sum}", ""},
		{"items: [1]", "items: [1], total: x", "reducer-type"},
		{"items: [1]", "items: [1], total: 1, initial_prompt: p", "initial-prompt"},
		{"settings: {", "settings: {timeout: 0, max_loop_iterations: 0, ", "zero-limit zero-limit"},
		{"next: e", "next: []", "missing-next"},
		{"nodes:\n", "nodes:\n  fan: {type: llm, prompt: p, next: [one, two]}\n" + twin("one") + twin("two"), "parallel-collect"},
	} {
		text := strings.Replace(mapGraph, tt.old, tt.now, 1)
		var got []string
		for _, f := range check.AdviseFile(mustParse(t, text), nil) {
			got = append(got, f.Code)
		}
		if codes := strings.Join(got, " "); codes != tt.want {
			t.Errorf("%s: %s, want %s", tt.now, codes, tt.want)
		}
	}
}

// A graph that requests every server runs without those that this machine lacks, so their names are no errors.
func TestCheckToolsOfEveryServer(t *testing.T) {
	f := mustParse(t, "name: g\nstart: l\nmcp_servers: [all]\nnodes:\n  l: {type: llm, prompt: p, next: e, tools: ['mcp:srv', 'mcp:far', fs_raed]}\n  e: {type: end}\n")
	var got []string
	for _, found := range check.ValidateFile(f, check.Context{
		Loaded: true, Tools: []string{"fs_read.sh"}, Servers: []string{"srv"},
	}) {
		got = append(got, fmt.Sprintf("%d %s %s", found.Pos.Col, found, found.Fix))
	}
	want := []string{
		"57 graph.yaml:5:57: warning: [l] there is no MCP server 'far'; the node runs without it ",
		"68 graph.yaml:5:68: error: [l] llm node references unknown tool 'fs_raed' did you mean `fs_read`?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A name in a list gets the first finding that applies to it.
func TestCheckSkillNames(t *testing.T) {
	f := mustParse(t, "name: g\nstart: l\nenabled_skills: [' ', a b, ok-1_X, ../x]\nnodes:\n  l: {type: llm, prompt: p, next: e, enabled_skills: ['', ok-1_X]}\n  e: {type: end}\n")
	invalid := "graph 'enabled_skills' contains an invalid skill name: '%s': Invalid skill name '%[1]s': only letters, digits, '-', and '_' are allowed"
	want := []string{
		"graph 'enabled_skills' contains an empty skill name", fmt.Sprintf(invalid, "a b"),
		fmt.Sprintf(invalid, "../x"), "l: llm node 'enabled_skills' contains an empty skill name",
	}
	if diff := cmp.Diff(want, findingTexts(check.ValidateFile(f, check.Context{}))); diff != "" {
		t.Error(diff)
	}
	if got := check.ValidateFile(f, check.Context{NoSkills: true}); len(got) > 0 {
		t.Errorf("skills are off: %v", got)
	}
}

// Only directories with a file SKILL.md are skills.
func TestInstalledSkills(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"skills/b/SKILL.md", "skills/a/SKILL.md", "skills/file", "skills/none/README.md", "skills/odd/SKILL.md/x",
		"other/c/SKILL.md",
	} {
		writeFile(t, dir, path, "x")
	}
	if got := check.InstalledSkills(dir); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q", got)
	}
	if check.InstalledSkills("") != nil || check.InstalledSkills(dir+"/none") != nil {
		t.Error("there are skills without a directory")
	}
}
