//go:build unix

package api

import (
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/server/servertest"
)

// failingAgents are agents in which something fails, most of them in a run that is done.
var failingAgents = map[string]string{
	"script/graph.yaml":   "name: script\nstart: it\nnodes:\n  it: {type: script, script: bad.sh, fallback: done}\n  done: {type: end, output: x}\n",
	"script/bad.sh":       "echo the reason >&2\nexit 3\n",
	"next/graph.yaml":     "name: next\nstart: it\nnodes:\n  it: {type: script, script: bad.sh, next: done}\n  done: {type: end, output: x}\n",
	"next/bad.sh":         "echo the reason >&2\nexit 3\n",
	"model/graph.yaml":    "name: model\nmodel: script:t.yaml\nstart: it\nnodes:\n  it: {type: llm, prompt: x, next: done}\n  done: {type: end, output: x}\n",
	"model/t.yaml":        "- {match: the reason, text: x}\n",
	"items/graph.yaml":    "name: items\nmodel: script:t.yaml\nstart: list\nnodes:\n  list: {type: script, script: list.sh, next: each}\n  each: {type: map, over: \"{{l}}\", as: x, branch: it, collect_into: r, next: done}\n  it: {type: llm, prompt: \"{{x}}\"}\n  done: {type: end, output: x}\n",
	"items/list.sh":       "echo '{\"l\": [\"a\", \"the reason\", \"a\"]}'\n",
	"items/t.yaml":        "- {match: a$, text: x, repeat: true}\n- {match: never, text: x}\n",
	"lead/config.yaml":    "name: lead\nmodel: script:t.yaml\ncan_spawn_agents: true\nspawnable_agents: [worker]\ninstructions: lead\n",
	"lead/t.yaml":         "- match: go\n  tool_calls:\n  - {id: c1, name: agent__spawn, args: {agent: worker, prompt: one}}\n  - {id: c2, name: agent__spawn, args: {agent: worker, prompt: two}}\n- tool_calls:\n  - {id: c3, name: agent__collect, args: {any: true}}\n- tool_calls:\n  - {id: c4, name: agent__collect, args: {any: true}}\n- {text: over}\n",
	"worker/config.yaml":  "name: worker\ninstructions: work\n",
	"caller/config.yaml":  "name: caller\nmodel: script:t.yaml\ninstructions: call\nglobal_tools: [execute_command]\n",
	"caller/t.yaml":       "- match: go\n  tool_calls:\n  - {id: c1, name: execute_command, args: {command: \"cat the-reason\"}}\n- {text: over}\n",
	"inside/graph.yaml":   "name: inside\nstart: sub\nnodes:\n  sub: {type: agent, agent: script, prompt: x, next: done}\n  done: {type: end, output: x}\n",
	"stopped/graph.yaml":  "name: stopped\nstart: it\nnodes:\n  it: {type: script, script: bad.sh, targets: [done]}\n  done: {type: end, output: x}\n",
	"stopped/bad.sh":      "echo the reason >&2\nexit 3\n",
	"parallel/graph.yaml": "name: parallel\nstart: fan\nnodes:\n  fan: {type: script, script: ok.sh, next: [it, fine]}\n  it: {type: script, script: bad.sh, state_updates: {a: x}, next: done}\n  fine: {type: script, script: ok.sh, state_updates: {b: x}, next: done}\n  done: {type: end, output: x}\n",
	"parallel/ok.sh":      "echo '{}'\n",
	"parallel/bad.sh":     "echo the reason >&2\nexit 3\n",
}

