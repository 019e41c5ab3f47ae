//go:build unix

package conversation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/internal/testkit/llmtest"
)

// childTurn is set, to the working directory and the message, in a copy of the test binary that makes one turn.
const childTurn = "RADDLE_CONVERSATION_TURN"

func TestMain(m *testing.M) {
	if turn := os.Getenv(childTurn); turn != "" {
		if err := makeTurn(turn); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func makeTurn(turn string) error {
	var in struct {
		Work, Text string
		Env        []string
	}
	if err := json.Unmarshal([]byte(turn), &in); err != nil {
		return err
	}
	p, err := app.Open(app.Options{Work: in.Work, Environ: in.Env})
	if err != nil {
		return err
	}
	c, err := conversation.Open(context.Background(), p, "helper", "talk")
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := c.StartTurn(app.Request{Prompt: in.Text})
	if err != nil {
		return err
	}
	_, err = run.Drive(context.Background(), app.Driver{})
	return err
}

// A process that is killed in a turn leaves a conversation that another one continues: nothing that was done is done again,
// and the turn can be ended instead, without a further request.
func TestKilledConversation(t *testing.T) {
	for _, at := range []int{1, 2} { // the request in which the process dies: the first one, and the one after a call
		for _, interrupts := range []bool{false, true} {
			t.Run(fmt.Sprint("request ", at, ", interrupted ", interrupts), func(t *testing.T) {
				x := newPlace(t)
				dies, dead := make(chan struct{}), make(chan struct{})
				var requests atomic.Int32
				x.mu.Lock()
				x.answer = func(body []byte) llmtest.Turn {
					if requests.Add(1) == int32(at) {
						close(dies)
						<-dead
					}
					return replyTo(t, body)
				}
				x.mu.Unlock()
				in, err := json.Marshal(map[string]any{"Work": x.work, "Env": x.env, "Text": writeCall("file.txt", "by the agent")})
				must(t, err)
				self, err := os.Executable()
				must(t, err)
				cmd := exec.CommandContext(t.Context(), self)
				cmd.Env, cmd.Stderr = append(os.Environ(), childTurn+"="+string(in)), os.Stderr
				must(t, cmd.Start())
				<-dies
				p, err := app.Open(app.Options{Work: x.work, Environ: x.env})
				must(t, err)
				t.Cleanup(func() { _ = p.Close() })
				if _, err := conversation.Open(t.Context(), p, "helper", "talk"); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("is being driven by process %d", cmd.Process.Pid)) {
					t.Errorf("a second process: %v", err)
				}
				must(t, cmd.Process.Signal(syscall.SIGKILL))
				_ = cmd.Wait() // it was killed
				close(dead)
				written := x.read("file.txt")
				x.write("file.txt", "by hand")

				_, c := x.open("talk")
				id, status, err := c.OpenTurn(t.Context())
				must(t, err)
				if id == "" || status != graph.Crashed {
					t.Fatalf("the open turn: %q %v", id, status)
				}
				if turns, err := c.Turns(t.Context()); err != nil || len(turns) != 1 || turns[0].Run != id || turns[0].Status != graph.Crashed || turns[0].Prompt == "" {
					t.Errorf("turns %+v %v", turns, err)
				}
				if _, err := c.StartTurn(app.Request{Prompt: "next"}); err == nil {
					t.Error("a turn was started before the last one has ended")
				}
				run, err := p.ResumeRun(t.Context(), id, app.ResumeOptions{})
				must(t, err)
				var d app.Driver
				if interrupts {
					stop := make(chan struct{})
					close(stop)
					d.Interrupt = stop
				}
				res, err := run.Drive(t.Context(), d)
				run.Close()
				if err != nil || res.Status != graph.Done || agent.WasInterrupted(res.State) != interrupts {
					t.Fatalf("%v %v, interrupted %v", res.Status, err, agent.WasInterrupted(res.State))
				}
				want := 3
				if interrupts {
					want = at
				}
				if n := int(requests.Load()); n != want {
					t.Errorf("%d requests, want %d", n, want)
				}
				check(t, "the file, which the agent has not read", x.read("file.txt"), "by hand")
				check(t, "the file when the process died", written, map[int]string{1: "none", 2: "by the agent"}[at])
				if turns, err := c.Turns(t.Context()); err != nil || len(turns) != 1 || turns[0].Interrupted != interrupts || turns[0].Status != graph.Done {
					t.Errorf("turns %+v %v", turns, err)
				}
				x.say(c, "next")
			})
		}
	}
}
