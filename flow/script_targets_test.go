package flow

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScriptTargets(t *testing.T) {
	tests := map[string]struct{ name, text, want string }{
		"JSON of bash":      {"a.sh", "echo '{\"_next\": \"draft\"}'", "draft 1:18"},
		"escaped":           {"a.sh", `echo "{\"_next\": \"draft\", \"n\": 1}"`, "draft 1:21"},
		"here document":     {"a.sh", "cat <<EOF\n{\"n\": 1,\n \"_next\":\"draft\"}\nEOF", "draft 3:11"},
		"variable":          {"a.sh", "next=done\nif x; then next=\"again\"; fi\necho \"{\\\"_next\\\": \\\"$next\\\"}\"", "done 1:6, again 2:18"},
		"variable in jq":    {"a.sh", "n=again\njq -n '{_next: \"draft\"}'", "draft 2:17"},
		"comment":           {"a.sh", "# prints {\"_next\": \"draft\"}\necho '{}'", ""},
		"Python":            {"a.py", `out["_next"] = "write"` + "\n" + `out |= {'_next': 'read'}`, "write 1:17, read 2:19"},
		"Python, choice":    {"a.py", `print(json.dumps({"_next": "bad" if t >= 3 else "work", "x": "y"}))`, "bad 1:29, work 1:50"},
		"Python, argument":  {"a.py", `print(json.dumps(dict(_next="end")))`, "end 1:30"},
		"TypeScript":        {"a.ts", `console.log(JSON.stringify({_next: n > 2 ? "stop" : "go", other: "no"}))`, "stop 1:45, go 1:54"},
		"computed":          {"a.py", `out["_next"] = choose(state)`, ""},
		"another variable":  {"a.sh", "mynext=no\necho \"{\\\"_next\\\": \\\"$next\\\"}\"", ""},
		"every place":       {"a.sh", "echo '{\"_next\": \"a\"}'\necho '{\"_next\": \"a\"}'", "a 1:18, a 2:18"},
		"longer name":       {"a.sh", "echo '{\"my_next\": \"a\", \"_next_one\": \"b\"}'", ""},
		"member, then more": {"a.ts", `const r = {"_next": "a", "k": c ? "x" : "y"}`, "a 1:22"},
	}
	for name, test := range tests {
		path := filepath.Join(t.TempDir(), test.name)
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, target := range findScriptTargets(path, nil) {
			at := target.Pos.String()
			got = append(got, target.Node+" "+strings.TrimPrefix(at, path+":"))
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}
