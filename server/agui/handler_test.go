package agui

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

const (
	chatConfig = `
name: chat
model: script:transcript.yaml
global_tools: [execute_command, user]
`
	chatTranscript = `
- match: say hello
  reasoning: I greet.
  text: Hello there.
  usage: {input: 7, output: 3}
- match: make a file
  turn: 1
  text: I make it.
  tool_calls: [{id: c1, name: execute_command, args: {command: touch made}}]
- match: make a file
  turn: 2
  text: The file is made.
- match: please confirm
  turn: 1
  tool_calls: [{id: q1, name: user__confirm, args: {question: Sure?}}]
- match: please confirm
  turn: 2
  text: Noted.
- match: fail now
  error: {class: bad_request, message: the model refuses}
- match: take long
  delay_ms: 60000
  text: done
`
	twoGraph = `
name: two
start: begin
nodes:
  begin: {type: script, script: begin.sh, next: [left, right]}
  left: {type: agent, agent: count, prompt: x, state_updates: {left: "{{output}}"}, next: done}
  right: {type: agent, agent: count, prompt: x, state_updates: {right: "{{output}}"}, next: done}
  done: {type: end, output: "{{left}}, {{right}}"}
`
	countGraph = `
name: count
start: first
nodes:
  first: {type: script, script: first.sh, next: ask}
  ask: {type: input, question: Who?, validation: len(input) > 2, state_updates: {who: "{{input}}"}, next: last}
  last: {type: script, script: last.sh, next: done}
  done: {type: end, output: "Hello {{who}}"}
`
)

// A world is a home directory with agents.
type world struct {
	*servertest.Home
	t   *testing.T
	url string
	svc *server.Service

	scopes []server.Scope // of the caller; nil: there is none
}

// caller returns the caller of a request; nil: there is none.
func (w *world) caller() *server.Caller {
	if w.scopes == nil {
		return nil
	}
	return &server.Caller{Name: "test", Scopes: w.scopes}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, Home: servertest.NewHome(t, map[string]string{
		"chat/config.yaml": chatConfig, "chat/transcript.yaml": chatTranscript, "count/graph.yaml": countGraph, "two/graph.yaml": twoGraph, "two/begin.sh": "echo '{}'",
		"count/first.sh": `echo '{"list": ["a"], "n": 1}'`, "count/last.sh": `echo '{"list": ["a", "b"], "n": 2}'`,
	})}
	w.serve()
	return w
}

// serve starts a service and a server in the world, and returns what ends the service.
func (w *world) serve() (stop func()) {
	w.t.Helper()
	w.svc, stop = w.Serve()
	w.url = servertest.Listen(w.t, NewHandler(w.svc), w.caller)
	return stop
}

// A sent event is one of the server's, as its client sees it.
type sent map[string]any

func (e sent) kind() string { return e["type"].(string) }

// makeInput returns an input with one message of the user.
func makeInput(thread, run, text string) map[string]any {
	return map[string]any{"threadId": thread, "runId": run, "messages": []any{map[string]any{"id": "m-" + run, "role": "user", "content": text}},
		"tools": []any{}, "context": []any{}, "forwardedProps": map[string]any{}}
}

// resumeInput returns an input that answers interrupts. answers are pairs of an id and a payload.
func resumeInput(thread, run string, answers ...any) map[string]any {
	in := makeInput(thread, run, "")
	in["messages"] = []any{}
	var list []any
	for i := 0; i < len(answers); i += 2 {
		list = append(list, map[string]any{"interruptId": answers[i], "status": "resolved", "payload": answers[i+1]})
	}
	in["resume"] = list
	return in
}

