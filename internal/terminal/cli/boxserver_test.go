//go:build linux && (amd64 || arm64)

package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// boxedServer is an agent with a server in the box, whose only tool runs shell texts.
const boxedServer = `
-- home/.ssh/id --
SECRET-KEY
-- here/a.txt --
one
-- here/.env --
KEY=SECRET-ENV
-- dev/mcp.json --
{"mcpServers": {"shell": {"command": "python3", "args": ["server.py"], "env": {"GIVEN_TOKEN": "given"}, "sandbox": true}}}
-- dev/server.py --
import json, subprocess, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    answer = {"error": {"code": -32601, "message": "unknown method"}}
    if m["method"] == "initialize":
        answer = {"result": {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "shell", "version": "1"}}}
    elif m["method"] == "tools/list":
        answer = {"result": {"tools": [{"name": "sh", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]}}
    elif m["method"] == "tools/call":
        p = subprocess.run(["bash", "-c", m["params"]["arguments"]["text"]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        answer = {"result": {"content": [{"type": "text", "text": p.stdout}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **answer}), flush=True)
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
inject_user_instructions: false
global_tools: [fs_write]
mcp_servers: [shell]
-- dev/transcript.yaml --
- {match: attack, turn: 1, tool_calls: [{name: mcp__shell__sh, args: {text: "bash $RADDLE_WORKSPACE/attack.sh"}}]}
- {match: attack, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: see, turn: 1, tool_calls: [{name: mcp__shell__sh, args: {text: "cd $RADDLE_WORKSPACE; cat a.txt; cat new.txt"}}]}
- {match: see, turn: 2, tool_calls: [{name: fs_write, args: {path: new.txt, contents: "live"}}]}
- {match: see, turn: 3, tool_calls: [{name: mcp__shell__sh, args: {text: "cat $RADDLE_WORKSPACE/new.txt"}}]}
- {match: see, turn: 4, text: "RESULT={{outcome.-1}}"}
- {match: stay, turn: 1, tool_calls: [{name: mcp__shell__sh, args: {text: "setsid sleep 98761 & setsid sleep 98761 & sleep 98761"}}]}
- {match: stay, turn: 2, text: "RESULT={{outcome.-1}}"}
-- here/attack.sh --
cd $RADDLE_WORKSPACE
cat ~/.ssh/id .env
echo "tokens $GITHUB_TOKEN $GIVEN_TOKEN"
for f in a.txt .git/hooks/pre-commit new.txt ~/new ../dev/server.py; do mkdir -p $(dirname $f); echo x > $f && echo "WROTE $f"; done
curl -sS http://127.0.0.1:$PORT/ --noproxy ''
curl -sS -m 5 http://127.0.0.1:$PORT/ --noproxy '*'
echo mine > $TMPDIR/t && cat $TMPDIR/t
(setsid sleep 98762 &) > /dev/null 2>&1
`

// A server in the box reads no secrets, changes nothing, reaches no host that no rule allows, and leaves no process behind.
func TestServerInTheBox(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "curl", "python3")
	at, port := servePage(t)
	w := unpackBoxed(t, boxedServer)
	w.env = append(w.env, "PORT="+port, "GITHUB_TOKEN=ghp_012345678901234567890123456789012345")
	out, err := w.command("run", "--headless", "../dev", "attack").CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "mine") || !strings.Contains(text, "tokens  given") && !strings.Contains(text, "tokens  [redacted]") || !strings.Contains(text, "Read-only file system") {
		t.Errorf("%v: %s", err, text)
	}
	for _, bad := range []string{"SECRET", "WROTE", "the page", "ghp_"} {
		if strings.Contains(text, bad) {
			t.Errorf("%s is in %s", bad, text)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "one\n" || w.exists(".git") || w.exists("new.txt") || w.exists("../home/new") {
		t.Errorf("the server has changed something; a.txt is %q", data)
	}
	if runsCommand("98762") {
		t.Error("a process that the server has started is left")
	}
	w.write("../.config/raddle/config.yaml", "permissions: {allow: ['any host("+at+")']}\n")
	if out, err = w.command("run", "--headless", "../dev", "attack").CombinedOutput(); err != nil || strings.Count(string(out), "the page") != 1 {
		t.Errorf("with a rule for the host: %v: %s", err, out)
	}
	if left, _ := filepath.Glob(filepath.Join(w.dir, "..", ".state", "raddle", "boxes", "*", "box*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A server in the box sees at once what other tools write.
func TestServerInTheBoxIsLive(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "python3")
	w := unpackBoxed(t, boxedServer)
	if out, err := w.command("run", "--headless", "../dev", "see").CombinedOutput(); err != nil || !strings.Contains(string(out), "RESULT=") || !strings.Contains(string(out), "live") {
		t.Errorf("%v: %s", err, out)
	}
}

// A server that wants a box does not run without one.
func TestServerWithoutABox(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "python3")
	w := unpackBoxed(t, boxedServer)
	out, err := w.command("run", "--headless", "--no-box", "../dev", "attack").CombinedOutput()
	for _, want := range []string{`MCP server 'shell'`, `its entry has "sandbox": true, and no box holds it: the box is switched off`, "raddle doctor"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is missing in %v: %s", want, err, out)
		}
	}
	w.write("../.config/raddle/mcp.json", strings.ReplaceAll(`{"mcpServers": {"shell": {"command": "python3", "args": ["DIR/server.py"], "sandbox": true}}}`, "DIR", filepath.Join(w.dir, "..", "dev")))
	if r := w.run("mcp", "test", "shell"); r.code != 0 || !strings.Contains(r.out, "sh") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	w.env = slices.Concat(w.env, []string{"RADDLE_BOX=false"})
	if r := w.run("mcp", "test", "shell"); r.code == 0 || !strings.Contains(r.err, "no box holds it") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// A server in the box, and what it has started, ends with raddle also if raddle is killed.
func TestServerInTheBoxIsKilled(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "python3")
	w := unpackBoxed(t, boxedServer)
	cmd := w.command("run", "--headless", "../dev", "stay")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	await(t, "the server works on the call", func() bool { return runsCommand("98761") })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	await(t, "all processes have ended", func() bool { return !runsCommand("98761") })
}
