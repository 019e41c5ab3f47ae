package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
	"raddle.dev/rag"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// A span is one of a trace, as a test looks at it.
type span struct {
	otlpSpan
	values map[string]string // of attributes, as JSON
}

// A driveFunc does what a drive does.
type driveFunc func(ctx context.Context, tel *Telemetry, r *Recording)

// recordRun returns the spans of a drive by their names. A second span with a name has a 2 behind it.
func recordRun(t *testing.T, run Run, s Setup, drive driveFunc) map[string]span {
	t.Helper()
	s.File = filepath.Join(t.TempDir(), "trace")
	s.Settings.Content = true
	s.Secrets = redact.New("hunter2hunter2")
	tel, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, r := tel.StartDrive(t.Context(), run)
	drive(ctx, tel, r)
	r.End(graph.Result{Status: graph.Done, Steps: 2}, nil)
	if err := tel.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.File)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "hunter2") {
		t.Errorf("the trace has a secret: %s", text)
	}
	spans := map[string]span{}
	for line := range strings.Lines(string(text)) {
		var traces otlpTraces
		if err := json.Unmarshal([]byte(line), &traces); err != nil {
			t.Fatal(err)
		}
		got := span{traces.ResourceSpans[0].ScopeSpans[0].Spans[0], map[string]string{}}
		for _, a := range got.Attributes {
			value, err := json.Marshal(a.Value)
			if err != nil {
				t.Fatal(err)
			}
			got.values[a.Key] = string(value)
		}
		name := got.Name
		for n := 2; spans[name].Name != ""; n++ {
			name = fmt.Sprint(got.Name, n)
		}
		spans[name] = got
	}
	return spans
}

// check compares attributes of a span with texts and whole numbers.
func (s *span) check(t *testing.T, want map[string]any) {
	t.Helper()
	for key, v := range want {
		text := ""
		switch v := v.(type) {
		case nil: // there is none
		case int:
			text = fmt.Sprintf(`{"intValue":"%d"}`, v)
		case bool:
			text = fmt.Sprintf(`{"boolValue":%v}`, v)
		default:
			b, _ := json.Marshal(v)
			text = fmt.Sprintf(`{"stringValue":%s}`, b)
		}
		if s.values[key] != text {
			t.Errorf("%s: %s is %s, want %s", s.Name, key, s.values[key], text)
		}
	}
}

// eventsOf returns the events of a span, each with the text of its last attribute.
func eventsOf(t *testing.T, s span) string {
	t.Helper()
	var events []string
	for _, e := range s.Events {
		text, err := json.Marshal(e.Attributes[len(e.Attributes)-1].Value.String)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e.Name+"@"+e.Time+": "+string(text))
	}
	return strings.Join(events, ", ")
}

// scriptedModels answer with one reply, or fail.
type scriptedModels struct {
	flow.Models
	reply *llm.Reply
	err   error
	sent  string // the traceparent of the request
}

func (m *scriptedModels) Open(_ context.Context, _, id string) (llm.Model, error) {
	if id == "none" {
		return nil, errors.New("no such model")
	}
	return m, nil
}

func (m *scriptedModels) Stream(ctx context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.sent = llm.Traceparent(ctx)
		if !yield(llm.Delta{Text: "a"}, nil) {
			return
		}
		if m.err != nil {
			yield(llm.Delta{}, m.err)
			return
		}
		yield(llm.Delta{Done: m.reply}, nil)
	}
}

// exchange returns a request in which all is set that a span shows, and its reply.
func exchange() (llm.Request, *llm.Reply) {
	reply := &llm.Reply{ID: "r1", Model: "large-1", Message: llm.Message{Role: llm.RoleAssistant}}
	reply.Message.Parts = []llm.Part{llm.Text{Text: "hunter2hunter2"}}
	reply.Usage = llm.Usage{Input: 10, Output: 4, Cached: 3, Written: 2, Reasoning: 1}
	reply.Stop = llm.StopTools
	half := 0.5
	return llm.Request{
		System:      "be brief",
		Messages:    []llm.Message{llm.User("hi")},
		MaxTokens:   99,
		Temperature: &half,
		TopP:        &half,
		Stop:        []string{"."},
		Schema:      json.RawMessage(`{}`),
	}, reply
}

