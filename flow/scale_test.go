package flow

import (
	"fmt"
	"os"
	"path/filepath"
	gort "runtime"
	"strings"
	"testing"

	"raddle.dev/internal/strictyaml"
)

// scaleShapes are graphs of about n nodes whose nodes write a key each and read
// the key of the node before.
var scaleShapes = map[string]func(n int) string{
	"chain of scripts": func(n int) string {
		return layeredGraph(n, 1, "script, script: s.sh")
	},
	"chain of models": func(n int) string {
		return layeredGraph(n, 1, `llm, prompt: "hello"`)
	},
	"layers of scripts": func(n int) string {
		return layeredGraph(n/50, 50, "script, script: s.sh")
	},
	"layers of models": func(n int) string {
		return layeredGraph(n/50, 50, `llm, prompt: "hello"`)
	},
	"one layer": func(n int) string {
		return layeredGraph(1, n, "script, script: s.sh")
	},
}

// layeredGraph is a graph.yaml with a fan-out to width chains of depth nodes.
func layeredGraph(depth, width int, kind string) string {
	var b strings.Builder
	b.WriteString("name: big\nmodel: m\nstart: first\nnodes:\n")
	var first []string
	for w := range width {
		first = append(first, fmt.Sprintf("n0_%d", w))
	}
	fmt.Fprintf(&b, "  first: {type: %s, state_updates: {first: x}, next: [%s]}\n", kind, strings.Join(first, ", "))
	for d := range depth {
		for w := range width {
			read, next := "{{first}}", "last"
			if d > 0 {
				read = fmt.Sprintf("{{k%d_%d}}", d-1, w)
			}
			if d+1 < depth {
				next = fmt.Sprintf("n%d_%d", d+1, w)
			}
			fmt.Fprintf(&b, "  n%d_%d: {type: %s, state_updates: {k%d_%d: %q}, next: %s}\n", d, w, kind, d, w, read, next)
		}
	}
	b.WriteString("  last: {type: end, output: done}\n")
	return b.String()
}

// writeScaleAgent writes an agent directory with a graph.yaml.
func writeScaleAgent(tb testing.TB, text string) string {
	dir := filepath.Join(tb.TempDir(), "big")
	if err := os.Mkdir(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	for name, content := range map[string]string{"graph.yaml": text, "s.sh": "echo '{}'\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// loadScaleAgent loads, checks and compiles an agent without a model: the error
// for the missing model is expected and comes after everything else.
func loadScaleAgent(tb testing.TB, dir string) {
	a, err := Load(dir, Host{Models: oneModel{}})
	if err != nil {
		tb.Fatal(err)
	}
	if strictyaml.HasErrors(a.Findings) {
		tb.Fatal(a.Findings[0])
	}
	if _, err := a.CompileGraph(); err != nil {
		tb.Fatal(err)
	}
}

// TestLoadGrowsLinearly holds what load, check and compile allocate for a graph
// against what they allocate for one of eight times its size. Allocations, other
// than times, are the same on every machine.
func TestLoadGrowsLinearly(t *testing.T) {
	const n, factor = 400, 8
	for name, shape := range scaleShapes {
		t.Run(name, func(t *testing.T) {
			measure := func(n int) uint64 {
				dir := writeScaleAgent(t, shape(n))
				loadScaleAgent(t, dir) // what is made once
				var before, after gort.MemStats
				gort.ReadMemStats(&before)
				loadScaleAgent(t, dir)
				gort.ReadMemStats(&after)
				return after.TotalAlloc - before.TotalAlloc
			}
			small, large := measure(n), measure(factor*n)
			if large > 2*factor*small {
				t.Errorf("%d nodes allocate %d bytes and %d nodes %d: %.1f times as much", n, small, factor*n, large, float64(large)/float64(small))
			}
		})
	}
}

// BenchmarkLoad measures load, check and compile of 5,000 nodes. The goal is half
// a second of processor time.
func BenchmarkLoad(b *testing.B) {
	for name, shape := range scaleShapes {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			dir := writeScaleAgent(b, shape(5000))
			b.ReportAllocs()
			for b.Loop() {
				loadScaleAgent(b, dir)
			}
		})
	}
}
