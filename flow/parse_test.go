package flow

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	gort "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

func mustParse(t testing.TB, text string) *spec.File {
	t.Helper()
	f, err := ParseGraph("graph.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestParseEveryField reads a file that has every field of the format.
func TestParseEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "every-field.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f := mustParse(t, string(text))
	if len(f.Findings) > 0 {
		t.Errorf("unknown keys: %v", f.Findings)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "every-field.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), jsonvalue.Pretty(fileData(f))+"\n"); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, k := range graphKinds {
		i := slices.IndexFunc(f.Nodes, func(n *spec.Node) bool { return n.Kind() == k.Name })
		if i < 0 {
			t.Errorf("no node of type %s", k.Name)
			continue
		}
		for _, field := range slices.Concat(k.Required, k.Optional) {
			hasField := func(n *spec.Node) bool { return n.Kind() == k.Name && n.Source.FieldNode(field) != nil }
			if !slices.ContainsFunc(f.Nodes, hasField) {
				t.Errorf("no node of type %s has %s", k.Name, field)
			}
		}
	}
}

func TestParseDefaults(t *testing.T) {
	f := mustParse(t, `
name: g
start: l
nodes:
  l: {type: llm, prompt: p}
  a: {type: agent, agent: x, prompt: p}
  s: {type: script, script: s.sh}
  r: {type: rag, documents: [d]}
  m: {type: map, over: "{{x}}", as: i, branch: l, collect_into: o}
  i: {type: input, question: q}
  e: {type: end}
`)
	data := fileData(f)
	for path, want := range map[string]any{
		"version": "1.0", "description": "", "model": nil, "settings.max_loop_iterations": int64(100), "settings.timeout": nil,
		"settings.log_state_snapshots": true, "settings.validate_before_run": true, "settings.max_concurrency": int64(8),
		"nodes.l.max_attempts": int64(1), "nodes.l.max_iterations": int64(10), "nodes.l.timeout": nil, "nodes.l.tools": nil, "nodes.l.next": nil,
		"nodes.a.timeout": int64(300), "nodes.s.timeout": int64(30), "nodes.r.timeout": int64(120), "nodes.r.query": "{{initial_prompt}}",
		"nodes.m.output_key": "output", "nodes.m.max_concurrency": nil, "nodes.e.output": "", "nodes.e.description": "", "nodes.e.id": "e",
	} {
		if got := lookData(data, path); !jsonvalue.Equal(got, want) {
			t.Errorf("%s is %s", path, jsonvalue.Compact(got))
		}
	}
	if f.InitialState.Len() != 0 || f.Node("unknown") != nil || f.Reducer("x") != "" {
		t.Error("something was made up")
	}
}

func TestParsePlainScalars(t *testing.T) {
	f := mustParse(t, `
name: 017
description: true
version: 1.0
model: 12
start: 1
global_tools: [1, yes, 2.50]
variables: [{name: 1, description: no, default: 3}]
nodes:
  1: {type: llm, id: 1, description: 1.50, prompt: "p", next: [2, true]}
  2: {type: end}
  true: {type: end}
`)
	data := fileData(f)
	for path, want := range map[string]any{
		"name": "017", "description": "true", "model": "12", "start": "1", "global_tools": []any{"1", "yes", "2.50"},
		"variables[0].name": "1", "variables[0].description": "no", "variables[0].default": "3",
		"nodes.1.id": "1", "nodes.1.description": "1.50", "nodes.1.next": []any{"2", "true"},
	} {
		if got := lookData(data, path); !jsonvalue.Equal(got, want) {
			t.Errorf("%s is %s, want %s", path, jsonvalue.Compact(got), jsonvalue.Compact(want))
		}
	}
}

func TestParseNull(t *testing.T) {
	f := mustParse(t, `
name: g
description:
version: ~
model: null
temperature: null
global_tools:
settings:
initial_state:
reducers:
variables:
start: l
nodes:
  l:
    type: llm
    id: null
    description: null
    next: null
    prompt: p
    instructions: null
    tools: null
    model: ~
    temperature:
    fallback: null
    timeout: null
    state_updates: null
    output_schema: null
    enabled_skills: null
  r: {type: rag, documents: [x], query: null, state_updates: {}}
`)
	l := f.Node("l")
	b := l.Body.(*llmNode)
	if l.Next != nil || l.Updates != nil || b.instructions != nil || b.tools != nil || b.model != "" || b.timeout != nil || l.OutputSchema != nil || l.Skills.Names != nil {
		t.Errorf("null is not unset: %+v %+v", l, b)
	}
	r := f.Node("r")
	if r.Updates == nil || len(r.Updates) != 0 || r.Body.(*ragNode).query.String() != defaultQuery {
		t.Errorf("%+v", r)
	}
	if f.Version != "1.0" || f.Settings.MaxConcurrency != 8 {
		t.Errorf("version %q, %+v", f.Version, f.Settings)
	}
}

func TestParseKeepsOrderAndNumbers(t *testing.T) {
	f := mustParse(t, `
name: g
start: z
initial_state: {z: 3.0, a: 3, big: 18446744073709551615, date: 2001-01-01, on: off, nan: .nan, list: [{y: 1, x: 2}]}
nodes:
  z: {type: approval, question: q, options: [b, a], routes: {b: y, a: y}, on_other: y, state_updates: {k2: x, k1: y}}
  y: {type: end}
`)
	want := `{"z":3.0,"a":3,"big":18446744073709551615,"date":"2001-01-01","on":"off","nan":null,"list":[{"y":1,"x":2}]}`
	if got := jsonvalue.Compact(f.InitialState); got != want {
		t.Error(got)
	}
	n := f.Nodes[0]
	a := n.Body.(*approvalNode)
	if n.ID != "z" || a.routes[0].Key != "b" || n.Updates[0].Key != "k2" || a.options[0] != "b" {
		t.Errorf("order is lost: %+v %+v", n, a)
	}
	if a.target("a") != "y" || a.target("A") != "y" || a.target("") != "y" {
		t.Error("target")
	}
	if at := n.At("on_other"); at.Line != 6 || n.Pos().String() != "graph.yaml:6:3" || n.At("nothing") != n.Pos() {
		t.Errorf("places: %v %v", at, n.Pos())
	}
}

func TestParseErrorText(t *testing.T) {
	_, err := ParseGraph("dir/graph.yaml", []byte("name: g\nstart: x\nnodes:\n  x: {output: hi}\n"))
	want := "YAML parsing error: nodes.x: missing field `type` at line 4 column 3\n\n" +
		"Hint: Check that all required fields are present.\n" +
		"Top-level required fields: `name`, `start`, `nodes`.\n" +
		"Each node requires `type` plus that type's fields:\n" +
		"- agent:    `agent`, `prompt`\n" +
		"- script:   `script`\n" +
		"- approval: `question`, `options`, `routes`, `on_other`\n" +
		"- input:    `question`\n" +
		"- llm:      `prompt`\n" +
		"- rag:      `documents`\n" +
		"- end:      (no required fields)"
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Error(diff)
	}
	_, err = ParseGraph("g", []byte("name: g\nstart: x\nnodes:\n  x: {type: job}\n"))
	want = "YAML parsing error: nodes.x.type: unknown variant `job`, expected one of `agent`, `script`, `approval`, `input`, `llm`, `rag`, `end`, `map`, `wait` at line 4 column 13\n\n" +
		"Hint: Check for typos in field names or `type:` values.\n" +
		"Valid node types: agent, script, approval, input, llm, rag, end."
	if err.Error() != want {
		t.Error(err)
	}
	_, err = ParseGraph("g", []byte("name: g\nstart: x\nnodes:\n  x: {type: end, exit_code: 1}\n"))
	if want = "YAML parsing error: nodes.x.exit_code: invalid value: integer `1`, expected an exit code from 64 to 113 at line 4 column 29"; err.Error() != want {
		t.Error(err)
	}
}

