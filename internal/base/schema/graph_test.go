package schema

import (
	"fmt"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

const smallGraph = "name: a\nstart: done\nnodes: {done: {type: end}}\n"

func parseGraph(t *testing.T, text string) *spec.File {
	t.Helper()
	f, err := flow.ParseGraph("graph.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestGraphHasTheFieldsOfItsReader(t *testing.T) {
	kinds := parseGraph(t, smallGraph).Kinds
	sameFields(t, "types", texts(member(t, "graph", "definitions", "node", "properties", "type", "enum")), kinds.Names())
	sameFields(t, "definitions", names(member(t, "graph", "definitions").(map[string]any)), append(kinds.Names(), "node", "budget"))
	for _, k := range kinds {
		definition := []string{"definitions", k.Name}
		sameFields(t, k.Name, names(properties(t, "graph", definition...)), slices.Concat(k.Required, k.Optional, []string{"id", "type", "description", "next"}))
		sameFields(t, k.Name, texts(member(t, "graph", append(definition, "required")...)), append([]string{"type"}, k.Required...))
		if doc := member(t, "graph", append(definition, "description")...); doc != k.Doc {
			t.Errorf("%s is %q in the schema, and %q in the table of types", k.Name, doc, k.Doc)
		}
	}
	reader := fieldsRead(t, "../../../flow/spec/parse.go", "m", "ParseFile", "parseSettings", "initialState", "readVariables", "parseReducers", "parseNodes")
	reader = append(append(reader, fieldsRead(t, "../../../flow/spec/skills.go", "m", "readSkills")...), "working_dir", "hooks", "triggers", "migrations", "budget", "defaults")
	sameFields(t, "budget", names(properties(t, "graph", "definitions", "budget")), fieldsRead(t, "../../../flow/spec/budget.go", "s", "readBudget"))
	sameFields(t, "the top level", names(properties(t, "graph")), reader)
	sameFields(t, "settings", names(properties(t, "graph", "properties", "settings")), fieldsRead(t, "../../../flow/spec/parse.go", "s", "parseSettings"))
	sameFields(t, "variables", names(properties(t, "graph", "properties", "variables", "items")), fieldsRead(t, "../../../flow/spec/parse.go", "v", "readVariables"))
	sameFields(t, "reducers", texts(member(t, "graph", "properties", "reducers", "additionalProperties", "enum")), spec.ReducerNames)
}

// fieldsRead lists the fields that functions of a source file read from a receiver.
func fieldsRead(t *testing.T, file, receiver string, functions ...string) (fields []string) {
	t.Helper()
	tree, err := goparser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !slices.Contains(functions, f.Name.Name) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			of, ok := method.X.(*ast.Ident)
			if !ok || of.Name != receiver || !strings.HasPrefix(method.Sel.Name, "Read") && !slices.Contains([]string{"FindField", "GetField", "HasValue", "ReportMissing"}, method.Sel.Name) {
				return true
			}
			if name, ok := call.Args[0].(*ast.BasicLit); ok && name.Kind == token.STRING {
				field, err := strconv.Unquote(name.Value)
				if err != nil {
					t.Fatal(err)
				}
				fields = append(fields, field)
			}
			return true
		})
	}
	if len(fields) == 0 {
		t.Fatalf("%s reads no fields in %q: have the functions other names?", file, functions)
	}
	return fields
}

// readGraph returns why the reader of graphs rejects a text, or warns about a key that it does not know.
func readGraph(text string) error {
	f, err := flow.ParseGraph("graph.yaml", []byte(text))
	if err != nil {
		return err
	}
	return firstUnknownKey(f.Findings)
}

func firstUnknownKey(found []strictyaml.Finding) error {
	i := slices.IndexFunc(found, func(f strictyaml.Finding) bool { return f.Code == "unknown-key" })
	if i < 0 {
		return nil
	}
	return fmt.Errorf("%s", found[i].Message)
}

