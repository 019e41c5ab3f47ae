//go:build unix

package app

import (
	"bufio"
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/testkit/testneed"
)

// hangs is the text of a script that says its process id to a pipe, starts a child, and waits for it. Both hold
// another pipe open.
const hangs = "exec 9>\"$PIPE.life\"; echo $$ >\"$PIPE\"; sleep 600 & wait\n"

// An interruptedPlace is a place in which a script hangs: the user interrupts then.
type interruptedPlace struct {
	*place
	pipe string
	stop chan struct{}
	pid  chan int // of the script
	life *os.File // it ends when the script and its child have ended
}

func newInterruptedPlace(t *testing.T) *interruptedPlace {
	testneed.RequirePrograms(t, "bash")
	x := &interruptedPlace{place: newPlace(t), stop: make(chan struct{}), pid: make(chan int, 1)}
	x.pipe = filepath.Join(x.dir, "pipe")
	if err := syscall.Mkfifo(x.pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(x.pipe, os.O_RDWR, 0) // it does not wait for a writer
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Mkfifo(x.pipe+".life", 0o600); err != nil {
		t.Fatal(err)
	}
	if x.life, err = os.OpenFile(x.pipe+".life", os.O_RDONLY|syscall.O_NONBLOCK, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.life.Close() })
	x.env = append(x.env, "PIPE="+x.pipe)
	go func() {
		line, err := bufio.NewReader(f).ReadString('\n')
		pid, _ := strconv.Atoi(strings.TrimSpace(line))
		if err == nil {
			x.pid <- pid
			close(x.stop)
		}
	}()
	return x
}

// script is a script that hangs, with another beginning.
func (x *interruptedPlace) script(begin string) string {
	return "#!/usr/bin/env bash\nPIPE='" + x.pipe + "'\n" + begin
}

// checkEnded checks that the script and its child have ended.
func (x *interruptedPlace) checkEnded() {
	x.t.Helper()
	pid := <-x.pid
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		x.t.Errorf("the script (process %d) still runs: %v", pid, err)
	}
	if err := x.life.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		x.t.Fatal(err)
	}
	if _, err := x.life.Read(make([]byte, 1)); err != io.EOF {
		x.t.Errorf("a child of the script still runs: %v", err)
	}
}

// Whatever an agent does when its user interrupts it, the turn ends at once, no process is left, and the next turn of the
// session is accepted.
func TestInterruptedProcesses(t *testing.T) {
	const config = "name: Talker\nmodel: local:small\ninstructions: Do it.\n"
	for _, k := range []struct {
		name     string
		files    func(x *interruptedPlace)
		rounds   [][]call
		outcome  string // a part of the last outcome
		requests int
	}{
		{"a script of the agent", func(x *interruptedPlace) {
			x.write("talker/config.yaml", config)
			x.write("talker/tools.sh", x.script("# @cmd Hangs\nhang() { "+strings.TrimSpace(hangs)+"; }\n# @cmd Looks\nlook() { echo seen >>\"$LLM_OUTPUT\"; }\n"))
		}, [][]call{{{"a", "hang", "{}"}, {"b", "look", "{}"}}}, "before this call was made", 1},
		{"a command", func(x *interruptedPlace) {
			x.write("talker/config.yaml", config+"global_tools: [execute_command]\n")
			x.write("hang.sh", x.script(hangs))
			x.write("home/.config/raddle/permissions.yaml", "allow: [execute_command(bash hang.sh)]\n")
		}, [][]call{{{"a", "execute_command", `{"command":"bash hang.sh"}`}}}, "The user interrupted this call.", 1},
		{"a server", func(x *interruptedPlace) {
			x.write("talker/config.yaml", config+"mcp_servers: [s]\n")
			x.write("server.sh", x.script(`while read -r line; do
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line")
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"hang","description":"Hangs","inputSchema":{"type":"object"}}]}}' ;;
    *'"tools/call"'*) echo 0 >"$PIPE" ;;
    *'"server/discover"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"unknown"}}' ;;
    *'"ping"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done
`))
			x.write("talker/mcp.json", `{"mcpServers": {"s": {"command": "bash", "args": ["`+filepath.Join(x.dir, "server.sh")+`"]}}}`)
		}, [][]call{{{"a", "mcp_invoke_s", `{"tool":"hang","arguments":{}}`}}}, "The user interrupted this call.", 1},
		{"instructions", func(x *interruptedPlace) {
			x.write("talker/config.yaml", strings.Replace(config, "instructions: Do it.", "dynamic_instructions: true", 1))
			x.write("talker/tools.sh", x.script("# @cmd Makes them\n_instructions() {\n  if [ -e \""+filepath.Join(x.dir, "again")+"\" ]; then echo 'Do it.' >>\"$LLM_OUTPUT\"; else "+strings.TrimSpace(hangs)+"; fi\n}\n"))
		}, nil, "", 0},
		{"a graph below a lead", func(x *interruptedPlace) {
			x.write("talker/config.yaml", config+"can_spawn_agents: true\nspawnable_agents: [worker]\n")
			x.write("home/.config/raddle/agents/worker/graph.yaml", "name: worker\nstart: each\ninitial_state: {items: [1]}\nnodes:\n  each: {type: map, over: \"{{items}}\", as: item, branch: one, collect_into: done, next: end}\n  one: {type: script, script: hang.sh}\n  end: {type: end, output: done}\n")
			x.write("home/.config/raddle/agents/worker/hang.sh", x.script(hangs))
		}, [][]call{{{"a", "agent__spawn", `{"agent":"worker","prompt":"work"}`}}, {{"b", "agent__collect", `{"any":true}`}}}, "", 2}, // the script may begin before the lead collects
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			x := newInterruptedPlace(t)
			m := &model{t: t, rounds: k.rounds, text: "fine"}
			x.serve(m)
			k.files(x)
			p, _ := x.process(-1)
			drive := func(prompt string, d Driver) graph.Result {
				d.Reply = func(graph.Question) (any, bool) { return "once", true }
				run, err := p.StartRun(Request{Agent: "./talker", Prompt: prompt, Session: "main"})
				if err != nil {
					t.Fatal(err)
				}
				defer run.Close()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				res, err := run.Drive(ctx, d)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			res := drive("Go.", Driver{Interrupt: x.stop})
			if res.Status != graph.Done || !agent.WasInterrupted(res.State) || res.Value != "" {
				t.Fatalf("status %v, interrupted: %v, output %q", res.Status, agent.WasInterrupted(res.State), res.Value)
			}
			if d, err := p.Runs.ReadRunDetail(t.Context(), "session/talker/main"); err != nil || !d.WasInterrupted() {
				t.Errorf("the journal does not say that the turn was interrupted: %v", err)
			}
			early := k.requests == 2 && m.requests() == 1 // the script began before the lead asked its model again
			if n := m.requests(); n != k.requests && !early {
				t.Errorf("%d requests, want %d", n, k.requests)
			}
			if got := agent.LastToolResponse(res.State); !strings.Contains(got, k.outcome) && !early {
				t.Errorf("outcome %q, want %q in it", got, k.outcome)
			}
			if k.name == "a server" { // it serves other calls
				<-x.pid
			} else {
				x.checkEnded()
			}
			x.write("again", "")
			m.mu.Lock()
			m.rounds = nil
			m.mu.Unlock()
			if res = drive("And now?", Driver{}); res.Status != graph.Done || res.Value != "fine" {
				t.Errorf("the next turn: %v %q", res.Status, res.Value)
			}
			if d, err := p.Runs.ReadRunDetail(t.Context(), "session/talker/main"); err != nil || d.WasInterrupted() {
				t.Errorf("the journal says that the next turn was interrupted: %v", err)
			}
		})
	}
}

