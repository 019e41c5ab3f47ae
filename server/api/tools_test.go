//go:build unix

package api

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

// A tool is tried within the rules of the user: what asks in a run is asked before, and only exactly this call is allowed.
func TestTryTool(t *testing.T) {
	w := serveHome(t, servertest.NewHome(t, map[string]string{
		"clerk/config.yaml": "name: clerk\nmodel: script:t.yaml\nglobal_tools: [fs_ls, fs_write, execute_command]\n",
		"clerk/t.yaml":      "[]\n",
	}))
	w.write(filepath.Join(w.dir, "note.txt"), "old\n")
	try := func(tool, arguments, allow string) map[string]any {
		t.Helper()
		return w.get(200, "POST", "/tools/"+tool+"/call", fmt.Sprintf(`{"agent": "clerk", "arguments": %s, "allow": %q}`, arguments, allow))
	}
	if got := try("fs_ls", `{"path": "."}`, ""); got["status"] != "ok" || !strings.Contains(got["output"].(string), "note.txt") {
		t.Errorf("a tool that reads: %v", got)
	}
	if got := try("fs_ls", `{"path": "nowhere"}`, ""); got["status"] != "failed" {
		t.Errorf("a call that fails: %v", got)
	}
	const command = `{"command": "touch done hunter2hunter2"}`
	asks := try("execute_command", command, "")
	question, _ := asks["question"].(map[string]any)
	if text := jsonText(t, asks); asks["status"] != "asks" || !strings.Contains(text, `"command":"touch done`) || strings.Contains(text, "hunter2") {
		t.Fatalf("a command: %s", text)
	}
	id := question["id"].(string)
	for _, allow := range []string{"once", "x" + id} {
		if got := try("execute_command", command, allow); got["status"] != "asks" {
			t.Errorf("allowed by %q: %v", allow, got)
		}
	}
	if got := try("execute_command", `{"command": "touch other"}`, id); got["status"] != "asks" {
		t.Errorf("another command with the consent of the first: %v", got)
	}
	for _, name := range []string{"done", "other"} {
		if _, err := os.Stat(filepath.Join(w.dir, name)); err == nil {
			t.Fatalf("%s exists: the command has run without consent", name)
		}
	}
	if got := try("execute_command", command, id); got["status"] != "ok" {
		t.Errorf("the command that was allowed: %v", got)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "done")); err != nil {
		t.Error(err)
	}
	outside := filepath.Join(t.TempDir(), "note.txt")
	write, _ := json.Marshal(map[string]string{"path": outside, "contents": "new\n"})
	if got := try("fs_write", string(write), ""); got["status"] != "asks" || !strings.Contains(jsonText(t, got["question"]), `+new`) {
		t.Errorf("a file outside of the workspace: %v", got)
	}
	w.refuse(400, "usage", "POST", "/tools/none/call", `{"agent": "clerk", "arguments": {}}`)
	w.refuse(400, "usage", "POST", "/tools/fs_ls/call", `{"agent": "clerk", "arguments": []}`)
	w.refuse(404, "unknown-agent", "POST", "/tools/fs_ls/call", `{"agent": "none", "arguments": {}}`)
	w.refuse(400, "usage", "POST", "/tools/fs_ls/call", `{"agent": "../clerk", "arguments": {}}`)
	w.caller = &server.Caller{Name: "ci", Scopes: []server.Scope{server.ScopeStart}}
	w.refuse(403, "missing-scope", "POST", "/tools/execute_command/call", fmt.Sprintf(`{"agent": "clerk", "arguments": %s, "allow": %q}`, command, id))
	w.caller.Scopes = []server.Scope{server.ScopeRead, server.ScopeAnswer}
	w.refuse(403, "missing-scope", "POST", "/tools/fs_ls/call", `{"agent": "clerk", "arguments": {}}`)
}

// A rule that denies a call also denies its trial, whatever the caller sends.
func TestTryDeniedTool(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{"clerk/config.yaml": "name: clerk\nmodel: script:t.yaml\nglobal_tools: [execute_command]\n", "clerk/t.yaml": "[]\n"})
	config := filepath.Join(home.Dir, ".config", "raddle", "config.yaml")
	if err := os.WriteFile(config, []byte("permissions:\n  deny: [\"any command(touch *)\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := serveHome(t, home)
	w.refuse(400, "usage", "POST", "/tools/execute_command/call", `{"agent": "clerk", "arguments": {"command": "touch done"}, "allow": "once"}`)
}