func (w *world) request(ctx context.Context, agent string, in any) *http.Response {
	w.t.Helper()
	b, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(ctx, "POST", w.url+"/agui/"+agent, bytes.NewReader(b))
	if err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// post sends an input and returns all events, which must be in a valid order.
func (w *world) post(agent string, in any) []sent {
	w.t.Helper()
	resp := w.request(w.t.Context(), agent, in)
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || got != "text/event-stream" {
		w.t.Fatalf("status %d, type %s", resp.StatusCode, got)
	}
	var events []sent
	for e := range readEvents(w.t, resp) {
		events = append(events, e)
	}
	if problem := checkOrder(events); problem != "" {
		w.t.Errorf("%s in %v", problem, kinds(events))
	}
	return events
}

// readEvents yields the events of an answer.
func readEvents(t *testing.T, resp *http.Response) func(func(sent) bool) {
	return func(yield func(sent) bool) {
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var e sent
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				t.Errorf("%s: %v", data, err)
			}
			if !yield(e) {
				return
			}
		}
	}
}

// checkOrder returns which rule of the protocol the order of events breaks.
func checkOrder(events []sent) string {
	if len(events) == 0 || events[0].kind() != runStarted {
		return "the first event is not RUN_STARTED"
	}
	last := events[len(events)-1].kind()
	if last != runFinished && last != runError {
		return "the last event is " + last
	}
	open := map[string]bool{}
	pairs := map[string][2]string{stepStarted: {stepFinished, "stepName"}, textStart: {textEnd, "messageId"}, callStart: {callEnd, "toolCallId"},
		reasoningStart: {reasoningEnd, "messageId"}, reasoningTextStart: {reasoningTextEnd, "messageId"}}
	inside := map[string][2]string{textContent: {textEnd, "messageId"}, callArgs: {callEnd, "toolCallId"}, reasoningContent: {reasoningTextEnd, "messageId"}}
	for i, e := range events[1:] {
		for start, p := range pairs {
			key := p[0] + fmt.Sprint(e[p[1]])
			switch {
			case e.kind() == start && open[key]:
				return fmt.Sprintf("%v begins again", key)
			case e.kind() == start:
				open[key] = true
			case e.kind() == p[0] && !open[key]:
				return fmt.Sprintf("%v ends without a start", key)
			case e.kind() == p[0]:
				delete(open, key)
			}
		}
		if p, ok := inside[e.kind()]; ok && (!open[p[0]+fmt.Sprint(e[p[1]])] || e["delta"] == "") {
			return fmt.Sprintf("%v is outside", e)
		}
		if slices.Contains([]string{runStarted, runFinished, runError}, e.kind()) && i+2 != len(events) {
			return e.kind() + " in the middle"
		}
	}
	if len(open) > 0 && last == runFinished {
		return fmt.Sprintf("not ended: %v", open)
	}
	return ""
}

func kinds(events []sent) (list []string) {
	for _, e := range events {
		list = append(list, e.kind())
	}
	return list
}

// shorten returns the events without steps in few words.
func shorten(events []sent) string {
	var list []string
	inText := false
	for _, e := range events {
		k := e.kind()
		switch k {
		case stepStarted, stepFinished, messagesSnapshot, custom:
		case textContent, reasoningContent, callArgs:
			if !inText {
				list = append(list, "")
			}
			inText = true
			list[len(list)-1] += fmt.Sprint(e["delta"])
			continue
		case callStart:
			list = append(list, fmt.Sprintf("%s(%v %v)", k, e["toolCallId"], e["toolCallName"]))
		case callResult:
			list = append(list, fmt.Sprintf("%s(%v)", k, e["toolCallId"]))
		case runFinished:
			list = append(list, fmt.Sprintf("%s(%v)", k, e["outcome"].(map[string]any)["type"]))
		case runError:
			list = append(list, fmt.Sprintf("%s(%v)", k, e["code"]))
		default:
			list = append(list, k)
		}
		inText = false
	}
	return strings.Join(list, " ")
}

// openInterrupts returns the interrupts at the end of events.
func openInterrupts(t *testing.T, events []sent) (list []map[string]any) {
	t.Helper()
	out, _ := events[len(events)-1]["outcome"].(map[string]any)
	if out["type"] != "interrupt" {
		t.Fatalf("the run does not ask: %v", events[len(events)-1])
	}
	for _, i := range out["interrupts"].([]any) {
		list = append(list, i.(map[string]any))
	}
	return list
}

func expect(t *testing.T, events []sent, want string) {
	t.Helper()
	if got := shorten(events); got != want {
		t.Errorf("events:\n%s\nwant:\n%s\nlast: %v", got, want, events[len(events)-1])
	}
}

