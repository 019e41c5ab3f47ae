package flow

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"raddle.dev/flow/check"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// A conformance case is one YAML file under testdata/cases, or in a directory named by RADDLE_CASES (a
// path list; each entry holds the files itself or in its subdirectory cases). This file reads them; the
// tests that drive them are next to the code they test.

// caseFile is one conformance case.
type caseFile struct {
	Path, ID, Title, Kind, Unit string
	Agent, Prompt, Graph        string
	HasGraph                    bool
	Later, Disputed             bool
	Requires                    []string
	Files, Agents, Host, RAG    *jsonvalue.Object
	FillState                   *jsonvalue.Object
	Expect, ExpectCode          *jsonvalue.Object
	LLM, User, Rows             []any
	State                       any
	Raw                         *jsonvalue.Object // all of the file
}

// caseKeys are the keys that a case may have.
var caseKeys = []string{
	"id", "title", "tags", "kind", "later", "disputed", "requires", "agent", "graph", "files", "agents",
	"prompt", "fill_state", "host", "llm", "user", "rag", "expect", "expect_code", "notes",
	"unit", "rows", "state", "documents", "tree", "ordered",
}

// readCases reads all cases, by id.
func readCases(t *testing.T) []*caseFile {
	t.Helper()
	dirs := append([]string{filepath.Join("testdata", "cases")}, filepath.SplitList(os.Getenv("RADDLE_CASES"))...)
	var cases []*caseFile
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		found := 0
		for _, pattern := range []string{"*.yaml", filepath.Join("cases", "*.yaml")} {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range paths {
				found++
				cases = append(cases, readCase(t, path))
			}
		}
		if found == 0 {
			t.Errorf("no cases in %s", dir)
		}
	}
	slices.SortStableFunc(cases, func(a, b *caseFile) int { return strings.Compare(a.ID, b.ID) })
	return cases
}

// readCase reads one file strictly.
func readCase(t *testing.T, path string) *caseFile {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := strictyaml.Read(path, text)
	if len(d.List) > 0 {
		t.Fatalf("%s", d.List[0])
	}
	raw, ok := strictyaml.DecodeValue(d.Root).(*jsonvalue.Object)
	if !ok {
		t.Fatalf("%s: a case must be a map", path)
	}
	for key := range raw.All() {
		if !slices.Contains(caseKeys, key) {
			t.Errorf("%s: unknown key %q", path, key)
		}
	}
	c := &caseFile{Path: path, Raw: raw, Kind: "run", Agent: "case", Prompt: "hello"}
	for key, to := range map[string]*string{
		"id": &c.ID, "title": &c.Title, "kind": &c.Kind, "unit": &c.Unit, "agent": &c.Agent, "prompt": &c.Prompt, "graph": &c.Graph,
	} {
		caseField(t, c, key, to)
	}
	_, c.HasGraph = raw.Get("graph")
	caseField(t, c, "later", &c.Later)
	caseField(t, c, "disputed", &c.Disputed)
	for key, to := range map[string]**jsonvalue.Object{
		"files": &c.Files, "agents": &c.Agents, "host": &c.Host, "rag": &c.RAG, "fill_state": &c.FillState,
		"expect": &c.Expect, "expect_code": &c.ExpectCode,
	} {
		caseField(t, c, key, to)
	}
	caseField(t, c, "llm", &c.LLM)
	caseField(t, c, "user", &c.User)
	caseField(t, c, "rows", &c.Rows)
	c.State, _ = raw.Get("state")
	for _, v := range list(raw, "requires") {
		c.Requires = append(c.Requires, v.(string))
	}
	if name := strings.TrimSuffix(filepath.Base(path), ".yaml"); c.ID != name {
		t.Errorf("%s: id is %q, not the file's name", path, c.ID)
	}
	return c
}

func caseField[T any](t *testing.T, c *caseFile, key string, to *T) {
	t.Helper()
	v, ok := c.Raw.Get(key)
	if !ok {
		return
	}
	typed, ok := v.(T)
	if !ok {
		t.Errorf("%s: %s is %s", c.Path, key, jsonvalue.TypeName(v))
		return
	}
	*to = typed
}

// list is a list in an object, nil when it is missing.
func list(o *jsonvalue.Object, key string) []any {
	v, _ := o.Get(key)
	items, _ := v.([]any)
	return items
}

// texts is a list of strings in an object, nil when it is missing.
func texts(o *jsonvalue.Object, key string) []string {
	var out []string
	for _, v := range list(o, key) {
		out = append(out, v.(string))
	}
	return out
}

// flagOf is a boolean in an object, def when it is missing.
func flagOf(o *jsonvalue.Object, key string, def bool) bool {
	if v, ok := o.Get(key); ok {
		return v.(bool)
	}
	return def
}

// makeDirs creates the directories of a case's agents and returns that of its
// own.
func (c *caseFile) makeDirs(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, c.Agent)
	if err := os.Mkdir(filepath.Join(root, "cwd"), 0o755); err != nil {
		t.Fatal(err)
	}
	if c.HasGraph {
		writeCaseFile(t, dir, "graph.yaml", c.Graph)
	}
	writeCaseFiles(t, dir, c.Files)
	for name, v := range c.Agents.All() {
		agent, _ := v.(*jsonvalue.Object)
		files, _ := agent.Get("files")
		if content, ok := files.(*jsonvalue.Object); ok {
			writeCaseFiles(t, filepath.Join(root, name), content)
			continue
		}
		writeCaseFile(t, filepath.Join(root, name), "config.yaml", "name: "+name+"\n")
	}
	return dir
}

func writeCaseFiles(t *testing.T, dir string, files *jsonvalue.Object) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files.All() {
		writeCaseFile(t, dir, name, text.(string))
	}
}

func writeCaseFile(t testing.TB, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// known is what a case's host lets the validator know.
func (c *caseFile) known(dir string) check.Context {
	models := []string{"fake:main", "fake:small"}
	if v, ok := c.Host.Get("models"); ok {
		models = nil
		for _, m := range v.([]any) {
			models = append(models, m.(string))
		}
	}
	return check.Context{
		Dir:     dir,
		Loaded:  flagOf(c.Host, "agent_context", true),
		Tools:   append(texts(c.Host, "tools"), texts(c.Host, "global_tool_files")...),
		Servers: texts(c.Host, "mcp_servers"),
		Skills:  texts(c.Host, "installed_skills"),
		Model:   func(id string) bool { return slices.Contains(models, id) },
	}
}

// wantErrors compares an error with the expressions that its text must match.
func (c *caseFile) wantErrors(t *testing.T, err error) {
	t.Helper()
	patterns := texts(c.Expect, "error")
	if err == nil {
		if patterns != nil {
			t.Fatalf("no error, want %q", patterns)
		}
		return
	}
	if patterns == nil {
		t.Fatalf("unexpected error: %v", err)
	}
	for _, p := range patterns {
		if ok, bad := regexp.MatchString(p, err.Error()); bad != nil || !ok {
			t.Errorf("error\n%s\ndoes not match %q (%v)", err, p, bad)
		}
	}
}

// findingTexts returns the texts of findings, with their nodes.
func findingTexts(findings []strictyaml.Finding) []string {
	texts := []string{}
	for _, f := range findings {
		texts = append(texts, findingText(f.Node, f.Message))
	}
	return texts
}

// findingText is a finding as cases write it.
func findingText(node any, message string) string {
	if id, ok := node.(string); ok && id != "" {
		return fmt.Sprintf("%s: %s", id, message)
	}
	return message
}
