package flow

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"raddle.dev/flow/check"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
)

// itemModels answer a prompt with "ok PROMPT". They fail as long as fail returns an error for the prompt, and count the calls by prompt.
type itemModels struct {
	mu    sync.Mutex
	fail  func(prompt string) error
	reply func(prompt string) string
	calls map[string]int
}

func (*itemModels) IsKnown(_, _ string) bool                                  { return true }
func (*itemModels) Facts(_, _ string) ModelFacts                              { return ModelFacts{} }
func (m *itemModels) Open(context.Context, string, string) (llm.Model, error) { return m, nil }

func (m *itemModels) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		prompt := r.Messages[0].Text()
		m.mu.Lock()
		if m.calls == nil {
			m.calls = map[string]int{}
		}
		m.calls[prompt]++
		fail := m.fail
		m.mu.Unlock()
		text := "ok " + prompt
		if m.reply != nil {
			text = m.reply(prompt)
		}
		if fail != nil {
			if err := fail(prompt); err != nil {
				yield(llm.Delta{}, err)
				return
			}
		}
		yield(llm.Delta{Done: &llm.Reply{Usage: llm.Usage{Output: 1}, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}}}, nil)
	}
}

// takeCalls returns the calls since the last time.
func (m *itemModels) takeCalls() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	calls := m.calls
	m.calls = nil
	return calls
}

// failsFor returns a failure for the prompts that begin with one of the words.
func failsFor(words ...string) func(string) error {
	return func(prompt string) error {
		for _, w := range words {
			if strings.HasPrefix(prompt, w) {
				return &llm.Error{Class: llm.BadRequest, Status: 400, Message: "no " + w}
			}
		}
		return nil
	}
}

// partialGraph is a graph with a map over four items.
const partialGraph = `
name: g
model: fake:m
initial_state: {items: [a, b, c, d]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: look, collect_into: out, on_failure: %s, next: e}
  look: {type: llm, prompt: "look {{item}}"}
  mend: {type: llm, prompt: "mend {{item}}: {{error}}"}
  e: {type: end, output: "{{each.failed}} of {{each.done}} {{out}}"}
`

// The failed items of a map are collected at their places, left out, or handled, each once with its own item and its reason.
func TestMapOnFailure(t *testing.T) {
	for word, want := range map[string]string{
		"collect": `2 of 2 ["ok look a",{"error":"bad request (400): no look b","item":"b"},"ok look c",{"error":"bad request (400): no look d","item":"d"}]`,
		"skip":    `2 of 2 ["ok look a","ok look c"]`,
		"mend":    `2 of 2 ["ok look a","ok mend b: bad request (400): no look b","ok look c","ok mend d: bad request (400): no look d"]`,
	} {
		models := &itemModels{fail: failsFor("look b", "look d")}
		r := newResumable(t, map[string]string{"graph.yaml": fmt.Sprintf(partialGraph, word)})
		res, err := r.driveIn(Host{Models: models})
		if got := OutcomeOf(res).Output; err != nil || got != want {
			t.Errorf("%s: %v\n got %s\nwant %s", word, err, got, want)
		}
		for prompt, n := range models.takeCalls() {
			if n != 1 {
				t.Errorf("%s: %q was asked %d times", word, prompt, n)
			}
		}
	}
}

// A failure that all items would have, such as rejected credentials, stops the run whatever on_failure says.
func TestMapOnFailureStopsForCredentials(t *testing.T) {
	for _, word := range []string{"collect", "skip", "mend"} {
		models := &itemModels{fail: func(string) error { return &llm.Error{Class: llm.Auth, Status: 401, Message: "bad key"} }}
		r := newResumable(t, map[string]string{"graph.yaml": fmt.Sprintf(partialGraph, word)})
		res, err := r.driveIn(Host{Models: models})
		if err == nil || res.Status != graph.Failed || !strings.Contains(err.Error(), "bad key") {
			t.Errorf("%s: %s, %v", word, res.Status, err)
		}
	}
}

// A handler that fails ends the map, and its failure names the item. The resumed run repeats the handler only.
func TestMapHandlerFails(t *testing.T) {
	models := &itemModels{fail: failsFor("look b", "mend b")}
	r := newResumable(t, map[string]string{"graph.yaml": fmt.Sprintf(partialGraph, "mend")})
	_, err := r.driveIn(Host{Models: models})
	if err == nil || !strings.Contains(err.Error(), "handler 'mend' of the failed item [1]") {
		t.Fatal(err)
	}
	models.takeCalls()
	models.fail = nil
	res, err := r.driveIn(Host{Models: models})
	if calls := models.takeCalls(); err != nil || len(calls) != 1 || OutcomeOf(res).Output[:6] != "1 of 3" {
		t.Errorf("%q, %v, %v", OutcomeOf(res).Output, calls, err)
	}
}

