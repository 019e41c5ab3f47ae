package builtin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/tool/builtin"
)

// Every tool has a row in the guide that names all its arguments, and a test that names it.
func TestEveryToolIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/builtin-tools.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]string{}
	for line := range strings.Lines(string(guide)) {
		names, isRow := strings.CutPrefix(line, "| ")
		if !isRow { // a tool that a sentence describes
			names, _, _ = strings.Cut(line, " ")
		}
		names, _, _ = strings.Cut(names, " |")
		for name := range strings.SplitSeq(names, ", ") {
			if name = strings.Trim(name, "`"); isRow || rows[name] == "" {
				rows[name] = line
			}
		}
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for _, name := range builtin.ToolNames() {
		row, ok := rows[name]
		if !ok {
			t.Errorf("docs/guide/builtin-tools.md has no row for %s", name)
			continue
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(lookup(t, builtin.Host{}, name).Schema, &schema); err != nil {
			t.Fatal(err)
		}
		for key := range schema.Properties {
			if !strings.Contains(row, "`"+key+"`") {
				t.Errorf("the row of %s in docs/guide/builtin-tools.md does not name its argument %s", name, key)
			}
		}
		if !strings.Contains(tests.String(), `"`+name+`"`) && !strings.Contains(tests.String(), "`"+name+"`") {
			t.Errorf("no test of this package names %s", name)
		}
	}
}
