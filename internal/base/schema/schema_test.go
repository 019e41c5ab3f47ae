package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"raddle.dev/internal/base/strictyaml"
)

// compile returns a schema that is ready to validate.
func compile(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(Text(name)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	if s.DraftVersion != 7 {
		t.Fatalf("%s is of draft %d", name, s.DraftVersion)
	}
	return s
}

// validate returns why a schema rejects a YAML text, or nil.
func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	d := strictyaml.Read("test.yaml", []byte(text))
	if len(d.List) > 0 {
		return errors.New(d.List[0].Message)
	}
	b, err := json.Marshal(strictyaml.DecodeValue(d.Root))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// properties are the properties of an object schema below a path of members, with their definitions.
func properties(t *testing.T, name string, path ...string) map[string]map[string]any {
	t.Helper()
	props, _ := member(t, name, append(path, "properties")...).(map[string]any)
	found := map[string]map[string]any{}
	for name, p := range props {
		found[name], _ = p.(map[string]any)
	}
	if len(found) == 0 {
		t.Fatalf("%s has no properties at %v", name, path)
	}
	return found
}

func member(t *testing.T, name string, path ...string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(Text(name)), &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	return v
}

func texts(v any) (list []string) {
	items, _ := v.([]any)
	for _, item := range items {
		if item != nil { // null is the default, and no word
			list = append(list, fmt.Sprint(item))
		}
	}
	return list
}

// sameFields fails unless two sets of names are equal.
func sameFields(t *testing.T, what string, got, want []string) {
	t.Helper()
	got, want = slices.Sorted(slices.Values(got)), slices.Compact(slices.Sorted(slices.Values(want)))
	if !slices.Equal(got, want) {
		t.Errorf("%s: the schema has\n%q, the reader has\n%q", what, got, want)
	}
}

func names[V any](m map[string]V) []string { return slices.Collect(maps.Keys(m)) }

// samples are values of all kinds, to compare what a schema and a reader accept.
var samples = []string{
	"null", "text", `"3"`, "''", "3", "0", "-1", "1.5", "true", "yes", "OFF", "[]", "[text]", "[3]", "[null]", "[[text]]", "{}", "{a: text}", "{a: 3}", "{a: null}", "{a: [text]}",
	"agent", "caller", "ask", "yaml", "64", `{a: append}`,
}

// compareWithReader compares what a schema and a reader accept for every property of an object. makeFile returns the text of a
// file in which the property has the value, and read returns what its reader says. A schema may be stricter about the values of
// except.
func compareWithReader(t *testing.T, name string, props []string, makeFile func(field, value string) string, read func(text string) error, except ...string) {
	t.Helper()
	s := compile(t, name)
	for _, field := range slices.Sorted(slices.Values(props)) {
		for _, value := range samples {
			if slices.Contains(except, value) {
				continue
			}
			text := makeFile(field, value)
			byReader, bySchema := read(text), validate(t, s, text)
			if (byReader == nil) != (bySchema == nil) {
				t.Errorf("%s: %s: the reader says %v, the schema %v\n%s", field, value, byReader, bySchema, text)
			}
		}
	}
}

// Every schema describes each of its properties with one sentence, and closes each object.
func TestSchemasAreComplete(t *testing.T) {
	for _, name := range Names {
		compile(t, name)
		if title := member(t, name, "title"); title == nil {
			t.Errorf("%s has no title", name)
		}
		checkProperties(t, name, member(t, name))
	}
}

func checkProperties(t *testing.T, at string, v any) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			checkProperties(t, fmt.Sprintf("%s[%d]", at, i), item)
		}
	case map[string]any:
		props, _ := v["properties"].(map[string]any)
		_, isCondition := v["required"]
		for name, p := range props {
			p, _ := p.(map[string]any)
			text, _ := p["description"].(string)
			if _, isConst := p["const"]; isConst && isCondition && text == "" {
				continue // the condition that selects a type of node
			}
			if !strings.HasSuffix(text, ".") || strings.Contains(text, ". ") || len(text) > 120 {
				t.Errorf("%s: %s is described with %q: write one sentence", at, name, text)
			}
		}
		for key, item := range v {
			checkProperties(t, at+"."+key, item)
		}
	}
}

// filesNamed returns the files of the repository with a name or a pattern of names, below its examples and its bundled agents.
func filesNamed(t *testing.T, name string) (found []string) {
	t.Helper()
	for _, root := range []string{"../../../examples", "../../process/bundle/agents"} {
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if ok, _ := filepath.Match(name, filepath.Base(path)); err == nil && ok {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// validateFiles validates the files of the repository with a name.
func validateFiles(t *testing.T, schema, name string, least int) {
	t.Helper()
	s := compile(t, schema)
	found := filesNamed(t, name)
	if len(found) < least {
		t.Fatalf("there are %d files %s: %q", len(found), name, found)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, string(text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}
