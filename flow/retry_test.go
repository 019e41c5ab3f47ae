//go:build unix

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// busyModels fail first, and then answer.
type busyModels struct {
	failures []error
	answers  []string // the last one again and again; empty: "fine"
	began    time.Time
	times    []time.Duration
}

func (*busyModels) IsKnown(_, _ string) bool                                  { return true }
func (*busyModels) Facts(_, _ string) ModelFacts                              { return ModelFacts{} }
func (m *busyModels) Open(context.Context, string, string) (llm.Model, error) { return m, nil }

func (m *busyModels) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if m.times == nil {
			m.began = time.Now()
		}
		m.times = append(m.times, time.Since(m.began))
		n := len(m.times) - 1
		if n < len(m.failures) {
			yield(llm.Delta{}, m.failures[n])
			return
		}
		text := "fine"
		if len(m.answers) > 0 {
			text = m.answers[min(n-len(m.failures), len(m.answers)-1)]
		}
		yield(llm.Delta{Done: &llm.Reply{Usage: llm.Usage{Output: 1}, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}}}, nil)
	}
}

func busy(class llm.Class, status int, after time.Duration) *llm.Error {
	return &llm.Error{Class: class, Status: status, RetryAfter: after, Message: "busy"}
}

func TestNodesAndAgentsArePatientAsTheirFilesSay(t *testing.T) {
	limited, broken := busy(llm.RateLimited, 429, 20*time.Second), busy(llm.Server, 500, 0)
	lost := &llm.Error{Class: llm.Network, Code: llm.CodeReset}
	graphOf := func(top, node string) map[string]string {
		return map[string]string{"graph.yaml": "name: g\nmodel: m:x\n" + top + "start: a\nnodes:\n  a: {type: llm, prompt: hi" + node + ", next: e}\n  e: {type: end, output: \"{{said}}\"}\n"}
	}
	said := `, state_updates: {said: "{{output}}"}`
	for _, k := range []struct {
		name     string
		files    map[string]string
		host     Host
		models   busyModels
		requests []time.Duration // nil: not looked at
		output   string
	}{
		{name: "a node has one attempt", files: graphOf("", said), models: busyModels{failures: []error{lost}}, requests: []time.Duration{0}, output: "LLM node failed: Connection reset"},
		{name: "its attempts follow at once", files: graphOf("", said+", max_attempts: 3"), models: busyModels{failures: []error{lost, lost}}, requests: []time.Duration{0, 0, 0}, output: "fine"},
		{name: "or after the time that the provider asks for", files: graphOf("", said+", max_attempts: 3"), models: busyModels{failures: []error{limited, limited}},
			requests: []time.Duration{0, 20 * time.Second, 40 * time.Second}, output: "fine"},
		{name: "also with tools", files: graphOf("", said+", max_attempts: 3, tools: [user__ask]"), models: busyModels{failures: []error{limited, lost}},
			requests: []time.Duration{0, 20 * time.Second, 20 * time.Second}, output: "fine"},
		{name: "an attempt that may not help is not made", files: graphOf("", said+", max_attempts: 3"), models: busyModels{failures: []error{broken}}, requests: []time.Duration{0}, output: "LLM node failed: server error (500): busy"},
		{name: "a provider that asks for too much", files: graphOf("", said+", max_attempts: 3"), models: busyModels{failures: []error{busy(llm.RateLimited, 429, time.Hour)}},
			requests: []time.Duration{0}, output: "LLM node failed: rate limit (429): busy; the provider asks to wait 1 h, which is longer than the rest of the retry patience of 2 min (retry_patience)"},
		{name: "patience of the graph", files: graphOf("retry_patience: 60\n", said), models: busyModels{failures: []error{limited, limited, limited}},
			requests: []time.Duration{0, 20 * time.Second, 40 * time.Second, 60 * time.Second}, output: "fine"},
		{name: "patience of the node", files: graphOf("retry_patience: 60\n", said+", retry_patience: 30, tools: [user__ask]"), models: busyModels{failures: []error{limited, limited}},
			requests: []time.Duration{0, 20 * time.Second}, output: "asks to wait 20 s"},
		{name: "no patience of the node", files: graphOf("retry_patience: 60\n", said+", retry_patience: 0"), models: busyModels{failures: []error{broken}}, requests: []time.Duration{0}, output: "server error (500)"},
		{name: "patience below the attempts", files: graphOf("", said+", retry_patience: 10, max_attempts: 2"), models: busyModels{failures: []error{busy(llm.Overloaded, 529, 8*time.Second), busy(llm.RateLimited, 429, 2*time.Second), busy(llm.RateLimited, 429, 0), broken}},
			output: "fine"},
		{name: "waits count for the node's timeout", files: graphOf("", said+", retry_patience: 60, timeout: 30"), models: busyModels{failures: []error{limited, limited}},
			requests: []time.Duration{0, 20 * time.Second}, output: "LLM node failed: llm node timed out after 30s"},
		{name: "the extraction has it, too", files: graphOf("", said+", retry_patience: 60, output_schema: {type: object}"), models: busyModels{answers: []string{"words", `{"a": 1}`}, failures: []error{limited}},
			requests: []time.Duration{0, 20 * time.Second, 20 * time.Second}, output: `{"a":1}`},
		{name: "an agent is patient", files: map[string]string{"config.yaml": "name: a\nmodel: m:x\n"}, models: busyModels{failures: []error{limited, busy(llm.Overloaded, 503, 30*time.Second)}},
			requests: []time.Duration{0, 20 * time.Second, 50 * time.Second}, output: "fine"},
		{name: "as it says", files: map[string]string{"config.yaml": "name: a\nmodel: m:x\nretry_patience: 30\n"}, host: Host{Bounds: Bounds{Patience: time.Hour}}, models: busyModels{failures: []error{limited, limited}},
			requests: []time.Duration{0, 20 * time.Second}, output: "asks to wait 20 s"},
		{name: "or as its caller says", files: map[string]string{"config.yaml": "name: a\nmodel: m:x\n"}, host: Host{Bounds: Bounds{Patience: -1}}, models: busyModels{failures: []error{limited}},
			requests: []time.Duration{0}, output: "rate limit (429)"},
		{name: "or not at all", files: map[string]string{"config.yaml": "name: a\nmodel: m:x\nretry_patience: 0\n"}, models: busyModels{failures: []error{limited}},
			requests: []time.Duration{0}, output: "rate limit (429)"},
	} {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "agent")
				for name, text := range k.files {
					writeCaseFile(t, dir, name, text)
				}
				k.host.Models = &k.models
				a, err := Load(dir, k.host)
				if err != nil {
					t.Fatal(err)
				}
				g, err := a.CompileGraph()
				if err != nil {
					t.Fatal(err)
				}
				res, err := (&graph.Runner{Graph: g, Store: journal.NewMemory()}).Invoke(t.Context(), a.Input("hi"))
				output := OutcomeOf(res).Output
				if err != nil {
					output = err.Error()
				}
				if !strings.Contains(output, k.output) || k.output == "fine" && output != "fine" {
					t.Errorf("%q, want %q", output, k.output)
				}
				if k.requests != nil && !slices.Equal(k.models.times, k.requests) {
					t.Errorf("requests at %v, want %v", k.models.times, k.requests)
				}
			})
		})
	}
}

