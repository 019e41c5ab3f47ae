package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"

	"raddle.dev/graph"
	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
)

func lookupIn(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestReadSettings(t *testing.T) {
	at := func(url string) *Receiver {
		return &Receiver{URL: url, Timeout: 10 * time.Second, Headers: map[string]string{}}
	}
	traces, metrics := at("http://h:1/v1/traces"), at("http://h:1/v1/metrics")
	for name, test := range map[string]struct {
		env  map[string]string
		want Settings
		warn string // a part of the only warning
	}{
		"nothing":      {env: map[string]string{"OTEL_SERVICE_NAME": "x"}},
		"both":         {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1"}, want: Settings{Traces: traces, Metrics: metrics}},
		"slash":        {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1/"}, want: Settings{Traces: traces, Metrics: metrics}},
		"only traces":  {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/own"}, want: Settings{Traces: at("http://h:1/own")}},
		"only metrics": {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_TRACES_EXPORTER": "none"}, want: Settings{Metrics: metrics}},
		"usual place":  {env: map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, want: Settings{Traces: at("http://localhost:4318/v1/traces")}},
		"disabled":     {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_SDK_DISABLED": "TRUE"}},
		"content": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/v1/traces", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"},
			want: Settings{Traces: traces, Content: true}},
		"details": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://h/t", "OTEL_EXPORTER_OTLP_HEADERS": "a=b%3D c , d=e", "OTEL_EXPORTER_OTLP_TIMEOUT": "250",
			"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			want: Settings{Traces: &Receiver{URL: "https://h/t", Timeout: 250 * time.Millisecond, Compress: true, Headers: map[string]string{"a": "b= c", "d": "e"}}}},
		"protocol":    {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, want: Settings{Traces: traces, Metrics: metrics}, warn: "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"},
		"timeout":     {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/v1/traces", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, want: Settings{Traces: traces}, warn: "milliseconds"},
		"header":      {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/v1/traces", "OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, want: Settings{Traces: traces}, warn: "a header is ignored"},
		"address":     {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "h:4317"}, warn: "not an http or https URL"},
		"exporter":    {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:1/v1/traces", "OTEL_TRACES_EXPORTER": "console"}, warn: "console"},
		"certificate": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://h:1", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/file"}, warn: "/no/file"},
	} {
		got := ReadSettings(lookupIn(test.env))
		if n := len(got.Warnings); (n > 0) != (test.warn != "") || n > 1 || n == 1 && !strings.Contains(got.Warnings[0], test.warn) || strings.Contains(strings.Join(got.Warnings, ""), "hunter2") {
			t.Errorf("%s: warnings %q, want %q", name, got.Warnings, test.warn)
		}
		got.Warnings = nil
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Receiver{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Every kind of value has its form in JSON, and texts in it are redacted.
func TestEncodeValue(t *testing.T) {
	clean := redact.New("hunter2hunter2").Text
	for want, v := range map[string]attribute.Value{
		`{"stringValue":"[redacted] x"}`:                                      attribute.StringValue("hunter2hunter2 x"),
		`{"intValue":"9007199254740993"}`:                                     attribute.Int64Value(9007199254740993),
		`{"boolValue":false}`:                                                 attribute.BoolValue(false),
		`{"doubleValue":0.5}`:                                                 attribute.Float64Value(0.5),
		`{"doubleValue":"NaN"}`:                                               attribute.Float64Value(math.NaN()),
		`{"doubleValue":"-Infinity"}`:                                         attribute.Float64Value(math.Inf(-1)),
		`{"arrayValue":{"values":[{"stringValue":"[redacted]"}]}}`:            attribute.StringSliceValue([]string{"hunter2hunter2"}),
		`{"arrayValue":{"values":[]}}`:                                        attribute.StringSliceValue(nil),
		`{"arrayValue":{"values":[{"intValue":"1"}]}}`:                        attribute.IntSliceValue([]int{1}),
		`{"bytesValue":"AAE="}`:                                               attribute.ByteSliceValue([]byte{0, 1}),
		`{"kvlistValue":{"values":[{"key":"a","value":{"boolValue":true}}]}}`: attribute.MapValue(attribute.Bool("a", true)),
	} {
		if got, err := json.Marshal(encodeValue(v, clean)); err != nil || string(got) != want {
			t.Errorf("%s, want %s (%v)", got, want, err)
		}
	}
}

// The ids of a trace are those that another process computes, and a caller's trace is continued.
func TestTraceIDs(t *testing.T) {
	if a, b := rootIDs("r1"), rootIDs("r1"); a != b || !a.trace.IsValid() || !a.span.IsValid() || a == rootIDs("r2") {
		t.Errorf("%v %v", a, b)
	}
	for text, want := range map[string]bool{
		"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01": true, "": false, "x": false, "00-00000000000000000000000000000000-00f067aa0ba902b7-01": false,
	} {
		if IsParent(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// A run that fails marks its spans, and tasks that were cut off have ended ones.
func TestFailedRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	tel, err := Open(Setup{File: file, Secrets: redact.New("hunter2hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("it broke at hunter2hunter2")
	g, err := graph.Compile(graph.Def{Name: "g", Start: []string{"a", "b"}, Edges: []graph.Edge{{From: []string{"a"}, To: []string{graph.End}}, {From: []string{"b"}, To: []string{graph.End}}}, Nodes: []graph.Node{
		{Name: "a", Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, broken }},
		{Name: "b", Run: func(ctx context.Context, _ graph.State) (graph.Update, error) { return graph.Update{}, nil }},
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, r := tel.StartDrive(t.Context(), Run{ID: "r", Thread: "r", Agent: "g", Graph: true})
	runner := &graph.Runner{Graph: g}
	var res graph.Result
	var failed error
	for ev, err := range runner.Run(ctx, graph.Input{Run: "r", Topics: Topics}) {
		if failed = err; err != nil {
			break
		}
		if end, ok := ev.Body.(graph.RunEnded); ok {
			res = end.Result
		}
		r.RecordEvent(ev)
	}
	r.End(res, failed)
	if err := errors.Join(tel.Close(), tel.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		var traces otlpTraces
		if err := json.Unmarshal([]byte(line), &traces); err != nil {
			t.Fatal(err)
		}
		s := traces.ResourceSpans[0].ScopeSpans[0].Spans[0]
		got = append(got, strings.TrimSpace(s.Name+" "+strings.Repeat("failed", s.Status.Code/2)))
	}
	slices.Sort(got)
	want := []string{"invoke_workflow g failed", "step", "task a failed", "task b"}
	if !slices.Equal(got, want) || bytes.Contains(text, []byte("hunter2")) || !bytes.Contains(text, []byte("it broke at [redacted]")) {
		t.Errorf("%q, want %q\n%s", got, want, text)
	}
}

// The client repeats what the receiver asks to repeat, compresses, follows no redirect, and ends
// with its context.
func TestClient(t *testing.T) {
	var mu sync.Mutex
	var paths, bodies []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		text, _ := io.ReadAll(body)
		mu.Lock()
		defer mu.Unlock()
		paths, bodies = append(paths, r.URL.Path), append(bodies, string(text))
		switch {
		case r.URL.Path == "/busy" && len(paths) == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	t.Cleanup(server.Close)
	send := func(path string, compress bool) error {
		paths, bodies = nil, nil
		c := newClient(&Receiver{URL: server.URL + path, Timeout: 10 * time.Second, Compress: compress}, "1", redact.New().Text)
		return c.sendRequest(t.Context(), []byte("{}"))
	}
	if err := send("/busy", true); err != nil || len(paths) != 2 || bodies[1] != "{}" {
		t.Errorf("busy: %v, %v %q", err, paths, bodies)
	}
	if err := send("/moved", false); err == nil || len(paths) != 1 {
		t.Errorf("moved: %v, %v", err, paths)
	}
	c := newClient(&Receiver{URL: server.URL, Timeout: 10 * time.Second}, "1", redact.New().Text)
	c.end()
	if err := c.sendRequest(t.Context(), []byte("{}")); !errors.Is(err, context.Canceled) {
		t.Errorf("closed: %v", err)
	}
}

// Many failures are one line of the log.
func TestOneWarning(t *testing.T) {
	var log bytes.Buffer
	h := &onceHandler{log: slog.New(slog.NewTextHandler(&log, nil))}
	for range 3 {
		h.Handle(errors.New("no route"))
	}
	if n := strings.Count(log.String(), "no route"); n != 1 {
		t.Errorf("%d lines: %s", n, &log)
	}
}

// The parts of a message have the form of the conventions, without secrets and bytes, and what
// spans contain of them is limited.
func TestContent(t *testing.T) {
	tel := &Telemetry{setup: Setup{Secrets: redact.New("hunter2hunter2")}}
	got := tel.encodeMessages([]llm.Message{llm.User("it is hunter2hunter2"), {Role: llm.RoleAssistant, Parts: []llm.Part{
		llm.Reasoning{Text: "hm"}, llm.Reasoning{Signature: "x"}, llm.ToolCall{ID: "1", Name: "look", Args: json.RawMessage(`{"at":"hunter2hunter2"}`)}, llm.ToolCall{ID: "2", Name: "cut", Args: json.RawMessage(`{"at`)},
	}}, {Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "1", Content: []llm.Part{llm.Text{Text: "found"}}}}}, {Role: llm.RoleUser, Parts: []llm.Part{llm.Image{MIME: "image/png", Data: []byte("bytes")}}}}, "")
	want := `[{"role":"user","parts":[{"type":"text","content":"it is [redacted]"}]},{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"tool_call","id":"1","name":"look","arguments":{"at":"[redacted]"}},` +
		`{"type":"tool_call","id":"2","name":"cut"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"1","response":"found"}]},{"role":"user","parts":[{"type":"uri","mime_type":"image/png","modality":"image"}]}]`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	long := make([]llm.Message, 100)
	for i := range long {
		long[i] = llm.User(strings.Repeat("x", 100_000))
	}
	long[99] = llm.User("the newest")
	text := tel.encodeMessages(long, "")
	if len(text) > 2*maxContent || !json.Valid([]byte(text)) || !strings.Contains(text, "the newest") {
		t.Errorf("%d bytes", len(text))
	}
}

// All processes that work on a run decide alike whether its trace is exported.
func TestSampledAlike(t *testing.T) {
	t.Setenv("OTEL_TRACES_SAMPLER", "traceidratio")
	t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
	s := Setup{Settings: Settings{Traces: &Receiver{URL: "http://127.0.0.1:1", Timeout: time.Second}}}
	first, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Open(s)
	if err != nil {
		t.Fatal(err)
	}
	count := map[bool]int{}
	for i := range 64 {
		run := Run{ID: fmt.Sprint("run ", i), Thread: "t", Agent: "a"}
		_, a := first.StartDrive(t.Context(), run)
		run.Resumed = true
		_, b := second.StartDrive(t.Context(), run)
		if a.span.SpanContext().IsSampled() != b.span.SpanContext().IsSampled() || a.span.SpanContext().TraceID() != b.span.SpanContext().TraceID() {
			t.Errorf("run %d: %v and %v", i, a.span.SpanContext(), b.span.SpanContext())
		}
		count[a.span.SpanContext().IsSampled()]++
	}
	if count[true] == 0 || count[false] == 0 {
		t.Errorf("sampled: %v", count)
	}
	_ = first.Close()
	_ = second.Close()
}

// After Close no goroutine is left, although the receiver never answers and more spans came than
// the queue holds.
func TestCloseLeavesNothing(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	before := runtime.NumGoroutine()
	at := &Receiver{URL: server.URL, Timeout: time.Minute}
	tel, err := Open(Setup{Settings: Settings{Traces: at, Metrics: at}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		_, r := tel.StartDrive(t.Context(), Run{ID: fmt.Sprint(i), Thread: "t", Agent: "a"})
		r.End(graph.Result{Status: graph.Done}, nil)
	}
	began := time.Now()
	if err := tel.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > closeTimeout+3*time.Second {
		t.Errorf("Close took %v", took)
	}
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+4; runtime.Gosched() { // the server has its own for open connections
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines were running, %d are left:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}