// What has failed is shown as failed by each view of its run, whatever the run did then, and what has not failed is not.
func TestWhatFailedIsShownAsFailed(t *testing.T) {
	home := servertest.NewHome(t, failingAgents)
	w := serveHome(t, home)
	for agent, want := range map[string]struct {
		status string
		place  string // in the picture
		node   string // in the tree; "": it is no branch
		times  int
		calm   []string // places that did not fail
	}{
		"script":   {"done", "it", "it", 1, []string{"done"}},
		"next":     {"done", "it", "it", 1, []string{"done"}},
		"model":    {"done", "it", "it", 1, []string{"done"}},
		"items":    {"failed", "it", "each/it[2]", 1, []string{"list"}},
		"lead":     {"done", "worker", "team/agent_worker_", 2, []string{"model"}},
		"caller":   {"done", "tools", "", 1, []string{"model"}},
		"inside":   {"done", "sub/it", "sub/it", 1, []string{"sub", "done"}},
		"stopped":  {"failed", "it", "", 1, nil},
		"parallel": {"done", "it", "it", 1, []string{"fan", "fine", "done"}},
	} {
		t.Run(agent, func(t *testing.T) {
			run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "`+agent+`", "prompt": "go"}`)
			id := run["run"].(string)
			if run["status"] != want.status {
				t.Fatalf("the run is %v: %v", run["status"], run)
			}
			failed, rows := 0, 0
			for _, item := range w.get(200, "GET", "/runs/"+id+"/timeline", "")["items"].([]any) {
				m := item.(map[string]any)
				places, _ := m["failed"].([]any)
				for _, p := range places {
					if failed++; p != want.place && want.place != "" || slices.Contains(want.calm, p.(string)) && want.place != "" {
						t.Errorf("the timeline says that %v failed: %v", p, m)
					}
				}
				if m["status"] == "failed" && strings.Contains(m["text"].(string), "failed") {
					rows++
				}
			}
			if failed < want.times || rows < want.times {
				t.Errorf("the timeline has %d failed places and %d rows, want %d", failed, rows, want.times)
			}
			shown := w.get(200, "GET", "/runs/"+id, "")
			if found := findFailed(shown["tree"].(map[string]any), want.node); want.node != "" && len(found) != want.times {
				t.Errorf("the tree has the failed branches %v, want %d: %v", found, want.times, shown["tree"])
			}
			if calls := shown["tree"].(map[string]any)["failed_tool_calls"]; agent == "caller" && calls != 1.0 {
				t.Errorf("the tree counts %v failed calls", calls)
			}
			if agent == "lead" {
				calls := shown["tool_calls"].([]any)
				if c := calls[len(calls)-1].(map[string]any); c["status"] != "failed" {
					t.Errorf("the call that collects the agents is %v", c)
				}
			}
			svg, err := io.ReadAll(w.send("GET", "/runs/"+id+"/picture.svg", "").Body)
			if err != nil {
				t.Fatal(err)
			}
			if want.place != "" && !strings.Contains(nodeText(string(svg), want.place), "failed") {
				t.Errorf("the picture shows %s as %q", want.place, nodeText(string(svg), want.place))
			}
			for _, place := range want.calm {
				if text := nodeText(string(svg), place); strings.Contains(strings.ReplaceAll(text, "1 failed", ""), "failed") {
					t.Errorf("the picture shows %s as %q", place, text)
				}
			}
		})
	}
}

// A node that failed with its run, and succeeded after a resume, is not shown as failed any more.
func TestWhatSucceedsAfterAResumeIsNotFailed(t *testing.T) {
	w := serveHome(t, servertest.NewHome(t, map[string]string{
		"again/graph.yaml": "name: again\nstart: it\nnodes:\n  it: {type: script, script: once.sh, targets: [done]}\n  done: {type: end, output: x}\n",
		"again/once.sh":    "if [ -e once ]; then echo '{\"_next\": \"done\"}'; else touch once; exit 5; fi\n",
	}))
	look := func() (text string, branches int) {
		run := w.get(200, "GET", "/runs?limit=1", "")["items"].([]any)[0].(map[string]any)["run"].(string)
		svg, err := io.ReadAll(w.send("GET", "/runs/"+run+"/picture.svg", "").Body)
		if err != nil {
			t.Fatal(err)
		}
		return nodeText(string(svg), "it"), len(findFailed(w.get(200, "GET", "/runs/"+run, "")["tree"].(map[string]any), ""))
	}
	run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "again"}`)
	if text, _ := look(); run["status"] != "failed" || !strings.Contains(text, "failed") {
		t.Fatalf("%v: %q", run, text)
	}
	w.get(200, "POST", "/runs/"+run["run"].(string)+"/resume", "")
	if _, err := io.ReadAll(w.send("GET", "/runs/"+run["run"].(string)+"/events", "", "Accept: text/event-stream").Body); err != nil { // until its end
		t.Fatal(err)
	}
	if text, branches := look(); strings.Contains(strings.ReplaceAll(text, "1 failed", ""), "failed") || branches > 0 {
		t.Errorf("after the resume: %q, %d failed branches", text, branches)
	}
}

// findFailed returns the paths of the failed branches of a tree that begin with a path.
func findFailed(branch map[string]any, path string) (found []string) {
	if p := branch["path"].(string); p != "" && strings.HasPrefix(p, path) && branch["status"] == "failed" {
		found = append(found, p)
	}
	for _, c := range branch["children"].([]any) {
		found = append(found, findFailed(c.(map[string]any), path)...)
	}
	return found
}

// nodeText returns the texts of a node in a picture.
func nodeText(svg, place string) string {
	_, rest, _ := strings.Cut(svg, `data-node="`+place+`"`)
	node, _, _ := strings.Cut(rest, "</g>")
	var texts []string
	for _, m := range regexp.MustCompile(`<text[^>]*>([^<]*)<`).FindAllStringSubmatch(node, -1) {
		texts = append(texts, m[1])
	}
	return strings.Join(texts, " ")
}

// A node of a graph in Go whose failure is handled is shown as failed, too, alone in its step or not.
func TestHandledFailuresAreShown(t *testing.T) {
	w := newWorld(t)
	st, err := w.service.Process().Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	pass := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	fail := func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{}, errors.New("the reason")
	}
	for name, start := range map[string][]string{"alone": {"it"}, "together": {"it", "fine"}} {
		d := graph.Def{Name: "mine", Start: start, Nodes: []graph.Node{{Name: "it", Run: fail, OnError: "handler"}, {Name: "handler", Run: pass}},
			Edges: []graph.Edge{graph.NewEdge("it", graph.End), graph.NewEdge("handler", graph.End)}}
		if len(start) > 1 {
			d.Nodes, d.Edges = append(d.Nodes, graph.Node{Name: "fine", Run: pass}), append(d.Edges, graph.NewEdge("fine", graph.End))
		}
		g, err := graph.Compile(d)
		if err != nil {
			t.Fatal(err)
		}
		id := "1" + name
		if _, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: id, Run: id}); err != nil {
			t.Fatal(err)
		}
		n := w.count(id, func(m map[string]any) bool {
			places, _ := m["failed"].([]any)
			return m["status"] == "failed" && len(places) == 1 && places[0] == "it" && strings.Contains(m["text"].(string), "the reason")
		})
		if n != 1 {
			t.Errorf("%s: the timeline says it %d times: %v", name, n, w.get(200, "GET", "/runs/"+id+"/timeline", "")["items"])
		}
		svg, err := io.ReadAll(w.send("GET", "/runs/"+id+"/picture.svg", "").Body)
		if text := nodeText(string(svg), "it"); err != nil || !strings.Contains(text, "failed") || strings.Contains(nodeText(string(svg), "handler"), "failed") {
			t.Errorf("%s: the picture shows %q, %v", name, text, err)
		}
	}
}
