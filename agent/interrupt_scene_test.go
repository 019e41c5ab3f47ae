package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/openai"
)

// A wireReply is what the provider of a scene sends, in this order.
type wireReply struct {
	status int // of a failure; 0: none
	reason string
	text   []string
	calls  []llmtest.Call
	cut    string // the beginning of the arguments of one more call
	hang   bool   // it does not end
	drop   bool   // the connection breaks
}

// A scene is an agent in a conversation that a person interrupts.
type scene struct {
	t      testing.TB
	wire   string
	url    string
	store  journal.Store
	reply  func(n int, last string) wireReply // to the request number n, from 1; last is the last message
	config func(x *scene) agent.Config

	mu       sync.Mutex
	requests int
	bodies   []string
	refused  []string

	stop      chan struct{} // of the current turn
	closeStop func()
	once      sync.Once // for a tool that interrupts only once
}

func newScene(t testing.TB, wire string, config func(x *scene) agent.Config, reply func(n int, last string) wireReply) *scene {
	x := &scene{t: t, wire: wire, store: journal.NewMemory(), reply: reply, config: config}
	server := httptest.NewServer(http.HandlerFunc(x.serve))
	t.Cleanup(server.Close)
	x.url = server.URL
	x.arm()
	return x
}

// arm prepares the signal of the next turn.
func (x *scene) arm() {
	stop := make(chan struct{})
	x.mu.Lock()
	x.stop, x.closeStop = stop, sync.OnceFunc(func() { close(stop) })
	x.mu.Unlock()
}

func (x *scene) interrupt() {
	x.mu.Lock()
	stop := x.closeStop
	x.mu.Unlock()
	stop()
}

func (x *scene) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.requests
}

func (x *scene) model() llm.Model {
	var m llm.Model
	var err error
	if x.wire == "anthropic" {
		m, err = anthropic.New(anthropic.Config{Model: "claude-x", Endpoint: llm.Endpoint{BaseURL: x.url, APIKey: "k"}})
	} else {
		m, err = openai.New(openai.Config{Model: "strict", Endpoint: llm.Endpoint{BaseURL: x.url + "/v1"}})
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return m
}

// serve refuses what the vendor refuses, and what any strict provider does.
func (x *scene) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client has left
	}
	vendor := llmtest.OpenAI()
	if x.wire == "anthropic" {
		vendor = llmtest.Anthropic()
	}
	fault := vendor.Check(raw)
	var body struct{ Messages []wireMessage }
	if x.wire != "anthropic" && fault == nil {
		if fault = json.Unmarshal(raw, &body); fault == nil && invalid(body.Messages) != "" {
			fault = errors.New(invalid(body.Messages))
		}
	}
	var last struct{ Messages []json.RawMessage }
	_ = json.Unmarshal(raw, &last)
	x.mu.Lock()
	x.requests++
	n := x.requests
	x.bodies = append(x.bodies, string(raw))
	if fault != nil {
		x.refused = append(x.refused, fmt.Sprintf("%v\n%s", fault, raw))
	}
	x.mu.Unlock()
	a := wireReply{status: http.StatusBadRequest}
	if fault == nil {
		a = x.reply(n, string(last.Messages[len(last.Messages)-1]))
	}
	if a.status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, `{"error":{"message":"no","type":"x"}}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunks := a.openaiChunks()
	if x.wire == "anthropic" {
		chunks = a.anthropicChunks()
	}
	for _, c := range chunks {
		_, _ = io.WriteString(w, c)
		_ = http.NewResponseController(w).Flush()
	}
	if a.hang {
		<-r.Context().Done()
	}
	if a.drop {
		panic(http.ErrAbortHandler)
	}
}

func (a *wireReply) openaiChunks() (chunks []string) {
	send := func(text string) { chunks = append(chunks, "data: "+text+"\n\n") }
	delta := func(v string) { send(`{"id":"r","model":"strict","choices":[{"index":0,"delta":` + v + `}]}`) }
	if a.reason != "" {
		delta(`{"reasoning_content":` + quoted(a.reason) + `}`)
	}
	for _, text := range a.text {
		delta(`{"role":"assistant","content":` + quoted(text) + `}`)
	}
	for i, c := range a.calls {
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, i, c.ID, c.Name, c.Args))
	}
	if a.cut != "" {
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":"half","type":"function","function":{"name":"look","arguments":%q}}]}`, len(a.calls), a.cut))
	}
	if a.hang || a.drop {
		return chunks
	}
	end := "stop"
	if len(a.calls) > 0 {
		end = "tool_calls"
	}
	for _, c := range endChunks(end) {
		send(c)
	}
	return chunks
}

