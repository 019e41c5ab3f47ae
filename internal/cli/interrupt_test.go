//go:build unix

package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/llmtest"
)

const interrupted = `
-- stop/config.yaml --
name: stop
model: local:small
-- stop/tools.sh --
# @cmd Does something once.
hold() {
  echo held >> log
  cat gate >/dev/null
  echo done >> "$LLM_OUTPUT"
}
`

// A heldModel is a strict server of a model that says one thing after the other, and
// can be held while it does.
type heldModel struct {
	t    *testing.T
	url  string
	hold chan struct{} // of the first request: the reply does not continue until it is closed
	here chan struct{} // closed when the first reply has reached that point

	mu    sync.Mutex
	count int
}

// The phases say how far the first reply is when it is held.
const (
	beforeReply = "before the first token"
	midReply    = "in the middle of the reply"
	notHeld     = ""
)

func serveHeld(t *testing.T, phase, first string, later ...string) *heldModel {
	p := &heldModel{t: t, hold: make(chan struct{}), here: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = llmtest.OpenAI().Check(body)
		}
		if err != nil {
			t.Errorf("the request is refused: %v\n%s", err, body)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p.mu.Lock()
		n := p.count
		p.count++
		p.mu.Unlock()
		held := func(at string) {
			if n == 0 && at == phase {
				w.(http.Flusher).Flush()
				close(p.here)
				select {
				case <-p.hold:
				case <-r.Context().Done():
				}
			}
		}
		w.Header().Set("Content-Type", "text/event-stream")
		held(beforeReply)
		reply := first
		if n > 0 {
			reply = later[min(n, len(later))-1]
		}
		write := func(delta, finish string) {
			fmt.Fprintf(w, `data: {"id":"%d","object":"chat.completion.chunk","model":"small","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", n, delta, finish)
		}
		if reply == "hold" || reply == "ask" {
			args := map[string]string{"hold": `{}`, "ask": `{\"question\":\"Which?\",\"options\":[\"a\",\"b\"]}`}[reply]
			name := map[string]string{"hold": "hold", "ask": "user__ask"}[reply]
			write(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"c%d","type":"function","function":{"name":"%s","arguments":"%s"}}]}`, n, name, args), "null")
			write("{}", `"tool_calls"`)
		} else {
			write(`{"content":"`+reply[:2]+`"}`, "null")
			held(midReply)
			write(`{"content":"`+reply[2:]+`"}`, `"stop"`)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	p.url = server.URL
	return p
}

func (p *heldModel) workplace() *workplace {
	w := newWorkplace(p.t, interrupted)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+p.url+"/v1\", api_key: k}]\n")
	return w
}

// An interrupted reply is requested again, and the provider accepts the
// conversation.
func TestInterruptedReply(t *testing.T) {
	for _, phase := range []string{beforeReply, midReply} {
		for _, session := range []string{"", "kept"} {
			t.Run(phase+" "+session, func(t *testing.T) {
				p := serveHeld(t, phase, "never told", "all is well")
				w := p.workplace()
				args := []string{"run", "./stop", "go"}
				if session != "" {
					args = append(args, "-s", session)
				}
				cmd, c := w.begin(args...)
				<-p.here
				w.send(cmd, syscall.SIGINT) // one is enough
				if got := wait(t, cmd); got != 130 {
					t.Fatalf("exit code %d\n%s", got, c)
				}
				r := w.run("resume", "-q", w.runs()[0].Run)
				if r.code != 0 || r.out != "all is well\n" {
					t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
				}
				if session != "" {
					if r := w.run("run", "-q", "./stop", "-s", session, "and now?"); r.code != 0 || r.out != "all is well\n" {
						t.Errorf("the next turn: exit code %d, %q\n%s", r.code, r.out, r.err)
					}
				}
			})
		}
	}
}

// A running tool finishes at the first signal, and is not called again. A
// second one interrupts it: its effect is unknown, and so a person is asked.
func TestInterruptedTool(t *testing.T) {
	needBash(t)
	for name, cut := range map[string]bool{"drained": false, "cut short": true} {
		t.Run(name, func(t *testing.T) {
			w := serveHeld(t, notHeld, "hold", "all is well").workplace()
			g := w.gate("gate")
			cmd, c := w.begin("run", "./stop", "go")
			pass := g.arrive()
			w.send(cmd, syscall.SIGINT)
			c.await(t, "Ctrl-C again")
			if cut {
				w.send(cmd, syscall.SIGINT)
			} else {
				pass()
			}
			if got := wait(t, cmd); got != 130 {
				t.Fatalf("exit code %d\n%s", got, c)
			}
			run := w.runs()[0].Run
			if cut {
				pass()
				r := w.run("resume", "-q", run)
				if r.code != 5 || !strings.Contains(r.err, "answers: retry, skip") {
					t.Fatalf("resumed: exit code %d\n%s%s", r.code, r.out, r.err)
				}
				r = w.run("resume", "-q", run, "--answer", "skip")
				if r.code != 0 || r.out != "all is well\n" {
					t.Errorf("answered: exit code %d, %q\n%s", r.code, r.out, r.err)
				}
			} else if r := w.run("resume", "-q", run); r.code != 0 || r.out != "all is well\n" {
				t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
			}
			if got := w.read("log"); got != "held\n" {
				t.Errorf("the tool ran: %q, want once", got)
			}
		})
	}
}

// Ctrl-C at a question leaves it open.
func TestInterruptedQuestion(t *testing.T) {
	w := serveHeld(t, notHeld, "ask", "all is well").workplace()
	s := w.screen(nil, "run", "./stop", "go")
	s.await("Other (custom)")
	s.press(ctrlC)
	s.ends(5, "next: raddle resume ")
	if r := w.run("resume", "-q", w.runs()[0].Run, "--answer", "b"); r.code != 0 || r.out != "all is well\n" {
		t.Errorf("answered: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
}

// If the newest turn of a session was killed, the list shows that turn, not the first one.
func TestKilledTurnIsListed(t *testing.T) {
	needBash(t)
	w := serveHeld(t, notHeld, "all is well", "hold", "over").workplace()
	g := w.gate("gate")
	if r := w.run("run", "-q", "./stop", "-s", "kept", "first"); r.code != 0 {
		t.Fatalf("the first turn: %s", r.err)
	}
	type turn struct {
		Run, Status, Agent, Graph string
		Started, Updated          time.Time
	}
	list := func() (turns []turn) {
		r := w.run("runs", "ls", "--output", "json")
		if err := json.Unmarshal([]byte(r.out), &turns); err != nil || len(turns) != 1 {
			t.Fatalf("%v %s%s", err, r.out, r.err)
		}
		return turns
	}
	first := list()[0]
	cmd, _ := w.begin("run", "./stop", "-s", "kept", "second")
	pass := g.arrive()
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	pass()
	if got := list()[0]; got.Run == first.Run || got.Status != "crashed" || got.Agent != "stop" || got.Graph != first.Graph || !got.Started.After(first.Updated) {
		t.Errorf("%+v, after %+v", got, first)
	}
}
