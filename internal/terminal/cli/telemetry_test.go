//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// An exported span, as far as the tests look at it.
type exportedSpan struct {
	TraceID, SpanID, ParentSpanID, Name string
	Start                               string `json:"startTimeUnixNano"`
	End                                 string `json:"endTimeUnixNano"`
	Attributes                          []struct {
		Key   string
		Value struct {
			StringValue, IntValue string
			BoolValue             bool
			DoubleValue           float64
		}
	}
	Status struct{ Code int }
}

// text returns the text or the whole number of an attribute, or "".
func (s *exportedSpan) text(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// lasted returns the time between the start and the end.
func (s *exportedSpan) lasted(t *testing.T) time.Duration {
	t.Helper()
	from, err := strconv.ParseInt(s.Start, 10, 64)
	until, err2 := strconv.ParseInt(s.End, 10, 64)
	if err != nil || err2 != nil {
		t.Fatalf("the times of %s are %q and %q", s.Name, s.Start, s.End)
	}
	return time.Duration(until - from)
}

type exportedTraces struct {
	ResourceSpans []struct {
		Resource   struct{ Attributes json.RawMessage }
		ScopeSpans []struct{ Spans []exportedSpan }
	}
}

// A receiver takes what raddle exports.
type receiver struct {
	t   *testing.T
	url string

	mu      sync.Mutex
	bodies  []string
	headers []http.Header
	spans   []exportedSpan
	metrics map[string]bool
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{t: t, metrics: map[string]bool{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil || req.Header.Get("Content-Type") != "application/json" {
		r.t.Errorf("a request of type %q: %v", req.Header.Get("Content-Type"), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bodies, r.headers = append(r.bodies, string(body)), append(r.headers, req.Header)
	switch req.URL.Path {
	case "/v1/traces":
		r.spans = append(r.spans, readSpans(r.t, body)...)
	case "/v1/metrics":
		var m struct {
			ResourceMetrics []struct {
				ScopeMetrics []struct{ Metrics []struct{ Name string } }
			}
		}
		if err := json.Unmarshal(body, &m); err != nil {
			r.t.Errorf("%v: %s", err, body)
		}
		for _, rm := range m.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, each := range sm.Metrics {
					r.metrics[each.Name] = true
				}
			}
		}
	default:
		r.t.Errorf("a request to %s", req.URL.Path)
	}
	_, _ = io.WriteString(w, "{}")
}

func readSpans(t *testing.T, body []byte) (spans []exportedSpan) {
	var traces exportedTraces
	if err := json.Unmarshal(body, &traces); err != nil {
		t.Errorf("%v: %s", err, body)
	}
	for _, rs := range traces.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			spans = append(spans, ss.Spans...)
		}
	}
	return spans
}

// take returns the spans that have arrived, and forgets them.
func (r *receiver) take() []exportedSpan {
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := r.spans
	r.spans = nil
	return spans
}

// all returns everything that has arrived.
func (r *receiver) all() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.bodies, "\n")
}

// countSpans counts spans by their names.
func countSpans(spans []exportedSpan) map[string]int {
	n := map[string]int{}
	for _, s := range spans {
		n[s.Name]++
	}
	return n
}

func findSpan(t *testing.T, spans []exportedSpan, name string) *exportedSpan {
	t.Helper()
	i := slices.IndexFunc(spans, func(s exportedSpan) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("there is no span %q: %v", name, countSpans(spans))
	}
	return &spans[i]
}

// checkOneTrace fails the test unless the spans are one trace: one id, one root, and every other span
// has a parent in it.
func checkOneTrace(t *testing.T, spans []exportedSpan) (root *exportedSpan) {
	t.Helper()
	ids, roots := map[string]bool{}, 0
	for _, s := range spans {
		if ids[s.SpanID] {
			t.Errorf("two spans have the id %s", s.SpanID)
		}
		ids[s.SpanID] = true
	}
	for i, s := range spans {
		if s.TraceID != spans[0].TraceID {
			t.Errorf("%s belongs to the trace %s, the first span to %s", s.Name, s.TraceID, spans[0].TraceID)
		}
		switch {
		case s.ParentSpanID == "":
			roots++
			root = &spans[i]
		case !ids[s.ParentSpanID]:
			t.Errorf("the parent of %s is not in the trace", s.Name)
		}
	}
	if roots != 1 {
		t.Fatalf("%d spans have no parent: %v", roots, countSpans(spans))
	}
	return root
}

