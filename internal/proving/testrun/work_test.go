package testrun

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

// writeStubbed writes an agent of two models and a person, with n cases in which the case answers for all of them.
func writeStubbed(t testing.TB, n int) (path string) {
	dir := filepath.Join(t.TempDir(), "stubbed")
	var cases strings.Builder
	cases.WriteString("prompt: a change\ntests:\n")
	for i := range n {
		fmt.Fprintf(&cases, "  - name: case %d\n    nodes: {draft: text %d, check: {ok: true}}\n    answers: {publish: \"yes\"}\n    expect: {path: [draft, check, publish, done], output: text %d}\n", i, i, i)
	}
	path = filepath.Join(dir, "stubbed.test.yaml")
	testfile.WriteFiles(t, dir, map[string]string{"stubbed.test.yaml": cases.String(), "graph.yaml": `
name: stubbed
model: openai:gpt-5-mini
start: draft
nodes:
  draft: {type: llm, prompt: "Draft {{initial_prompt}}", state_updates: {text: "{{output}}"}, next: check}
  check: {type: llm, prompt: "Check {{text}}", output_schema: {type: object, properties: {ok: {type: boolean}}}, next: publish}
  publish: {type: approval, question: "{{text}}?", options: ["yes", "no"], routes: {"yes": done, "no": done}, on_other: done}
  done: {type: end, output: "{{text}}"}
`})
	return path
}

// TestWorkOfCases limits what a stubbed case allocates and copies: 1,000 of them must run in 20 seconds of processor time, and run in about
// two. Times differ from machine to machine, and the number of allocations does not.
func TestWorkOfCases(t *testing.T) {
	const cases, most = 50, 10_000
	path := writeStubbed(t, cases)
	s := Suite{Runner: Runner{Environ: []string{"HOME=" + t.TempDir()}, Temp: t.TempDir()}, Jobs: 1}
	run := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all, err := s.Run(t.Context(), []string{path}, nil)
		runtime.ReadMemStats(&after)
		if err != nil || all[0].CountFailed() > 0 || len(all[0].Results) != cases {
			t.Fatal(err, all[0].Results[0].Failures)
		}
		return (after.Mallocs - before.Mallocs) / cases
	}
	run() // what is made once for a process
	if n := run(); n > most {
		t.Errorf("a case makes %d allocations, the limit is %d", n, most)
	}
	var c copier
	if err := c.copyDir(filepath.Dir(path), t.TempDir(), nil); err != nil || c.files != 2 {
		t.Errorf("a case copies %d files, %v", c.files, err)
	}
}

// BenchmarkStubbedCases runs a file with 1,000 cases.
func BenchmarkStubbedCases(b *testing.B) {
	path := writeStubbed(b, 1000)
	s := Suite{Runner: Runner{Environ: []string{"HOME=" + b.TempDir()}, Temp: b.TempDir()}}
	for b.Loop() {
		all, err := s.Run(b.Context(), []string{path}, nil)
		if err != nil || all[0].CountFailed() > 0 {
			b.Fatal(err, all[0].CountFailed())
		}
	}
}
