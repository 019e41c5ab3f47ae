package flow

import (
	"context"
	"go/ast"
	goparser "go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/team"
)

// guide is the text of the guide to the file format.
func guide(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/guide/graph-files.md")
	if err != nil {
		t.Fatalf("%v: the file format needs its guide", err)
	}
	return string(text)
}

// The guide has a section for every type of node, which names each of its fields.
func TestGuideNamesEveryFieldOfEveryNode(t *testing.T) {
	text := guide(t)
	for _, field := range []string{"id", "type", "description", "next"} {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("the guide does not name the field `%s`, which every node has", field)
		}
	}
	for _, k := range graphKinds {
		_, section, ok := strings.Cut(text, "\n### "+k.Name+"\n")
		if !ok {
			t.Errorf("the guide has no section %q", "### "+k.Name)
			continue
		}
		if end := strings.Index(section, "\n##"); end >= 0 {
			section = section[:end]
		}
		for _, field := range slices.Concat(k.Required, k.Optional) {
			if !strings.Contains(section, "`"+field+"`") {
				t.Errorf("the guide's section %q does not name the field `%s`", k.Name, field)
			}
		}
	}
	for _, name := range spec.ReducerNames {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the guide does not name the reducer `%s`", name)
		}
	}
}

// The guide names whatever the parser asks a file for.
func TestGuideNamesEveryTopLevelField(t *testing.T) {
	text := guide(t)
	fields := fieldsAskedFor(t, "spec/parse.go", "spec/skills.go", "spec/hooks.go")
	for _, must := range []string{"name", "nodes", "max_concurrency", "variables", "default"} {
		if !slices.Contains(fields, must) {
			t.Fatalf("`%s` is not among what the parser asks for, %q: have the methods that read fields other names?", must, fields)
		}
	}
	for _, field := range fields {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("the guide does not name the field `%s`", field)
		}
	}
}

var fieldName = regexp.MustCompile(`^[a-z][a-z_]*$`)

// fieldsAskedFor lists the names that source files give to the methods that
// read fields.
func fieldsAskedFor(t *testing.T, files ...string) []string {
	t.Helper()
	found := map[string]bool{}
	asks := []string{"FindField", "GetField", "ReportMissing"}
	visit := func(method string, args []ast.Expr) {
		if !slices.Contains(asks, method) && !strings.HasPrefix(method, "Read") {
			return
		}
		for _, arg := range args {
			if name, ok := textLiteral(arg); ok && fieldName.MatchString(name) {
				found[name] = true
			}
		}
	}
	for _, file := range files {
		eachCall(parsed(t, file), visit)
	}
	return slices.Sorted(maps.Keys(found))
}

// eachCall calls visit for every call of a method in a source file.
func eachCall(tree *ast.File, visit func(method string, args []ast.Expr)) {
	ast.Inspect(tree, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok {
				visit(method.Sel.Name, call.Args)
			}
		}
		return true
	})
}

// textsOf returns the texts in a source file.
func textsOf(t *testing.T, file string) (texts []string) {
	t.Helper()
	ast.Inspect(parsed(t, file), func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok {
			if text, ok := textLiteral(lit); ok {
				texts = append(texts, text)
			}
		}
		return true
	})
	return texts
}

func textLiteral(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(lit.Value)
	return s, err == nil
}

// The guide lists the codes of all findings.
func TestGuideListsEveryCode(t *testing.T) {
	text := guide(t)
	codes := map[string]bool{}
	for _, file := range sourceFiles(t) {
		findingCodes(t, file, codes)
	}
	for _, must := range []string{"no-end", "missing-next", "parallel-reads", "yaml-tag", "empty-name", "template-unassigned", "unknown-key", "rag-documents", "map-over"} {
		if !codes[must] {
			t.Fatalf("`%s` is not among the codes found, %q: are findings made in another way now?", must, slices.Sorted(maps.Keys(codes)))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		if !strings.Contains(text, "`"+code+"`") {
			t.Errorf("the guide does not list the code `%s`", code)
		}
	}
}

// findingCodes adds the codes of the findings that a source file makes: as a field
// of a Finding, or as an argument of the methods that make one.
func findingCodes(t *testing.T, file string, codes map[string]bool) {
	t.Helper()
	place := map[string]int{"ErrorAt": 2, "WarnAt": 2, "addGraphFinding": 2, "addFault": 2, "AddFault": 2}
	tree := parsed(t, file)
	eachCall(tree, func(method string, args []ast.Expr) {
		if at, ok := place[method]; ok && at < len(args) {
			if code, ok := textLiteral(args[at]); ok {
				codes[code] = true
			}
		}
	})
	ast.Inspect(tree, func(n ast.Node) bool {
		if kv, ok := n.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok && key.Name == "Code" {
				if code, ok := textLiteral(kv.Value); ok {
					codes[code] = true
				}
			}
		}
		return true
	})
	if file == "spec/parse.go" { // structure has a function for it
		ast.Inspect(tree, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "add" {
					if code, ok := textLiteral(call.Args[0]); ok {
						codes[code] = true
					}
				}
			}
			return true
		})
	}
}

