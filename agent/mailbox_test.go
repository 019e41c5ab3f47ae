package agent_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// A mailbox is what people have sent to a turn.
type mailbox struct {
	mu    sync.Mutex
	sent  []agent.SentMessage
	looks []bool // whether the turn would have ended, by look
}

func (b *mailbox) send(id, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, agent.SentMessage{ID: id, Text: text})
}

func (b *mailbox) waiting(isTaken func(string) bool, last bool) []agent.SentMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looks = append(b.looks, last)
	return slices.DeleteFunc(slices.Clone(b.sent), func(m agent.SentMessage) bool { return isTaken(m.ID) })
}

// sentTexts are the messages of a steered scene.
var sentTexts = []string{"Use metres.", "And be brief.", "In French.", "Sure?"}

// steeredScene is an agent with three rounds of calls. During the first two calls, and during its last request, a
// person writes.
func steeredScene(t *testing.T, wire string, b *mailbox) *scene {
	looks := 0
	look := tool.Tool{Name: "look", Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) {
		switch looks++; looks {
		case 1:
			b.send("m1", "Use metres.")
		case 2:
			b.send("m2", "And be brief.")
			b.send("m3", "In French.")
		}
		return tool.TextResult("seen"), nil
	}}
	config := func(x *scene) agent.Config {
		return agent.Config{Model: x.model(), Tools: []tool.Tool{look}, MaxIterations: 2}
	}
	reply := func(n int, _ string) wireReply {
		switch {
		case n <= 3:
			return calls("look", `{"n":`+string(rune('0'+n))+`}`)
		case n == 4:
			b.send("m4", "Sure?")
			return wireReply{text: []string{"fine"}}
		}
		return wireReply{text: []string{"yes"}}
	}
	return newScene(t, wire, config, reply)
}

// What a person says while a turn works reaches the model with the next request, after the outcomes of the calls, once.
// It begins the count of replies again. What comes during the last request continues the turn.
func TestMessagesDuringATurn(t *testing.T) {
	for _, wire := range []string{"openai", "anthropic"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			b := &mailbox{}
			x := steeredScene(t, wire, b)
			var taken []string
			var res graph.Result
			events := x.runner().Run(agent.WithMailbox(t.Context(), b.waiting), graph.Input{Thread: "t", Set: agent.Turn("How high?"), Topics: graph.AllTopics})
			for ev, err := range events {
				if err != nil {
					t.Error(err)
				}
				switch body := ev.Body.(type) {
				case graph.RunEnded:
					res = body.Result
				case graph.ValueEmitted:
					if m, ok := body.Value.(agent.MessageTaken); ok {
						taken = append(taken, m.ID)
					}
				}
			}
			if len(x.refused) > 0 {
				t.Fatalf("the provider refuses %s", x.refused[0])
			}
			if want := "How high? -> [calls] -> [outcomes] -> Use metres. -> [calls] -> [outcomes] -> And be brief. -> In French. -> [calls] -> [outcomes] -> fine -> Sure? -> yes"; said(res) != want {
				t.Errorf("the conversation is\n%s, want\n%s", said(res), want)
			}
			if got := strings.Join(taken, " "); got != "m1 m2 m3 m4" {
				t.Errorf("taken up: %s", got)
			}
			if got := strings.Join(agent.TakenMessages(agent.Messages.Get(res.State)), " "); got != "m1 m2 m3 m4" {
				t.Errorf("the state says that these were taken up: %s", got)
			}
			for i, want := range []int{0, 1, 3, 3, 4} {
				n := 0
				for _, text := range sentTexts {
					n += strings.Count(x.bodies[i], text)
				}
				if n != want {
					t.Errorf("request %d has %d of the messages, want %d", i+1, n, want)
				}
			}
			if want := []bool{false, false, false, true, true}; !slices.Equal(b.looks, want) {
				t.Errorf("the looks are %v, want %v", b.looks, want)
			}
			x.resumeEachPrefix(said(res))
		})
	}
}

// resumeEachPrefix resumes every journal that a kill could have left, with nothing in the mailbox: what was recorded as
// taken up is there, and nothing else is lost.
func (x *scene) resumeEachPrefix(whole string) {
	x.t.Helper()
	var all []journal.Record
	for r, err := range journal.Records(x.t.Context(), x.store, "t", journal.Range{}) {
		if err != nil {
			x.t.Fatal(err)
		}
		all = append(all, r)
	}
	kept := x.store
	defer func() { x.store = kept }()
	for n := 1; n < len(all); n++ {
		x.store = journal.NewMemory()
		if err := x.store.Append(context.Background(), "t", 0, all[:n]); err != nil {
			x.t.Fatal(err)
		}
		res, err := x.runner().InvokeResume(x.t.Context(), graph.Resume{Thread: "t"})
		if err != nil {
			x.t.Errorf("killed after record %d of %d: %v", n, len(all), err)
			continue
		}
		for _, text := range sentTexts {
			want := 0
			if slices.ContainsFunc(all[:n], func(r journal.Record) bool { return strings.Contains(string(r.Data), text) }) {
				want = 1
			}
			if got := strings.Count(said(res), text); got != want {
				x.t.Errorf("killed after record %d of %d, %q is in the conversation %d times, want %d: %s", n, len(all), text, got, want, said(res))
			}
		}
		if n == len(all)-1 && said(res) != whole {
			x.t.Errorf("killed before the end, the conversation is\n%s, want\n%s", said(res), whole)
		}
	}
}

// said returns a conversation in one line.
func said(res graph.Result) string {
	var lines []string
	for _, m := range agent.History(res.State) {
		switch {
		case len(m.ToolCalls()) > 0:
			lines = append(lines, "[calls]")
		case m.Role == llm.RoleTool:
			lines = append(lines, "[outcomes]")
		default:
			lines = append(lines, m.Text())
		}
	}
	return strings.Join(lines, " -> ")
}