// A person who is asked may interrupt the turn: the question is not asked any more, in this process or in the next one.
func TestInterruptionAtAQuestion(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		x := newPlace(t)
		m := &model{t: t, rounds: [][]call{{{"a", "user__confirm", `{"question":"Sure?"}`}}}, text: "fine"}
		x.serve(m)
		x.write("talker/config.yaml", "name: Talker\nmodel: local:small\n")
		p, _ := x.process(-1)
		run, err := p.StartRun(Request{Agent: "./talker", Prompt: "Go.", Session: "main"})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		d := Driver{Interrupt: stop, Ask: func(ctx context.Context, _ []graph.Question) ([]graph.Answer, bool, error) {
			close(stop)
			<-ctx.Done()
			return nil, false, ctx.Err()
		}}
		if resumed {
			if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Waiting {
				t.Fatal(res.Status, err)
			}
			run.Close()
			if run, err = p.ResumeRun(t.Context(), run.ID, ResumeOptions{}); err != nil {
				t.Fatal(err)
			}
			close(stop)
			d.Ask = nil
		}
		res, err := run.Drive(t.Context(), d)
		run.Close()
		if err != nil || res.Status != graph.Done || !agent.WasInterrupted(res.State) || m.requests() != 1 {
			t.Errorf("resumed %v: %v %v, interrupted: %v, %d requests", resumed, res.Status, err, agent.WasInterrupted(res.State), m.requests())
		}
	}
}

// A graph has no turn: it is paused at once, and continues when it is resumed.
func TestInterruptedGraph(t *testing.T) {
	x := newInterruptedPlace(t)
	x.write("flow/graph.yaml", "name: flow\nstart: one\nnodes:\n  one: {type: script, script: one.sh, next: end}\n  end: {type: end, output: \"{{output}}\"}\n")
	x.write("flow/one.sh", x.script("if [ -e '"+filepath.Join(x.dir, "again")+"' ]; then echo '{\"output\":\"fine\"}'; else "+strings.TrimSpace(hangs)+"; fi\n"))
	p, _ := x.process(-1)
	run, err := p.StartRun(Request{Agent: "./flow", Prompt: "Go."})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Drive(t.Context(), Driver{Interrupt: x.stop})
	run.Close()
	if err != nil || res.Status != graph.Paused {
		t.Fatalf("%v %v", res.Status, err)
	}
	x.checkEnded()
	x.write("again", "")
	if run, err = p.ResumeRun(t.Context(), run.ID, ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if res, err = run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Done {
		t.Errorf("%v %v", res.Status, err)
	}
}

// A turn that is interrupted before it begins is recorded with its message, and makes no request.
func TestInterruptionBeforeTheTurn(t *testing.T) {
	x := newPlace(t)
	m := &model{t: t, text: "fine"}
	x.serve(m)
	x.write("talker/config.yaml", "name: Talker\nmodel: local:small\n")
	x.write("talker/notes.md", "# Notes\n")
	p, _ := x.process(-1)
	stop := make(chan struct{})
	close(stop)
	for _, d := range []Driver{{Interrupt: stop}, {}} {
		run, err := p.StartRun(Request{Agent: "./talker", Prompt: "Go.", Session: "main"})
		if err != nil {
			t.Fatal(err)
		}
		res, err := run.Drive(t.Context(), d)
		run.Close()
		want := map[bool]int{true: 0, false: 1}[d.Interrupt != nil]
		if err != nil || res.Status != graph.Done || agent.WasInterrupted(res.State) != (d.Interrupt != nil) || m.requests() != want {
			t.Errorf("%v %v, interrupted: %v, %d requests", res.Status, err, agent.WasInterrupted(res.State), m.requests())
		}
	}
}
