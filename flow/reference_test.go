package flow

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/strictyaml"
)

// TestReferenceAgentHasEveryField holds the reference of config.yaml to the fields that the decoder asks for.
func TestReferenceAgentHasEveryField(t *testing.T) {
	text := readReference(t, "../examples/reference/agent/config.yaml")
	c, err := spec.ParseConfig("config.yaml", text)
	if err != nil || len(c.Findings) > 0 {
		t.Fatal(err, c.Findings)
	}
	m := strictyaml.NewFields(&strictyaml.Problems{}, c.Src, "")
	(&spec.Config{Src: c.Src}).ReadFields(m)
	compareFields(t, "config.yaml", m.Known, c.Src)
}

// TestReferenceGraphHasEveryField holds the reference of graph.yaml to the fields that the decoder asks for, and to the fields of
// each type of node.
func TestReferenceGraphHasEveryField(t *testing.T) {
	text := readReference(t, "../examples/reference/graph/graph.yaml")
	f, err := ParseGraph("graph.yaml", text)
	if err != nil || len(f.Findings) > 0 {
		t.Fatal(err, f.Findings)
	}
	m := strictyaml.NewFields(&strictyaml.Problems{}, f.Src, "")
	p := &spec.FileParser{Problems: m.Problems, File: &spec.File{FileText: spec.FileText{Src: f.Src}, ByID: map[string]*spec.Node{}, ReducersByKey: map[string]string{}}}
	p.ParseFile(m)
	compareFields(t, "graph.yaml", m.Known, f.Src)
	nested := keysOf(f.SettingsSource)
	maps.Copy(nested, keysOf(strictyaml.Mapping{Node: strictyaml.ResolveAlias(f.Src.FieldNode("variables")).Content[0]}))
	for _, name := range fieldsAskedFor(t, "spec/parse.go", "spec/skills.go") {
		if !nested[name] && !slices.Contains(m.Known, name) && !slices.Contains([]string{"id", "type", "state_updates"}, name) {
			t.Errorf("graph.yaml has no `%s`", name)
		}
	}
	for _, k := range graphKinds {
		has := map[string]bool{}
		for _, n := range f.Nodes {
			if n.Kind() == k.Name {
				maps.Copy(has, keysOf(n.Src))
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