func TestGraphAcceptsWhatItsReaderAccepts(t *testing.T) {
	top := slices.DeleteFunc(names(properties(t, "graph")), func(field string) bool {
		return slices.Contains([]string{"nodes", "start", "finally"}, field) // the reader checks more than their types
	})
	compareWithReader(t, "graph", top, func(field, value string) string {
		return replaceField("name: a\nstart: done\nnodes: {done: {type: end}}\n", "", field, value)
	}, readGraph)
	compareWithReader(t, "graph", names(properties(t, "graph", "properties", "settings")), func(field, value string) string {
		return fmt.Sprintf("%ssettings:\n  %s: %s\n", smallGraph, field, value)
	}, readGraph)
	compareWithReader(t, "graph", names(properties(t, "graph", "properties", "variables", "items")), func(field, value string) string {
		return smallGraph + "variables:\n- " + strings.TrimPrefix(replaceField("  name: a\n  description: b\n", "  ", field, value), "  ")
	}, readGraph)
	required := map[string]string{"options": "[a]", "routes": "{a: done}", "documents": "[a]"}
	for _, k := range parseGraph(t, smallGraph).Kinds {
		fields := slices.DeleteFunc(names(properties(t, "graph", "definitions", k.Name)), func(field string) bool {
			switch field {
			case "type", "id": // the reader checks more than their types
				return true
			case "driver", "output_schema": // the reader takes any text and any value: the validator and the model refuse them
				return true
			}
			return false
		})
		compareWithReader(t, "graph", fields, func(field, value string) string {
			body := "    type: " + k.Name + "\n"
			for _, name := range k.Required {
				text := required[name]
				if text == "" {
					text = "text"
				}
				body += "    " + name + ": " + text + "\n"
			}
			switch {
			case k.Name == "wait" && field != "for" && field != "until":
				body += "    for: 1h\n" // it has one of the two
			case field == "on_deadline":
				body += "    deadline: 48h\n"
			}
			return "name: a\nstart: node\nnodes:\n  node:\n" + replaceField(body, "    ", field, value)
		}, readGraph)
	}
}

// replaceField returns lines of fields in which a field has a value.
func replaceField(lines, indent, field, value string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if !strings.HasPrefix(line, indent+field+":") {
			b.WriteString(line)
		}
	}
	return b.String() + indent + field + ": " + value + "\n"
}

func TestGraphAcceptsTheFilesOfTheRepository(t *testing.T) {
	validateFiles(t, "graph", "graph.yaml", 8)
}

func TestGraphRejectsBrokenFiles(t *testing.T) {
	s := compile(t, "graph")
	if err := validate(t, s, smallGraph); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"[]", "name: a", "name: a\nstart: b", "name: a\nstart: b\nnodes: {}", "name: a\nstart: b\nnodes: []",
		smallGraph + "nmae: a", smallGraph + "version: '2.0'", smallGraph + "settings: {timeout: soon}", smallGraph + "settings: {timout: 3}",
		smallGraph + "reducers: {a: add}", smallGraph + "variables: [{name: a}]", smallGraph + "variables: [{name: a, description: b, value: c}]",
		smallGraph + "temperature: warm", smallGraph + "global_tools: fs_read", smallGraph + "working_dir: home",
		"name: a\nstart: b\nnodes: {b: {}}",
		"name: a\nstart: b\nnodes: {b: {type: lmm, prompt: c}}",
		"name: a\nstart: b\nnodes: {b: {type: llm}}",
		"name: a\nstart: b\nnodes: {b: {type: wait, next: b}}",
		"name: a\nstart: b\nnodes: {b: {type: wait, for: 1h, until: 2026-12-24, next: b}}",
		"name: a\nstart: b\nnodes: {b: {type: wait, for: 2 days, next: b}}",
		"name: a\nstart: b\nnodes: {b: {type: input, question: c, on_deadline: b, next: b}}",
		"name: a\nstart: b\nnodes: {b: {type: input, question: c, deadline: 1h, on_deadline: {anser: d}, next: b}}",
		"name: a\nstart: b\nnodes: {b: {type: llm, prompt: 3}}",
		"name: a\nstart: b\nnodes: {b: {type: llm, promt: c, prompt: c}}",
		"name: a\nstart: b\nnodes: {b: {type: script, script: a.sh, prompt: c}}",
		"name: a\nstart: b\nnodes: {b: {type: end, exit_code: 1}}",
		"name: a\nstart: b\nnodes: {b: {type: approval, question: c, options: [1], routes: {}, on_other: b}}",
		"name: a\nstart: b\nnodes: {b: {type: rag, documents: [c], driver: mysql}}",
		"name: a\nstart: b\nnodes: {b: {type: map, over: '{{c}}', as: d, branch: e}}",
	} {
		if validate(t, s, text) == nil {
			t.Errorf("the schema accepts\n%s", text)
		}
	}
}
