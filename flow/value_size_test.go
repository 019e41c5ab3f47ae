package flow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
)

// Templates cannot make texts without end: the node fails and says what to do.
func TestRenderedTextsHaveALimit(t *testing.T) {
	doubling := "name: g\ninitial_state: {k0: \"0123456789\"}\nstart: a\nnodes:\n  a:\n    type: script\n    script: a.sh\n    next: e\n    state_updates:\n"
	for i := range 28 {
		doubling += fmt.Sprintf("      k%d: \"{{k%d}}{{k%d}}\"\n", i+1, i, i)
	}
	doubling += "  e: {type: end}\n"
	wide := "name: g\ninitial_state: {k: \"" + strings.Repeat("x", 900) + "\"}\nstart: a\nnodes:\n  a: {type: script, script: a.sh, next: e, state_updates: {"
	for i := range 6 {
		wide += fmt.Sprintf("w%d: \"{{k}}\", ", i)
	}
	wide += "last: \"x\"}}\n  e: {type: end}\n"
	list := "name: g\ninitial_state: {k: [\"" + strings.Repeat("x", 600) + "\", \"" + strings.Repeat("y", 600) + "\"]}\nstart: e\nnodes:\n"
	for _, k := range []struct {
		name, text string
		most       int
		want       string // "": it is done
	}{
		{"doubled again and again, 16 MiB", doubling, 0, "state_updates, key 'k21': the rendered text is larger than 16 MiB: shorten the values in it, or raise `max_value` in raddle's config.yaml"},
		{"doubled again and again", doubling, 1000, "state_updates, key 'k7': the rendered text is larger than 1000 bytes"},
		{"many that are not too large", wide, 1000, "all texts of the node together: the rendered text is larger than 1000 bytes"},
		{"many that are not too large, without a limit", wide, -1, ""},
		{"as large as it may be", wide, 1500, ""},
		{"an end", list + "  e: {type: end, output: \"{{k}}\"}\n", 1000, "the output of an end node: the rendered text is larger than 1000 bytes"},
		{"a prompt", list + "  e: {type: llm, model: \"m:x\", prompt: \"{{k}}\", next: f}\n  f: {type: end, output: \"{{k[0]}}\"}\n", 1000, ""},
		{"a default", list + "  e: {type: input, question: \"what?\", default: \"{{k}}\", next: f}\n  f: {type: end}\n", 1000, "the default of an input node: the rendered text is larger than 1000 bytes"},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := newResumable(t, map[string]string{"graph.yaml": k.text, "a.sh": "echo '{}'"})
			models := &busyModels{}
			res, err := r.driveIn(Host{Bounds: Bounds{Value: k.most}, Models: models})
			if k.want == "" {
				if err != nil || res.Status != graph.Done || len(models.times) > 0 {
					t.Fatalf("%v, %v, %d requests", res.Status, err, len(models.times))
				}
				return
			}
			var size *spec.ValueSizeError
			if !errors.As(err, &size) || !strings.Contains(err.Error(), k.want) {
				t.Errorf("%v, %v, want %q", res.Status, err, k.want)
			}
		})
	}
}
