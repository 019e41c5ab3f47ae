package flowtest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow/flowtest"
	"raddle.dev/internal/testkit/testfile"
)

const graph = `
name: greet
start: greet
nodes:
  greet: {type: llm, model: "openai:gpt-5-mini", prompt: "Greet {{initial_prompt}}", state_updates: {text: "{{output}}"}, next: done}
  done: {type: end, output: "{{text}}!"}
`

const cases = `
tests:
  - name: passes
    prompt: Ada
    nodes: {greet: Hello}
    expect: {path: [greet, done], prompts: {greet: Greet Ada}, output: Hello!}
`

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"greet/graph.yaml": graph, "greet/greet.test.yaml": cases})
	if agents := os.Getenv("FLOWTEST_AGENTS"); agents != "" {
		dir = agents
	}
	flowtest.Files(t, dir)
}

// TestFilesThatFail runs TestFiles in another process, over a case that fails.
func TestFilesThatFail(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{"greet/graph.yaml": graph, "greet/greet.test.yaml": strings.Replace(cases, "output: Hello!", "output: Hi!", 1)})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(exe, "-test.run=TestFiles$")
	child.Env = append(os.Environ(), "FLOWTEST_AGENTS="+dir)
	out, err := child.CombinedOutput()
	for _, want := range []string{"--- FAIL: TestFiles/greet/greet.test.yaml/passes", filepath.Join(dir, "greet", "greet.test.yaml") + `:6:72: output: expected "Hi!", got "Hello!"`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the output lacks %s: %v\n%s", want, err, out)
		}
	}
	if err == nil {
		t.Error("the process has not failed")
	}
}
