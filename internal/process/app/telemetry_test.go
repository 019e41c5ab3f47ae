//go:build unix

package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
)

// tracedSpan is a line of a trace, as far as the tests look at it.
type tracedSpan struct {
	SpanID, ParentSpanID, Name string
	Kind                       int
	Attributes                 []struct {
		Key   string
		Value struct{ StringValue string }
	}
}

func (s *tracedSpan) text(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

// readTrace reads the file of a trace. It fails the test unless every span but the first of the
// run has its parent in the file.
func readTrace(t *testing.T, file string) (spans []tracedSpan) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var traces struct {
			ResourceSpans []struct {
				ScopeSpans []struct{ Spans []tracedSpan }
			}
		}
		if err := json.Unmarshal([]byte(line), &traces); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		spans = append(spans, traces.ResourceSpans[0].ScopeSpans[0].Spans...)
	}
	for _, s := range spans {
		if s.ParentSpanID != "" && !slices.ContainsFunc(spans, func(o tracedSpan) bool { return o.SpanID == s.ParentSpanID }) {
			t.Errorf("the parent of %s is not in the trace", s.Name)
		}
	}
	return spans
}

// ancestors returns the names of the spans above one, from the inside out.
func ancestors(spans []tracedSpan, s tracedSpan) (names []string) {
	for s.ParentSpanID != "" {
		i := slices.IndexFunc(spans, func(o tracedSpan) bool { return o.SpanID == s.ParentSpanID })
		if i < 0 {
			return names
		}
		s = spans[i]
		names = append(names, s.Name)
	}
	return names
}

// Calls of tools are spans below the tasks that make them; those of a server are requests of MCP.
func TestTraceOfTools(t *testing.T) {
	for prompt, want := range assistantPrompts {
		w := newPlace(t, "RADDLE_NOTES=notes")
		w.assistant()
		p, _ := w.process(-1)
		if err := p.WriteTrace("trace"); err != nil {
			t.Fatal(err)
		}
		run, err := p.StartRun(Request{Agent: "./assistant", Prompt: prompt})
		if err != nil {
			t.Fatal(err)
		}
		res, err := run.Drive(t.Context(), answering(pickAssistant))
		run.Close()
		if err != nil || flow.OutcomeOf(res).Output != want {
			t.Fatalf("%q %v", flow.OutcomeOf(res).Output, err)
		}
		if err := p.CloseTrace(); err != nil {
			t.Fatal(err)
		}
		tools, servers, questions := 0, 0, 0
		spans := readTrace(t, filepath.Join(w.dir, "trace"))
		for _, s := range spans {
			switch s.text("gen_ai.operation.name") {
			case "execute_tool":
				tools++
				if above := ancestors(spans, s); s.text("gen_ai.tool.call.id") == "" || fmt.Sprint(above) != "[task act step invoke_agent assistant]" {
					t.Errorf("%s is below %v", s.Name, above)
				}
				if s.text("mcp.method.name") == "tools/call" {
					servers++
				}
			case "chat":
				if above := ancestors(spans, s); fmt.Sprint(above) != "[task think step invoke_agent assistant]" {
					t.Errorf("%s is below %v", s.Name, above)
				}
			}
			if s.Name == "question" {
				questions++
			}
		}
		if reserves := strings.HasPrefix(prompt, "Reserve"); tools == 0 || servers == 0 || questions > 0 != reserves {
			t.Errorf("%q: %d calls of tools, %d of servers, %d questions", prompt, tools, servers, questions)
		}
	}
}

