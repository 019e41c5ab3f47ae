package a2a

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

var agents = map[string]string{
	"chat/config.yaml": "name: chat\ndescription: Talks.\nmodel: script:transcript.yaml\nglobal_tools: [execute_command, user]\nconversation_starters: [say hello]\n",
	"chat/transcript.yaml": `
- match: say hello
  text: Hello there.
  repeat: true
- match: make a file
  turn: 1
  text: I make it.
  tool_calls: [{id: c1, name: execute_command, args: {command: touch made}}]
- match: make a file
  turn: 2
  text: The file is made.
- match: fail now
  error: {class: bad_request, message: the model refuses}
- match: take long
  delay_ms: 60000
  text: done
`,
	"count/greet.sh": `echo "{\"greeting\": \"$LLM_AGENT_VAR_GREETING\"}"`,
	"count/graph.yaml": `
name: count
variables: [{name: greeting, description: How to greet., default: Hello}]
start: greet
nodes:
  greet: {type: script, script: greet.sh, next: ask}
  ask: {type: input, question: Who?, validation: len(input) > 2, state_updates: {who: "{{input}}"}, next: size}
  size: {type: approval, question: Large?, options: ["yes", "no"], routes: {"yes": done, "no": done}, on_other: done, state_updates: {large: "{{choice}}"}}
  done: {type: end, output: "{{greeting}} {{who}}, large {{large}}"}
`,
}

// A world is a home directory with agents, a service and its server.
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
	w := &world{t: t, Home: servertest.NewHome(t, agents)}
	w.svc, _ = w.Serve()
	mux := http.NewServeMux()
	mux.Handle("/a2a/", NewHandler(w.svc))
	for _, pattern := range CardPatterns {
		mux.Handle(pattern, NewCards(w.svc, "http://0.0.0.0:1")) // all addresses: a card has that of its request
	}
	w.url = servertest.Listen(t, mux, w.caller)
	return w
}

// An object is a value of the protocol.
type object = map[string]any

// say returns the parameters of a message of the user, on a task unless that is "".
func say(task, context string, parts ...any) object {
	m := object{"messageId": "m", "role": "ROLE_USER"}
	var list []any
	for _, p := range parts {
		if text, ok := p.(string); ok {
			list = append(list, object{"text": text})
		} else {
			list = append(list, object{"data": p})
		}
	}
	m["parts"] = list
	if task != "" {
		m["taskId"] = task
	}
	if context != "" {
		m["contextId"] = context
	}
	return object{"message": m}
}

// call sends a request and returns all results; a request that is not streamed has one. fault is the error of the protocol.
func (w *world) call(agent, method string, params any) (results []object, fault object) {
	w.t.Helper()
	b, err := json.Marshal(object{"jsonrpc": "2.0", "id": "1", "method": method, "params": params})
	if err != nil {
		w.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.t.Context(), "POST", w.url+"/a2a/"+agent, bytes.NewReader(b))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("A2A-Version", "1.0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		text := strings.TrimPrefix(lines.Text(), "data: ")
		if !strings.HasPrefix(text, "{") {
			continue
		}
		var answer struct {
			Result object `json:"result"`
			Error  object `json:"error"`
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			w.t.Fatalf("%s: %v", text, err)
		}
		if answer.Error != nil {
			return results, answer.Error
		}
		results = append(results, answer.Result)
	}
	return results, nil
}

// send sends a message and returns its task, which must be in a state.
func (w *world) send(agent string, params object, state string) object {
	w.t.Helper()
	results, fault := w.call(agent, "SendMessage", params)
	if fault != nil || len(results) != 1 {
		w.t.Fatalf("SendMessage: %v %v", results, fault)
	}
	task := results[0]["task"].(object)
	w.expectState(task, state)
	return task
}

func (w *world) expectState(task object, state string) {
	w.t.Helper()
	if got := task["status"].(object)["state"]; got != "TASK_STATE_"+state {
		w.t.Fatalf("state %v, want %s: %v", got, state, task)
	}
}

// text returns the texts of a message or an artifact.
func text(v any) string {
	var list []string
	o, _ := v.(object)
	parts, _ := o["parts"].([]any)
	for _, p := range parts {
		if t, ok := p.(object)["text"].(string); ok {
			list = append(list, t)
		}
	}
	return strings.Join(list, " | ")
}

func artifacts(task object) string {
	var list []string
	all, _ := task["artifacts"].([]any)
	for _, a := range all {
		list = append(list, text(a))
	}
	return strings.Join(list, " / ")
}

func TestCard(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/a2a/chat/.well-known/agent-card.json", "/.well-known/chat/agent-card.json"} {
		resp, err := http.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		var card object
		err = json.NewDecoder(resp.Body).Decode(&card)
		resp.Body.Close()
		if err != nil || card["name"] != "chat" || card["description"] != "Talks." || card["supportedInterfaces"].([]any)[0].(object)["url"] != w.url+"/a2a/chat" {
			t.Errorf("%s: %v %v", path, card, err)
		}
	}
	for _, path := range []string{"/.well-known/missing/agent-card.json", "/.well-known/agent-card.json"} {
		resp, err := http.Get(w.url + path)
		if err != nil || resp.StatusCode != http.StatusNotFound {
			t.Fatalf("%s: %v %v", path, resp, err)
		}
		resp.Body.Close()
	}
}

