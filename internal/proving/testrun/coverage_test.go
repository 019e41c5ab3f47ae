package testrun

import (
	"bytes"
	"path/filepath"
	"testing"

	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/testkit/testfile"
)

// TestCoverage counts what two cases of a graph reach, and nothing for an agent that is no graph.
func TestCoverage(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"pay/graph.yaml": "name: pay\nstart: ask\nnodes:\n" +
			"  ask: {type: approval, question: Pay?, options: [\"yes\", \"no\"], routes: {\"yes\": pay, \"no\": end}, on_other: end}\n" +
			"  pay: {type: script, script: pay.sh, fallback: failed, next: end}\n" +
			"  end: {type: end, output: ended}\n" +
			"  failed: {type: end, output: failed}\n",
		"pay/pay.sh":        "echo '{}'\n",
		"pay/pay.test.yaml": "tests:\n  - name: paid\n    answers: {ask: \"yes\"}\n  - name: not paid\n    answers: {ask: \"no\"}\n",
		"talk/config.yaml":  "name: talk\ninstructions: Talk.\nmodel: openai:gpt-none\n",
		"talk/t.test.yaml":  "tests:\n  - name: hello\n    prompt: hi\n    replies: [hello]\n",
	})
	var v Coverage
	r := newRunner(t)
	for _, path := range []string{"pay/pay.test.yaml", "talk/t.test.yaml"} {
		f, err := testcase.Load(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			res, err := r.RunCase(t.Context(), c, v.Wrap(c, Setup{}))
			if err != nil || !res.HasPassed() {
				t.Fatalf("%s: %+v %v", c.Name, res.Failures, err)
			}
		}
	}
	list := v.Reports()
	if len(list) != 1 || list[0].Dir != filepath.Join(dir, "pay") || list[0].Runs != 2 {
		t.Fatalf("%+v", list)
	}
	var b bytes.Buffer
	if err := list[0].WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const want = `coverage of pay: 66.7 % (3 of 4 nodes, 3 of 5 edges)
  not reached: node failed
  not followed: ask → end (other)
  not followed: pay → failed (fallback)
`
	if b.String() != want {
		t.Errorf("got:\n%swant:\n%s", b.String(), want)
	}
}