func TestReplyStreams(t *testing.T) {
	w := newWorld(t)
	events := w.post("chat", makeInput("t1", "r1", "please say hello"))
	expect(t, events, "RUN_STARTED REASONING_START REASONING_MESSAGE_START I greet. REASONING_MESSAGE_END REASONING_END "+
		"TEXT_MESSAGE_START Hello there. TEXT_MESSAGE_END RUN_FINISHED(success)")
	first, last := events[0], events[len(events)-1]
	if first["threadId"] != "t1" || first["runId"] != "r1" || last["result"] != "Hello there." {
		t.Errorf("%v … %v", first, last)
	}
	snapshot := events[len(events)-2]
	if messages := snapshot["messages"].([]any); len(messages) != 2 || messages[0].(map[string]any)["id"] != "m-r1" || messages[1].(map[string]any)["content"] != "Hello there." {
		t.Errorf("snapshot: %v", snapshot)
	}
	if sessions, err := w.svc.Process().Runs.ListSessions(t.Context(), "chat"); err != nil || len(sessions) != 1 || sessions[0].Session != "agui-t1" {
		t.Errorf("sessions: %+v %v", sessions, err)
	}
	// The same input again is the same run.
	if again := w.post("chat", makeInput("t1", "r1", "please say hello")); fmt.Sprint(again[0]["metadata"]) != fmt.Sprint(first["metadata"]) {
		t.Errorf("another run: %v, %v", again[0], first)
	}
}

func TestPermissionIsAskedOnce(t *testing.T) {
	w := newWorld(t)
	events := w.post("chat", makeInput("t1", "r1", "make a file"))
	expect(t, events, `RUN_STARTED TEXT_MESSAGE_START I make it. TEXT_MESSAGE_END TOOL_CALL_START(c1 execute_command) `+
		`{"command":"touch made"} TOOL_CALL_END RUN_FINISHED(interrupt)`)
	asked := openInterrupts(t, events)
	if len(asked) != 1 || asked[0]["reason"] != "tool_call" || asked[0]["toolCallId"] != "c1" || asked[0]["responseSchema"] == nil {
		t.Fatalf("interrupts: %v", asked)
	}
	id := asked[0]["id"]
	for name, in := range map[string]any{
		"open_interrupts":    makeInput("t1", "r2", "say hello"),
		"unknown_interrupt":  resumeInput("t1", "r2", "nothing", true),
		"invalid_answer":     resumeInput("t1", "r2", id, map[string]any{"approved": "always"}),
		"invalid_answer ":    resumeInput("t1", "r2", id, "always"),
		"unknown_interrupt ": resumeInput("t2", "r2", id, map[string]any{"approved": true}),
	} {
		events := w.post("chat", in)
		if last := events[len(events)-1]; last["code"] != strings.TrimSpace(name) || last["message"] == "" {
			t.Errorf("%s: %v", name, last)
		}
	}
	answer := resumeInput("t1", "r2", id, map[string]any{"approved": true})
	want := "RUN_STARTED TOOL_CALL_RESULT(c1) TEXT_MESSAGE_START The file is made. TEXT_MESSAGE_END RUN_FINISHED(success)"
	expect(t, w.post("chat", answer), want)
	if _, err := os.Stat(filepath.Join(w.Work, "made")); err != nil {
		t.Error(err)
	}
	expect(t, w.post("chat", answer), want)
	late := w.post("chat", resumeInput("t1", "r3", id, map[string]any{"approved": false}))
	expect(t, late, "RUN_STARTED RUN_ERROR(late_answer)")
}

