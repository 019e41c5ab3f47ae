package mcpsetup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFileKeepsWhatItHas(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	before := `{"other": 1, "mcpServers": {"z": {"command": "x", "disabled": true}}, "last": [2]}`
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AddServer(path, "a", Entry{Target: []string{"npx", "-y", "server"}, Env: map[string]string{"B": "2", "A": "1"}}); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	want := `{
  "other": 1,
  "mcpServers": {
    "z": {
      "command": "x",
      "disabled": true
    },
    "a": {
      "command": "npx",
      "args": [
        "-y",
        "server"
      ],
      "env": {
        "A": "1",
        "B": "2"
      }
    }
  },
  "last": [
    2
  ]
}
`
	if string(text) != want {
		t.Errorf("the file is %s", text)
	}
	if there, err := RemoveServer(path, "z"); !there || err != nil {
		t.Error(there, err)
	}
	if there, err := RemoveServer(path, "z"); there || err != nil {
		t.Error(there, err)
	}
}

// A change would lose comments, so that such a file is left as it is.
func TestFileWithComments(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	before := "# mine\n{\"mcpServers\": {}}\n"
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := AddServer(path, "a", Entry{Target: []string{"x"}}); err == nil || !strings.Contains(err.Error(), "would lose comments") {
		t.Error(err)
	}
	if text, _ := os.ReadFile(path); string(text) != before {
		t.Errorf("the file is %s", text)
	}
}
