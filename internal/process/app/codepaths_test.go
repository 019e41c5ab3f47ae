//go:build unix

package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// asked makes calls in one run of an agent and returns the indexes of those that
// ask for permission. It refuses each.
func (p *place) asked(name string, calls ...call) (asks []int) {
	p.t.Helper()
	m := &model{t: p.t, text: "done"}
	for i := range calls {
		calls[i].ID = fmt.Sprint("call", i)
		m.rounds = append(m.rounds, calls[i:i+1])
	}
	p.serve(m)
	proc, _ := p.process(-1)
	p.finish(proc, Request{Agent: name, Prompt: "go"}, func(q graph.Question) string {
		if q.Kind != agent.KindPermission {
			p.t.Errorf("asked: %+v", q)
			return q.Options[0]
		}
		var d agent.CallData
		text, err := json.Marshal(q.Data)
		if err == nil {
			err = json.Unmarshal(text, &d)
		}
		if err != nil {
			p.t.Error(err)
		}
		asks = append(asks, slices.IndexFunc(calls, func(c call) bool { return c.ID == d.ID }))
		return "no"
	})
	if err := proc.Close(); err != nil {
		p.t.Fatal(err)
	}
	return asks
}

// writeTo returns a call that writes a file.
func writeTo(path string) call {
	args, _ := json.Marshal(map[string]string{"path": path, "contents": "x"})
	return call{Name: "fs_write", Args: string(args)}
}

// Writing to what the scripts of a run load from outside their agent needs permission, and
// so does writing to the agents that it may run and to what the user has installed.
func TestWritesBesideAgentsAsk(t *testing.T) {
	w := newPlace(t)
	if err := os.CopyFS(w.dir, os.DirFS("../bundle/agents")); err != nil {
		t.Fatal(err)
	}
	w.write("mine/config.yaml", "name: Mine\nglobal_tools: [fs_write]\nmcp_servers: [s]\n")
	w.write("mine/tools.sh", "# @cmd Looks.\nlook() { source \"$(dirname \"$0\")/../lib/more/util.sh\"\ncd ../work && make; }\n")
	w.write("lead/graph.yaml", "name: l\nstart: a\nnodes:\n  a: {type: agent, agent: mine, prompt: go, next: b}\n  b: {type: end, output: done}\n")
	w.write("home/bin/serve", "#!/bin/sh\n")
	w.write("mine/mcp.json", `{"mcpServers": {"s": {"command": "`+filepath.Join(w.dir, "home/bin/serve")+`", "args": ["`+w.dir+`"]}}}`)
	paths := []struct {
		path string
		asks bool
	}{
		{".shared/project.sh", true}, {".shared/new", true}, {"lib/more/util.sh", true}, {"lib/more/other.sh", true}, {"mine/data", true},
		{"home/.config/raddle/agents/x/tools.sh", true}, {"home/.config/raddle/functions/.env", true}, {"home/bin/serve", true}, {"work/Makefile", false}, {"notes", false},
		{"lib.txt", false},
	}
	for _, name := range []string{"mine", "lead"} {
		var calls []call
		var want []int
		paths[7].asks = name == "mine" // the user did not name the lead's child, so its servers are not used
		for i, p := range paths {
			calls = append(calls, writeTo(p.path))
			if p.asks {
				want = append(want, i)
			}
		}
		if got := w.asked("./"+name, calls...); !slices.Equal(got, want) {
			t.Errorf("%s: asked for calls %v, want %v of %v", name, got, want, paths)
		}
		for _, p := range paths {
			if text := strings.Join(w.lines(p.path), ""); p.asks && text == "x" {
				t.Errorf("%s was written", p.path)
			}
			if !p.asks {
				_ = os.Remove(filepath.Join(w.dir, p.path))
			}
		}
	}
}
