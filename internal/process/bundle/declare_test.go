package bundle

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/declare"
)

// signature returns a declaration on one line: its name, its parameters with ! after
// the required ones, and the effect of a repetition.
func signature(t *testing.T, d declare.Declaration) string {
	t.Helper()
	var schema struct {
		Properties map[string]struct{ Type, Description string }
		Required   []string
	}
	if err := json.Unmarshal(d.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	var params []string
	for name, p := range schema.Properties {
		if p.Type != "string" || p.Description == "" {
			t.Errorf("%s: the parameter %s is %+v", d.Name, name, p)
		}
		if slices.Contains(schema.Required, name) {
			name += "!"
		}
		params = append(params, name)
	}
	slices.Sort(params)
	return d.Name + "(" + strings.Join(params, ", ") + ") " + string(d.Effect)
}

func TestDeclarations(t *testing.T) {
	want := map[string][]string{
		"code-reviewer": {"get_changed_files(base) read-only", "get_diff(base) read-only", "get_project_info() read-only"},
		"coder": {"find_similar_files(path!) read-only", "get_project_structure() read-only", "read_file(path!) read-only", "run_tests() idempotent",
			"search_code(pattern!) read-only", "verify_build() idempotent", "write_file(content!, path!) idempotent"},
		"demo": {"get_ipinfo() dangerous"},
		"explore": {"find_similar(path!) read-only", "get_structure() read-only", "read_file(lines, path!) read-only",
			"search_content(file_type, pattern!) read-only", "search_files(pattern!) read-only"},
		"file-reviewer": {"get_structure() read-only"},
		"oracle": {"analyze_with_command(command!) read-only", "get_project_info() read-only", "list_directory(path) read-only",
			"read_file(path!) read-only", "search_code(file_type, pattern!) read-only"},
		"sisyphus": {"get_project_info() read-only", "run_build() idempotent", "run_tests() idempotent"},
		"sql":      {"describe_table(table_name!) read-only", "list_tables() read-only", "read_query(query!) read-only", "write_query(query!) dangerous"},
	}
	dir := t.TempDir()
	install(t, dir, Options{})
	testfile.WriteFile(t, filepath.Join(dir, "demo-in-bash", "tools.sh"), get(t, filepath.Join(dir, "demo", "tools.sh.off")))
	want["demo-in-bash"] = want["demo"]
	got := map[string][]string{}
	for _, name := range append(Names(), "demo-in-bash") {
		for _, script := range []string{"tools.sh", "tools.py"} {
			path := filepath.Join(dir, name, script)
			if _, err := os.Stat(path); err != nil {
				continue
			}
			f := declare.Load(path)
			for _, p := range f.Problems {
				t.Error(p)
			}
			for _, d := range f.Declarations {
				got[name] = append(got[name], signature(t, d))
			}
			slices.Sort(got[name])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The guide has a row for each agent, and describes each variable.
func TestGuide(t *testing.T) {
	guide := get(t, "../../../docs/guide/bundled-agents.md")
	for _, name := range Names() {
		if !strings.Contains(guide, "\n| `"+name+"` | ") {
			t.Errorf("the table of docs/guide/bundled-agents.md has no row for %s", name)
		}
		for _, f := range listFiles(name) {
			if !f.isDefinition() {
				continue
			}
			_, rest, _ := strings.Cut(string(f.text), "\nvariables:\n")
			for line := range strings.Lines(rest) {
				variable, ok := strings.CutPrefix(line, "  - {name: ")
				if !ok {
					break
				}
				if variable, _, _ = strings.Cut(variable, ","); !strings.Contains(guide, "\n| `"+variable+"` | ") {
					t.Errorf("the guide does not name the variable %s of %s", variable, name)
				}
			}
		}
	}
}
