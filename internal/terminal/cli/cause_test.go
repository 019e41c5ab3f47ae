package cli_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// A run that fails for want of a value names the node that was to write it, and its resume asks that node again.
func TestResumeAtTheCause(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	for name, c := range map[string]struct{ node, script, bad, good, says string }{
		"model": {
			node: `plan: {type: llm, prompt: "Plan it.", output_schema: {type: object, properties: {angles: {type: array}}}, next: between}`,
			bad:  "- text: Some prose.\n- {match: Input, text: no JSON}\n- {match: Input, text: no JSON either}\n",
			good: "- text: Some prose.\n- {match: Input, text: no JSON}\n- {match: Input, text: no JSON either}\n- text: '{\"angles\": [1, 2]}'\n",
			says: `"angles" was to come from plan, whose reply was not JSON`,
		},
		"script": {
			node:   `plan: {type: script, script: plan.sh, next: between}`,
			script: "test -e good && echo '{\"angles\": [1, 2]}' || echo prose",
			bad:    "[]\n", good: "[]\n",
			says: `"angles" was to come from plan, whose output was not a JSON object`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t, "")
			w.write("g/graph.yaml", `
name: g
model: script:replies.yaml
reducers: {log: append}
start: plan
nodes:
  `+c.node+`
  between: {type: script, script: between.sh, next: look}
  look: {type: map, over: "{{angles}}", as: angle, branch: one, collect_into: seen, next: done}
  one: {type: script, script: one.sh}
  done: {type: end, output: "{{seen}} {{log}}"}
`)
			w.write("g/between.sh", `echo '{"log": "between"}'`)
			w.write("g/one.sh", `echo '{"output": 1}'`)
			w.write("g/plan.sh", c.script)
			w.write("g/replies.yaml", c.bad)
			r := w.run("run", "./g")
			if last := lastLine(r.err); r.code != 1 || !strings.HasPrefix(last, "next: "+c.says+"; continue there: raddle resume ") {
				t.Errorf("run: exit code %d\n%s", r.code, r.err)
			}
			for _, args := range [][]string{{"runs", "show", "last"}, {"explain", "last"}} {
				if r := w.run(args...); !strings.Contains(r.out, c.says) {
					t.Errorf("%v says\n%s%s", args, r.out, r.err)
				}
			}
			w.write("g/replies.yaml", c.good)
			w.write("good", "")
			r = w.run("resume", "last", "--accept-changes")
			if r.code != 0 || r.out != "[1,1] [\"between\"]\n" || !strings.Contains(r.err, c.says+": plan runs again") {
				t.Errorf("resume: exit code %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}

// lastLine returns the last line of a text.
func lastLine(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return lines[len(lines)-1]
}