// TestParseOrderOfErrors checks which problem names the error.
func TestParseOrderOfErrors(t *testing.T) {
	for text, want := range map[string]string{
		"nodes: {x: {type: end, output: 1}}":                                                   "output: invalid type",
		"name: g\nstart: q\nversion: 3\nnodes: {x: {type: end, output: 1}}":                    "output: invalid type",
		"name: ''\nstart: q\nversion: 3\nnodes: {x: {id: y, type: end}}":                       "Unsupported graph schema version '3'",
		"name: ''\nstart: q\nnodes: {x: {id: y, type: end}}":                                   "Node ID mismatch: key 'x'",
		"name: ''\nstart: q\nnodes: {x: {type: end}}":                                          "Graph must have a non-empty 'name' field",
		"name: g\nstart: q\nnodes:":                                                            "Graph 'g' has no nodes defined",
		"name: g\nstart: q\nnodes: []":                                                         "nodes: invalid type: sequence, expected a map",
		"name: g\nstart:\nnodes: {a: {type: end}, b: {type: end}}":                             "Start node '' not found in graph 'g'. Available nodes: a, b",
		"name: g\nstart: a\nnodes: {a: {type: llm, next: 1}, b: {type: x}}":                    "missing field `prompt`",
		"name: {a: b}\nstart: a\nnodes: {a: {type: end}}":                                      "name: invalid type: map, expected a string",
		"name: g\nstart: a\nnodes: {a: }":                                                      "nodes.a: invalid type: unit value, expected a map",
		"name: g\nstart: a\nnodes: {a: {type: END}}":                                           "unknown variant `END`",
		"name: g\nstart: a\nsettings: 5\nnodes: {a: {type: end}}":                              "settings: invalid type: integer `5`, expected a map",
		"name: g\nstart: a\nskills_enabled: 1\nnodes: {a: {type: end}}":                        "skills_enabled: invalid type: integer `1`, expected a boolean",
		"name: g\nstart: a\nnodes: {a: {type: llm, prompt: p, timeout: 18446744073709551616}}": "timeout: invalid type: floating point",
	} {
		_, err := ParseGraph("g", []byte(text))
		if err == nil || !strings.Contains(strings.SplitN(err.Error(), "\n", 2)[0], want) {
			t.Errorf("%s\ngives %v, want %s", text, err, want)
		}
	}
}

