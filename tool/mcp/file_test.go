package mcp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestParse(t *testing.T) {
	f, err := Parse("m.json", []byte(`{
  # a comment, as some tools write them
  "$schema": "whatever",
  "mcpServers": {
    "old": {"command": "npx", "args": ["-y", "pkg"], "env": {"K": "v", "N": 1, "F": 2.50, "B": true}, "cwd": "dir", "disabled": false, "sandbox": true},
    "new": {"type": "http", "url": "https://x.org/mcp", "headers": {"Authorization": "Bearer {{T}}"}, "oauth": {"clientId": "x"}},
    "inferred": {"url": "http://localhost:1"},
    "stream": {"type": "sse", "url": "http://localhost:2/sse"}
  }
}`))
	if err != nil || len(f.Problems) > 0 {
		t.Fatal(err, f.Problems)
	}
	want := []Server{
		{ID: "inferred", Transport: HTTP, Pos: "m.json:7:5", URL: "http://localhost:1"},
		{ID: "new", Transport: HTTP, Pos: "m.json:6:5", URL: "https://x.org/mcp", Headers: map[string]string{"Authorization": "Bearer {{T}}"}},
		{ID: "old", Transport: Stdio, Pos: "m.json:5:5", Command: "npx", Args: []string{"-y", "pkg"}, Dir: "dir", Sandbox: true,
			Env: map[string]string{"K": "v", "N": "1", "F": "2.50", "B": "true"}},
		{ID: "stream", Transport: SSE, Pos: "m.json:8:5", URL: "http://localhost:2/sse"},
	}
	if d := cmp.Diff(want, f.Servers, cmpopts.IgnoreUnexported(Server{})); d != "" {
		t.Errorf("servers (-want +got):\n%s", d)
	}
}

func TestProblemsOfEntries(t *testing.T) {
	for entry, want := range map[string]string{
		`{}`:                                          `m.json:2:1: MCP server 'x' has neither a "command" nor a "url"`,
		`[]`:                                          `m.json:2:5: MCP server 'x' is not an object`,
		`{"command":1}`:                               `m.json:2:16: MCP server 'x' has a "command" that is not a string`,
		`{"command":"a","args":"b"}`:                  `m.json:2:27: MCP server 'x' has a "args" that is not a list`,
		`{"command":"a","args":[[]]}`:                 `m.json:2:28: MCP server 'x' has in "args" an item 0 that is not a string`,
		`{"command":"a","env":{"A":null}}`:            `m.json:2:31: MCP server 'x' has in "env" a "A" that is not a string, a number, true or false`,
		`{"command":"a","env":3}`:                     `m.json:2:26: MCP server 'x' has "env" that is not an object`,
		`{"command":"a","url":"b"}`:                   `m.json:2:26: MCP server 'x' has both a "command" and a "url": remove one of them`,
		`{"type":"http"}`:                             `m.json:2:1: MCP server 'x' has type "http" but is missing a "url" field`,
		`{"type":"stdio","url":"b"}`:                  `m.json:2:1: MCP server 'x' has type "stdio" but is missing a "command" field`,
		`{"type":"sse","url":"b","command":"c"}`:      `m.json:2:39: MCP server 'x' has type "sse" but also a "command" field: remove it`,
		`{"type":"pigeon","url":"b"}`:                 `m.json:2:13: MCP server 'x' has the unknown type "pigeon": it must be "stdio", "http" or "sse"`,
		`{"command":"a","sandbox":"yes"}`:             `m.json:2:30: MCP server 'x' has a "sandbox" that is neither true nor false`,
		`{"command":"a","sandbox":{"allow":[]}}`:      `m.json:2:30: MCP server 'x' has a "sandbox" that is neither true nor false`,
		`{"url":"a","sandbox":true}`:                  `m.json:2:26: MCP server 'x' has "sandbox", which holds only servers over stdio: remove it, or give the server a "command"`,
		`{"command":"a"}, "x":{"command":"b"}`:        `m.json:2:22: MCP server 'x' is declared twice; the other one is at m.json:2:1`,
		`{"command":"a"}, "y":{"command":"b","env":3`: "",
	} {
		f, err := Parse("m.json", []byte("{\"mcpServers\": {\n\"x\":"+entry+"}}"))
		if want == "" {
			if err == nil || !strings.HasPrefix(err.Error(), "Failed to load MCP config file at m.json: line 3, column 1: ") {
				t.Errorf("%s: error %v", entry, err)
			}
			continue
		}
		if err != nil || len(f.Problems) != 1 || (f.Problems[0].Pos.String()+": "+f.Problems[0].Message) != want {
			t.Errorf("%s: problems %v, error %v, want %s", entry, f.Problems, err, want)
		}
	}
}

// A key that is nearly one of raddle's is a warning; the keys of other programs are not.
func TestUnknownKeysOfEntries(t *testing.T) {
	for entry, want := range map[string]string{
		`{"comand":"a","url":"b"}`:                               `m.json:1:21: warning: MCP server 'x' has the unknown key "comand" (did you mean command?)`,
		`{"command":"a","sandbx":true}`:                          `m.json:1:35: warning: MCP server 'x' has the unknown key "sandbx" (did you mean sandbox?)`,
		`{"command":"a","header":{"A":"b"}}`:                     `m.json:1:35: warning: MCP server 'x' has the unknown key "header" (did you mean headers?)`,
		`{"command":"a","disabled":true,"timeout":3,"tools":[]}`: "",
		`{"command":"a","commands":"b"}`:                         "", // it has a command
	} {
		f, err := Parse("m.json", []byte(`{"mcpServers":{"x":`+entry+`}}`))
		got := ""
		if len(f.Problems) > 0 {
			got = f.Problems[0].String()
		}
		if err != nil || got != want || f.Servers[0].problem != nil {
			t.Errorf("%s: %q, want %q (%v)", entry, got, want, err)
		}
	}
}