func (w *workplace) export(r *receiver, more ...string) *workplace {
	w.env = append(w.env, append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + r.url}, more...)...)
	return w
}

func triageDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../../examples/triage")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// A run that one process parks and another answers is one trace, and what the first has done is
// exported once.
func TestOneTraceOfTwoProcesses(t *testing.T) {
	t.Parallel()
	needBash(t)
	r := newReceiver(t)
	w := newWorkplace(t, "").export(r, "OTEL_SERVICE_NAME=shop", "OTEL_RESOURCE_ATTRIBUTES=team=ledger", "OTEL_EXPORTER_OTLP_HEADERS=x-key=abc%20def")
	if res := w.run("run", triageDir(t), "-q"); res.code != 5 {
		t.Fatalf("exit code %d: %s", res.code, res.err)
	}
	run := w.runs()[0].Run
	if res := w.run("resume", "-q", run, "--answer", "page=yes"); res.code != 0 {
		t.Fatalf("exit code %d: %s", res.code, res.err)
	}
	spans := r.take()
	root := checkOneTrace(t, spans)
	if root.Name != "invoke_workflow triage" || root.text("raddle.run.status") != "waiting" || root.text("raddle.run.id") != run {
		t.Errorf("the root is %s, %v", root.Name, root.Attributes)
	}
	want := map[string]int{"invoke_workflow triage": 2, "chat transcript.yaml": 2, "question": 2, "task classify": 1, "task page": 2, "task history": 1}
	got := countSpans(spans)
	for name, n := range want {
		if got[name] != n {
			t.Errorf("%d spans of %q, want %d: %v", got[name], name, n, got)
		}
	}
	chat := findSpan(t, spans, "chat transcript.yaml")
	if chat.text("gen_ai.operation.name") != "chat" || chat.text("gen_ai.provider.name") != "script" || chat.text("gen_ai.usage.input_tokens") != "142" ||
		chat.text("raddle.node") != "classify" || chat.text("raddle.run.id") != run {
		t.Errorf("the call of the model: %v", chat.Attributes)
	}
	for _, s := range spans {
		if s.text("raddle.question.id") == "page" && s.lasted(t) < time.Millisecond {
			t.Errorf("the question was asked by another process, and its span lasts %v", s.lasted(t))
		}
	}
	for _, name := range []string{"gen_ai.client.operation.duration", "gen_ai.client.token.usage", "gen_ai.workflow.duration", "raddle.runs", "raddle.questions"} {
		if !r.metrics[name] {
			t.Errorf("there is no metric %s: %v", name, slices.Sorted(maps.Keys(r.metrics)))
		}
	}
	if all := r.all(); !strings.Contains(all, `"stringValue":"shop"`) || !strings.Contains(all, `"stringValue":"ledger"`) || strings.Contains(all, "Card payments") {
		t.Error("the resource is incomplete, or content was exported")
	}
	for _, h := range r.headers {
		if h.Get("x-key") != "abc def" {
			t.Errorf("the header is %q", h.Get("x-key"))
		}
	}
}

// A run that belongs to the trace of its caller stays in it, also when a later process does not.
func TestTraceOfTheCaller(t *testing.T) {
	t.Parallel()
	needBash(t)
	const caller, above = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	r := newReceiver(t)
	w := newWorkplace(t, "").export(r)
	env := w.env
	w.env = append(slices.Clone(env), "TRACEPARENT=00-"+caller+"-"+above+"-01")
	w.run("run", triageDir(t), "-q")
	w.env = env
	w.run("resume", "-q", "last", "--answer", "page=no")
	spans := r.take()
	tops := 0
	for _, s := range spans {
		if s.TraceID != caller {
			t.Errorf("%s belongs to the trace %s", s.Name, s.TraceID)
		}
		if s.ParentSpanID == above {
			tops++
		}
	}
	if tops != 1 || countSpans(spans)["invoke_workflow triage"] != 2 {
		t.Errorf("%d spans below the caller's: %v", tops, countSpans(spans))
	}
}

