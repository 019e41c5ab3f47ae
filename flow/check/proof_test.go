package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
)

// A walkNode is a node of a random graph without parallel branches: what it reads and sets, and where it leads.
type walkNode struct {
	approval   bool
	reads, set []string
	to         []int
}

// randomWalks returns a graph of questions and models, with loops.
func randomWalks(rng *rand.Rand) (nodes []walkNode, text string) {
	var b strings.Builder
	b.WriteString("name: g\nstart: n0\nnodes:\n")
	n := 1 + rng.IntN(8)
	for i := range n {
		w := walkNode{approval: rng.IntN(4) == 0}
		for key := range 5 {
			switch rng.IntN(8) {
			case 0, 1:
				w.reads = append(w.reads, fmt.Sprint("k", key))
			case 2:
				w.set = append(w.set, fmt.Sprint("k", key))
			}
		}
		var updates strings.Builder
		for _, key := range w.set {
			fmt.Fprintf(&updates, "%s: v, ", key)
		}
		text := ""
		for _, key := range w.reads {
			text += "{{" + key + "}} "
		}
		w.to = []int{rng.IntN(n + 1), rng.IntN(n + 1)}
		if w.approval {
			fmt.Fprintf(&b, "  n%d: {type: approval, question: \"ask %s\", options: [a], routes: {a: n%d}, on_other: n%d, state_updates: {%s}}\n", i, text, w.to[0], w.to[1], updates.String())
		} else {
			fmt.Fprintf(&b, "  n%d: {type: llm, prompt: \"say %s\", next: n%d, fallback: n%d, state_updates: {%s}}\n", i, text, w.to[0], w.to[1], updates.String())
		}
		nodes = append(nodes, w)
	}
	fmt.Fprintf(&b, "  n%d: {type: end, output: x}\n", n)
	return append(nodes, walkNode{}), b.String()
}

// findUnset returns the nodes that some walk from the start reaches without a key, each with the fewest nodes of such a walk.
func findUnset(nodes []walkNode, key string) map[int]int {
	length := map[int]int{0: 1}
	queue := []int{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if slices.Contains(nodes[at].set, key) {
			continue
		}
		for _, to := range nodes[at].to {
			if length[to] == 0 {
				length[to] = length[at] + 1
				queue = append(queue, to)
			}
		}
	}
	return length
}

// Without parallel branches the proof is exact: it reports a placeholder if and only if a walk reaches it without a value,
// and names one of the shortest.
func TestProofIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 300 {
		nodes, text := randomWalks(rng)
		want := map[string]int{}
		for i, w := range nodes {
			for _, key := range w.reads {
				if length := findUnset(nodes, key)[i]; length > 0 {
					want[fmt.Sprintf("n%d {{%s}}", i, key)] = length
				}
			}
		}
		got := map[string]int{}
		for _, f := range check.ProvePlaceholders(mustParse(t, text)) {
			_, after, _ := strings.Cut(f.Message, "reads ")
			placeholder, _, _ := strings.Cut(after, ",")
			_, path, _ := strings.Cut(f.Message, "on the path ")
			way := strings.Split(path, " -> ")
			got[f.Node+" "+placeholder] = len(way)
			checkWay(t, text, nodes, way, strings.Trim(placeholder, "{}"))
			line := strings.Split(text, "\n")[f.Pos.Line-1]
			if !strings.HasPrefix(line[f.Pos.Col-1:], placeholder) || !strings.HasPrefix(line, "  "+f.Node+":") {
				t.Errorf("%s\nthe place of %s is %v", text, placeholder, f.Pos)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s%s", text, diff)
		}
	}
}