// A page that is loaded again gets the conversation and its open questions, with the same ids, whatever it has kept of its messages; an answer
// to them continues the run. A new message is refused while they are open.
func TestAReloadedClientGetsItsQuestions(t *testing.T) {
	for agent, prompt := range map[string]string{"chat": "make a file", "count": "go"} {
		t.Run(agent, func(t *testing.T) {
			w := newWorld(t)
			first := w.post(agent, makeInput("t1", "r1", prompt))
			asked := openInterrupts(t, first)
			for name, messages := range map[string][]any{
				"nothing":                 {},
				"the message of the user": {map[string]any{"id": "m-r1", "role": "user", "content": prompt}},
				"a reply":                 {map[string]any{"id": "m-r1", "role": "user", "content": prompt}, map[string]any{"id": "x", "role": "assistant", "content": "I make it."}},
			} {
				in := makeInput("t1", "again", "")
				in["messages"] = messages
				events := w.post(agent, in)
				if got := openInterrupts(t, events); !reflect.DeepEqual(got, asked) {
					t.Errorf("with %s: the questions are %v, want %v", name, got, asked)
				}
				var shown []any
				for _, ev := range events {
					if ev.kind() == messagesSnapshot {
						shown, _ = ev["messages"].([]any)
					}
				}
				texts := map[string]int{}
				for _, m := range shown {
					text, _ := m.(map[string]any)["content"].(string)
					texts[text]++
				}
				if texts[prompt] != 1 || agent == "chat" && texts["I make it."] == 0 {
					t.Errorf("with %s: the conversation is %v", name, shown)
				}
			}
			expect(t, w.post(agent, makeInput("t1", "r2", "something else")), "RUN_STARTED RUN_ERROR(open_interrupts)")
			var answer any = "Ada"
			if agent == "chat" {
				answer = map[string]any{"approved": true}
			}
			after := w.post(agent, resumeInput("t1", "r3", asked[0]["id"], answer))
			if last := after[len(after)-1]; last.kind() != runFinished {
				t.Errorf("after the answer: %v", last)
			}
		})
	}
}

func TestRefusedAndEditedCalls(t *testing.T) {
	w := newWorld(t)
	asked := openInterrupts(t, w.post("chat", makeInput("t1", "r1", "make a file")))
	edited := w.post("chat", resumeInput("t1", "r2", asked[0]["id"], map[string]any{"approved": true, "editedArgs": map[string]any{"command": "touch other"}}))
	for _, q := range []string{"tool_call"} { // the changed call is decided about again
		if asked = openInterrupts(t, edited); asked[0]["reason"] != q {
			t.Fatal(asked)
		}
	}
	expect(t, w.post("chat", cancelInput("t1", "r3", asked[0]["id"])), "RUN_STARTED TOOL_CALL_RESULT(c1) TEXT_MESSAGE_START The file is made. TEXT_MESSAGE_END RUN_FINISHED(success)")
	if _, err := os.Stat(filepath.Join(w.Work, "made")); err == nil {
		t.Error("the refused call was made")
	}
}

func TestConfirmation(t *testing.T) {
	w := newWorld(t)
	asked := openInterrupts(t, w.post("chat", makeInput("t 1/ü", "r1", "please confirm")))
	if len(asked) != 1 || asked[0]["reason"] != "confirmation" || fmt.Sprint(asked[0]["responseSchema"]) != "map[type:boolean]" {
		t.Fatalf("interrupts: %v", asked)
	}
	events := w.post("chat", resumeInput("t 1/ü", "r2", asked[0]["id"], true))
	expect(t, events, "RUN_STARTED TOOL_CALL_RESULT(q1) TEXT_MESSAGE_START Noted. TEXT_MESSAGE_END RUN_FINISHED(success)")
	for _, e := range events {
		if e["toolCallId"] == "q1" && !strings.Contains(e["content"].(string), "yes") && !strings.Contains(e["content"].(string), "true") {
			t.Errorf("answer: %v", e)
		}
	}
}

func TestAllInterruptsAreAnswered(t *testing.T) {
	w := newWorld(t)
	asked := openInterrupts(t, w.post("two", makeInput("t1", "r1", "go")))
	if len(asked) != 2 || asked[0]["id"] == asked[1]["id"] {
		t.Fatalf("interrupts: %v", asked)
	}
	expect(t, w.post("two", resumeInput("t1", "r2", asked[0]["id"], "Ada")), "RUN_STARTED RUN_ERROR(partial_answers)")
	both := resumeInput("t1", "r2", asked[0]["id"], "Ada", asked[1]["id"], "Grace")
	expect(t, w.post("two", resumeInput("t1", "r2", asked[0]["id"], "Ada", asked[1]["id"], "Grace", asked[1]["id"], "Grace")), "RUN_STARTED RUN_ERROR(invalid_answer)")
	w.serve()     // a second server of the same runs
	for range 2 { // the second time it comes from the journal
		events := w.post("two", both)
		if last := events[len(events)-1]; last["result"] != "Hello Ada, Hello Grace" {
			t.Errorf("the end: %v", last)
		}
	}
}