// A graph asks twice; the messages on its task answer it, and the task is what the run is.
func TestQuestionsOfGraph(t *testing.T) {
	w := newWorld(t)
	start := say("", "my context", "go")
	start["message"].(object)["metadata"] = object{"variables": object{"greeting": "Welcome"}}
	task := w.send("count", start, "INPUT_REQUIRED")
	id := task["id"].(string)
	if got := text(task["status"].(object)["message"]); got != "Who?" || task["contextId"] != "my context" {
		t.Errorf("question %q in %v", got, task)
	}
	if _, fault := w.call("count", "SendMessage", say(id, "", "x")); fault == nil || fault["code"] != -32602.0 {
		t.Errorf("an answer that the node refuses: %v", fault)
	}
	if _, fault := w.call("count", "SendMessage", say(id, "another", "Ada")); fault == nil {
		t.Error("a context of another task was accepted")
	}
	w.send("count", say(id, "my context", "Ada"), "INPUT_REQUIRED")
	task = w.send("count", say(id, "", object{"answers": object{"size": "yes"}}), "COMPLETED")
	if got := artifacts(task); got != "Welcome Ada, large yes" {
		t.Errorf("output: %s", got)
	}
	got, fault := w.call("count", "GetTask", object{"id": id, "historyLength": 2})
	if fault != nil || len(got[0]["history"].([]any)) != 2 || artifacts(got[0]) != "Welcome Ada, large yes" {
		t.Errorf("GetTask: %v %v", got, fault)
	}
	if _, fault := w.call("count", "SendMessage", say(id, "", "more")); fault == nil || fault["code"] != -32004.0 {
		t.Errorf("a message to a task that has ended: %v", fault)
	}
	if st, err := w.svc.ReadState(t.Context(), id); err != nil || st.Status != "done" {
		t.Errorf("run: %+v %v", st, err)
	}
}

// A reply is streamed as an artifact, and messages of one context are turns of one session.
func TestStreamOfAgent(t *testing.T) {
	w := newWorld(t)
	results, fault := w.call("chat", "SendStreamingMessage", say("", "talk-1", "say hello"))
	if fault != nil || len(results) < 3 {
		t.Fatalf("stream: %v %v", results, fault)
	}
	if task := results[0]["task"].(object); task["contextId"] != "talk-1" {
		t.Errorf("the first event: %v", results[0])
	}
	streamed := ""
	for _, r := range results {
		if update, ok := r["artifactUpdate"].(object); ok {
			if update["append"] != true {
				streamed = ""
			}
			streamed += text(update["artifact"])
		}
	}
	last := results[len(results)-1]["statusUpdate"].(object)
	w.expectState(last, "COMPLETED")
	if streamed != "Hello there." {
		t.Errorf("streamed: %q in %v", streamed, results)
	}
	again := w.send("chat", say("", "talk-1", "say hello"), "COMPLETED")
	if artifacts(again) != "Hello there." {
		t.Errorf("the second turn: %v", again)
	}
	sessions, err := w.svc.Process().Runs.ListSessions(t.Context(), "chat")
	if err != nil || len(sessions) != 1 || sessions[0].Session != "a2a-talk-1" {
		t.Errorf("sessions: %+v %v", sessions, err)
	}
	if _, fault := w.call("chat", "SendMessage", say("", "../x", "say hello")); fault == nil {
		t.Error("a context that is a path was accepted")
	}
}

// A permission can be given once, never for longer; the streamed answer follows the run to its end.
func TestPermission(t *testing.T) {
	w := newWorld(t)
	task := w.send("chat", say("", "", "make a file"), "INPUT_REQUIRED")
	id := task["id"].(string)
	for _, answer := range []any{"always", "run", object{"choice": "always"}} {
		if _, fault := w.call("chat", "SendMessage", say(id, "", answer)); fault == nil || fault["code"] != -32602.0 {
			t.Errorf("%v: %v", answer, fault)
		}
	}
	results, fault := w.call("chat", "SendStreamingMessage", say(id, "", "yes"))
	if fault != nil {
		t.Fatal(fault)
	}
	w.expectState(results[len(results)-1]["statusUpdate"].(object), "COMPLETED")
	if all := fmt.Sprint(results); strings.Contains(all, "always") || !strings.Contains(all, "Calls execute_command.") {
		t.Errorf("events: %v", all)
	}
	if _, err := os.Stat(filepath.Join(w.Work, "made")); err != nil {
		t.Error(err)
	}
	got, _ := w.call("chat", "GetTask", object{"id": id})
	if artifacts(got[0]) != "I make it. / The file is made." {
		t.Errorf("artifacts: %s", artifacts(got[0]))
	}
}