// What the journal of a killed run holds is not exported by the process that continues it, and
// requests to models name their span.
func TestReplayIsNotExported(t *testing.T) {
	t.Parallel()
	needBash(t)
	w := newWorkplace(t, eventful)
	p := &provider{calls: map[string]int{}}
	var mu sync.Mutex
	var parents []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		mu.Lock()
		parents = append(parents, req.Header.Get("traceparent"))
		mu.Unlock()
		p.ServeHTTP(rw, req)
	}))
	t.Cleanup(server.Close)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [small]}]\n")
	n := 1
	for ; ; n++ {
		if !w.killAt(n, "run", "./eventful", "x", "--answer", "yes") {
			t.Fatal("the run was never killed after its first reply")
		}
		if w.recorded(w.runs()[0].Run)["ask"] > 0 {
			break
		}
	}
	made := maps.Clone(p.calls)
	mu.Lock()
	parents = nil
	mu.Unlock()
	r := newReceiver(t)
	w.export(r)
	if res := w.run("resume", "-q", w.runs()[0].Run); res.code != 0 {
		t.Fatalf("exit code %d: %s", res.code, res.err)
	}
	spans := r.take()
	chats := 0
	for _, s := range spans {
		if s.Name != "chat small" {
			continue
		}
		chats++
		if s.text("raddle.node") == "ask" {
			t.Error("a recorded reply was exported")
		}
		if want := "00-" + s.TraceID + "-" + s.SpanID + "-01"; !slices.Contains(parents, want) {
			t.Errorf("no request has the traceparent %s: %v", want, parents)
		}
	}
	if calls := p.calls["second"] + p.calls["first"] - made["second"] - made["first"]; chats != calls || chats != 1 {
		t.Errorf("%d replies were made, %d were exported", calls, chats)
	}
}

// secretive has a prompt with a secret, and a model that fails with one in its message.
const secretive = `
-- talk/graph.yaml --
name: talk
model: local:small
start: say
nodes:
  say: {type: llm, prompt: "first of all, {{initial_prompt}}", state_updates: {one: "{{output}}"}, next: fail}
  fail: {type: llm, prompt: fail, max_attempts: 1, next: done}
  done: {type: end, output: "{{one}}"}
`

// Texts of messages are exported only if that is asked for, and never with a secret.
func TestContentIsOptIn(t *testing.T) {
	t.Parallel()
	needBash(t)
	const secret = "sk-live-3f9a8b7c6d5e4f30"
	for _, content := range []bool{false, true} {
		t.Run(fmt.Sprint(content), func(t *testing.T) {
			r := newReceiver(t)
			w := newWorkplace(t, secretive).export(r, "SHOP_API_KEY="+secret, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="+fmt.Sprint(content))
			p := &provider{calls: map[string]int{}}
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
				body, _ := io.ReadAll(req.Body)
				if strings.Contains(string(body), `"content":"fail"`) {
					http.Error(rw, `{"error": {"message": "the key `+secret+` has expired"}}`, http.StatusBadRequest)
					return
				}
				req.Body = io.NopCloser(bytes.NewReader(body))
				p.ServeHTTP(rw, req)
			}))
			t.Cleanup(server.Close)
			w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [small]}]\n")
			file := filepath.Join(w.dir, "trace.jsonl")
			if res := w.run("run", "./talk", "-q", "the key of the shop is "+secret, "--trace", file); res.code != 0 {
				t.Fatalf("exit code %d: %s%s", res.code, res.out, res.err)
			}
			for from, all := range map[string]string{"receiver": r.all(), "file": w.read("trace.jsonl")} {
				if all == "" || strings.Contains(all, secret) {
					t.Errorf("%s: nothing, or a secret:\n%s", from, all)
				}
				if got := strings.Contains(all, "the key of the shop is [redacted]"); got != content {
					t.Errorf("%s: content is exported: %v\n%s", from, got, all)
				}
				if got := strings.Contains(all, "reply to first"); got != content {
					t.Errorf("%s: the reply is exported: %v", from, got)
				}
			}
			spans, failed := r.take(), 0
			checkOneTrace(t, spans)
			for _, s := range spans {
				if s.Status.Code == 2 && s.Name == "chat small" && s.text("error.type") == "400" {
					failed++
				}
			}
			if failed != 1 {
				t.Errorf("%d calls of the model failed: %+v", failed, spans)
			}
		})
	}
}