// A map with many items, of which one in a hundred fails: each is asked once, and each failed one is handled once with its own item.
func TestMapOfManyItems(t *testing.T) {
	const n = 10_000
	for _, word := range []string{"collect", "mend"} {
		var items strings.Builder
		for i := range n {
			fmt.Fprintf(&items, "%d,", i)
		}
		text := strings.Replace(fmt.Sprintf(partialGraph, word), "[a, b, c, d]", "["+items.String()+"]", 1)
		text = strings.Replace(text, "{{out}}", "{{out[1299]}}", 1)
		models := &itemModels{fail: func(prompt string) error {
			if strings.HasPrefix(prompt, "look ") && strings.HasSuffix(prompt, "99") {
				return &llm.Error{Class: llm.BadRequest, Message: "no"}
			}
			return nil
		}}
		r := newResumable(t, map[string]string{"graph.yaml": text})
		res, err := r.driveIn(Host{Models: models})
		if err != nil || !strings.HasPrefix(OutcomeOf(res).Output, "100 of 9900 ") || !strings.Contains(OutcomeOf(res).Output, "1299") {
			t.Fatalf("%s: %q, %v", word, OutcomeOf(res).Output, err)
		}
		handled := 0
		for prompt, times := range models.takeCalls() {
			if times != 1 {
				t.Errorf("%s: %q was asked %d times", word, prompt, times)
			}
			if strings.HasPrefix(prompt, "mend ") {
				handled++
			}
		}
		if word == "mend" && handled != 100 {
			t.Errorf("%d items were handled", handled)
		}
	}
}

// The failures of a map are what they are whenever the run is killed, displaced or forked, also those of a map in an agent that a map runs.
func TestExploreMapOnFailure(t *testing.T) {
	for word, one := range map[string]string{
		"collect": `"2 of 2 [\"ok look a\",{\"error\":\"bad request (400): no look b\",\"item\":\"b\"},\"ok look c\",{\"error\":\"bad request (400): no look d\",\"item\":\"d\"}]"`,
		"skip":    `"2 of 2 [\"ok look a\",\"ok look c\"]"`,
		"mend":    `"2 of 2 [\"ok look a\",\"ok mend b: bad request (400): no look b\",\"ok look c\",\"ok mend d: bad request (400): no look d\"]"`,
	} {
		t.Run(word, func(t *testing.T) {
			want := "0 [" + one + "," + one + "]"
			dir := t.TempDir()
			writeCaseFile(t, dir, "outer/graph.yaml", `
name: outer
model: fake:m
initial_state: {items: [x, y]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: look, collect_into: out, on_failure: collect, next: e}
  look: {type: agent, agent: inner, prompt: "{{item}}"}
  e: {type: end, output: "{{each.failed}} {{out}}"}
`)
			writeCaseFile(t, dir, "inner/graph.yaml", fmt.Sprintf(partialGraph, word))
			load := func() (*Agent, error) {
				return Load(filepath.Join(dir, "outer"), Host{Models: &itemModels{fail: failsFor("look b", "look d")}})
			}
			a, err := load()
			if err != nil {
				t.Fatal(err)
			}
			graphtest.Explore(t, func() graphtest.Subject {
				return graphtest.Subject{
					Runner: func() (*graph.Runner, error) {
						a, err := load()
						if err != nil {
							return nil, err
						}
						g, err := a.CompileGraph()
						return &graph.Runner{Graph: g}, err
					},
					Input: a.Input(""),
					Check: func(r graphtest.EndOfRun) error {
						if got := OutcomeOf(r.Result).Output; got != want {
							return fmt.Errorf("output %q, %v, want %q", got, r.Failure, want)
						}
						return nil
					},
				}
			}, graphtest.ExploreOptions{Seed: 1, Runs: 120, Kinds: []disturb.Kind{disturb.CrashBefore, disturb.CrashAfter, disturb.Takeover}})
		})
	}
}