func TestGraphState(t *testing.T) {
	w := newWorld(t)
	events := w.post("count", makeInput("t1", "r1", "go"))
	asked := openInterrupts(t, events)
	if len(asked) != 1 || asked[0]["reason"] != "input_required" || asked[0]["message"] != "Who?" {
		t.Fatalf("interrupts: %v", asked)
	}
	state := followState(t, nil, events)
	if state["n"] != 1.0 {
		t.Errorf("state: %v", state)
	}
	open := w.post("count", makeInput("t1", "r2", "go"))
	expect(t, open, "RUN_STARTED RUN_ERROR(open_interrupts)")
	bad := w.post("count", resumeInput("t1", "r2", asked[0]["id"], "x"))
	if last := bad[len(bad)-1]; last.kind() != runError {
		t.Errorf("an answer that the node refuses: %v", last)
	}
	events = w.post("count", resumeInput("t1", "r3", asked[0]["id"], "Ada"))
	last := events[len(events)-1]
	if last["result"] != "Hello Ada" || !slices.Contains(kinds(events), stateDelta) {
		t.Errorf("%v", events)
	}
	if state := followState(t, state, events); fmt.Sprint(state["list"]) != "[a b]" || state["who"] != "Ada" {
		t.Errorf("state: %v", state)
	}
	if !strings.Contains(shorten(events), "TEXT_MESSAGE_START Hello Ada TEXT_MESSAGE_END") {
		t.Errorf("the output is no message: %s", shorten(events))
	}
	var steps []any
	for _, e := range events {
		if e.kind() == stepFinished {
			steps = append(steps, e["stepName"])
		}
	}
	if fmt.Sprint(steps) != "[ask last done]" {
		t.Errorf("steps: %v", steps)
	}
	next := w.post("count", makeInput("t1", "r4", "go")) // a run of its own
	if openInterrupts(t, next)[0]["id"] == asked[0]["id"] {
		t.Error("the same question")
	}
}

// cancelInput returns an input that cancels an interrupt.
func cancelInput(thread, run string, id any) map[string]any {
	in := resumeInput(thread, run, id, nil)
	in["resume"].([]any)[0].(map[string]any)["status"] = "cancelled"
	return in
}

// A client whose question was answered elsewhere can cancel it, and learns what has happened.
func TestAnsweredElsewhere(t *testing.T) {
	w := newWorld(t)
	asked := openInterrupts(t, w.post("count", makeInput("t1", "r1", "go")))
	ref, _ := parseRef(asked[0]["id"].(string))
	if _, err := w.svc.AnswerRun(t.Context(), server.AnswerRequest{Run: ref.run, Answers: []graph.Answer{{ID: ref.question, Value: "Grace"}}}); err != nil {
		t.Fatal(err)
	}
	if st, err := w.svc.WaitRun(t.Context(), ref.run); err != nil || st.Output != "Hello Grace" {
		t.Fatalf("%+v %v", st, err)
	}
	expect(t, w.post("count", resumeInput("t1", "r2", asked[0]["id"], "Ada")), "RUN_STARTED RUN_ERROR(late_answer)")
	events := w.post("count", cancelInput("t1", "r3", asked[0]["id"]))
	if last := events[len(events)-1]; last["result"] != "Hello Grace" {
		t.Errorf("the end: %v", last)
	}
	asked = openInterrupts(t, w.post("count", makeInput("t1", "r4", "go")))
	ref, _ = parseRef(asked[0]["id"].(string))
	if err := w.svc.CancelRun(t.Context(), ref.run); err != nil {
		t.Fatal(err)
	}
	expect(t, w.post("count", resumeInput("t1", "r5", asked[0]["id"], "Ada")), "RUN_STARTED RUN_ERROR(late_answer)")
	if got := shorten(w.post("count", cancelInput("t1", "r6", asked[0]["id"]))); !strings.HasSuffix(got, "RUN_FINISHED(cancelled)") {
		t.Errorf("a cancelled run: %s", got)
	}
}

