package sdkcheck

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	traces "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// A receiver decodes what raddle exports. Every field must be one that the published types have.
type receiver struct {
	t       *testing.T
	mu      sync.Mutex
	spans   []*trace.Span
	metrics map[string]bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		r.t.Error(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var answer proto.Message
	switch req.URL.Path {
	case "/v1/traces":
		r.spans = append(r.spans, decodeSpans(r.t, body)...)
		answer = &traces.ExportTraceServiceResponse{}
	case "/v1/metrics":
		var m metrics.ExportMetricsServiceRequest
		decode(r.t, body, &m)
		for _, rm := range m.ResourceMetrics {
			for _, sm := range rm.ScopeMetrics {
				for _, each := range sm.Metrics {
					r.metrics[each.Name] = true
				}
			}
		}
		answer = &metrics.ExportMetricsServiceResponse{}
	default:
		r.t.Errorf("a request to %s", req.URL.Path)
		return
	}
	text, err := protojson.Marshal(answer)
	if err != nil {
		r.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// decode decodes the JSON of OTLP, which differs from that of protobuf in one thing: ids are
// hexadecimal.
func decode(t *testing.T, body []byte, to proto.Message) {
	t.Helper()
	var tree any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&tree); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	convertIDs(t, tree)
	text, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	if err := protojson.Unmarshal(text, to); err != nil {
		t.Errorf("%v: %s", err, body)
	}
}

func convertIDs(t *testing.T, tree any) {
	switch tree := tree.(type) {
	case []any:
		for _, e := range tree {
			convertIDs(t, e)
		}
	case map[string]any:
		for name, value := range tree {
			text, isText := value.(string)
			if name != "traceId" && name != "spanId" && name != "parentSpanId" || !isText {
				convertIDs(t, value)
				continue
			}
			id, err := hex.DecodeString(text)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			tree[name] = base64.StdEncoding.EncodeToString(id)
		}
	}
}

func decodeSpans(t *testing.T, body []byte) (spans []*trace.Span) {
	var m traces.ExportTraceServiceRequest
	decode(t, body, &m)
	for _, rs := range m.ResourceSpans {
		if len(rs.Resource.GetAttributes()) == 0 {
			t.Error("a resource has no attributes")
		}
		for _, ss := range rs.ScopeSpans {
			spans = append(spans, ss.Spans...)
		}
	}
	return spans
}

// checkTrace fails the test unless the spans are one trace with one root.
func checkTrace(t *testing.T, spans []*trace.Span) {
	t.Helper()
	if len(spans) == 0 {
		t.Fatal("there are no spans")
	}
	ids := map[string]bool{}
	for _, s := range spans {
		ids[string(s.SpanId)] = true
	}
	roots := 0
	for _, s := range spans {
		if len(s.TraceId) != 16 || len(s.SpanId) != 8 || !bytes.Equal(s.TraceId, spans[0].TraceId) {
			t.Errorf("%s belongs to the trace %x, the first span to %x", s.Name, s.TraceId, spans[0].TraceId)
		}
		if s.EndTimeUnixNano < s.StartTimeUnixNano || s.Kind == trace.Span_SPAN_KIND_UNSPECIFIED {
			t.Errorf("%s lasts from %d to %d, and is %v", s.Name, s.StartTimeUnixNano, s.EndTimeUnixNano, s.Kind)
		}
		switch {
		case len(s.ParentSpanId) == 0:
			roots++
		case !ids[string(s.ParentSpanId)]:
			t.Errorf("the parent of %s is not in the trace", s.Name)
		}
	}
	if roots != 1 {
		t.Errorf("%d spans have no parent", roots)
	}
}

// buildRaddle builds the program.
func buildRaddle(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "raddle")
	cmd := exec.Command("go", "build", "-trimpath", "-o", path, "./cmd/raddle") // as make build does, so that little is compiled again
	cmd.Dir = "../../../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A run that one process parks and another answers is one trace for a receiver, and in a file.
func TestOneTraceOfTwoProcesses(t *testing.T) {
	raddle, home := buildRaddle(t), t.TempDir()
	example, err := filepath.Abs("../../../../examples/triage")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, metrics: map[string]bool{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	run := func(want int, args ...string) {
		t.Helper()
		cmd := exec.Command(raddle, append(args, "-q", "--trace", "trace")...)
		cmd.Dir = home
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "OTEL_EXPORTER_OTLP_ENDPOINT=" + server.URL, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true"}
		if out, err := cmd.CombinedOutput(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	run(5, "run", example)
	run(0, "resume", "last", "--answer", "page=yes")
	checkTrace(t, r.spans)
	if !r.metrics["gen_ai.client.token.usage"] || !r.metrics["raddle.runs"] {
		t.Errorf("metrics: %v", r.metrics)
	}
	text, err := os.ReadFile(filepath.Join(home, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	var spans []*trace.Span
	for line := range strings.Lines(string(text)) {
		spans = append(spans, decodeSpans(t, []byte(line))...)
	}
	checkTrace(t, spans)
	if len(spans) != len(r.spans) {
		t.Errorf("the file has %d spans, the receiver got %d", len(spans), len(r.spans))
	}
}