// A receiver that refuses, hangs or fails delays a run by two seconds at most, does not change its
// outcome, and is one warning in the log.
func TestReceiverOutOfOrder(t *testing.T) {
	t.Parallel()
	needBash(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	hanging, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hanging.Close() })
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(busy.Close)
	for name, address := range map[string]string{"refuses": "http://" + closed.Addr().String(), "hangs": "http://" + hanging.Addr().String(), "is busy": busy.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := newWorkplace(t, "").run("run", triageDir(t), "-q", "--answer", "yes")
			w := newWorkplace(t, "")
			w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+address)
			began := time.Now()
			got := w.run("run", triageDir(t), "-q", "--answer", "yes", "--log-level", "warn")
			if took := time.Since(began); took > 8*time.Second { // two seconds at the end, and a busy machine
				t.Errorf("the run took %v", took)
			}
			if got.code != want.code || got.out != want.out {
				t.Errorf("exit code %d, %q; want %d, %q", got.code, got.out, want.code, want.out)
			}
			if n := strings.Count(got.err, "telemetry"); n != 1 {
				t.Errorf("%d warnings:\n%s", n, got.err)
			}
		})
	}
}

// Every variable that switches telemetry off does.
func TestTelemetryOff(t *testing.T) {
	t.Parallel()
	needBash(t)
	for _, off := range []string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_EXPORTER=none,OTEL_METRICS_EXPORTER=none"} {
		r := newReceiver(t)
		w := newWorkplace(t, "").export(r, strings.Split(off, ",")...)
		if res := w.run("run", triageDir(t), "-q", "--answer", "yes"); res.code != 0 {
			t.Fatalf("exit code %d: %s", res.code, res.err)
		}
		if all := r.all(); all != "" {
			t.Errorf("%s: exported\n%s", off, all)
		}
	}
}

// --trace writes the trace of a run without any variable; a resume adds to it. The events of the
// run are numbered as without it.
func TestTraceFile(t *testing.T) {
	t.Parallel()
	needBash(t)
	w := newWorkplace(t, "")
	if res := w.run("run", triageDir(t), "-q", "--trace", "no/such/dir/file"); res.code != 2 || !strings.Contains(res.err, "--trace") {
		t.Errorf("exit code %d: %s", res.code, res.err)
	}
	plain := w.run("run", triageDir(t), "-q", "--output", "stream-json")
	traced := w.run("run", triageDir(t), "-q", "--output", "stream-json", "--trace", "trace.jsonl")
	if n, m := countEvents(t, plain.out), countEvents(t, traced.out); n != m {
		t.Errorf("%d events, and %d with --trace", n, m)
	}
	if res := w.run("resume", "-q", "last", "--answer", "page=yes", "--trace", "trace.jsonl"); res.code != 0 {
		t.Fatalf("exit code %d: %s", res.code, res.err)
	}
	var spans []exportedSpan
	for line := range strings.Lines(w.read("trace.jsonl")) {
		spans = append(spans, readSpans(t, []byte(line))...)
	}
	if root := checkOneTrace(t, spans); root.Name != "invoke_workflow triage" {
		t.Errorf("the root is %s", root.Name)
	}
	if n := countSpans(spans); n["invoke_workflow triage"] != 2 || n["chat transcript.yaml"] != 2 || n["question"] != 2 {
		t.Errorf("spans: %v", n)
	}
}

// countEvents returns the number of the events of a stream, and fails the test unless they are
// numbered without gaps.
func countEvents(t *testing.T, stream string) int {
	t.Helper()
	last := 0
	dec := json.NewDecoder(bytes.NewReader([]byte(stream)))
	for dec.More() {
		var ev struct{ Seq int }
		if err := dec.Decode(&ev); err != nil {
			t.Fatal(err)
		}
		if ev.Seq != last+1 {
			t.Errorf("event %d follows %d", ev.Seq, last)
		}
		last = ev.Seq
	}
	return last
}
