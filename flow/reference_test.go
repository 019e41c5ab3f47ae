package flow

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/strictyaml"
)

// TestReferenceAgentHasEveryField holds the reference of config.yaml to the fields that the decoder asks for.
func TestReferenceAgentHasEveryField(t *testing.T) {
	text := readReference(t, "../examples/reference/agent/config.yaml")
	c, err := ParseConfig("config.yaml", text)
	if err != nil || len(c.Findings) > 0 {
		t.Fatal(err, c.Findings)
	}
	m := strictyaml.NewFields(&strictyaml.Problems{}, c.src, "")
	(&Config{src: c.src}).readFields(m)
	compareFields(t, "config.yaml", m.Known, c.src)
}

// TestReferenceGraphHasEveryField holds the reference of graph.yaml to the fields that the decoder asks for, and to the fields of
// each type of node.
func TestReferenceGraphHasEveryField(t *testing.T) {
	text := readReference(t, "../examples/reference/graph/graph.yaml")
	f, err := Parse("graph.yaml", text)
	if err != nil || len(f.Findings) > 0 {
		t.Fatal(err, f.Findings)
	}
	m := strictyaml.NewFields(&strictyaml.Problems{}, f.src, "")
	p := &parser{Problems: m.Problems, f: &File{fileText: fileText{src: f.src}, byID: map[string]*Node{}, reducers: map[string]string{}}}
	p.parseFile(m)
	compareFields(t, "graph.yaml", m.Known, f.src)
	nested := keysOf(f.settings)
	maps.Copy(nested, keysOf(strictyaml.Mapping{Node: strictyaml.ResolveAlias(f.src.FieldNode("variables")).Content[0]}))
	for _, name := range fieldsAskedFor(t, "parse.go") {
		if !nested[name] && !slices.Contains(m.Known, name) && !slices.Contains([]string{"id", "type", "state_updates"}, name) {
			t.Errorf("graph.yaml has no `%s`", name)
		}
	}
	for _, k := range kinds {
		has := map[string]bool{}
		for _, n := range f.Nodes {
			if n.Kind() == k.name {
				maps.Copy(has, keysOf(n.src))
			}
		}
		for _, name := range slices.Concat(k.required, k.optional) {
			if !has[name] {
				t.Errorf("graph.yaml has no node of the type %s with `%s`", k.name, name)
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