// What a journal holds is not requested again: these are the names and the texts of
// the replies in journals of older versions, which recorded a reply under the number
// of its attempt.
func TestRecordedRepliesOfNodesAreNotRequestedAgain(t *testing.T) {
	const text = "name: g\nmodel: m:x\nstart: a\nnodes:\n  a: {type: llm, prompt: hi, max_attempts: 3, SCHEMAstate_updates: {said: \"{{output}}\"}, next: e}\n  e: {type: end, output: \"{{said}}\"}\n"
	const kept = `{"id":"r1","text":"kept","model":"m:x","usage":{"input":3,"output":2}}`
	for name, c := range map[string]struct {
		schema string
		kept   [][2]string
	}{
		"the first attempt": {"", [][2]string{{"model attempt 1", kept}}},
		"a later attempt":   {"", [][2]string{{"model attempt 2", kept}}},
		"an extracted object": {"output_schema: {type: object}, ", [][2]string{{"model attempt 1", `{"text":"it is kept","flaw":"","useless":false}`},
			{"extractor", `{"text":"no data"}`}, {"extractor repair", `{"text":"\"kept\""}`}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newResumable(t, map[string]string{"graph.yaml": strings.Replace(text, "SCHEMA", c.schema, 1)})
			models := &busyModels{}
			a, err := Load(r.dir, Host{Models: models})
			if err != nil {
				t.Fatal(err)
			}
			died := errors.New("died")
			old, err := graph.Compile(graph.Def{Name: "g", Open: (&keySet{file: a.File}).openKey, Start: []string{"a"}, Nodes: []graph.Node{
				{Name: "a", Routes: []string{"e"}, Run: func(ctx context.Context, _ graph.State) (graph.Update, error) {
					errs := []error{died}
					for _, k := range c.kept {
						_, err := graph.Do(ctx, k[0], func(context.Context) (json.RawMessage, error) { return json.RawMessage(k[1]), nil })
						errs = append(errs, err)
					}
					return graph.Update{}, errors.Join(errs...)
				}},
				{Name: "e", Routes: []string{graph.End}, Run: func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }},
			}})
			if err != nil {
				t.Fatal(err)
			}
			in := a.Input("hi")
			in.Thread = "t"
			if _, err := (&graph.Runner{Graph: old, Store: r.store}).Invoke(t.Context(), in); !errors.Is(err, died) {
				t.Fatal(err)
			}
			res, err := r.driveIn(Host{Models: models})
			if err != nil || OutcomeOf(res).Output != "kept" || len(models.times) > 0 {
				t.Errorf("%q, %v, %d requests", OutcomeOf(res).Output, err, len(models.times))
			}
		})
	}
}

