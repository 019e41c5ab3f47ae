package openai

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

const (
	chatConfig = `
name: chat
description: talks
model: script:transcript.yaml
agent_session: always
global_tools: [execute_command, user]
`
	chatTranscript = `
- match: say hello
  reasoning: I greet.
  text: Hello there.
  usage: {input: 7, output: 3, cached: 2, reasoning: 1}
  repeat: true
- match: make a file
  turn: 1
  text: I make it.
  tool_calls: [{id: c1, name: execute_command, args: {command: touch made}}]
  usage: {input: 10, output: 1}
  repeat: true
- match: make a file
  turn: 2
  text: The file is made.
  usage: {input: 20, output: 2}
  repeat: true
- match: pick a color
  turn: 1
  text: Let me ask.
  tool_calls: [{id: q1, name: user__ask, args: {question: Which color?, options: [Red, Blue]}}]
  usage: {input: 5, output: 5}
- match: pick a color
  turn: 2
  after: Red
  text: It is red.
  usage: {input: 30, output: 3}
- match: fail now
  error: {class: bad_request, message: the model refuses}
  repeat: true
- match: take long
  delay_ms: 60000
  text: done
  repeat: true
- match: remember seven
  text: I remember seven.
- match: [remember seven, which number]
  turn: 2
  text: It was seven.
- match: too much
  text: This is cut o
  stop: length
`
	pageGraph = `
name: page
description: asks and says
start: first
nodes:
  first: {type: input, question: "Who is {{initial_prompt}}?", validation: len(input) > 2, state_updates: {who: "{{input}}"}, next: second}
  second: {type: approval, question: "Page {{who}}?", options: ["yes", "no"], routes: {"yes": done, "no": done}, on_other: done}
  done: {type: end, output: "Paged {{who}}", exit_code: 70}
`
	needyConfig = `
name: needy
model: script:transcript.yaml
variables: [{name: city, description: where}]
instructions: Be in {{city}}.
`
)

// A world is a home directory with agents, and a server.
type world struct {
	*servertest.Home
	t       *testing.T
	url     string
	service *server.Service
	stop    func()         // ends the service
	caller  *server.Caller // of the requests; nil: none
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, Home: servertest.NewHome(t, map[string]string{
		"chat/config.yaml": chatConfig, "chat/transcript.yaml": chatTranscript, "page/graph.yaml": pageGraph,
		"needy/config.yaml": needyConfig, "needy/transcript.yaml": "- {match: Be in Oslo, text: Hello from Oslo., repeat: true}\n", "broken/graph.yaml": "nodes: [",
	})}
	w.service, w.stop = w.Serve()
	w.url = servertest.Listen(t, NewHandler(w.service), func() *server.Caller { return w.caller })
	return w
}

// An answer is what a client got.
type answer struct {
	status    int
	header    http.Header
	text      string
	reasoning string
	finish    string
	usage     usage
	raddle    runInfo
	err       *struct{ Message, Type, Param, Code string }
	chunks    int
	body      string
}

// send sends a request for a completion; headers are pairs.
func (w *world) send(ctx context.Context, body string, headers ...string) (*http.Response, error) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(r)
}

// ask sends a request for a completion and reads the whole answer.
func (w *world) ask(body string, headers ...string) *answer {
	w.t.Helper()
	resp, err := w.send(w.t.Context(), body, headers...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	a := &answer{status: resp.StatusCode, header: resp.Header, body: string(data)}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a.add(w.t, data)
		return a
	}
	last := ""
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if event, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			if last = event; event != "[DONE]" {
				a.add(w.t, []byte(event))
			}
		}
	}
	if (last == "[DONE]") != (a.err == nil) {
		w.t.Errorf("the stream ends with %q", last)
	}
	return a
}