// A request to a model has a span with what was asked and used, or with why it failed.
func TestSpansOfModels(t *testing.T) {
	request, reply := exchange()
	scripted := &scriptedModels{reply: reply}
	setup := Setup{Cost: func(_ string, u llm.Usage) (float64, bool) { return float64(u.Input), true }}
	run := Run{ID: "r", Thread: "t", Agent: "g"}
	spans := recordRun(t, run, setup, func(ctx context.Context, tel *Telemetry, _ *Recording) {
		ask := func(ctx context.Context, id string, leave bool) {
			m, err := tel.WrapModels(scripted).Open(ctx, "", id)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range m.Stream(ctx, request) {
				if leave || err != nil {
					break
				}
			}
		}
		ask(t.Context(), "openai:outside", false) // it belongs to no drive
		if scripted.sent != "" {
			t.Errorf("a request of no drive has the traceparent %q", scripted.sent)
		}
		ask(ctx, "gemini:large", false)
		ask(ctx, "left", true)
		for id, err := range map[string]error{
			"limited": &llm.Error{Class: llm.RateLimited, Status: 429},
			"network": &llm.Error{Class: llm.Network},
			"late":    context.DeadlineExceeded,
		} {
			scripted.err = fmt.Errorf("it failed at hunter2hunter2: %w", err)
			ask(ctx, "openai:"+id, false)
		}
		wrapped := tel.WrapModels(scripted)
		if _, err := wrapped.Open(ctx, "", "none"); err == nil || wrapped.(flow.Hinter).Hint("x") != "" {
			t.Error("a model that is not known is opened, or has a hint")
		}
	})
	large := spans["chat large"]
	large.check(t, map[string]any{
		"gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "large", "gen_ai.response.model": "large-1",
		"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 4, "gen_ai.usage.reasoning.output_tokens": 1,
		"gen_ai.usage.cache_read.input_tokens": 3, "gen_ai.usage.cache_creation.input_tokens": 2,
		"gen_ai.request.max_tokens": 99, "gen_ai.output.type": "json", "gen_ai.conversation.id": "t", "error.type": nil,
		"gen_ai.system_instructions": `[{"type":"text","content":"be brief"}]`,
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"[redacted]"}],` +
			`"finish_reason":"tool_call"}]`,
	})
	if large.ParentSpanID != spans["invoke_agent g"].SpanID || large.values["raddle.cost_usd"] != `{"doubleValue":10}` {
		t.Errorf("%+v", large)
	}
	for name, want := range map[string]map[string]any{
		"chat left":    {"error.type": "cancelled", "gen_ai.provider.name": "_OTHER", "gen_ai.usage.input_tokens": nil},
		"chat limited": {"error.type": "429", "http.response.status_code": 429},
		"chat network": {"error.type": "network", "http.response.status_code": nil},
		"chat late":    {"error.type": "timeout"},
	} {
		s := spans[name]
		if s.check(t, want); s.Status.Code != 2 {
			t.Errorf("%s is not marked as failed", name)
		}
	}
	drive := spans["invoke_agent g"]
	drive.check(t, map[string]any{"gen_ai.usage.input_tokens": 10, "raddle.run.status": "done", "raddle.run.steps": 2})
	if len(spans) != 6 {
		t.Errorf("%d spans", len(spans))
	}
}

// fixedEmbedder returns its vectors, or fails.
type fixedEmbedder [][]float32

func (e fixedEmbedder) Embed(context.Context, rag.Purpose, []string) ([][]float32, error) {
	if e == nil {
		return nil, errors.New("it broke at hunter2hunter2")
	}
	return e, nil
}

// checkSpan compares a span, which has failed if and only if it is to have a type of an error.
func checkSpan(t *testing.T, spans map[string]span, name string, want map[string]any) {
	t.Helper()
	s := spans[name]
	s.check(t, want)
	failed := want["error.type"] != nil
	if s.Name == "" || (s.Status.Code == 2) != failed {
		t.Errorf("%s: status %+v", name, s.Status)
	}
}

// Searches and requests for embeddings have spans, with why they failed.
func TestSpansOfSearches(t *testing.T) {
	run := Run{ID: "r", Thread: "r", Agent: "g"}
	spans := recordRun(t, run, Setup{}, func(ctx context.Context, tel *Telemetry, _ *Recording) {
		search := tel.WrapSearch(func(context.Context, flow.SearchRequest) ([]rag.Hit, error) {
			return []rag.Hit{{Path: "a.md", Chunk: 2, Score: 0.5, Text: "hunter2hunter2"}}, nil
		})
		hits, err := search(ctx, flow.SearchRequest{Query: "where is hunter2hunter2", TopK: 3})
		if len(hits) != 1 || err != nil {
			t.Error(hits, err)
		}
		fails := tel.WrapSearch(func(context.Context, flow.SearchRequest) ([]rag.Hit, error) {
			return nil, context.Canceled
		})
		if _, err := fails(ctx, flow.SearchRequest{Node: "base"}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for id, e := range map[string]fixedEmbedder{"mistral:good": {{1, 2, 3}}, "bad": nil} {
			m, err := tel.WrapEmbedders(func(string) (rag.Embedder, error) { return e, nil })(id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Embed(ctx, rag.ForQuery, []string{"a", "b"}); (err == nil) != (e != nil) {
				t.Errorf("%s: %v", id, err)
			}
		}
	})
	for name, want := range map[string]map[string]any{
		"retrieval documents": {
			"gen_ai.retrieval.query.text": "where is [redacted]", "raddle.retrieval.documents.count": 1,
			"gen_ai.retrieval.documents": `[{"id":"a.md#2","score":0.5}]`,
		},
		"retrieval base": {"error.type": "cancelled", "raddle.retrieval.documents.count": nil},
		"embeddings good": {
			"gen_ai.embeddings.dimension.count": 3, "gen_ai.provider.name": "mistral_ai",
			"raddle.embeddings.texts.count": 2,
		},
		"embeddings bad": {"gen_ai.provider.name": "_OTHER", "error.type": "_OTHER"},
	} {
		checkSpan(t, spans, name, want)
	}
}

// Calls of tools have spans, with why they failed; a call that asks has not failed. What a tool does is below it.
func TestSpansOfTools(t *testing.T) {
	run := Run{ID: "r", Thread: "r", Agent: "g"}
	spans := recordRun(t, run, Setup{}, func(ctx context.Context, tel *Telemetry, _ *Recording) {
		call := func(ctx context.Context, name string, res tool.Result, err error) {
			run := tel.WrapTool(func(ctx context.Context, _ tool.Tool, _ tool.Call) (tool.Result, error) {
				inner := tel.WrapSearch(func(context.Context, flow.SearchRequest) ([]rag.Hit, error) { return nil, nil })
				_, searchErr := inner(ctx, flow.SearchRequest{Node: "in " + name})
				return res, errors.Join(err, searchErr)
			})
			made := tool.Tool{Name: name, Description: "uses hunter2hunter2"}
			got, gotErr := run(ctx, made, tool.Call{ID: "1", Args: json.RawMessage(`{"a":"hunter2hunter2"}`)})
			if got.Text() != res.Text() || (gotErr == nil) != (err == nil) {
				t.Errorf("%s: %v, %v", name, got, gotErr)
			}
		}
		call(t.Context(), "outside", tool.TextResult("x"), nil)
		call(ctx, "plain", tool.TextResult("found hunter2hunter2"), nil)
		call(ctx, "mcp__x", tool.FailedResult("no file"), nil)
		call(ctx, "broken", tool.Result{}, errors.New("at hunter2hunter2"))
		call(ctx, "asks", tool.Result{}, &tool.Question{Prompt: "Do it?"})
		call(ctx, "waits", tool.Result{}, graph.ErrWaiting)
	})
	for name, want := range map[string]map[string]any{
		"execute_tool plain": {
			"gen_ai.tool.call.arguments": `{"a":"[redacted]"}`,
			"gen_ai.tool.call.result":    `{"output":"found [redacted]"}`,
			"gen_ai.tool.description":    "uses [redacted]", "error.type": nil, "mcp.method.name": nil,
		},
		"execute_tool mcp__x": {"error.type": "tool_error", "mcp.method.name": "tools/call"},
		"execute_tool broken": {"error.type": "_OTHER", "gen_ai.tool.call.result": nil},
		"execute_tool asks":   {"error.type": nil, "raddle.waiting": true},
		"execute_tool waits":  {"error.type": nil, "raddle.waiting": true},
	} {
		checkSpan(t, spans, name, want)
	}
	if inner := spans["retrieval in plain"]; inner.ParentSpanID != spans["execute_tool plain"].SpanID {
		t.Errorf("what a tool does is below %s", inner.ParentSpanID)
	}
	if spans["retrieval in outside"].Name != "" {
		t.Error("what belongs to no drive has a span")
	}
}

// The agents of a team are below those that started them, and the steps of an agent below it; a question is open from
// when it was asked, by whatever process, and results that were recorded before have no spans.
func TestSpansOfEvents(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0).UTC() }
	run := Run{ID: "r", Thread: "r", Agent: "g", Graph: true, Resumed: true}
	run.Asked = map[string]time.Time{"old": at(1), "open": at(2)}
	run.Parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	spans := recordRun(t, run, Setup{}, func(_ context.Context, _ *Telemetry, r *Recording) {
		task := graph.Event{Node: "team", Task: "1.team.0", Step: 1}
		send := func(ev graph.Event, second int64, body graph.Body) {
			ev.Time = at(second)
			ev.Body = body
			r.RecordEvent(ev)
		}
		send(task, 10, graph.TaskStarted{Kind: "agent"})
		send(task, 11, graph.ValueEmitted{Value: team.AgentStarted{ID: "lead", Agent: "boss"}})
		send(task, 12, graph.ValueEmitted{Value: team.AgentStarted{ID: "sub", Agent: "hand", Parent: "lead"}})
		below := graph.Event{Path: "team/sub/", Node: "work", Task: "1.work.0", Step: 1}
		send(below, 13, graph.TaskStarted{})
		send(below, 14, graph.TaskRetry{Attempt: 1, Err: &graph.LimitError{Status: graph.TimedOut}})
		send(below, 15, graph.TaskDone{Attempts: 2})
		send(task, 16, graph.ValueEmitted{Value: team.AgentEnded{ID: "sub", Status: "failed", Error: "at hunter2hunter2"}})
		send(task, 16, graph.ValueEmitted{Value: team.AgentEnded{ID: "never", Status: "completed"}})
		recorded := graph.Event{Node: "known", Task: "1.known.0", Step: 1}
		send(recorded, 17, graph.TaskDone{Recorded: true})
		send(task, 18, graph.TaskDone{Waiting: true, Err: graph.ErrWaiting, Cached: true})
		send(graph.Event{Step: 1}, 19, graph.StepCommitted{Nodes: []string{"team"}})
		send(graph.Event{Step: 2}, 20, graph.PhaseStarted{Phase: graph.PhasePlanning})
		q := graph.Question{ID: "new", Kind: "confirm", Prompt: "with hunter2hunter2?"}
		send(graph.Event{}, 21, graph.QuestionAsked{Question: q})
		send(graph.Event{}, 22, graph.QuestionAnswered{ID: "new", Refused: "no"})
		send(graph.Event{}, 23, graph.QuestionAnswered{ID: "old", Ahead: true})
	})
	root := spans["invoke_workflow g"]
	isOpen := eventsOf(t, root) == `raddle.question.asked@2000000000: "open"`
	if root.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || !isOpen {
		t.Errorf("%s of %s", eventsOf(t, root), root.TraceID)
	}
	work := spans["task work"]
	work.check(t, map[string]any{"raddle.path": "team/sub/", "raddle.task.attempts": 2})
	if got := eventsOf(t, work); got != `raddle.task.retry@14000000000: "timed-out"` {
		t.Errorf("retries %s", got)
	}
	lead := spans["task team"]
	lead.check(t, map[string]any{"raddle.waiting": true, "raddle.cached": true, "raddle.kind": "agent"})
	hand := spans["invoke_agent hand"]
	hand.check(t, map[string]any{"raddle.agent.status": "failed", "gen_ai.agent.id": "sub"})
	boss := spans["invoke_agent boss"]
	step := spans["step"]
	if hand.Status.Message != "at [redacted]" || lead.Status.Code != 0 {
		t.Errorf("%+v, %+v", hand.Status, lead.Status)
	}
	if hand.ParentSpanID != boss.SpanID || boss.ParentSpanID != lead.SpanID ||
		work.ParentSpanID != step.SpanID || step.ParentSpanID != hand.SpanID {
		t.Errorf("the parents are not those that started: %+v", spans)
	}
	asked := spans["question"]
	asked.check(t, map[string]any{
		"raddle.question.prompt": "with [redacted]?", "raddle.question.refused": true, "raddle.kind": "confirm",
	})
	old := spans["question2"]
	old.check(t, map[string]any{"raddle.question.answered_ahead": true})
	if old.Start != "1000000000" || old.End != "23000000000" || asked.Start != "21000000000" {
		t.Errorf("%+v, %+v", old.otlpSpan, asked.otlpSpan)
	}
	if spans["task known"].Name != "" || spans["invoke_agent"].Name != "" {
		t.Error("what did not run has a span")
	}
}