// checkWay checks that a path is a walk on which nothing sets a key.
func checkWay(t *testing.T, text string, nodes []walkNode, way []string, key string) {
	t.Helper()
	ids := make([]int, len(way))
	for i, id := range way {
		if _, err := fmt.Sscanf(id, "n%d", &ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	for i := 1; i < len(ids); i++ {
		if from := nodes[ids[i-1]]; !slices.Contains(from.to, ids[i]) || slices.Contains(from.set, key) {
			t.Errorf("%s\n%v is no walk without %s", text, way, key)
		}
	}
	if ids[0] != 0 {
		t.Errorf("%s\n%v does not begin at the start", text, way)
	}
}

// Of parallel branches that never meet nothing is known, so nothing after them is reported.
func TestProofOfEndlessBranches(t *testing.T) {
	text := func(second string) string {
		return "name: g\nstart: a\nnodes:\n  a: {type: llm, prompt: '{{before}}', next: [b, " + second + "]}\n  b: {type: llm, prompt: p, next: d}\n  d: {type: llm, prompt: '{{x}}', next: b, fallback: e}\n" +
			"  c: {type: llm, prompt: p, next: f}\n  f: {type: llm, prompt: '{{x}}', next: c}\n  e: {type: end, output: '{{y}}'}\n"
	}
	for second, want := range map[string][]string{"c": {"a"}, "b": {"a", "d"}} {
		var got []string
		for _, f := range check.ProvePlaceholders(mustParse(t, text(second))) {
			got = append(got, f.Node)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("next to %s: %s", second, diff)
		}
	}
}

// A long path is shortened in its middle, and of many placeholders the first hundred are listed.
func TestProofOfLongGraphs(t *testing.T) {
	chain := func(nodes int) *spec.File {
		var b strings.Builder
		b.WriteString("name: g\nstart: n1\nnodes:\n")
		for i := 1; i < nodes; i++ {
			fmt.Fprintf(&b, "  n%d: {type: llm, prompt: '{{k%d}}', next: n%d}\n", i, i, i+1)
		}
		fmt.Fprintf(&b, "  n%d: {type: end}\n", nodes)
		return mustParse(t, b.String())
	}
	for nodes, want := range map[int]string{
		14: "n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> n7 -> n8 -> n9 -> n10 -> n11 -> n12 -> n13",
		15: "n1 -> n2 -> n3 -> n4 -> n5 -> n6 -> ... (2 more) -> n9 -> n10 -> n11 -> n12 -> n13 -> n14",
	} {
		list := check.ProvePlaceholders(chain(nodes))
		if last := list[len(list)-1].Message; !strings.HasSuffix(last, "on the path "+want) {
			t.Errorf("%d nodes: %s", nodes, last)
		}
	}
	if list := check.ProvePlaceholders(chain(101)); len(list) != 100 || list[99].Code != "template-unassigned" {
		t.Errorf("100 placeholders: %d findings", len(list))
	}
	list := check.ProvePlaceholders(chain(300))
	if last := list[len(list)-1]; len(list) != 101 || last.Code != "too-many-findings" || last.Node != "n101" ||
		list[99].Node != "n100" {
		t.Errorf("299 placeholders: %d findings, the last is %+v", len(list), last)
	}
}

// The place of a placeholder is where the file writes it, or its text if the file writes it in another way.
func TestPlacesOfPlaceholders(t *testing.T) {
	for prompt, want := range map[string]string{
		`"{{ok}} é {{x}}"`:                        "6:23",
		"|\n      line\n      é {{x}}\n":          "8:9",
		">-\n      {{ok}}\n\n      b {{x}}":       "9:9",
		`"{{\x78}} {{y}}"`:                        "6:13 6:23",
		"'it''s {{x}}'":                           "6:20",
		"*text":                                   "6:13",
		"\"a\n      {{x}}\"":                      "7:7",
		"'" + strings.Repeat("é", 900) + "{{x}}'": "6:914",
	} {
		f := mustParse(t, "initial_state: {ok: 1, t: &text '{{x}}'}\nname: g\nstart: l\nnodes:\n  l:\n    prompt: "+prompt+"\n    type: llm\n    next: e\n  e: {type: end, output: '{{x}}'}\n")
		var got []string
		for _, found := range check.ProvePlaceholders(f) {
			got = append(got, fmt.Sprintf("%d:%d", found.Pos.Line, found.Pos.Col))
		}
		if places := strings.Join(got, " "); places != want {
			t.Errorf("%s: %s, want %s", prompt, places, want)
		}
	}
}
