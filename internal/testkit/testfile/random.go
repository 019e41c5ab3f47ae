package testfile

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// WriteRandomGraph writes a graph with parts in random order, with a transcript for its models, and a case for it. It
// returns the answers to its questions, by the nodes that ask. The same seed gives the same graph.
func WriteRandomGraph(t testing.TB, dir string, seed uint64) (answers map[string]string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	files := map[string]string{}
	answers = map[string]string{}
	var nodes, stubs, given, transcript strings.Builder
	n := 2 + rng.IntN(4)
	for i := range n {
		id := fmt.Sprintf("n%d", i)
		next := fmt.Sprintf("n%d", i+1)
		if i == n-1 {
			next = "end"
		}
		switch rng.IntN(6) {
		case 0:
			fmt.Fprintf(&nodes, "  %s: {type: script, script: %s.sh, next: %s}\n", id, id, next)
			files[id+".sh"] = fmt.Sprintf("echo '{\"%s\": %d}'\n", id, rng.IntN(100))
		case 1:
			fmt.Fprintf(&nodes, "  %s: {type: script, script: %s.sh, next: [%s_a, %s_b]}\n", id, id, id, id)
			for _, side := range []string{"a", "b"} {
				fmt.Fprintf(&nodes, "  %s_%s: {type: script, script: %s_%s.sh, state_updates: {%s_%s: \"{{output}}\"}, next: %s}\n", id, side, id, side, id, side, next)
				files[id+"_"+side+".sh"] = fmt.Sprintf("echo '{\"%s_%s_out\": \"x\"}'\n", id, side)
			}
			files[id+".sh"] = "echo '{}'\n"
		case 2:
			fmt.Fprintf(&nodes, "  %s: {type: llm, prompt: \"step %d\", state_updates: {%s: \"{{output}}\"}, next: %s}\n", id, i, id, next)
			reply := rng.IntN(100)
			fmt.Fprintf(&stubs, "  %s: reply %d\n", id, reply)
			fmt.Fprintf(&transcript, "- {match: step %d, text: reply %d, repeat: true}\n", i, reply)
		case 3:
			fmt.Fprintf(&nodes, "  %s: {type: map, over: \"{{items}}\", as: item, branch: %s_one, output_key: %s_made, collect_into: %s_all, next: %s}\n", id, id, id, id, next)
			fmt.Fprintf(&nodes, "  %s_one: {type: script, script: %s_one.sh, state_updates: {%s_made: \"{{item}}\"}}\n", id, id, id)
			files[id+"_one.sh"] = "echo '{}'\n"
		case 4:
			fmt.Fprintf(&nodes, "  %s: {type: approval, question: continue?, options: [\"yes\", \"no\"], routes: {\"yes\": %s, \"no\": end}, on_other: end, state_updates: {%s: \"{{choice}}\"}}\n", id, next, id)
			fmt.Fprintf(&given, "      %s: \"yes\"\n", id)
			answers[id] = "yes"
		case 5:
			fmt.Fprintf(&nodes, "  %s: {type: script, script: %s.sh, targets: [%s, %s]}\n", id, id, id, next)
			files[id+".sh"] = fmt.Sprintf("case \"$GRAPH_STATE\" in *'\"%s_again\":true'*) echo '{\"_next\": \"%s\"}' ;; *) echo '{\"%s_again\": true, \"_next\": \"%s\"}' ;; esac\n", id, next, id, id)
		}
	}
	files["graph.yaml"] = "name: random\nmodel: script:transcript.yaml\ninitial_state: {items: [a, b, c]}\nstart: n0\nnodes:\n" + nodes.String() + "  end: {type: end, output: ended}\n"
	text := "tests:\n  - name: random\n    expect: {output: ended}\n"
	if given.Len() > 0 {
		text += "    answers:\n" + given.String()
	}
	if stubs.Len() > 0 {
		text = "nodes:\n" + stubs.String() + text
	}
	files["r.test.yaml"] = text
	files["transcript.yaml"] = transcript.String()
	if transcript.Len() == 0 {
		files["transcript.yaml"] = "[]\n"
	}
	WriteFiles(t, dir, files)
	return answers
}