func TestLoadWithoutServers(t *testing.T) {
	dir := t.TempDir()
	blank := filepath.Join(dir, "blank.json")
	if err := os.WriteFile(blank, []byte("\ufeff\n# nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{blank, filepath.Join(dir, "absent.json")} {
		f, err := Load(path)
		if err != nil || len(f.Servers) > 0 {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	for text, want := range map[string]string{
		`[]`: "m.json: line 1, column 1: the file must be a mapping, not a list", `{"mcpServers":3}`: "m.json: line 1, column 15: mcpServers must be a mapping, not a single value",
		`{"mcpServers":{}} x`: "m.json: line 1, column 19: did not find expected <document start>", `{"mcpServers"`: "did not find expected ',' or '}'",
		`{"mcpServers":{},"mcpServers":{}}`: "m.json: line 1, column 18: duplicate key `mcpServers`",
	} {
		if _, err := Parse("m.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
}

// JSON that YAML reads in another way, or not at all, is read as JSON.
func TestJSONIsRead(t *testing.T) {
	f, err := Parse("m.json", []byte("\ufeff{\r\n\t\"mcpServers\":{\"x\":{\"command\"\n:\"a\\/b\",\"args\":[\"\\ud83d\\uDE00\",\"\\\\ud83d\\\\ude00\",\"yes\",1.50,\"\\u00e9\\f\",true]}}}"))
	if err != nil || len(f.Problems) > 0 || len(f.Servers) != 1 {
		t.Fatal(err, f)
	}
	s := f.Servers[0]
	if s.Command != "a/b" || !slices.Equal(s.Args, []string{"😀", `\ud83d\ude00`, "yes", "1.50", "é\f", "true"}) {
		t.Errorf("%q %q", s.Command, s.Args)
	}
}

// What is wrong with an entry is said without its values, which may be secrets.
func TestFaultsHoldNoSecrets(t *testing.T) {
	for _, entry := range []string{
		`{"command":"a","env":{"K":["sk-secret"]}}`, `{"command":"a","env":"sk-secret"}`, `{"command":"a","env":{"K":!!int sk-secret}}`, `{"command":"a","env":{"K":{"sk-secret":1}}}`,
		`{"url":"a","headers":"Bearer sk-secret"}`, `{"url":"a","headers":{"A":"sk-secret","A":"sk-secret"}}`, `{"url":"a","headers":{"A":"sk-secret}}`, `{"command":"a","args":"sk-secret"}`,
		`{"command":"a","env":{"K":"sk-secret" "x"}}`, `{"command":"a","env":{"K":sk-secret: x}}`, `{"command":["sk-secret"]}`, `"sk-secret"`, `{"command":"a","env":{"K":@sk-secret}}`,
	} {
		f, err := Parse("m.json", []byte(`{"mcpServers":{"x":`+entry+`}}`))
		text := fmt.Sprint(err, f.Problems)
		if err == nil && len(f.Problems) == 0 || strings.Contains(text, "sk-secret") || !strings.Contains(text, "m.json:1:") && !strings.Contains(text, "m.json: line 1, column ") {
			t.Errorf("%s: %s", entry, text)
		}
	}
}

func TestExpand(t *testing.T) {
	values := map[string]string{"HOME": "/home/me", "GH_TOKEN": "ghp_0123456789", "VAULTED": "pass word", "SHORT": "ab"}
	lookup := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	s, secrets, err := expandServer(Server{
		Pos: "m.json:1:1", Command: "${HOME}/bin/x", Args: []string{"{{VAULTED}}-{{ SHORT }}", "{{.Names}}", "$HOME ${1}"}, Dir: "${HOME}",
		Env:     map[string]string{"PAT": "${GH_TOKEN}", "API_KEY": "literal-key", "PLACE": "${HOME}"},
		Headers: map[string]string{"Authorization": "Bearer ${GH_TOKEN}"},
	}, lookup)
	if err != nil {
		t.Fatal(err)
	}
	want := Server{
		Pos: "m.json:1:1", Command: "/home/me/bin/x", Args: []string{"pass word-ab", "{{.Names}}", "$HOME ${1}"}, Dir: "/home/me",
		Env:     map[string]string{"PAT": "ghp_0123456789", "API_KEY": "literal-key", "PLACE": "/home/me"},
		Headers: map[string]string{"Authorization": "Bearer ghp_0123456789"},
	}
	if d := cmp.Diff(want, s, cmpopts.IgnoreUnexported(Server{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"Bearer ghp_0123456789", "ghp_0123456789", "literal-key", "pass word"}, secrets); d != "" {
		t.Errorf("secrets (-want +got):\n%s", d)
	}
	_, _, err = expandServer(Server{Pos: "m.json:1:1", URL: "http://${HOST}/${HOST}?{{KEY}}"}, lookup)
	if want := "m.json:1:1: it refers to variables that are not set: HOST, KEY; set them and try again"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"K": 1}}}}`))
	f.Add([]byte("# c\n{\"mcpServers\": {\"a\": {\"type\": \"http\", \"url\": \"{{X}}\"}, \"a\": 3}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("m.json", data)
		if err != nil {
			return
		}
		for _, s := range file.Servers {
			if s.problem == nil && s.Transport == "" {
				t.Errorf("server %q has neither a transport nor a problem", s.ID)
			}
		}
	})
}