func TestParseHugeNumbers(t *testing.T) {
	f := mustParse(t, "name: g\nstart: a\nnodes: {a: {type: llm, prompt: p, timeout: 18446744073709551615, max_attempts: 18446744073709551615}}")
	l := f.Node("a").Body.(*llmNode)
	if l.timeout.Duration() < 290*365*24*time.Hour || l.maxAttempts <= 0 {
		t.Errorf("%v, %d", l.timeout.Duration(), l.maxAttempts)
	}
	if strictyaml.Seconds(90).Duration() != 90*time.Second {
		t.Error("seconds")
	}
}

func TestParseRefusesLargeFiles(t *testing.T) {
	text := "name: g\nstart: a\nnodes: {a: {type: end}}\n#"
	fits := text + strings.Repeat("x", strictyaml.MaxFileSize-len(text))
	if _, err := ParseGraph("g", []byte(fits)); err != nil {
		t.Errorf("4 MiB: %v", err)
	}
	_, err := ParseGraph("g", []byte(fits+"x"))
	if err == nil || !strings.Contains(err.Error(), "the file has 4194305 bytes; it may have at most 4194304 (4 MiB)") {
		t.Error(err)
	}
}

func TestParseEncodings(t *testing.T) {
	valid := "name: g\nstart: a\nnodes: {a: {type: end, output: é}}\n"
	for _, text := range []string{"\ufeff" + valid, strings.ReplaceAll(valid, "\n", "\r\n"), "%YAML 1.2\n---\n" + valid + "...\n", valid + "# é"} {
		f, err := ParseGraph("g", []byte(text))
		if err != nil || f.Node("a").Body.(*endNode).output.String() != "é" {
			t.Errorf("%q: %v", text, err)
		}
	}
	for text, want := range map[string]strictyaml.Pos{
		"name: é\xff":          {File: "g", Line: 1, Col: 8},
		"a: b\nname: \"\x00\"": {File: "g", Line: 2, Col: 8},
		"\xff\xfen\x00":        {File: "g", Line: 1, Col: 1},
		"x: \u0080":            {File: "g", Line: 1, Col: 4},
		"x: \uffff":            {File: "g", Line: 1, Col: 4},
	} {
		_, err := ParseGraph("g", []byte(text))
		var bad *spec.ParseError
		if !errors.As(err, &bad) || bad.Findings[0].Pos != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestParseLimits(t *testing.T) {
	head := "name: g\nstart: e\nnodes: {e: {type: end}}\ninitial_state:\n"
	bomb := head + "  b0: &b0 [x, x, x, x, x, x, x, x]\n"
	for i := range 20 {
		n := string(rune('a' + i))
		p := "b0"
		if i > 0 {
			p = string(rune('a' + i - 1))
		}
		bomb += "  " + n + ": &" + n + " [" + strings.Repeat("*"+p+", ", 8) + "]\n"
	}
	for name, tt := range map[string]struct{ text, want string }{
		"alias bomb":      {bomb, "repetition limit exceeded"},
		"large text":      {head + "  a: &a " + strings.Repeat("x", 200_000) + "\n  b: [" + strings.Repeat("*a,", 100) + "]", "repetition limit exceeded"},
		"cycle":           {head + "  a: &a {b: [*a]}", "alias *a refers to a value that contains it"},
		"whole file":      {"&a\nname: g\nstart: e\nnodes: {e: {type: end}, f: *a}", "alias *a refers to a value that contains it"},
		"deep":            {head + "  a: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "more than 1000 nested levels"},
		"deep by alias":   {head + "  a: &a " + strings.Repeat("[", 600) + strings.Repeat("]", 600) + "\n  b: " + strings.Repeat("[", 600) + "*a" + strings.Repeat("]", 600), "makes more than 1000 nested levels"},
		"deeper":          {head + "  a: " + strings.Repeat("[", 100_000), "exceeded max depth"},
		"unknown anchor":  {head + "  a: *unknown", "unknown anchor 'unknown' referenced"},
		"alias of broken": {head + "  a: &a {{x}}\n  b: *a", "quote it"},
	} {
		_, err := ParseGraph("g", []byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestParseHostileSizes checks that large files of every shape are read and
// checked in time that grows with their size.
func TestParseHostileSizes(t *testing.T) {
	const size = 40 << 10
	fill := func(head string, line func(i int) string, tail string) string {
		var b strings.Builder
		b.WriteString(head)
		for i := 0; b.Len() < size; i++ {
			b.WriteString(line(i))
		}
		return b.String() + tail
	}
	head, end := "name: g\nstart: n0\nnodes:\n", "  e: {type: end}\n"
	id := func(i int) string { return jsonvalue.Compact(int64(i)) }
	var big strings.Builder
	for i := range 1000 {
		big.WriteString("k" + id(i) + ": x, ")
	}
	for name, text := range map[string]string{
		"chain": fill(head, func(i int) string {
			return "  n" + id(i) + ": {type: llm, prompt: \"{{k" + id(i) + "}}\", fallback: n" + id(i+2) + ", next: n" + id(i+1) + "}\n"
		}, end),
		"fan-outs": fill(head+"  big: {type: llm, prompt: p, next: e, state_updates: {"+big.String()+"}}\n", func(i int) string {
			return "  n" + id(i) + ": {type: llm, prompt: \"{{k" + id(i) + "}}\", state_updates: {k1: x}, next: [n" + id(i+1) + ", n" + id(i+2) + ", big]}\n"
		}, end),
		"loops": fill(head, func(i int) string {
			return "  n" + id(i) + ": {type: llm, prompt: \"{{k}}\", fallback: n" + id(i/2) + ", next: n" + id(i+1) + "}\n"
		}, end),
		"maps": fill(head, func(i int) string {
			return "  n" + id(i) + ": {type: map, over: \"{{k}}\", as: x, branch: b, collect_into: y, next: n" + id(i+1) + "}\n"
		}, "  b: {type: llm, prompt: \"{{q}}\"}\n"+end),
		"placeholders": fill(head+"  n0: {type: end, output: \"", func(i int) string { return "{{a" + id(i) + "}} " }, "\"}\n"),
		"missing":      fill(head, func(i int) string { return "  n" + id(i) + ": {}\n" }, end),
		"wrong types":  fill(head+"  n0: {type: approval, question: q, routes: {}, on_other: n0, options: [", func(int) string { return "1," }, "]}\n"),
		"unknown keys": fill("name: g\nstart: e\n", func(i int) string { return "k" + id(i) + ": 1\n" }, "nodes:\n"+end),
		"one line":     fill("{name: g, start: n0, nodes: {", func(i int) string { return "n" + id(i) + ": {type: llm, prompt: \"{{k}}\"}, " }, "}}"),
	} {
		start := time.Now()
		if f, err := ParseGraph("g", []byte(text)); err == nil {
			check.ValidateFile(f, check.Context{Loaded: true})
			check.ProvePlaceholders(f)
			check.AdviseFile(f, nil)
		} else if !errors.As(err, new(*spec.ParseError)) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("%s took %v", name, took)
		}
	}
}

func FuzzLoad(f *testing.F) {
	cases, err := filepath.Glob(filepath.Join("testdata", "cases", "*.yaml"))
	if err != nil || len(cases) == 0 {
		f.Fatal("no seeds")
	}
	for _, path := range cases {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if o, ok := strictyaml.DecodeValue(strictyaml.Read(path, text).Root).(*jsonvalue.Object); ok {
			if graph, ok := o.Get("graph"); ok {
				f.Add([]byte(graph.(string)))
			}
		}
	}
	for _, seed := range []string{"", "a: &x [*x]", "name: {{path}}", "{", "- ? a", "&a *a", "a: !!int x", "\xff", "---\n---\n", "name: g\nstart: a\nnodes: &n {a: {type: map, branch: a, over: x, as: x, collect_into: x, next: [a, a]}}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := ParseGraph("graph.yaml", text)
		var findings []strictyaml.Finding
		if err != nil {
			var bad *spec.ParseError
			if !errors.As(err, &bad) || len(bad.Findings) == 0 || bad.Error() == "" || !strictyaml.HasErrors(bad.Findings) {
				t.Fatalf("error without findings: %v", err)
			}
			findings = bad.Findings
		} else {
			findings = slices.Concat(file.Findings, check.ValidateFile(file, check.Context{Loaded: true}), check.ProvePlaceholders(file), check.AdviseFile(file, nil))
		}
		for _, found := range findings {
			if found.Pos.Line < 1 || found.Pos.Col < 1 || found.Pos.File != "graph.yaml" || found.Message == "" || found.Code == "" {
				t.Fatalf("finding without a place: %+v", found)
			}
		}
	})
}

func BenchmarkParse(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("testdata", "every-field.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseGraph("graph.yaml", text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("testdata", "every-field.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	f := mustParse(b, string(text))
	b.ReportAllocs()
	for b.Loop() {
		check.ValidateFile(f, check.Context{Loaded: true})
		check.ProvePlaceholders(f)
		check.AdviseFile(f, nil)
	}
}

// TestReferenceAgentHasEveryField holds the reference of config.yaml to the fields that the decoder asks for.
func TestReferenceAgentHasEveryField(t *testing.T) {
	text := readReference(t, "../examples/reference/agent/config.yaml")
	c, err := spec.ParseConfig("config.yaml", text)
	if err != nil || len(c.Findings) > 0 {
		t.Fatal(err, c.Findings)
	}
	m := strictyaml.NewFields(&strictyaml.Problems{}, c.Source, "")
	(&spec.Config{Source: c.Source}).ReadFields(m)
	compareFields(t, "config.yaml", m.Known, c.Source)
}

// TestReferenceGraphHasEveryField holds the reference of graph.yaml to the fields that the decoder asks for, and to the fields of
// each type of node.
func TestReferenceGraphHasEveryField(t *testing.T) {
	text := readReference(t, "../examples/reference/graph/graph.yaml")
	f, err := ParseGraph("graph.yaml", text)
	if err != nil || len(f.Findings) > 0 {
		t.Fatal(err, f.Findings)
	}
	m := strictyaml.NewFields(&strictyaml.Problems{}, f.Source, "")
	p := &spec.FileParser{Problems: m.Problems, File: &spec.File{FileText: spec.FileText{Source: f.Source}, ByID: map[string]*spec.Node{}, ReducersByKey: map[string]string{}}}
	p.ParseFile(m)
	compareFields(t, "graph.yaml", m.Known, f.Source)
	nested := keysOf(f.SettingsSource)
	maps.Copy(nested, keysOf(strictyaml.Mapping{Node: strictyaml.ResolveAlias(f.Source.FieldNode("variables")).Content[0]}))
	for _, name := range fieldsAskedFor(t, "spec/parse.go", "spec/skills.go", "spec/hooks.go") {
		if !nested[name] && !slices.Contains(m.Known, name) && !slices.Contains([]string{"id", "type", "state_updates"}, name) {
			t.Errorf("graph.yaml has no `%s`", name)
		}
	}
	for _, k := range graphKinds {
		has := map[string]bool{}
		for _, n := range f.Nodes {
			if n.Kind() == k.Name {
				maps.Copy(has, keysOf(n.Source))
			}
		}
		for _, name := range slices.Concat(k.Required, k.Optional) {
			if !has[name] {
				t.Errorf("graph.yaml has no node of the type %s with `%s`", k.Name, name)
			}
		}
	}
}

func keysOf(s strictyaml.Mapping) map[string]bool {
	keys := map[string]bool{}
	content := strictyaml.ResolveAlias(s.Node).Content
	for i := 0; i+1 < len(content); i += 2 {
		keys[content[i].Value] = true
	}
	return keys
}

func compareFields(t *testing.T, file string, known []string, s strictyaml.Mapping) {
	t.Helper()
	written := keysOf(s)
	for _, name := range known {
		if !written[name] {
			t.Errorf("%s has no `%s`, which the decoder knows: add it with a comment", file, name)
		}
	}
	for name := range written {
		if !slices.Contains(known, name) {
			t.Errorf("%s has `%s`, which the decoder does not know", file, name)
		}
	}
}

var (
	referenceField   = regexp.MustCompile(`^( *)(?:- )?[a-z_]+:`)
	referenceComment = regexp.MustCompile(` # \S`)
)

// readReference reads a reference file, in which each line with a field has a comment: all but the members of a schema and the
// values of the state.
func readReference(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	free := -1 // fields deeper than this belong to the person who writes the file
	for i, line := range strings.Split(string(text), "\n") {
		m := referenceField.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		depth := len(m[1])
		if free >= 0 && depth > free {
			continue
		}
		free = -1
		if !referenceComment.MatchString(line) {
			t.Errorf("%s:%d: the field has no comment: %s", path, i+1, line)
		}
		for _, name := range []string{"output_schema", "initial_state", "state_updates"} {
			if strings.HasPrefix(strings.TrimSpace(line), name+":") {
				free = depth
			}
		}
	}
	return text
}

// scaleShapes are graphs of about n nodes whose nodes write a key each and read
// the key of the node before.
var scaleShapes = map[string]func(n int) string{
	"chain of scripts": func(n int) string {
		return layeredGraph(n, 1, "script, script: s.sh")
	},
	"chain of models": func(n int) string {
		return layeredGraph(n, 1, `llm, prompt: "hello"`)
	},
	"layers of scripts": func(n int) string {
		return layeredGraph(n/50, 50, "script, script: s.sh")
	},
	"layers of models": func(n int) string {
		return layeredGraph(n/50, 50, `llm, prompt: "hello"`)
	},
	"one layer": func(n int) string {
		return layeredGraph(1, n, "script, script: s.sh")
	},
}

// layeredGraph is a graph.yaml with a fan-out to width chains of depth nodes.
func layeredGraph(depth, width int, kind string) string {
	var b strings.Builder
	b.WriteString("name: big\nmodel: m\nstart: first\nnodes:\n")
	var first []string
	for w := range width {
		first = append(first, fmt.Sprintf("n0_%d", w))
	}
	fmt.Fprintf(&b, "  first: {type: %s, state_updates: {first: x}, next: [%s]}\n", kind, strings.Join(first, ", "))
	for d := range depth {
		for w := range width {
			read, next := "{{first}}", "last"
			if d > 0 {
				read = fmt.Sprintf("{{k%d_%d}}", d-1, w)
			}
			if d+1 < depth {
				next = fmt.Sprintf("n%d_%d", d+1, w)
			}
			fmt.Fprintf(&b, "  n%d_%d: {type: %s, state_updates: {k%d_%d: %q}, next: %s}\n", d, w, kind, d, w, read, next)
		}
	}
	b.WriteString("  last: {type: end, output: done}\n")
	return b.String()
}

// writeScaleAgent writes an agent directory with a graph.yaml.
func writeScaleAgent(tb testing.TB, text string) string {
	dir := filepath.Join(tb.TempDir(), "big")
	if err := os.Mkdir(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	for name, content := range map[string]string{"graph.yaml": text, "s.sh": "echo '{}'\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// loadScaleAgent loads, checks and compiles an agent without a model: the error
// for the missing model is expected and comes after everything else.
func loadScaleAgent(tb testing.TB, dir string) {
	a, err := Load(dir, Host{Models: oneModel{}})
	if err != nil {
		tb.Fatal(err)
	}
	if strictyaml.HasErrors(a.Findings) {
		tb.Fatal(a.Findings[0])
	}
	if _, err := a.CompileGraph(); err != nil {
		tb.Fatal(err)
	}
}

// TestLoadGrowsLinearly holds what load, check and compile allocate for a graph
// against what they allocate for one of eight times its size. Allocations, other
// than times, are the same on every machine.
func TestLoadGrowsLinearly(t *testing.T) {
	const n, factor = 400, 8
	for name, shape := range scaleShapes {
		t.Run(name, func(t *testing.T) {
			measure := func(n int) uint64 {
				dir := writeScaleAgent(t, shape(n))
				loadScaleAgent(t, dir) // what is made once
				var before, after gort.MemStats
				gort.ReadMemStats(&before)
				loadScaleAgent(t, dir)
				gort.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			small, large := measure(n), measure(factor*n)
			if large > 2*factor*small {
				t.Errorf("%d nodes allocate %d bytes and %d nodes %d: %.1f times as much", n, small, factor*n, large, float64(large)/float64(small))
			}
		})
	}
}

// BenchmarkLoad measures load, check and compile of 5,000 nodes. The goal is half
// a second of processor time.
func BenchmarkLoad(b *testing.B) {
	for name, shape := range scaleShapes {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			dir := writeScaleAgent(b, shape(5000))
			b.ReportAllocs()
			for b.Loop() {
				loadScaleAgent(b, dir)
			}
		})
	}
}