// add adds a body or a chunk.
func (a *answer) add(t *testing.T, data []byte) {
	t.Helper()
	type part struct {
		Content   string
		Reasoning string `json:"reasoning_content"`
	}
	var v struct {
		Choices []struct {
			Message, Delta part
			Finish         string `json:"finish_reason"`
		}
		Usage  *usage
		Raddle *runInfo
		Error  *struct{ Message, Type, Param, Code string }
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	a.chunks++
	for _, c := range v.Choices {
		a.text += c.Message.Content + c.Delta.Content
		a.reasoning += c.Message.Reasoning + c.Delta.Reasoning
		a.finish += c.Finish
	}
	if v.Usage != nil {
		a.usage = *v.Usage
	}
	if v.Raddle != nil {
		a.raddle = *v.Raddle
	}
	if v.Error != nil {
		a.err = v.Error
	}
}

// prompt returns a request with one message.
func prompt(model, text string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"` + text + `"}]}`
}

// streamed returns a request as one for a stream, with the usage.
func streamed(body string) string {
	return `{"stream":true,"stream_options":{"include_usage":true},` + body[1:]
}

// both runs a test with streams and without.
func both(t *testing.T, test func(t *testing.T, w *world, form func(string) string)) {
	t.Run("whole", func(t *testing.T) { test(t, newWorld(t), func(b string) string { return b }) })
	t.Run("streamed", func(t *testing.T) { test(t, newWorld(t), streamed) })
}

// says checks the text and the end of an answer.
func (a *answer) says(t *testing.T, text, finish string) {
	t.Helper()
	if a.status != http.StatusOK || a.text != text || a.finish != finish {
		t.Errorf("status %d, %q (%s), want %q (%s)\n%s", a.status, a.text, a.finish, text, finish, a.body)
	}
	if run := a.header.Get(HeaderRun); run == "" || run != a.raddle.Run {
		t.Errorf("the run is %q in the header, and %q in the body", run, a.raddle.Run)
	}
}

// fails checks the error of an answer.
func (a *answer) fails(t *testing.T, status int, code, param, part string) {
	t.Helper()
	if a.status != status || a.err == nil || a.err.Code != code || a.err.Param != param || a.err.Type == "" || !strings.Contains(a.err.Message, part) {
		t.Errorf("status %d, error %+v, want %d %s at %q with %q", a.status, a.err, status, code, param, part)
	}
}

func TestAnAgentAnswers(t *testing.T) {
	both(t, func(t *testing.T, w *world, form func(string) string) {
		a := w.ask(form(prompt("chat", "say hello")))
		a.says(t, "Hello there.", "stop")
		want := usage{PromptTokens: 7, CompletionTokens: 3, TotalTokens: 10}
		want.PromptDetails.CachedTokens, want.CompletionDetails.ReasoningTokens = 2, 1
		if a.usage != want || a.reasoning != "I greet." || a.raddle.Status != "done" || a.raddle.Session != "" {
			t.Errorf("usage %+v, reasoning %q, %+v", a.usage, a.reasoning, a.raddle)
		}
		w.ask(form(prompt("chat", "too much"))).says(t, "This is cut o", "length")
	})
}

func TestAStreamHasUsageOnlyIfAskedFor(t *testing.T) {
	a := newWorld(t).ask(`{"stream":true,` + prompt("chat", "say hello")[1:])
	a.says(t, "Hello there.", "stop")
	if a.usage != (usage{}) || a.chunks < 4 {
		t.Errorf("usage %+v in %d chunks", a.usage, a.chunks)
	}
}

// A question is the text of the assistant; the answer comes with the header, and continues the same run.
func TestAQuestionIsAskedAndAnswered(t *testing.T) {
	both(t, func(t *testing.T, w *world, form func(string) string) {
		a := w.ask(form(prompt("chat", "pick a color")))
		a.says(t, "Let me ask.\n\nWhich color?\n\n- Red\n- Blue", "stop")
		if len(a.raddle.Questions) != 1 || a.raddle.Questions[0].Prompt != "Which color?" || a.usage.TotalTokens != 10 {
			t.Errorf("%+v, %+v", a.raddle, a.usage)
		}
		run := a.header.Get(HeaderRun)
		w.ask(form(prompt("page", "Red")), HeaderRun, run).fails(t, 400, "wrong_model", "model", `agent "chat"`)
		b := w.ask(form(prompt("chat", " red ")), HeaderRun, run)
		b.says(t, "It is red.", "stop")
		if b.raddle.Run != run || b.usage.TotalTokens != 33 || b.raddle.Status != "done" {
			t.Errorf("%+v, %+v", b.raddle, b.usage)
		}
		w.ask(form(prompt("chat", "Blue")), HeaderRun, run).fails(t, 409, "no_question", "", "it is done")
		w.ask(form(prompt("chat", "Blue")), HeaderRun, "last").fails(t, 404, "run_not_found", "", `no run "last"`)
	})
}

// A graph says only its output; an answer that does not fit leaves the question open.
func TestAGraphAsksAndEnds(t *testing.T) {
	both(t, func(t *testing.T, w *world, form func(string) string) {
		a := w.ask(form(prompt("page", "there")))
		a.says(t, "Who is there?", "stop")
		run := a.raddle.Run
		w.ask(form(prompt("page", "Al")), HeaderRun, run).fails(t, 400, "invalid_answer", "messages", "len(input) > 2")
		w.ask(form(prompt("page", "Ada")), HeaderRun, run).says(t, "Page Ada?\n\n- yes\n- no", "stop")
		b := w.ask(form(prompt("page", "yes")), HeaderRun, run)
		b.says(t, "Paged Ada", "stop")
		if b.raddle.ExitCode != 70 {
			t.Errorf("%+v", b.raddle)
		}
	})
}

// Nothing that comes over this protocol permits a call: the message says where that is possible.
func TestAPermissionCannotBeGiven(t *testing.T) {
	both(t, func(t *testing.T, w *world, form func(string) string) {
		a := w.ask(form(prompt("chat", "make a file")))
		run := a.header.Get(HeaderRun)
		if a.status != 200 || a.finish != "stop" || !strings.HasPrefix(a.text, "I make it.\n\nThis run waits for a decision") || !strings.Contains(a.text, "touch made") ||
			!strings.Contains(a.text, "raddle resume "+run) {
			t.Errorf("%d %s", a.status, a.body)
		}
		w.ask(form(prompt("chat", "once")), HeaderRun, run).fails(t, 409, "permission_required", "", "raddle resume "+run)
		if _, err := os.Stat(filepath.Join(w.Work, "made")); err == nil {
			t.Error("the call was made")
		}
		if _, err := w.service.AnswerRun(t.Context(), server.AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "once"}}}); err != nil {
			t.Fatal(err)
		}
		if st, err := w.service.WaitRun(t.Context(), run); err != nil || st.Output != "The file is made." {
			t.Errorf("%+v, %v", st, err)
		}
	})
}

func TestTheFailureOfARunIsAnError(t *testing.T) {
	w := newWorld(t)
	a := w.ask(prompt("chat", "fail now"))
	a.fails(t, 500, "run_failed", "", "the model refuses")
	if a.header.Get("X-Should-Retry") != "false" || a.header.Get(HeaderRun) == "" {
		t.Errorf("%v", a.header)
	}
	w.ask(streamed(prompt("chat", "fail now"))).fails(t, 200, "run_failed", "", "the model refuses")
}

// Closing the stream ends the turn. A connection that is lost while the client waits for a whole answer ends nothing.
func TestOnlyClosingAStreamCancels(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := w.send(ctx, streamed(prompt("chat", "take long")))
	if err != nil {
		t.Fatal(err)
	}
	run := resp.Header.Get(HeaderRun)
	if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil { // the first chunk
		t.Fatal(err)
	}
	cancel()
	resp.Body.Close()
	waiting, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if st, err := w.service.WaitRun(waiting, run); err != nil || st.Status == "running" {
		t.Errorf("after the end of the stream, the run is %+v, %v", st, err)
	}

	works := func() string {
		list, err := w.service.Process().Runs.ListRuns(t.Context(), "")
		if err != nil {
			t.Error(err)
		}
		for _, r := range list {
			if r.Run != run && r.Status == "running" {
				return r.Run
			}
		}
		return ""
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		for works() == "" && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := w.send(ctx, prompt("chat", "take long")); err == nil {
		t.Fatal("the request was not cancelled")
	}
	second := works()
	if second == "" || second == run {
		t.Fatal("no run works after the connection was lost")
	}
	if err := w.service.CancelRun(t.Context(), second); err != nil {
		t.Error(err)
	}
}

func TestASessionKeepsItsHistory(t *testing.T) {
	w := newWorld(t)
	w.ask(prompt("chat", "remember seven"), HeaderSession, "numbers").says(t, "I remember seven.", "stop")
	body := `{"model":"chat","messages":[{"role":"user","content":"not this"},{"role":"assistant","content":"nor this"},{"role":"user","content":"which number"}]}`
	a := w.ask(body, HeaderSession, "numbers")
	a.says(t, "It was seven.", "stop")
	if a.raddle.Session != "numbers" {
		t.Errorf("%+v", a.raddle)
	}
	if st, err := w.service.ReadState(t.Context(), a.raddle.Run); err != nil || st.Prompt != "which number" {
		t.Errorf("%+v, %v", st, err)
	}
	w.ask(prompt("page", "x"), HeaderSession, "numbers").fails(t, 400, "usage", "", "session")
}

// Without a session, the agent gets all messages.
func TestThePromptHasTheHistory(t *testing.T) {
	w := newWorld(t)
	body := `{"model":"chat","messages":[{"role":"system","content":"Be kind."},{"role":"developer","content":[{"type":"text","text":"Be "},{"type":"text","text":"short."}]},
		{"role":"user","content":"One?"},{"role":"assistant","content":"Two."},{"role":"user","content":[{"type":"text","text":"say hello"}]}]}`
	a := w.ask(body)
	a.says(t, "Hello there.", "stop")
	st, err := w.service.ReadState(t.Context(), a.raddle.Run)
	if err != nil {
		t.Fatal(err)
	}
	want := "Be kind.\n\nBe short.\n\nThe conversation so far:\n\nUser: One?\n\nAssistant: Two.\n\nThe user's next message:\n\nsay hello"
	if diff := cmp.Diff(want, st.Prompt); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
}

func TestVariablesOfAnAgent(t *testing.T) {
	w := newWorld(t)
	w.ask(`{"raddle":{"variables":{"city":"Oslo"}},`+prompt("needy", "Hi")[1:]).says(t, "Hello from Oslo.", "stop")
	w.ask(prompt("needy", "Hi")).fails(t, 400, "missing_variables", "raddle.variables", "city")
}

// A request with the key of an earlier one gets the answer of that run.
func TestAnIdempotencyKeyStartsOneRun(t *testing.T) {
	w := newWorld(t)
	first := w.ask(prompt("chat", "say hello"), "Idempotency-Key", "k1")
	first.says(t, "Hello there.", "stop")
	second := w.ask(prompt("chat", "say hello"), "Idempotency-Key", "k1")
	second.says(t, "Hello there.", "stop")
	if first.raddle.Run != second.raddle.Run {
		t.Errorf("two runs: %s and %s", first.raddle.Run, second.raddle.Run)
	}
	w.ask(prompt("chat", "too much"), "Idempotency-Key", "k1").fails(t, 409, "idempotency_key_reused", "", "another request")
}

// What an agent cannot do is refused before anything runs.
func TestRequestsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	option := func(o string) string { return `{` + o + `,` + prompt("chat", "say hello")[1:] }
	messages := func(m string) string { return `{"model":"chat","messages":[` + m + `]}` }
	for _, c := range []struct {
		body              string
		status            int
		code, param, part string
	}{
		{prompt("missing", "x"), 404, "model_not_found", "model", "unknown agent"},
		{prompt("../chat", "x"), 404, "model_not_found", "model", "is a path"},
		{prompt("", "x"), 404, "model_not_found", "model", "empty"},
		{prompt("broken", "x"), 500, "invalid_agent", "model", "graph.yaml"},
		{`{"model":`, 400, "invalid_json", "", "not a valid request"},
		{`{"model":3,"messages":[]}`, 400, "invalid_type", "model", "not a valid request"},
		{messages(``), 400, "missing_messages", "messages", "no messages"},
		{messages(`{"role":"user","content":"x"},{"role":"assistant","content":"y"}`), 400, "no_user_message", "messages[1]", "last message"},
		{messages(`{"role":"user","content":" "}`), 400, "empty_message", "messages[0].content", "empty"},
		{messages(`{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"data:"}}]}`), 400, "invalid_content", "messages[0].content[1].image_url", "data: address"},
		{messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`), 400, "invalid_content", "messages[0].content[0].image_url", "nothing is fetched"},
		{messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,dGV4dA=="}}]}`), 400, "invalid_content", "messages[0].content[0].image_url", "its content is something else"},
		{messages(`{"role":"user","content":[{"type":"file","file":{"file_id":"f"}}]}`), 400, "invalid_content", "messages[0].content[0].file", "data: address"},
		{messages(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}`), 400, "unsupported_content", "messages[0].content[0]", "input_audio"},
		{messages(`{"role":"user","content":7}`), 400, "invalid_json", "", "a text or a list of parts"},
		{messages(`{"role":"assistant","content":null,"tool_calls":[{"id":"1"}]},{"role":"user","content":"x"}`), 400, "unsupported_message", "messages[0]", "its own tools"},
		{messages(`{"role":"tool","content":"x","tool_call_id":"1"},{"role":"user","content":"x"}`), 400, "unsupported_message", "messages[0]", "its own tools"},
		{messages(`{"role":"king","content":"x"},{"role":"user","content":"x"}`), 400, "unknown_role", "messages[0].role", "king"},
		{option(`"n":2`), 400, "unsupported_parameter", "n", "n must be 1"},
		{option(`"tools":[{"type":"function"}]`), 400, "unsupported_parameter", "tools", "its own tools"},
		{option(`"functions":[{"name":"f"}]`), 400, "unsupported_parameter", "functions", "its own tools"},
		{option(`"response_format":{"type":"json_object"}`), 400, "unsupported_parameter", "response_format", "must be text"},
		{option(`"stop":"END"`), 400, "unsupported_parameter", "stop", "stop"},
		{option(`"logprobs":true`), 400, "unsupported_parameter", "logprobs", "logprobs"},
		{option(`"modalities":["text","audio"]`), 400, "unsupported_parameter", "modalities", "text"},
		{option(`"web_search_options":{"user_location":{}}`), 400, "unsupported_parameter", "web_search_options", "its own tools"},
	} {
		w.ask(c.body).fails(t, c.status, c.code, c.param, c.part)
	}
	if list, err := w.service.Process().Runs.ListRuns(t.Context(), ""); err != nil || len(list) != 0 {
		t.Errorf("%d runs were started, %v", len(list), err)
	}
	w.ask(option(`"n":1,"tools":[],"stop":null,"temperature":0.2,"max_tokens":5,"response_format":{"type":"text"},"unknown":{}`)).says(t, "Hello there.", "stop")
}

func TestModels(t *testing.T) {
	w := newWorld(t)
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(data)
	}
	status, body := get("/v1/models")
	var list struct{ Data []model }
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 {
		t.Fatalf("%d %v\n%s", status, err, body)
	}
	var names []string
	for _, m := range list.Data {
		if slices.Contains([]string{"chat", "needy", "page", "broken"}, m.ID) { // the others come with the program
			names = append(names, m.ID)
		}
	}
	if diff := cmp.Diff([]string{"chat", "needy", "page"}, names); diff != "" {
		t.Errorf("models, without the one that is broken (-want +got):\n%s", diff)
	}
	changed := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	chat, err := w.service.ReadAgent("chat")
	if err == nil {
		err = os.Chtimes(filepath.Join(chat.Dir, "config.yaml"), changed, changed)
	}
	if err != nil {
		t.Fatal(err)
	}
	if status, body := get("/v1/models/chat"); status != 200 || body != fmt.Sprintf(`{"id":"chat","object":"model","created":%d,"owned_by":"raddle"}`, changed.Unix())+"\n" {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/v1/models/none"); status != 404 || !strings.Contains(body, `"code":"model_not_found"`) || !strings.Contains(body, `"param":"model"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := get("/v1/embeddings"); status != 404 || !strings.Contains(body, `"code":"unknown_url"`) || !strings.Contains(body, `"param":null`) {
		t.Errorf("%d %s", status, body)
	}
}

func TestScopes(t *testing.T) {
	w := newWorld(t)
	run := w.ask(prompt("page", "there")).raddle.Run
	w.caller = &server.Caller{Name: "reader", Scopes: []server.Scope{server.ScopeRead}}
	w.ask(prompt("chat", "say hello")).fails(t, 403, "missing_scope", "", "start")
	w.ask(prompt("page", "Ada"), HeaderRun, run).fails(t, 403, "missing_scope", "", "answer")
	w.caller.Scopes = []server.Scope{server.ScopeRead, server.ScopeStart}
	w.ask(prompt("chat", "say hello")).says(t, "Hello there.", "stop")
}

// A server that drives nothing answers when another one of the store has driven the run, whether that one takes it
// before the request waits or later.
func TestAServerThatDrivesNothing(t *testing.T) {
	both(t, func(t *testing.T, w *world, form func(string) string) {
		front, _ := w.ServeWith(server.Options{NoWorker: true, Recover: true})
		w.url = servertest.Listen(t, NewHandler(front), func() *server.Caller { return nil })
		w.stop()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				w.ask(form(prompt("chat", "say hello"))).says(t, "Hello there.", "stop")
			})
		}
		awaitQueued(t, front, 3)
		w.ServeWith(server.Options{Recover: true})
		wg.Wait()
	})
}

// awaitQueued waits until runs of a store wait for a server.
func awaitQueued(t *testing.T, s *server.Service, want int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		count, err := s.CountRuns(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if count[runs.Queued] == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the runs are %v, want %d that are queued", count, want)
		}
		time.Sleep(10 * time.Millisecond) // nothing reports what the store holds
	}
}

// A server that ends says so: the client may try again.
func TestAServerThatEndsStartsNothing(t *testing.T) {
	w := newWorld(t)
	if err := w.service.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.ask(streamed(prompt("chat", "say hello"))).fails(t, 503, "draining", "", "shutting down")
}
