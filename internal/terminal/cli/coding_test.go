//go:build linux && (amd64 || arm64)

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// coding is a small program in Python with its test, as a person left it.
const coding = `
-- home/.gitconfig --
[user]
name = A
email = a@example.com
-- here/shop/price.py --
"""Prices."""


def total(items):
    result = 0
    for name, price in items:
        result += price
    return result


def label(item):
    return item[0]
-- here/shop/__init__.py --
-- here/test_price.py --
import unittest
from shop.price import total


class T(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([("a", 1), ("b", 2)]), 3)


if __name__ == "__main__":
    unittest.main()
-- here/notes.md --
# Notes
-- here/Makefile --
test:
	python3 -B -m unittest -q
-- dev/config.yaml --
name: dev
model: local:small
inject_user_instructions: false
global_tools: [fs, command, execute_command]
`

// A codingRound is a reply of the model and what it must read about its call in the next request.
type codingRound struct {
	tool string
	args string // JSON
	want []string
	hand func() // what a person does before the call
}

// A codingModel is a server that plays rounds strictly: a result without a wanted text fails the test.
type codingModel struct {
	t      *testing.T
	mu     sync.Mutex
	rounds []codingRound
	at     int // rounds that were sent
}

func (m *codingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var request struct {
		Messages []struct {
			Role    string
			Content any
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || len(request.Messages) == 0 {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	last := request.Messages[len(request.Messages)-1]
	if m.at > 0 {
		got := fmt.Sprint(last.Content)
		if last.Role != "tool" {
			m.t.Errorf("round %d: the last message is of %s", m.at, last.Role)
		}
		for _, want := range m.rounds[m.at-1].want {
			if !strings.Contains(got, want) {
				m.t.Errorf("round %d, %s %s: the model reads %q, want %q", m.at, m.rounds[m.at-1].tool, m.rounds[m.at-1].args, got, want)
			}
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta any, finish any) {
		text, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
	}
	if m.at < len(m.rounds) {
		next := m.rounds[m.at]
		m.at++
		if next.hand != nil {
			next.hand()
		}
		send(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
			"index": 0, "id": fmt.Sprintf("c%d", m.at), "type": "function", "function": map[string]any{"name": next.tool, "arguments": next.args}}}}, nil)
		send(map[string]any{}, "tool_calls")
	} else {
		send(map[string]any{"role": "assistant", "content": "RESULT=over"}, nil)
		send(map[string]any{}, "stop")
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
}

// A coding task of 31 rounds asks once, and what a person changes meanwhile is not lost.
func TestCodingTask(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "python3", "git", "make")
	w := unpackBoxed(t, coding)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-qm", "begin"}} {
		c := exec.Command("git", args...)
		c.Dir, c.Env = w.dir, w.env
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	hand := func(name, old, now string) func() {
		return func() {
			text := w.read(name)
			if !strings.Contains(text, old) {
				t.Errorf("%s has no %q:\n%s", name, old, text)
			}
			w.write(name, strings.Replace(text, old, now, 1))
		}
	}
	var saving sync.WaitGroup
	t.Cleanup(saving.Wait)
	m := &codingModel{t: t, rounds: []codingRound{
		{tool: "fs_ls", args: `{"path": "."}`, want: []string{"shop"}},
		{tool: "fs_read", args: `{"path": "shop/price.py"}`, want: []string{"def total"}},
		{tool: "fs_read", args: `{"path": "test_price.py"}`, want: []string{"test_total"}},
		{tool: "execute_command", args: `{"command": "git log --oneline | head -3; git status --short"}`, want: []string{"begin"}},
		{tool: "execute_command", args: `{"command": "make test"}`, want: []string{"OK"}},
		{tool: "fs_edit", args: `{"path": "shop/price.py", "old": "        result += price\n", "new": "        result += round(price, 2)\n"}`, want: []string{"round(price, 2)"}},
		{tool: "execute_command", args: `{"command": "python3 -B -m unittest -q 2>&1 | tail -1"}`, want: []string{"OK"}},
		{tool: "fs_write", args: `{"path": "shop/tax.py", "contents": "RATE = 0.19\n\n\ndef gross(net):\n    return net * (1 + RATE)\n"}`, want: []string{"tax.py"}},
		// A person changes a file that the model has read: its edit is refused with what is new, and fits then.
		{tool: "fs_edit", args: `{"path": "shop/price.py", "old": "    return item[0]\n", "new": "    return item[0].strip()\n"}`, want: []string{"by hand 1"}, hand: hand("shop/price.py", "\"\"\"Prices.\"\"\"\n", "\"\"\"Prices.\"\"\"\n# by hand 1\n")},
		{tool: "fs_edit", args: `{"path": "shop/price.py", "old": "    return item[0]\n", "new": "    return item[0].strip()\n"}`, want: []string{"strip()"}},
		{tool: "fs_grep", args: `{"pattern": "RATE", "path": "."}`, want: []string{"shop/tax.py"}},
		{tool: "execute_command", args: `{"command": "mkdir -p docs && printf 'Prices\\n' > docs/index.md && wc -l docs/index.md"}`, want: []string{"1 docs/index.md"}},
		{tool: "fs_read", args: `{"path": "notes.md"}`, want: []string{"# Notes"}},
		// A person changes a file after the model has read it: writing it whole would lose that.
		{tool: "fs_write", args: `{"path": "notes.md", "contents": "# Notes\n\nThe tax is new.\n"}`, want: []string{"by hand 2"}, hand: hand("notes.md", "# Notes\n", "# Notes\n\nby hand 2\n")},
		{tool: "fs_edit", args: `{"path": "notes.md", "old": "by hand 2\n", "new": "by hand 2\n\nThe tax is new.\n"}`, want: []string{"by hand 2", "Repeat the call"}},
		{tool: "fs_edit", args: `{"path": "notes.md", "old": "by hand 2\n", "new": "by hand 2\n\nThe tax is new.\n"}`, want: []string{"The tax is new."}},
		{tool: "execute_command", args: `{"command": "sed -i 's/def gross(net)/def gross(net, rate=RATE)/; s/1 + RATE/1 + rate/' shop/tax.py && cat shop/tax.py"}`, want: []string{"rate=RATE"}},
		{tool: "fs_read", args: `{"path": "shop/tax.py"}`, want: []string{"1 + rate"}},
		{tool: "fs_patch", args: `{"path": "shop/tax.py", "contents": "@@ -4,2 +4,3 @@\n def gross(net, rate=RATE):\n+    \"\"\"Adds the tax.\"\"\"\n     return net * (1 + rate)\n"}`, want: []string{"Adds the tax"}},
		{tool: "execute_command", args: `{"command": "cat > test_tax.py <<'END'\nimport unittest\nfrom shop.tax import gross\n\n\nclass T(unittest.TestCase):\n    def test_gross(self):\n        self.assertAlmostEqual(gross(100), 119)\nEND\nmake test 2>&1 | tail -3"}`, want: []string{"OK"}},
		{tool: "execute_command", args: `{"command": "for f in shop/*.py; do python3 -B -c \"import ast,sys; ast.parse(open(sys.argv[1]).read()); print(sys.argv[1])\" $f; done"}`, want: []string{"shop/tax.py"}},
		{tool: "command_start", args: `{"command": "echo ready; sleep 300"}`, want: []string{"1"}},
		{tool: "command_output", args: `{"job": "job-1"}`, want: []string{"running"}},
		{tool: "command_stop", args: `{"job": "job-1"}`, want: []string{"1"}},
		// While a command works in its layer, a person saves the file that it has changed: what the command wrote is held back.
		{tool: "execute_command", args: `{"command": "sed -i 's/# Notes/# News/' notes.md; touch changed; until [ -e ../saved ]; do sleep 0.05; done; rm changed; grep -c . notes.md"}`, want: []string{"notes.md"}, hand: func() {
			saving.Go(func() {
				changed := filepath.Join(w.dir, "..", ".state", "raddle", "boxes", "*", "*", "*", "upper", "changed")
				if !holdsInTime(func() bool { found, _ := filepath.Glob(changed); return len(found) == 1 }) {
					t.Error("the command has not begun")
				}
				w.write("notes.md", w.read("notes.md")+"by hand 3\n")
				w.write("../saved", "")
			})
		}},
		{tool: "execute_command", args: `{"command": "git diff --stat; git add -A && git commit -qm 'Add the tax' && git log --oneline | wc -l"}`, want: []string{"2"}},
		{tool: "execute_command", args: `{"command": "find . -name '*.py' -newer Makefile | xargs grep -n gross | sort | head"}`, want: []string{"test_tax.py"}},
		{tool: "execute_command", args: `{"command": "rm -rf docs && git status --short"}`, want: []string{"docs/index.md"}},
		{tool: "execute_command", args: `{"command": "cp -r shop \"$TMPDIR\"/copy && ls \"$TMPDIR\"/copy && echo copied"}`, want: []string{"copied"}},
		{tool: "execute_command", args: `{"command": "git push origin main", "outside_box": true}`, want: []string{""}},
		{tool: "execute_command", args: `{"command": "make test && git diff HEAD --stat"}`, want: []string{"OK"}},
	}}
	server := httptest.NewServer(m)
	defer server.Close()
	w.write("../.config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [small]}]\n")
	r := w.run("run", "../dev", "Add the tax.", "--no-stdin")
	asked := 0
	for ; strings.Contains(r.err, "raddle resume") && asked < 5; asked++ {
		r = w.run("resume", w.runs()[0].Run, "--answer", "no")
	}
	if r.code != 0 || !strings.Contains(r.out, "RESULT=over") || m.at != len(m.rounds) {
		t.Fatalf("after %d rounds: exit code %d, %q\n%s", m.at, r.code, r.out, r.err)
	}
	if asked > 1 {
		t.Errorf("raddle has asked %d times: only to push is a question", asked)
	}
	for name, texts := range map[string][]string{
		"shop/price.py": {"# by hand 1\n", "round(price, 2)", "item[0].strip()"},
		"notes.md":      {"by hand 2\n", "by hand 3\n", "The tax is new."},
		"shop/tax.py":   {"rate=RATE", "Adds the tax"},
	} {
		for _, text := range texts {
			if got := w.read(name); !strings.Contains(got, text) {
				t.Errorf("%s has no %q:\n%s", name, text, got)
			}
		}
	}
}