// check says what is wrong with on_failure, at its place.
func TestCheckOnFailure(t *testing.T) {
	for _, c := range []struct{ old, now, code, message string }{
		{"on_failure: skip", "on_failure: colect", "unknown-target", "References non-existent node 'colect' in map 'on_failure'"},
		{"on_failure: skip", "on_failure: look", "map-handler", "names its own branch 'look'"},
		{"on_failure: skip", "on_failure: e", "map-branch", "map node's `on_failure` names 'e' which is an end node"},
		{"collect_into: out", "collect_into: each", "map-counts", "keeps its counts under its id, {{each.failed}}, and its own `collect_into`"},
		{"initial_state: {", "initial_state: {each: 1, ", "map-counts", "and `initial_state` has a key of that name"},
	} {
		_, found := checkText(t, strings.Replace(fmt.Sprintf(partialGraph, "skip"), c.old, c.now, 1))
		ok := false
		for _, f := range found {
			ok = ok || f.Code == c.code && strings.Contains(f.Message, c.message) && f.Pos.Line > 0
		}
		if !ok {
			t.Errorf("%s: %v", c.now, found)
		}
	}
	for _, word := range []string{"stop", "collect", "skip", "mend"} {
		text := fmt.Sprintf(partialGraph, word)
		if word != "mend" {
			text = strings.Replace(text, `  mend: {type: llm, prompt: "mend {{item}}: {{error}}"}`+"\n", "", 1)
		}
		if word == "stop" {
			text = strings.Replace(text, "{{each.failed}} of {{each.done}} ", "", 1)
		}
		if _, found := checkText(t, text); len(found) > 0 {
			t.Errorf("%s: %v", word, found)
		}
	}
}

// checkText returns all findings about a graph.
func checkText(t *testing.T, text string) (*Agent, []strictyaml.Finding) {
	t.Helper()
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", text)
	a, err := Load(dir, Host{Models: &itemModels{}})
	if err != nil {
		t.Fatal(err)
	}
	return a, slices.Concat(a.Findings, check.AdviseFile(a.File, nil))
}

// The value of a branch's output_schema is what is collected, also if a property has the name of output_key, or state_updates choose a part.
func TestSchemaInABranch(t *testing.T) {
	const text = `
name: g
model: fake:m
initial_state: {items: [a, b]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: look, collect_into: out, next: e}
  look: {type: llm, prompt: "look {{item}}", output_schema: {type: object, properties: {kind: {type: string}, output: {type: string}}}%s}
  e: {type: end, output: "{{out}}"}
`
	for updates, want := range map[string]string{
		"": `[{"kind":"a","output":"x"},{"kind":"b","output":"x"}]`,
		`, state_updates: {output: "{{output.kind}}"}`: `["a","b"]`,
	} {
		models := &itemModels{reply: func(p string) string { return fmt.Sprintf(`{"kind": %q, "output": "x"}`, p[5:6]) }}
		graphText := fmt.Sprintf(text, updates)
		if _, found := checkText(t, graphText); len(found) > 0 {
			t.Errorf("findings %v", found)
		}
		r := newResumable(t, map[string]string{"graph.yaml": graphText})
		res, err := r.driveIn(Host{Models: models})
		if got := OutcomeOf(res).Output; got != want || err != nil {
			t.Errorf("%q: %s, %v", updates, got, err)
		}
		for prompt := range models.takeCalls() {
			if !strings.Contains(prompt, `"kind"`) {
				t.Errorf("the model is not told the schema: %s", prompt)
			}
		}
	}
}

// After a reply in a branch that is not JSON, and two of the extractor, the resumed run asks the model again; after an output of an agent, the extractor.
func TestBadRepliesAreAskedForAgain(t *testing.T) {
	const schema = `output_schema: {type: object, properties: {kind: {type: string}}}`
	for name, branch := range map[string]string{
		"llm":   `look: {type: llm, prompt: "look {{item}}", ` + schema + `}`,
		"agent": `look: {type: agent, agent: inner, prompt: "look {{item}}", ` + schema + `}`,
	} {
		dir := t.TempDir()
		r := &resumable{t, filepath.Join(dir, "outer"), journal.NewMemory()}
		r.write(map[string]string{"graph.yaml": `
name: g
model: fake:m
initial_state: {items: [a, b]}
start: each
nodes:
  each: {type: map, over: "{{items}}", as: item, branch: look, collect_into: out, next: e}
  ` + branch + `
  e: {type: end, output: "{{out}}"}
`})
		writeCaseFile(t, dir, "inner/graph.yaml", "name: i\nmodel: fake:m\nstart: a\nnodes:\n  a: {type: llm, prompt: \"{{initial_prompt}}\", state_updates: {said: \"{{output}}\"}, next: e}\n  e: {type: end, output: \"{{said}}\"}\n")
		good := false
		models := &itemModels{reply: func(p string) string {
			if good || strings.Contains(p, "look a") {
				return `{"kind": "x"}`
			}
			return "look b: prose"
		}}
		for range 2 {
			if _, err := r.driveIn(Host{Models: models}); err == nil || !strings.Contains(err.Error(), "sub-branch [1] failed: ") || !strings.Contains(err.Error(), extractionFailed) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		models.takeCalls()
		good = true
		res, err := r.driveIn(Host{Models: models})
		if got := OutcomeOf(res).Output; err != nil || got != `[{"kind":"x"},{"kind":"x"}]` {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if calls := models.takeCalls(); len(calls) != 1 {
			t.Errorf("%s: the last drive has asked %v", name, calls)
		}
	}
}