// A node without tools reports its reply with the events of every conversation.
func TestNodesEmitTheEventsOfConversations(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": "name: g\nmodel: m:x\nstart: a\nnodes:\n  a: {type: llm, prompt: hi, next: e}\n  e: {type: end, output: ok}\n"})
	a, err := Load(r.dir, Host{Models: &busyModels{}})
	if err != nil {
		t.Fatal(err)
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	in := a.Input("hi")
	in.Topics = graph.TopicEmit
	var got []string
	for ev, err := range (&graph.Runner{Graph: g}).Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := ev.Body.(graph.ValueEmitted); ok {
			text, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(text))
		}
	}
	want := []string{
		`{"type":"model_call","model":"m:x","active":true}`,
		`{"type":"replied","message":{"role":"assistant","parts":[{"type":"text","text":"fine"}]},"usage":{"output":1}}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Parallel llm nodes, with tools and without, the branches of a map and an agent below spend from one budget: a call that the budget
// refuses ends the run, whatever the file says about failures, and a resume with a larger budget continues it.
func TestNodesShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := func(_ context.Context, v view) llm.Message {
			time.Sleep(time.Second)
			return words("done " + v.asked)
		}
		x := newTroupe(t, map[string]string{
			"wide/graph.yaml": `
name: wide
start: a
reducers: {out: append}
initial_state: {list: [1, 2, 3, 4]}
nodes:
  a: {type: script, script: "split.sh", next: [one, two, tooled, below]}
  one: {type: llm, prompt: "one", fallback: m, state_updates: {out: "{{output}}"}, next: m}
  two: {type: llm, prompt: "two", fallback: m, state_updates: {out: "{{output}}"}, next: m}
  tooled: {type: llm, prompt: "three", tools: [user__ask], fallback: m, state_updates: {out: "{{output}}"}, next: m}
  below: {type: agent, agent: sub, prompt: "four", state_updates: {out: "{{output}}"}, next: m}
  m: {type: map, over: "{{list}}", branch: each, as: item, output_key: x, collect_into: said, next: e}
  each: {type: llm, prompt: "item {{item}}", state_updates: {x: "{{output}}"}}
  e: {type: end, output: "{{said}}"}
`, "wide/split.sh": "echo '{}'\n", "sub/config.yaml": "name: sub\n",
		}, map[string]role{"wide": slow, "sub": slow})
		store := journal.NewMemory()
		const perCall = 11
		for _, k := range []struct{ calls, tokens, want int }{{3, 0, 3}, {0, 5*perCall + 1, 6}, {0, 100_000, 8}} {
			a, r := x.runner("wide", Host{Tooling: Tooling{Budget: agent.Budget{Calls: k.calls, Tokens: k.tokens}}}, store)
			res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
			if errors.Is(err, journal.ErrNoThread) {
				in := a.Input("Go.")
				in.Thread = "t"
				res, err = r.Invoke(t.Context(), in)
			}
			made := 0
			for _, n := range x.requests {
				made += n
			}
			var over *agent.BudgetError
			switch {
			case made != k.want:
				t.Errorf("with %+v: %d calls in all, want %d; %v, %v", k, made, k.want, res.Status, err)
			case made == 8 && (err != nil || !strings.Contains(fmt.Sprint(OutcomeOf(res).Output), "done item 4")):
				t.Errorf("%v, %v, %v", res.Status, err, OutcomeOf(res).Output)
			case made < 8 && (!errors.As(err, &over) || !over.Shared || over.Of != "the run"):
				t.Errorf("with %+v: %v, %v", k, res.Status, err)
			}
		}
	})
}

// An empty reply is asked for again as long as attempts are left; the last one is a success with empty output.
func TestMaxAttemptsOfEmptyReplies(t *testing.T) {
	for _, c := range []struct {
		attempts int
		answers  []string
		calls    int
		output   string
	}{
		{1, []string{"", "late"}, 1, "[]"},
		{3, []string{"", " \n", "third"}, 3, "[third]"},
		{2, []string{"", "", "late"}, 2, "[]"},
		{3, []string{"first", ""}, 1, "[first]"},
	} {
		m := &busyModels{answers: c.answers}
		r := newResumable(t, map[string]string{"graph.yaml": fmt.Sprintf(`
name: g
model: fake:m
start: a
nodes:
  a: {type: llm, prompt: p, max_attempts: %d, state_updates: {said: "{{output}}"}, next: e}
  e: {type: end, output: "[{{said}}]"}
`, c.attempts)})
		res, err := r.driveIn(Host{Models: m})
		if got := OutcomeOf(res).Output; err != nil || len(m.times) != c.calls || got != c.output {
			t.Errorf("%d attempts, %q: %d calls, %q, %v", c.attempts, c.answers, len(m.times), got, err)
		}
		used := 0
		for rec, err := range r.store.Read(t.Context(), "t", journal.Range{}) {
			if e, _ := history.DecodeEntry(rec); err == nil && rec.Kind == journal.KindEffect && IsReply(e.ID) {
				reply, err := ReadReply(rec.Data)
				if err != nil {
					t.Fatal(err)
				}
				used += reply.Usage.Output
			}
		}
		if used != c.calls {
			t.Errorf("%d attempts, %q: the journal says that %d tokens were used in %d calls", c.attempts, c.answers, used, c.calls)
		}
	}
}