func (a *wireReply) anthropicChunks() (chunks []string) {
	send := func(name, fields string) {
		chunks = append(chunks, fmt.Sprintf("event: %s\ndata: {\"type\":%[1]q%s}\n\n", name, fields))
	}
	n := -1
	open := func(start string) {
		n++
		send("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, n, start))
	}
	delta := func(v string) { send("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, n, v)) }
	closeBlock := func() { send("content_block_stop", fmt.Sprintf(`,"index":%d`, n)) }
	send("message_start", `,"message":{"id":"r","type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}`)
	more := len(a.text)+len(a.calls)+len(a.cut) > 0
	if a.reason != "" {
		open(`{"type":"thinking","thinking":"","signature":""}`)
		delta(`{"type":"thinking_delta","thinking":` + quoted(a.reason) + `}`)
		if more {
			delta(`{"type":"signature_delta","signature":"s"}`)
			closeBlock()
		}
	}
	if len(a.text) > 0 {
		open(`{"type":"text","text":""}`)
		for _, text := range a.text {
			delta(`{"type":"text_delta","text":` + quoted(text) + `}`)
		}
		if !a.hang && !a.drop || len(a.calls)+len(a.cut) > 0 {
			closeBlock()
		}
	}
	for _, c := range a.calls {
		open(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name))
		delta(`{"type":"input_json_delta","partial_json":` + quoted(c.Args) + `}`)
		closeBlock()
	}
	if a.cut != "" {
		open(`{"type":"tool_use","id":"half","name":"look","input":{}}`)
		delta(`{"type":"input_json_delta","partial_json":` + quoted(a.cut) + `}`)
	}
	if a.hang || a.drop {
		return chunks
	}
	stop := "end_turn"
	if len(a.calls) > 0 {
		stop = "tool_use"
	}
	send("message_delta", `,"delta":{"stop_reason":"`+stop+`"},"usage":{"output_tokens":2}`)
	send("message_stop", "")
	return chunks
}

func (x *scene) runner() *graph.Runner {
	return &graph.Runner{Graph: compile(x.t, x.config(x)), Store: x.store}
}

// turn makes a turn, or continues one if text is empty, and interrupts it at the first event for which
// at returns true. A run that waits is resumed as a user interface does it.
func (x *scene) turn(text string, at func(v any) bool) graph.Result {
	x.t.Helper()
	x.mu.Lock()
	stop := x.stop
	x.mu.Unlock()
	ctx := agent.WithInterrupt(x.t.Context(), stop)
	r := x.runner()
	events := r.Run(ctx, graph.Input{Thread: "t", Set: agent.Turn(text), Topics: graph.AllTopics})
	if text == "" {
		events = r.Resume(ctx, graph.Resume{Thread: "t", Topics: graph.AllTopics})
	}
	res := x.watch(events, at)
	if res.Status == graph.Waiting && closed(stop) {
		res = x.watch(r.Resume(ctx, graph.Resume{Thread: "t", Answers: agent.InterruptAnswers(res.Questions, agent.NodeAct), Topics: graph.AllTopics}), nil)
	}
	return res
}

func (x *scene) watch(events func(func(graph.Event, error) bool), at func(v any) bool) (res graph.Result) {
	x.t.Helper()
	for ev, err := range events {
		if err != nil {
			x.t.Errorf("the drive failed: %v", err)
		}
		switch b := ev.Body.(type) {
		case graph.RunEnded:
			res = b.Result
		case graph.ValueEmitted:
			if at != nil && at(b.Value) {
				x.interrupt()
			}
		}
	}
	return res
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// checkPrefixes resumes every journal that a kill after the interruption could have left, without a signal: each
// ends as the whole one did, and no model is asked again.
func (x *scene) checkPrefixes(want graph.Result, turnBegan int64) {
	x.t.Helper()
	var all []journal.Record
	first := int64(0)
	for r, err := range journal.Records(x.t.Context(), x.store, "t", journal.Range{}) {
		if err != nil {
			x.t.Fatal(err)
		}
		all = append(all, r)
		marks := strings.Contains(string(r.Head), "shared\x00=interrupted") || strings.Contains(string(r.Data), `"interrupted"`) || strings.Contains(string(r.Head), agent.InterruptReason)
		if first == 0 && r.Seq > turnBegan && marks {
			first = r.Seq
		}
	}
	if first == 0 {
		x.t.Error("the journal does not say that the turn was interrupted")
		return
	}
	whole := x.store
	defer func() { x.store = whole }()
	before := x.count()
	for n := first; n < int64(len(all)); n++ {
		x.store = journal.NewMemory()
		if err := x.store.Append(context.Background(), "t", 0, all[:n]); err != nil {
			x.t.Fatal(err)
		}
		res, err := x.runner().InvokeResume(agent.WithInterrupt(x.t.Context(), nil), graph.Resume{Thread: "t"})
		if res.Status == graph.Waiting { // the question was open when the process died: its answer does not matter any more
			var answers []graph.Answer
			for _, q := range res.Questions {
				answers = append(answers, graph.Answer{ID: q.ID, Refused: "whatever"})
			}
			res, err = x.runner().InvokeResume(agent.WithInterrupt(x.t.Context(), nil), graph.Resume{Thread: "t", Answers: answers})
		}
		if err != nil || res.Status != graph.Done || !agent.WasInterrupted(res.State) {
			x.t.Errorf("killed after record %d of %d (%v): %v %v, interrupted: %v", n, len(all), all[n-1].Kind, res.Status, err, agent.WasInterrupted(res.State))
		}
		if got, want := len(agent.History(res.State)), len(agent.History(want.State)); got != want {
			x.t.Errorf("killed after record %d of %d: %d messages, want %d", n, len(all), got, want)
		}
	}
	if n := x.count(); n != before {
		x.t.Errorf("%d requests were made after a kill", n-before)
	}
}
