package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/internal/base/strictyaml"
)

// listProblems returns what Parse or ParseConfig finds, a line each, with places and without the hints.
func listProblems(findings []strictyaml.Finding, err error) string {
	if parsed, ok := errors.AsType[*ParseError](err); ok {
		findings = parsed.Findings
	}
	var lines []string
	for _, f := range findings {
		line := fmt.Sprintf("%d:%d %s", f.Pos.Line, f.Pos.Col, f.Message)
		if f.Node != "" {
			line += " [" + f.Node + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// What is wrong with a graph is reported at its place, each problem once.
func TestParseFindings(t *testing.T) {
	const start = "name: g\nstart: a\n"
	const reducer = "expected one of `append`, `extend`, `concat`, `sum`, `max`, `min`, `merge`, `overwrite`"
	for fields, want := range map[string]string{
		"name: g\n": "1:1 missing field `start`\n1:1 missing field `nodes`",
		"name: ''\nstart: b\nnodes: {a: {type: end}}":                  "1:7 Graph must have a non-empty 'name' field\n2:8 Start node 'b' not found in graph ''. Available nodes: a",
		start + "finally: z\nnodes: {a: {type: end}}":                  "3:10 Node 'z' of 'finally' not found in graph 'g'. Available nodes: a",
		start + "version: 2\nnodes: {a: {type: end}}":                  "3:10 Unsupported graph schema version '2'. Supported versions: 1.0",
		start + "nodes: {}":                                            "3:8 Graph 'g' has no nodes defined",
		start + "nodes: []":                                            "3:8 nodes: invalid type: sequence, expected a map",
		start + "nodes: {a: end}":                                      "3:12 nodes.a: invalid type: string \"end\", expected a map",
		start + "nodes: {a: {id: b, type: end}}":                       "3:17 Node ID mismatch: key 'a' does not match node.id 'b' [a]",
		start + "nodes: {a: {type: edn}}":                              "3:19 nodes.a.type: unknown variant `edn`, expected one of `step`, `first`, `any`, `own`, `each`, `wait`, `end`",
		start + "nodes: {a: {type: [end]}}":                            "3:19 nodes.a.type: invalid type: sequence, expected a string",
		start + "nodes: {a: {type: step, wrok: w}}":                    "3:9 nodes.a: missing field `work`\n3:25 unknown key `nodes.a.wrok` is ignored [a]",
		start + "reducers: {x: summ, y: sum}\nnodes: {a: {type: end}}": "3:15 reducers.x: unknown variant `summ`, " + reducer,
		start + "reducers: {[x]: sum, z: max, y: summ}\nnodes: {a: {type: end}}": "3:12 reducers: invalid type: sequence, expected a string key\n" +
			"3:33 reducers.y: unknown variant `summ`, " + reducer,
		start + "reducers: {x: [sum], y: sum}\nnodes: {a: {type: end}}":                  "3:15 reducers.x: invalid type: sequence, expected a string",
		start + "reducers: {x: !!set sum, y: sum}\nnodes: {a: {type: end}}":              "3:15 reducers.x: unsupported tag `!!set`",
		start + "initial_state: [x]\nnodes: {a: {type: end}}":                            "3:16 initial_state: invalid type: sequence, expected a map",
		start + "working_dir: home\nnodes: {a: {type: end}}":                             "3:14 working_dir: unknown directory `home`, expected `caller` (where raddle was started) or `agent` (the agent's directory)",
		start + "variables: {x: y}\nnodes: {a: {type: end}}":                             "3:12 variables: invalid type: map, expected a sequence",
		start + "variables: [x, {name: y}]\nnodes: {a: {type: end}}":                     "3:13 variables[0]: invalid type: string \"x\", expected a map\n3:16 variables[1]: missing field `description`",
		start + "variables: [{name: z, description: d, de: 1}]\nnodes: {a: {type: end}}": "3:39 unknown key `variables[0].de` is ignored",
		start + "settings: {max_con: 1, timeout: soon}\nnodes: {a: {type: end}}": "3:12 unknown key `settings.max_con` is ignored\n" +
			"3:33 settings.timeout: invalid type: string \"soon\", expected u64 (a whole number of seconds)",
		start + "hooks: {x: y}\nnodes: {a: {type: end}}": "3:8 hooks must be a list, not a mapping",
	} {
		f, err := Parse("graph.yaml", []byte(fields), testKinds)
		var findings []strictyaml.Finding
		if f != nil {
			findings = f.Findings
		}
		if got := listProblems(findings, err); got != want {
			t.Errorf("%s\n got %s\nwant %s", fields, got, want)
		}
	}
}

// The fix of a wrong reducer is that reducer's, also after the list of problems is full.
func TestManyWrongReducers(t *testing.T) {
	var text strings.Builder
	text.WriteString("name: g\nstart: a\nnodes: {a: {type: end}}\nreducers:\n")
	for i := range strictyaml.MaxFindings {
		fmt.Fprintf(&text, "  k%d: maxx\n", i)
	}
	text.WriteString("  last: summ\n")
	_, err := Parse("graph.yaml", []byte(text.String()), testKinds)
	parsed, ok := errors.AsType[*ParseError](err)
	if !ok || len(parsed.Findings) != strictyaml.MaxFindings {
		t.Fatalf("%d findings", len(parsed.Findings))
	}
	for _, f := range parsed.Findings {
		if f.Fix != "did you mean `max`?" {
			t.Fatalf("%s: %s", f.Message, f.Fix)
		}
	}
}

// The text of an error has advice for its kind; the first problem in the file is its text, and missing fields come last.
func TestParseErrorAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"start: [a]\n": "YAML parsing error: start: invalid type: sequence, expected a string at line 1 column 8\n\nHint: Check that field values have the correct type.\n" +
			"- Strings should be quoted if they contain special characters\n- Numbers should not be quoted\n" +
			"- Lists use YAML array syntax (- item1)\n- Maps use YAML object syntax (key: value)",
		"name: g\nstart: a\nnodes: {a: {type: stop}}\n": "YAML parsing error: nodes.a.type: unknown variant `stop`, expected one of `step`, `first`, `any`, `own`, `each`, `wait`, `end` " +
			"at line 3 column 19 (did you mean `step`?)\n\nHint: Check for typos in field names or `type:` values.\nValid node types: step, first, any, own, wait, end.",
		"name: g\nstart: a\n": "YAML parsing error: missing field `nodes` at line 1 column 1\n\nHint: Check that all required fields are present.\n" +
			"Top-level required fields: `name`, `start`, `nodes`.\nEach node requires `type` plus that type's fields:\n" +
			"- step:     `work`\n- first:    (no required fields)\n- any:      (no required fields)\n- own:      (no required fields)\n- wait:     (no required fields)\n- end:      (no required fields)",
		"name: ''\nversion: '2'\nstart: a\nnodes: {a: {type: end}}\n": "Unsupported graph schema version '2'. Supported versions: 1.0",
	} {
		if _, err := Parse("graph.yaml", []byte(text), testKinds); err == nil || err.Error() != want {
			t.Errorf("%s\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := ParseConfig("config.yaml", []byte("model: a:b\n")); err == nil ||
		!strings.HasSuffix(err.Error(), "\n\nHint: Check that all required fields are present.") {
		t.Errorf("a config.yaml has no nodes: %v", err)
	}
	if err := ValidationFailure([]strictyaml.Finding{
		{Severity: strictyaml.SeverityWarning, Class: strictyaml.ClassValidate},
		{Severity: strictyaml.SeverityError, Class: strictyaml.ClassParse},
	}); err != nil {
		t.Errorf("no error of the validator: %v", err)
	}
	err := ValidationFailure([]strictyaml.Finding{
		{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Message: "x"},
		{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Node: "n", Message: "y"},
	})
	if want := "Graph validation failed with 2 error(s):\n  x\n  [n] y"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// A key that a type does not have is explained by the types that have it, and by what other formats mean with it.
func TestHintsForKeys(t *testing.T) {
	for key, want := range map[string]string{
		"targets":     "only nodes of type step have it, and this one is of type end",
		"on_deadline": "only nodes of type wait have it", "when": "conditions are in scripts",
		"nxt": "did you mean `next`?", "colour": "",
	} {
		f := parseNodes(t, "  a: {type: end, "+key+": x}\n")
		if len(f.Findings) != 1 || f.Findings[0].Pos.Col != 18 || !strings.HasPrefix(f.Findings[0].Hint, want) ||
			want == "" && f.Findings[0].Hint != "" {
			t.Errorf("%s: %+v", key, f.Findings)
		}
	}
}

func TestWrongConfigs(t *testing.T) {
	for fields, want := range map[string]string{
		"escalate: person":           "2:11 escalate: invalid value: \"person\", expected agent",
		"in_doubt: perhaps":          "2:11 in_doubt: invalid value: \"perhaps\", expected retry, skip, ask",
		"max_cost_per_turn: -0.1":    "2:20 max_cost_per_turn: invalid value: -0.1, expected an amount in US dollars",
		"enabled_macros: []":         "2:17 `enabled_macros` has no effect yet",
		"memory: all\nmax_depth: 1":  "2:9 `memory` has no effect yet\n3:1 unknown key `max_depth` is ignored",
		"memory:":                    "",
		"escalate: agent":            "",
		"max_iterations: many":       "2:17 max_iterations: invalid type: string \"many\", expected usize (a whole number)",
		"fusion: sums\ntriggers: {}": "2:9 fusion: unknown fusion \"sums\": write one of scores, ranks, model\n3:11 triggers: invalid type: map, expected a sequence",
	} {
		c, err := ParseConfig("config.yaml", []byte("name: a\n"+fields+"\n"))
		var findings []strictyaml.Finding
		if c != nil {
			findings = c.Findings
		}
		if got := listProblems(findings, err); got != want {
			t.Errorf("%s\n got %s\nwant %s", fields, got, want)
		}
	}
	c, err := ParseConfig("config.yaml", []byte("name: a\nspawnable_agents: []\nvariables: [{name: v, description: d, default: ''}, {name: w, description: d}]\n"))
	if err != nil || c.Team.Spawnable == nil || len(*c.Team.Spawnable) > 0 || c.Session != nil {
		t.Fatalf("%+v, %v", c, err)
	}
	if v := c.Variable("v"); v == nil || v.Default == nil || *v.Default != "" || c.Variable("w").Default != nil ||
		c.Variable("x") != nil {
		t.Errorf("the variables are %+v", c.Variables)
	}
	if at := c.At("variables"); at.Line != 3 || at.Col != 12 || c.At("model").Line != 1 {
		t.Errorf("places are %v and %v", at, c.At("model"))
	}
}
