package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

// An answerer answers with its name, or fails. It notes when it was asked.
type answerer struct {
	name  string
	fails func(n int) error // for the n-th request, from 1; nil: it answers
	says  string            // before it fails
	asked []time.Time
}

func (m *answerer) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.asked = append(m.asked, time.Now())
		if m.fails != nil {
			if err := m.fails(len(m.asked)); err != nil {
				if m.says == "" || yield(llm.Delta{Text: m.says}, nil) {
					yield(llm.Delta{}, err)
				}
				return
			}
		}
		yield(llm.Delta{Done: &llm.Reply{Message: say("from " + m.name), Usage: llm.Usage{Output: 1}, Model: m.name, Stop: llm.StopEnd}}, nil)
	}
}

func always(err error) func(int) error { return func(int) error { return err } }

// The next model is asked when one cannot be reached, is over its limit, or is refused, and for no other failure.
func TestFallbackTakesTheNext(t *testing.T) {
	refused := &llm.Error{Class: llm.Network, Code: llm.CodeRefused}
	for name, test := range map[string]struct {
		fails []func(int) error // of a, b and c
		says  string            // by a
		want  string            // the text, or a part of the error
		asked []int
		after time.Duration // until the last request, at least
		most  time.Duration
		told  []string
	}{
		"the first answers":           {want: "from a", asked: []int{1, 0, 0}},
		"no connection":               {fails: []func(int) error{always(refused)}, want: "from b", asked: []int{1, 1, 0}, told: []string{"a: connection refused, asking b"}},
		"two without a connection":    {fails: []func(int) error{always(refused), always(&llm.Error{Class: llm.Network})}, want: "from c", asked: []int{1, 1, 1}, told: []string{"a: connection refused, asking b", "b: no connection, asking c"}},
		"over its limit for too long": {fails: []func(int) error{always(asking(time.Hour))}, want: "from b", asked: []int{1, 1, 0}, told: []string{"a: rate limited, asking b"}},
		"over its limit for a moment": {fails: []func(int) error{func(n int) error {
			if n == 1 {
				return asking(3 * time.Second)
			}
			return nil
		}}, want: "from a", asked: []int{2, 0, 0}, after: 3 * time.Second, most: 4 * time.Second, told: []string{"rate limited, trying again in 3 s (2nd request)"}},
		"overloaded":         {fails: []func(int) error{always(failing(llm.Overloaded, 529))}, want: "from b", asked: []int{-1, 1, 0}, after: 10 * time.Second, most: 15 * time.Second},
		"a model that ended": {fails: []func(int) error{always(failing(llm.BadRequest, 404))}, want: "from b", asked: []int{1, 1, 0}, told: []string{"a: the provider refuses the model (404), asking b"}},
		"without permission": {fails: []func(int) error{always(failing(llm.Auth, 403))}, want: "from b", asked: []int{1, 1, 0}, told: []string{"a: the provider refuses the model (403), asking b"}},
		"a wrong key":        {fails: []func(int) error{always(failing(llm.Auth, 401))}, want: "told by the server", asked: []int{1, 0, 0}},
		"a bad request":      {fails: []func(int) error{always(failing(llm.BadRequest, 400))}, want: "told by the server", asked: []int{1, 0, 0}},
		"too long":           {fails: []func(int) error{always(failing(llm.ContextLength, 400))}, want: "window", asked: []int{1, 0, 0}},
		"no model's fault":   {fails: []func(int) error{always(errors.New("broken"))}, want: "broken", asked: []int{1, 0, 0}},
		"text was shown":     {fails: []func(int) error{always(refused)}, says: "half of", want: "Connection refused", asked: []int{3, 0, 0}, after: 3 * time.Second, most: 4 * time.Second},
		"nobody answers":     {fails: []func(int) error{always(refused), always(refused), always(refused)}, want: "Connection refused", asked: []int{1, 1, 3}, after: 3 * time.Second, most: 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := []*answerer{{name: "a", says: test.says}, {name: "b"}, {name: "c"}}
				var list []agent.Alternative
				for i, m := range all {
					if i < len(test.fails) {
						m.fails = test.fails[i]
					}
					list = append(list, agent.Alternative{Name: m.name, Model: m})
				}
				began := time.Now()
				text, told, err := askOnce(t, agent.Fallback(list...), agent.Retry{Patience: 10 * time.Second})
				if err != nil {
					text = err.Error()
				}
				if !strings.Contains(text, test.want) {
					t.Errorf("%q, want %q", text, test.want)
				}
				for i, m := range all {
					if n := len(m.asked); test.asked[i] >= 0 && n != test.asked[i] || test.asked[i] < 0 && n < 3 {
						t.Errorf("%s was asked %d times, want %d", m.name, n, test.asked[i])
					}
				}
				if took := time.Since(began); took < test.after || took > test.most {
					t.Errorf("it took %s", took)
				}
				if diff := cmp.Diff(test.told, told); test.told != nil && diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// A model that failed is asked last for a while, so that a run does not wait for it again and again.
func TestFallbackRemembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answerer{name: "a", fails: func(n int) error {
			if n == 1 {
				return asking(time.Hour)
			}
			return nil
		}}
		model := agent.Fallback(agent.Alternative{Name: "a", Model: a}, agent.Alternative{Name: "b", Model: &answerer{name: "b"}})
		ask := func(want string) {
			t.Helper()
			text, _, err := askOnce(t, model, agent.Retry{Patience: time.Second})
			if err != nil || text != want {
				t.Errorf("%q, %v, want %q", text, err, want)
			}
		}
		ask("from b")
		ask("from b")
		time.Sleep(4 * time.Minute)
		ask("from b")
		if len(a.asked) != 1 {
			t.Errorf("a was asked %d times", len(a.asked))
		}
		time.Sleep(time.Minute)
		ask("from a")
		// Outside of an agent the same holds, without waits.
		reply, err := llm.Generate(t.Context(), model, llm.Request{Messages: []llm.Message{llm.User("hello")}})
		if err != nil || reply.Text() != "from a" {
			t.Errorf("%q, %v", reply.Text(), err)
		}
	})
}

// askOnce runs one conversation and returns the reply and the texts of repeated requests.
func askOnce(t *testing.T, m llm.Model, retry agent.Retry) (text string, told []string, err error) {
	t.Helper()
	r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Retry: retry}), Store: journal.NewMemory()}
	res, err := watchTurn(t, r, func(v any) {
		if wait, ok := v.(agent.RetryScheduled); ok {
			told = append(told, wait.Text())
		}
	})
	return agent.LastResponse(res.State), told, err
}

// A list in a list is asked to its end, and then the next one of the outer list.
func TestFallbackInFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := always(&llm.Error{Class: llm.Network, Code: llm.CodeRefused})
		a, b, c := &answerer{name: "a", fails: refused}, &answerer{name: "b", fails: refused}, &answerer{name: "c"}
		inner := agent.Fallback(agent.Alternative{Name: "a", Model: a}, agent.Alternative{Name: "b", Model: b})
		text, told, err := askOnce(t, agent.Fallback(agent.Alternative{Name: "inner", Model: inner}, agent.Alternative{Name: "c", Model: c}), agent.Retry{Patience: time.Second})
		if err != nil || text != "from c" || len(a.asked) != 1 || len(b.asked) != 1 {
			t.Errorf("%q, %v; a was asked %d times, b %d times; %q", text, err, len(a.asked), len(b.asked), told)
		}
	})
}
