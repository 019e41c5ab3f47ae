package schema

import (
	"errors"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm/script"
	"raddle.dev/tool"
	"raddle.dev/tool/mcp"
	"raddle.dev/tool/permission"
)

// textsIn returns the texts that a node of the syntax of a source file holds: in the keys of its mappings with keys, in its cases
// with cases, otherwise everywhere. node is a function or a variable.
func textsIn(t *testing.T, file, node, where string) (found []string) {
	t.Helper()
	tree, err := goparser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	add := func(list ...ast.Expr) {
		for _, e := range list {
			if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				text, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, text)
			}
		}
	}
	object := tree.Scope.Lookup(node)
	var root ast.Node
	if object != nil {
		root, _ = object.Decl.(ast.Node)
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == node {
			root = f
		}
	}
	if root == nil {
		t.Fatalf("%s has no %s: has it another name?", file, node)
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if where == "keys" {
				add(n.Key)
			}
		case *ast.CaseClause:
			if where == "cases" {
				add(n.List...)
			}
		case *ast.CompositeLit:
			if where == "rows" && len(n.Elts) == 2 {
				add(n.Elts[0])
			} else if where == "list" {
				add(n.Elts...)
			}
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s: %s holds no texts", file, node)
	}
	return found
}

func rejectAll(t *testing.T, name string, read func(string) error, files ...string) {
	t.Helper()
	s := compile(t, name)
	for _, text := range files {
		if read(text) == nil {
			t.Errorf("the reader of %s accepts\n%s", name, text)
		}
		if validate(t, s, text) == nil {
			t.Errorf("the schema %s accepts\n%s", name, text)
		}
	}
}

func readPermissions(text string) error {
	_, err := permission.LoadRules("permissions.yaml", []byte(text))
	return err
}