// followState applies the state events to the state of a client.
func followState(t *testing.T, state map[string]any, events []sent) map[string]any {
	t.Helper()
	value := any(state)
	for _, e := range events {
		switch e.kind() {
		case stateSnapshot:
			value = e["snapshot"]
		case stateDelta:
			b, _ := json.Marshal(e["delta"])
			var ops []operation
			if err := json.Unmarshal(b, &ops); err != nil {
				t.Fatal(err)
			}
			for _, op := range ops {
				var err error
				if value, err = apply(value, op); err != nil {
					t.Fatalf("%+v: %v", op, err)
				}
			}
		}
	}
	return value.(map[string]any)
}

// A client that closes the connection ends the turn; the thread can be used again.
func TestClosedConnectionStops(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	resp := w.request(ctx, "chat", makeInput("t1", "r1", "take long"))
	run := ""
	for e := range readEvents(t, resp) {
		if e.kind() == runStarted {
			run = e["metadata"].(map[string]any)["raddle"].(map[string]any)["run"].(string)
		}
		if e.kind() == stepStarted && e["stepName"] == "think" {
			break
		}
	}
	cancel()
	wait, done := context.WithTimeout(t.Context(), 20*time.Second)
	defer done()
	st, err := w.svc.WaitRun(wait, run)
	if err != nil || !st.Final {
		t.Fatalf("run %s: %+v %v", run, st, err)
	}
	events := w.post("chat", makeInput("t1", "r2", "say hello"))
	if last := events[len(events)-1]; last.kind() != runFinished {
		t.Errorf("the next turn: %v", last)
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	events := w.post("chat", makeInput("t1", "r1", "fail now"))
	if last := events[len(events)-1]; last.kind() != runError || !strings.Contains(last["message"].(string), "the model refuses") {
		t.Errorf("failed run: %v", last)
	}
	if next := w.post("chat", makeInput("t1", "r2", "say hello")); next[len(next)-1].kind() != runFinished {
		t.Errorf("the next turn: %v", next[len(next)-1])
	}
	for _, c := range []struct {
		agent  string
		body   any
		status int
	}{
		{"chat", "text", 400},
		{"chat", map[string]any{"threadId": "t1", "messages": []any{}}, 400},
		{"chat", map[string]any{"threadId": "t", "runId": "r", "resume": []any{map[string]any{"interruptId": "x", "status": "maybe"}}}, 400},
		{"missing", makeInput("t1", "r1", "x"), 404},
		{"..%2Fchat", makeInput("t1", "r1", "x"), 404},
		{"chat", makeInput("t1", "r1", strings.Repeat("x", maxBody)), 413},
	} {
		resp := w.request(t.Context(), c.agent, c.body)
		var problem map[string]any
		if err := json.NewDecoder(resp.Body).Decode(&problem); err != nil || resp.StatusCode != c.status || problem["detail"] == "" {
			t.Errorf("%s: status %d, want %d: %v %v", c.agent, resp.StatusCode, c.status, problem, err)
		}
	}
	image := makeInput("t2", "r1", "")
	image["messages"].([]any)[0].(map[string]any)["content"] = []any{map[string]any{"type": "image"}}
	expect(t, w.post("chat", image), "RUN_STARTED RUN_ERROR(invalid_input)")
}

// What a caller may not do is refused.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	asked := openInterrupts(t, w.post("count", makeInput("t1", "r1", "go")))
	w.scopes = []server.Scope{server.ScopeRead, server.ScopeStart}
	expect(t, w.post("count", resumeInput("t1", "r2", asked[0]["id"], "Ada")), "RUN_STARTED RUN_ERROR(forbidden)")
	w.scopes = []server.Scope{server.ScopeRead, server.ScopeAnswer}
	expect(t, w.post("count", makeInput("t2", "r1", "go")), "RUN_STARTED RUN_ERROR(forbidden)")
}