// What runs below a node is below its span: a child agent, the items of a map, a search.
func TestTraceOfChildren(t *testing.T) {
	w := newPlace(t)
	w.serve(&model{t: t, text: "fine"})
	w.write("outer/graph.yaml", `
name: outer
start: split
nodes:
  split: {type: script, script: split.sh, next: each}
  each: {type: map, over: "{{items}}", as: item, branch: one, collect_into: seen, next: call}
  one: {type: llm, prompt: "{{item}}"}
  call: {type: agent, agent: inner, prompt: go, next: find}
  find: {type: rag, documents: [facts.txt], embedding_model: keyword, chunk_size: 100, chunk_overlap: 0, query: "shuttle", next: done}
  done: {type: end, output: "{{seen}}"}
`)
	w.write("outer/split.sh", `echo '{"items": ["a", "b"]}'`)
	w.write("outer/facts.txt", "A shuttle carries the weft.")
	w.write("inner/graph.yaml", "name: inner\nstart: say\nnodes:\n  say: {type: llm, prompt: hello, next: done}\n  done: {type: end, output: x}\n")
	p, _ := w.process(-1)
	if err := p.WriteTrace("trace"); err != nil {
		t.Fatal(err)
	}
	run, err := p.StartRun(Request{Agent: "./outer", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Done {
		t.Fatalf("%v %v", res.Status, err)
	}
	if err := p.CloseTrace(); err != nil {
		t.Fatal(err)
	}
	spans := readTrace(t, filepath.Join(w.dir, "trace"))
	var places []string
	for _, s := range spans {
		if op := s.text("gen_ai.operation.name"); op == "chat" || op == "retrieval" {
			places = append(places, s.Name+" < "+strings.Join(ancestors(spans, s), " < "))
		}
	}
	slices.Sort(places)
	want := []string{
		"chat small < task one < step < task each < step < invoke_workflow outer",
		"chat small < task one < step < task each < step < invoke_workflow outer",
		"chat small < task say < step < task call < step < invoke_workflow outer",
		"retrieval find < task find < step < invoke_workflow outer",
	}
	if !slices.Equal(places, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(places, "\n"), strings.Join(want, "\n"))
	}
}

// Without telemetry a drive is as before: no topics are added, no event is looked at, and nothing is
// allocated.
func TestTelemetryOffCostsNothing(t *testing.T) {
	w := newPlace(t)
	w.write("count/graph.yaml", "name: count\nstart: done\nnodes:\n  done: {type: end, output: x}\n")
	p, _ := w.process(-1)
	run, err := p.StartRun(Request{Agent: "./count", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if run.telemetry != nil {
		t.Fatal("there is telemetry, and nothing asks for it")
	}
	host, err := p.newHost(run.Record, UIHooks{Mode: run.Mode})
	if err != nil {
		t.Fatal(err)
	}
	if host.Tooling.Around != nil || host.Retrieval.Around != nil {
		t.Error("calls and searches are wrapped")
	}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		got, d, end := run.traceDrive(ctx, Driver{})
		if got != ctx || d.Topics != 0 || d.Event != nil {
			t.Fatal("the drive was changed")
		}
		end(graph.Result{}, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkTelemetry runs a graph of 100 steps, without and with telemetry. Divide by 100 for a step.
func BenchmarkTelemetry(b *testing.B) {
	const text = "name: loop\nstart: s000\nmax_steps: 200\nnodes:\n"
	var nodes strings.Builder
	for i := range 99 {
		fmt.Fprintf(&nodes, "  s%03d: {type: llm, prompt: x, model: \"script:t.yaml\", next: s%03d}\n", i, i+1)
	}
	nodes.WriteString("  s099: {type: end, output: x}\n")
	for _, trace := range []string{"off", "file"} {
		b.Run(trace, func(b *testing.B) {
			dir := b.TempDir()
			for name, text := range map[string]string{"loop/graph.yaml": text + nodes.String(), "loop/t.yaml": "- text: y\n  repeat: true\n"} {
				if err := os.MkdirAll(filepath.Join(dir, "loop"), 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				p, err := Open(Options{Work: dir, Environ: []string{"HOME=" + dir}, Store: "memory:"})
				if err != nil {
					b.Fatal(err)
				}
				if trace == "file" {
					if err := p.WriteTrace("trace"); err != nil {
						b.Fatal(err)
					}
				}
				run, err := p.StartRun(Request{Agent: "./loop", Prompt: "x"})
				if err != nil {
					b.Fatal(err)
				}
				if res, err := run.Drive(b.Context(), Driver{}); err != nil || res.Steps != 100 {
					b.Fatal(res.Steps, err)
				}
				run.Close()
				_ = p.Close()
			}
		})
	}
}