func TestPermissions(t *testing.T) {
	sameFields(t, "the top level", names(properties(t, "permissions")), textsIn(t, "../../../tool/permission/rule.go", "ReadRules", "keys"))
	compareWithReader(t, "permissions", names(properties(t, "permissions")), func(field, value string) string { return field + ": " + value + "\n" }, readPermissions,
		"[null]") // the reader takes the word
	s := compile(t, "permissions")
	for _, rule := range []string{"fs_write", "fs_write(src/**)", "execute_command(git status *)", "mcp_invoke_tracker(tool=list_*, project=web)", "any write(/tmp/**)", "any host", "'*'"} {
		text := "allow: [\"" + rule + "\"]"
		if rule == "'*'" {
			text = "allow: ['*']"
		}
		if err := errors.Join(readPermissions(text), validate(t, s, text)); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
	rejectAll(t, "permissions", readPermissions, "[]", "alow: [fs_write]", "allow: fs_write", "allow: [{fs_write: x}]", `deny: ["fs_write("]`, `deny: ["fs_write()"]`, `ask: ["any thing"]`, `ask: ["a b"]`)
}

func readHooks(text string) error {
	_, err := hook.Parse("hooks.yaml", []byte(text))
	return err
}

// Hooks are the same in the configuration and in the file of a project.
func TestHooks(t *testing.T) {
	if d := cmp.Diff(properties(t, "config")["hooks"], properties(t, "hooks")["hooks"]); d != "" {
		t.Errorf("hooks in config.yaml and in hooks.yaml (-config +hooks):\n%s", d)
	}
	s := compile(t, "hooks")
	for _, text := range []string{"hooks: []", "hooks: [{on: before_tool, run: ./x.sh}]", "hooks: [{on: after_tool, run: x, tools: [fs_write, 'any host'], timeout: 600}, {on: question, run: y}, {on: turn_end, run: z}]"} {
		if err := errors.Join(readHooks(text), validate(t, s, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	rejectAll(t, "hooks", readHooks, "[]", "hook: []", "hooks: [{on: before_tool}]", "hooks: [{run: x}]", "hooks: [{on: never, run: x}]", "hooks: [{on: question, run: x, timeout: 601}]", "hooks: [{on: question, run: x, when: y}]", "hooks: x")
}

func readTranscript(text string) error {
	_, err := script.Parse("transcript.yaml", []byte(text))
	return err
}

func TestTranscript(t *testing.T) {
	const source = "../../../llm/script/load.go"
	entry := []string{"items"}
	sameFields(t, "a reply", names(properties(t, "transcript", entry...)), textsIn(t, source, "parseEntry", "keys"))
	sameFields(t, "usage", names(properties(t, "transcript", "items", "properties", "usage")), textsIn(t, source, "parseUsage", "keys"))
	sameFields(t, "a call", names(properties(t, "transcript", "items", "properties", "tool_calls", "items")), textsIn(t, source, "parseCalls", "keys"))
	failure := member(t, "transcript", "items", "properties", "error", "anyOf").([]any)[1].(map[string]any)["properties"].(map[string]any)
	sameFields(t, "a failure", names(failure), textsIn(t, source, "parseFailure", "keys"))
	compareWithReader(t, "transcript", names(properties(t, "transcript", entry...)), func(field, value string) string {
		if field == "error" || field == "text" || field == "reasoning" || field == "tool_calls" {
			return "- " + field + ": " + value + "\n"
		}
		return "- text: hello\n  " + field + ": " + value + "\n"
	}, readTranscript, `"3"`) // the reader takes numbers in quotes
	compareWithReader(t, "transcript", names(failure), func(field, value string) string {
		if field == "class" {
			return "- error: {class: " + value + "}\n"
		}
		return "- error:\n    class: server\n    " + field + ": " + value + "\n"
	}, readTranscript, `"3"`)
	classes := texts(failure["class"].(map[string]any)["enum"])
	if err := readTranscript("- error: {class: odd}"); err == nil || !strings.HasSuffix(err.Error(), "the classes are "+strings.Join(classes, ", ")) {
		t.Errorf("the schema has the classes %q, the reader says %v", classes, err)
	}
	rejectAll(t, "transcript", readTranscript, "{}", "[]", "- {}", "- match: a", "- {text: a, error: b}", "- {txt: a}", "- {text: a, turn: 0}", "- {text: a, match: []}",
		"- {error: {message: a}}", "- {error: {class: odd}}", "- {tool_calls: [{args: {}}]}", "- {tool_calls: [{name: a, args: [1]}]}", "- {text: a, usage: {in: 1}}")
	validateFiles(t, "transcript", "transcript.yaml", 8)
}

func readServers(text string) error {
	f, err := mcp.Parse("mcp.json", []byte(text))
	if err == nil && len(f.Problems) > 0 {
		err = errors.New(f.Problems[0].Message)
	}
	return err
}

func TestMCP(t *testing.T) {
	entry := []string{"properties", "mcpServers", "additionalProperties"}
	sameFields(t, "a server", names(properties(t, "mcp", entry...)), textsIn(t, "../../../tool/mcp/entry.go", "readEntry", "cases"))
	sameFields(t, "types", append(texts(member(t, "mcp", append(entry, "properties", "type", "enum")...)), ""),
		textsIn(t, "../../../tool/mcp/entry.go", "resolveTransport", "cases"))
	sameFields(t, "in_doubt", texts(member(t, "mcp", append(entry, "properties", "in_doubt", "enum")...)), tool.Doubts)
	compareWithReader(t, "mcp", names(properties(t, "mcp", entry...)), func(field, value string) string {
		other := "command: prog"
		switch field {
		case "command":
			return "mcpServers:\n  a:\n    command: " + value + "\n"
		case "url", "headers":
			other = "type: http"
			if field == "headers" {
				other = "url: http://a"
			}
		}
		return "mcpServers:\n  a:\n    " + other + "\n    " + field + ": " + value + "\n"
	}, readServers, "''") // the reader takes an empty type for none
	rejectAll(t, "mcp", readServers, "[]", "mcpServers: []", "mcpServers: {a: {}}", "mcpServers: {a: b}", "mcpServers: {a: {command: b, url: c}}", "mcpServers: {a: {type: sse, command: b}}",
		"mcpServers: {a: {type: stdio, url: b}}", "mcpServers: {a: {type: smoke, url: b}}", "mcpServers: {a: {command: b, args: c}}", "mcpServers: {a: {command: b, env: {c: [d]}}}")
	validateFiles(t, "mcp", "mcp.json", 2)
}

func readConfig(t *testing.T) func(text string) error {
	dir := t.TempDir()
	return func(text string) error {
		if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(dir, environ.New(nil))
		return err
	}
}

func TestConfig(t *testing.T) {
	const dir = "../../storage/config/"
	keys := append(textsIn(t, dir+"config.go", "settings", "rows"), textsIn(t, dir+"config.go", "configKeys", "list")...)
	sameFields(t, "the top level", names(properties(t, "config")), keys)
	client := member(t, "config", "properties", "clients", "anyOf").([]any)[0].(map[string]any)["items"].(map[string]any)["properties"].(map[string]any)
	sameFields(t, "a client", names(client), textsIn(t, dir+"configclients.go", "clientKeys", "list"))
	model := client["models"].(map[string]any)["items"].(map[string]any)["anyOf"].([]any)[1].(map[string]any)["properties"].(map[string]any)
	sameFields(t, "a model", names(model), textsIn(t, dir+"configclients.go", "modelKeys", "list"))
	sameFields(t, "kinds of models", texts(model["type"].(map[string]any)["enum"]), textsIn(t, dir+"configclients.go", "modelKinds", "list"))
	sameFields(t, "types of clients", texts(client["type"].(map[string]any)["enum"]),
		append(config.ClientTypes(), names(config.ClientAliases)...))
	read := readConfig(t)
	compareWithReader(t, "config", names(properties(t, "config")), func(field, value string) string { return field + ": " + value + "\n" }, read)
	compareWithReader(t, "config", slices.DeleteFunc(names(model), func(f string) bool { return f == "name" }), func(field, value string) string {
		return "clients:\n- type: openai\n  models:\n  - name: a\n    " + field + ": " + value + "\n"
	}, read, "-1") // the reader takes a negative number of tokens
	compareWithReader(t, "config", []string{"name", "api_base", "api_key", "models"}, func(field, value string) string {
		return "clients:\n- type: openai\n  " + field + ": " + value + "\n"
	}, read)
	rejectAll(t, "config", read, "[]", "modle: a", "temperature: 3", "temperature: warm", "max_state: -1", "read_timeout: soon", "read_timeout: 0", "in_doubt: never",
		"mcp_server_support: perhaps", "clients: [{type: opnai}]", "clients: [{api_base: 'http://a'}]", "clients: [null]", "clients: [{type: openai, key: a}]", "clients: [{type: openai, models: [{nam: a}]}]", "clients: {a: {type: openai, models: [{name: a, type: talk}]}}",
		"permissions: {alow: []}", "document_loaders: [a]", "visible_skills: a")
	s := compile(t, "config")
	for _, text := range []string{
		"model: openai:gpt-5-mini\ntemperature: 0.7\ntop_p: 1\nread_timeout: 5m\nretry_patience: 0\n", "clients:\n- {type: openai, api_key: '${OPENAI_API_KEY}'}\n- {name: lab, type: openai-compatible, api_base: 'http://a', models: [a, {name: b, max_input_tokens: 8000, input_price: 0.5}]}\n",
		"clients: {claude: {models: [a]}}", "permissions: {allow: [fs_write(src/**)], deny: ['any host']}",
	} {
		if err := errors.Join(read(text), validate(t, s, text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func readCases(text string) error {
	_, err := testcase.Read("a.test.yaml", []byte(text))
	return err
}

func TestCases(t *testing.T) {
	const read, expect = "../../proving/testcase/read.go", "../../proving/testcase/readexpect.go"
	common := textsIn(t, read, "setupReaders", "keys")
	sameFields(t, "the top level", names(properties(t, "test")), append(common, "tests"))
	sameFields(t, "a case", names(properties(t, "test", "definitions", "case")), append(common, "name", "faults", "expect"))
	sameFields(t, "expect", names(properties(t, "test", "definitions", "expect")), textsIn(t, expect, "readExpect", "keys"))
	reply := member(t, "test", "definitions", "reply", "anyOf").([]any)[1].(map[string]any)["properties"].(map[string]any)
	entry := slices.DeleteFunc(textsIn(t, "../../../llm/script/load.go", "parseEntry", "keys"), func(key string) bool { return key == "request" })
	sameFields(t, "a reply", names(reply), append(entry, "node"))
	compareWithReader(t, "test", names(properties(t, "test", "definitions", "case")), func(field, value string) string {
		if field == "name" {
			return "tests:\n- name: " + value + "\n"
		}
		return "tests:\n- name: a\n  " + field + ": " + value + "\n"
	}, readCases, "[{a: append}]")
	compareWithReader(t, "test", names(properties(t, "test", "definitions", "expect")), func(field, value string) string {
		return "tests:\n- name: a\n  expect:\n    " + field + ": " + value + "\n"
	}, readCases)
	rejectAll(t, "test", readCases, "[]", "tests: []", "tests: [{}]", "tests: [{name: a, promt: b}]", "tests: [{name: a, faults: {b: crash}}]", "tests: [{name: a, expect: {status: paused}}]",
		"tests: [{name: a, replies: [{nod: b}]}]", "tests: [{name: a, expect: {path: {nevr: b}}}]")
	validateFiles(t, "test", "*.test.yaml", 21)
}
