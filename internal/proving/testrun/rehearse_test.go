package testrun

import (
	"path/filepath"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/internal/testkit/testfile"
)

// TestFindCase takes the first case whose answers a drive can begin again with.
func TestFindCase(t *testing.T) {
	const good = "  - {name: good, prompt: x, nodes: {a: one}}\n"
	for name, before := range map[string]string{
		"nothing":       "",
		"a fault":       "  - {name: bad, prompt: x, faults: {a: fail}}\n",
		"it waits":      "  - {name: bad, prompt: x, expect: {status: waiting}}\n",
		"time passes":   "  - {name: bad, prompt: x, at: +1h}\n",
		"two outputs":   "  - {name: bad, prompt: x, nodes: {a: [one, two]}}\n",
		"two replies":   "  - {name: bad, prompt: x, replies: [one, two]}\n",
		"two of a tool": "  - {name: bad, prompt: x, tools: {fs_cat: [one, two]}}\n",
		"both of these": "  - {name: bad, prompt: x, faults: {a: fail}}\n  - {name: worse, prompt: x, replies: [one, two]}\n",
		"it fails":      "  - {name: bad, prompt: x, expect: {error: no}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			testfile.WriteFile(t, filepath.Join(dir, "a.test.yaml"), "tests:\n"+before+good)
			c, err := FindCase(dir, "")
			if err != nil || c == nil || c.Name != "good" {
				t.Errorf("%+v, %v; want the case good", c, err)
			}
			if before == "" {
				return
			}
			if c, err = FindCase(dir, "bad"); err != nil || c.Name != "bad" {
				t.Errorf("by its name: %+v, %v", c, err)
			}
		})
	}
}

// TestChooseAnswer has the answers to questions of which no case says anything.
func TestChooseAnswer(t *testing.T) {
	cases := []struct {
		name string
		q    graph.Question
		want any
	}{
		{"a default", graph.Question{Options: []string{"a", "b"}, Default: "b"}, "b"},
		{"options", graph.Question{Options: []string{"a", "b"}}, "a"},
		{"a permission", graph.Question{Kind: "permission", Options: []string{"once", "no"}}, "no"},
		{"a doubt", graph.Question{Kind: "doubt", Options: []string{"skip", "retry"}}, "retry"},
		{"a number", graph.Question{Free: true, Type: "number"}, 1},
		{"a text", graph.Question{Free: true}, "yes"},
		{"an event", graph.Question{Kind: graph.KindEvent}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := chooseAnswer(c.q); got != c.want || ok != (c.want != nil) {
				t.Errorf("%v, %v; want %v", got, ok, c.want)
			}
		})
	}
}