// A task is cancelled while it works, and cannot be cancelled again.
func TestCancel(t *testing.T) {
	w := newWorld(t)
	start := say("", "", "take long")
	start["configuration"] = object{"returnImmediately": true}
	results, fault := w.call("chat", "SendMessage", start)
	if fault != nil {
		t.Fatal(fault)
	}
	id := results[0]["task"].(object)["id"].(string)
	followed := make(chan []object, 1)
	go func() {
		events, _ := w.call("chat", "SubscribeToTask", object{"id": id})
		followed <- events
	}()
	results, fault = w.call("chat", "CancelTask", object{"id": id})
	if fault != nil {
		t.Fatal(fault)
	}
	w.expectState(results[0], "CANCELED")
	for range followed {
		break
	}
	if _, fault = w.call("chat", "CancelTask", object{"id": id}); fault == nil || fault["code"] != -32002.0 {
		t.Errorf("cancelled twice: %v", fault)
	}
	if _, fault = w.call("chat", "SubscribeToTask", object{"id": id}); fault == nil {
		t.Error("a task that has ended was followed")
	}
}

func TestListTasks(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for i := range 5 {
		ids = append(ids, w.send("count", say("", fmt.Sprintf("c%d", i%2), "go"), "INPUT_REQUIRED")["id"].(string))
	}
	w.send("chat", say("", "", "say hello"), "COMPLETED")
	var listed []string
	token, pages := "", 0
	for {
		got, fault := w.call("count", "ListTasks", object{"pageSize": 2, "pageToken": token})
		if fault != nil || got[0]["totalSize"] != 5.0 {
			t.Fatalf("%v %v", got, fault)
		}
		pages++
		for _, task := range got[0]["tasks"].([]any) {
			listed = append(listed, task.(object)["id"].(string))
		}
		if token, _ = got[0]["nextPageToken"].(string); token == "" {
			break
		}
	}
	slices.Reverse(listed)
	if fmt.Sprint(listed) != fmt.Sprint(ids) || pages != 3 {
		t.Errorf("%d pages: %v, want %v", pages, listed, ids)
	}
	for _, c := range []struct {
		params object
		count  float64
	}{{object{"contextId": "c1"}, 2}, {object{"status": "TASK_STATE_COMPLETED"}, 0}, {object{"status": "TASK_STATE_INPUT_REQUIRED"}, 5}} {
		got, fault := w.call("count", "ListTasks", c.params)
		if fault != nil || got[0]["totalSize"] != c.count {
			t.Errorf("%v: %v %v", c.params, got, fault)
		}
	}
}

func TestFaults(t *testing.T) {
	w := newWorld(t)
	task := w.send("chat", say("", "talk", "fail now"), "FAILED")
	w.send("chat", say("", "talk", "say hello"), "COMPLETED") // the next turn
	if got := text(task["status"].(object)["message"]); !strings.Contains(got, "the model refuses") {
		t.Errorf("reason: %q", got)
	}
	file := say("", "", "x")
	file["message"].(object)["parts"] = []any{object{"url": "https://example.com/x", "mediaType": "image/png"}}
	for _, c := range []struct {
		method string
		params any
		code   float64
	}{
		{"GetTask", object{"id": "missing"}, -32001},
		{"GetTask", object{}, -32602},
		{"CancelTask", object{"id": "missing"}, -32001},
		{"SendMessage", say("missing", "", "x"), -32001},
		{"SendMessage", say("", ""), -32602},
		{"SendMessage", file, -32005},
		{"ListTasks", object{"pageSize": 1000}, -32602},
		{"ListTasks", object{"pageToken": "!"}, -32602},
		{"CreateTaskPushNotificationConfig", object{"taskId": "x", "url": "https://example.com"}, -32003},
		{"Nothing", object{}, -32601},
	} {
		if _, fault := w.call("chat", c.method, c.params); fault == nil || fault["code"] != c.code || fault["message"] == "" {
			t.Errorf("%s: %v, want %v", c.method, fault, c.code)
		}
	}
	other := w.send("count", say("", "", "x"), "INPUT_REQUIRED")
	if _, fault := w.call("chat", "GetTask", object{"id": other["id"]}); fault == nil {
		t.Error("the task of another agent was read")
	}
}

// What a caller may not do is refused.
func TestScopes(t *testing.T) {
	w := newWorld(t)
	id := w.send("count", say("", "", "x"), "INPUT_REQUIRED")["id"]
	w.scopes = []server.Scope{}
	for method, params := range map[string]any{"GetTask": object{"id": id}, "ListTasks": object{}, "CancelTask": object{"id": id}, "SendMessage": say("", "", "x")} {
		if _, fault := w.call("count", method, params); fault == nil || !strings.Contains(fmt.Sprint(fault["message"]), "scope") {
			t.Errorf("%s: %v", method, fault)
		}
	}
	w.scopes = []server.Scope{server.ScopeRead, server.ScopeStart}
	if _, fault := w.call("count", "SendMessage", say(id.(string), "", "Ada")); fault == nil || !strings.Contains(fmt.Sprint(fault["message"]), "scope") {
		t.Errorf("an answer: %v", fault)
	}
}
