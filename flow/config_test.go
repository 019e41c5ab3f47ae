package flow

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

func TestParseConfig(t *testing.T) {
	c, err := spec.ParseConfig("config.yaml", []byte(`
name: Sql
version: 1
temperature: 1
agent_session: temp
variables:
  - {name: dsn, description: where the database is}
  - {name: limit, description: rows, default: 20}
mcp_servers: [ddg-search]
can_spawn_agents: true
spawnable_agents: []
compression_threshold: 900
instruction: typo
`))
	if err != nil {
		t.Fatal(err)
	}
	one, session, rows, threshold := 1.0, "temp", "20", 900
	want := &spec.Config{
		Path: "config.yaml", Name: "Sql", Version: "1", Sampling: spec.Sampling{Temperature: &one},
		Prompting: spec.Prompting{ToolTexts: spec.ToolTexts{Todo: true, Spawn: true, Teammates: true, User: true}},
		Variables: []spec.Variable{{Name: "dsn", Description: "where the database is"}, {Name: "limit", Description: "rows", Default: &rows}},
		Session:   &session, MCPServers: []string{"ddg-search"},
		Continue: spec.Continue{Max: 10},
		Team: spec.Team{CanSpawn: true, MaxConcurrent: 4, MaxDepth: 3, Spawnable: &[]string{}, SummaryThreshold: 4000,
			EscalationTimeout: 300},
		Limits: spec.Limits{Iterations: 100, Compression: &threshold, KeepLast: 6},
		Findings: []strictyaml.Finding{
			{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassUnknownKey, Code: "unknown-key", Message: "unknown key `instruction` is ignored",
				Hint: "did you mean `instructions`?", Pos: strictyaml.Pos{File: "config.yaml", Line: 13, Col: 1}},
		},
	}
	c.Text, c.Source = nil, strictyaml.Mapping{}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(spec.Config{}, strictyaml.Mapping{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSwitchesOfAConfig: switches may also be written as in YAML 1.1, unquoted.
func TestSwitchesOfAConfig(t *testing.T) {
	for text, want := range map[string]string{
		"true": "true", "yes": "true", "Yes": "true", "ON": "true", "false": "false", "no": "false", "off": "false",
		`"yes"`: "error", "y": "error", "1": "error", "maybe": "error",
		"": "false", "null": "false", // the default
	} {
		got := "error"
		if c, err := spec.ParseConfig("config.yaml", []byte("name: x\nauto_continue: "+text+"\n")); err == nil {
			got = strconv.FormatBool(c.Continue.Auto)
		}
		if got != want {
			t.Errorf("auto_continue: %s is %s, want %s", text, got, want)
		}
	}
}

func TestParseConfigSaysAllThatIsWrong(t *testing.T) {
	_, err := spec.ParseConfig("config.yaml", []byte("temperature: warm\nmax_auto_continues: -1\nglobal_tools: fs_cat.sh\nvariables: [{name: x}]\n"))
	parse, ok := err.(*spec.ParseError)
	if !ok {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, f := range parse.Findings {
		got = append(got, f.String())
	}
	want := []string{
		"config.yaml:1:1: error: missing field `name`",
		"config.yaml:1:14: error: temperature: invalid type: string \"warm\", expected f64 (a number)",
		"config.yaml:2:21: error: max_auto_continues: invalid value: integer `-1`, expected usize (a whole number)",
		"config.yaml:3:15: error: global_tools: invalid type: string \"fs_cat.sh\", expected a sequence",
		"config.yaml:4:13: error: variables[0]: missing field `description`",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, text := range []string{"", "[]", "a: [", "name: x\n---\nname: y\n"} {
		if _, err := spec.ParseConfig("c", []byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// Values of the environment for a graph that cannot be used are errors, all at once and in one order.
func TestGraphEnvironmentReportsEveryValue(t *testing.T) {
	env := map[string]string{"MY_GRAPH_TEMPERATURE": "warm", "MY_GRAPH_TOP_P": "much", "MY_GRAPH_GLOBAL_TOOLS": `["a", 1]`, "MY_GRAPH_MCP_SERVERS": "{}"}
	err := applyGraphEnvironment(&Agent{Name: "my-graph", File: &spec.File{}}, func(name string) string { return env[name] })
	want := `the environment variable MY_GRAPH_TEMPERATURE: "warm" is not a number
the environment variable MY_GRAPH_TOP_P: "much" is not a number
the environment variable MY_GRAPH_GLOBAL_TOOLS: it must be a JSON list of names, and element 2 is of type number
the environment variable MY_GRAPH_MCP_SERVERS: it must be a JSON list of names, and is of type object`
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want\n%s", err, want)
	}
}

func TestConfigOverrides(t *testing.T) {
	env := map[string]string{
		"MY_BOT_MODEL": "a:b", "MY_BOT_TEMPERATURE": "null", "MY_BOT_TOP_P": "much", "MY_BOT_AGENT_SESSION": "null",
		"MY_BOT_GLOBAL_TOOLS": `["fs_cat.sh"]`, "MY_BOT_MCP_SERVERS": "ddg",
		"MY_BOT_VARIABLES": `[{"name":"a","value":"1"},{"name":"b","description":"d","default":2}]`,
		"BOT_MODEL":        "by:name", "BOT_REASONING_EFFORT": "high",
	}
	half := 0.5
	c := &spec.Config{Path: "config.yaml", Name: "Bot", Sampling: spec.Sampling{Temperature: &half, TopP: &half}, MCPServers: []string{"all"}}
	applyEnvironment(c, "my-bot", func(name string) string { return env[name] })
	one, two := "1", "2"
	want := &spec.Config{
		Path: "config.yaml", Name: "Bot", Sampling: spec.Sampling{Model: "a:b", TopP: &half, ReasoningEffort: "high"},
		Session: new(string), GlobalTools: []string{"fs_cat.sh"}, MCPServers: []string{"all"},
		Variables: []spec.Variable{{Name: "a", Description: "", Default: &one}, {Name: "b", Description: "d", Default: &two}},
	}
	for _, m := range []string{
		`the environment variable MY_BOT_TOP_P is not used: "much" is not a number`,
		"the environment variable MY_BOT_MCP_SERVERS is not used: it must be a JSON list of names: expected a value at line 1 column 1",
	} {
		want.Findings = append(want.Findings, strictyaml.Finding{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassAdvice, Code: "environment", Message: m, Pos: strictyaml.Pos{File: "config.yaml", Line: 1, Col: 1}})
	}
	if diff := cmp.Diff(want, c, cmp.AllowUnexported(spec.Config{}, strictyaml.Mapping{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTexts(t *testing.T) {
	env := map[string]string{"SHELL": "/usr/bin/Nu", "LANG": "de_AT.UTF-8"}
	x := &placeholderFiller{
		variables: []strictyaml.Pair{{Key: "who", Value: "Ada in {{__cwd__}}"}, {Key: "secret", Value: "{{TOKEN}}"}},
		tools:     []tool.Tool{{Name: "a_b", Description: "\nDoes it.\nAt length."}, {Name: "c"}},
		env:       func(name string) string { return env[name] }, cwd: "/home/ada",
		now: time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600)),
	}
	for text, want := range map[string]string{
		"{{who}}":                         "Ada in /home/ada",
		"{{ who }} {{unknown}} {{__x__}}": "{{ who }} {{unknown}} {{__x__}}",
		"{{secret}}":                      "{{TOKEN}}",
		"{{__now__}} {{__locale__}}":      "2026-01-02T03:04:05+01:00 de-AT",
		"{{__shell__}} {{__os_family__}}": "nushell unix",
		"{{__tools__}}":                   "1. a_b: Does it.\n2. c: ",
	} {
		if got := x.fillText(text); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for _, name := range []string{"__os__", "__os_distro__", "__arch__"} {
		if got := x.fillText("{{" + name + "}}"); got == "" || strings.Contains(got, "{{") {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestOpening(t *testing.T) {
	said := func(role llm.Role, text string) llm.Message {
		return llm.Message{Role: role, Parts: []llm.Part{llm.Text{Text: text}}}
	}
	for name, c := range map[string]struct {
		instructions, system string
		messages             []llm.Message
	}{
		"plain":  {"Be brief.", "Be brief.", []llm.Message{llm.User("hi")}},
		"around": {"Translate: __INPUT__!", "", []llm.Message{llm.User("Translate: hi!")}},
		"shots": {"Name a city.\n### INPUT:\nFrance\n### OUTPUT:\nParis\n", "Name a city.",
			[]llm.Message{llm.User("France"), said(llm.RoleAssistant, "Paris"), llm.User("hi")}},
		"unpaired": {"Name it.\n### INPUT:\nFrance\n", "Name it.\n### INPUT:\nFrance\n", []llm.Message{llm.User("hi")}},
	} {
		t.Run(name, func(t *testing.T) {
			system, messages := openingMessages(c.instructions, "hi")
			if system != c.system {
				t.Errorf("system %q, want %q", system, c.system)
			}
			if diff := cmp.Diff(c.messages, messages); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An agent of this kind runs no other: it is listed alone.
func TestConfigAgents(t *testing.T) {
	a := &Agent{Dir: "/a", Config: &spec.Config{}}
	if got := a.Agents(); len(got) != 1 || got[0] != a {
		t.Errorf("%v", got)
	}
}