// sourceFiles lists the source files that make findings.
func sourceFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, dir := range []string{".", "spec", "check", "../internal/base/strictyaml"} {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
}

func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	tree, err := goparser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// Every line of Go in the guide to embedding is a line of an example that runs.
func TestEmbeddingShowsExamplesOnly(t *testing.T) {
	var text string
	for _, file := range []string{"example_test.go", "../graph/example_test.go", "../graph/graphtest/example_test.go", "../graph/history/example_test.go"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	compiled := map[string]bool{}
	for line := range strings.Lines(text) {
		compiled[strings.TrimSpace(line)] = true
	}
	doc, err := os.ReadFile("../docs/guide/embedding.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "```go\n")[1:]
	if len(blocks) < 5 {
		t.Fatalf("there are %d snippets", len(blocks))
	}
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		for line := range strings.Lines(block) {
			if line := strings.TrimSpace(line); !compiled[line] {
				t.Errorf("no example has the line %q", line)
			}
		}
	}
}

// The guide to agents names every field of a config.yaml, and the placeholders of
// its texts.
func TestGuideNamesEveryFieldOfConfig(t *testing.T) {
	b, err := os.ReadFile("../docs/guide/agents.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	fields := append(fieldsAskedFor(t, "spec/config.go", "spec/skills.go", "spec/hooks.go"), "variables", "enabled_macros", "memory")
	for _, must := range []string{"name", "timeout", "auto_continue", "compression_threshold", "spawnable_agents", "enabled_skills"} {
		if !slices.Contains(fields, must) {
			t.Fatalf("`%s` is not among what the parser asks for, %q: have the methods that read fields other names?", must, fields)
		}
	}
	for _, field := range fields {
		if !strings.Contains(text, "`"+field+"`") {
			t.Errorf("the guide does not name the field `%s`", field)
		}
	}
	for _, name := range []string{"__os__", "__os_distro__", "__os_family__", "__arch__", "__shell__", "__locale__", "__now__", "__cwd__", "__tools__"} {
		if _, ok := (&placeholderFiller{env: func(string) string { return "" }}).specialValue(name); !ok || !strings.Contains(text, "`{{"+name+"}}`") {
			t.Errorf("the guide or the code does not know {{%s}}", name)
		}
	}
}

// scripts is Models that know transcripts only, each opened once.
type scripts struct {
	mu     sync.Mutex
	opened map[string]llm.Model
}

func (*scripts) IsKnown(_, id string) bool       { return strings.HasPrefix(id, "script:") }
func (*scripts) Facts(string, string) ModelFacts { return ModelFacts{} }
func (s *scripts) Open(_ context.Context, dir, id string) (llm.Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := filepath.Join(dir, strings.TrimPrefix(id, "script:"))
	if s.opened[path] == nil {
		m, err := script.Open(path)
		if err != nil {
			return nil, err
		}
		s.opened[path] = m
	}
	return s.opened[path], nil
}

var guideFile = regexp.MustCompile("(?s)```yaml\n# ([^\n]+)\n(.*?)```")

// The files that the guide to teams shows are agents that run, and say what it says
// they say; it names every tool.
func TestGuideToTeams(t *testing.T) {
	text, err := os.ReadFile("../docs/guide/teams.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range team.Tools(true) {
		if !strings.Contains(string(text), "`"+u.Name+"`") {
			t.Errorf("the guide does not name %s", u.Name)
		}
	}
	root := t.TempDir()
	files := guideFile.FindAllStringSubmatch(string(text), -1)
	for _, f := range files {
		writeCaseFile(t, root, f[1], f[2])
	}
	if n := strings.Count(string(text), "```yaml"); n != len(files) || n < 5 {
		t.Fatalf("%d of %d blocks say what file they are", len(files), n)
	}
	for name, want := range map[string]string{"news": "Read: The moon does, and the sun. Asked: the moon makes them: yes.", "desk": "The moon does, and the sun.: yes"} {
		a, err := Load(filepath.Join(root, name), Host{Models: &scripts{opened: map[string]llm.Model{}}})
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(a.Findings, func(f strictyaml.Finding) bool { return f.Code != "initial-prompt" }) {
			t.Errorf("%s: %v", name, a.Findings)
		}
		g, err := a.CompileGraph()
		if err != nil {
			t.Fatal(err)
		}
		r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
		in := a.Input("Report on the tides.")
		in.Thread = "t"
		res, err := r.Invoke(t.Context(), in)
		if err != nil || res.Status != graph.Waiting {
			t.Fatalf("%s: %v, %v", name, res.Status, err)
		}
		res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t", Answers: []graph.Answer{{ID: res.Questions[0].ID, Value: "yes"}}})
		if said := OutcomeOf(res).Output; err != nil || said != want || name == "news" && !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("%s says %q, %v", name, said, err)
		}
	}
}
