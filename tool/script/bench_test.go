package script

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
)

// BenchmarkBashCall is the cost of a call that does nothing.
func BenchmarkBashCall(b *testing.B) {
	testneed.RequirePrograms(b, "bash")
	dir := b.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tools"), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools", "t.sh"), []byte("# @describe T.\n# @option --a!\n# @option --b=x\nmain() { :; }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	h := &Host{Functions: dir, Workspace: dir, Env: []string{"PATH=" + os.Getenv("PATH")}}
	tools, problems := h.GlobalTools([]string{"t"}, nil)
	if len(tools) != 1 {
		b.Fatal(problems)
	}
	for b.Loop() {
		r, err := tools[0].Run(b.Context(), tool.Call{Args: json.RawMessage(`{"a":"1"}`)})
		if err != nil || r.Error {
			b.Fatal(err, r.Text())
		}
	}
}
