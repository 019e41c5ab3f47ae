package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
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

// flaky is a model that fails first. It notes when each request arrived.
type flaky struct {
	failures []error // a nil one is a stream that ends without a reply
	began    time.Time
	times    []time.Duration
}

func (m *flaky) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if m.times == nil {
			m.began = time.Now()
		}
		m.times = append(m.times, time.Since(m.began))
		if n := len(m.times); n <= len(m.failures) {
			if yield(llm.Delta{Text: "half of "}, nil) && m.failures[n-1] != nil {
				yield(llm.Delta{}, m.failures[n-1])
			}
			return
		}
		yield(llm.Delta{Done: &llm.Reply{Message: say("fine"), Usage: llm.Usage{Output: 1}, Stop: llm.StopEnd}}, nil)
	}
}

func failing(class llm.Class, status int) *llm.Error {
	return &llm.Error{Class: class, Status: status, Message: "told by the server"}
}

func asking(after time.Duration) *llm.Error {
	e := failing(llm.RateLimited, 429)
	e.RetryAfter = after
	return e
}

func repeated(err error, n int) (list []error) {
	for range n {
		list = append(list, err)
	}
	return list
}

func TestRequestsAreRepeatedPatiently(t *testing.T) {
	overloaded := failing(llm.Overloaded, 529)
	for _, k := range []struct {
		name     string
		retry    agent.Retry
		failures []error
		requests int
		least    time.Duration // from the first request to the last one
		most     time.Duration
		fails    string // "": it succeeds
		waits    []string
	}{
		{name: "a provider that names the time", failures: []error{asking(20 * time.Second), asking(30 * time.Second)}, requests: 3, least: 50 * time.Second, most: 50 * time.Second,
			waits: []string{"rate limited, trying again in 20 s (2nd request)", "rate limited, trying again in 30 s (3rd request)"}},
		{name: "all statuses that pass", failures: []error{failing(llm.Server, 500), failing(llm.Server, 502), failing(llm.Overloaded, 503), overloaded, failing(llm.Timeout, 504)},
			requests: 6, least: 31 * time.Second, most: 39 * time.Second},
		{name: "lost connections", failures: []error{nil, &llm.Error{Class: llm.Network, Code: llm.CodeReset}}, requests: 3, least: 3 * time.Second, most: 4 * time.Second},
		{name: "two minutes in all", failures: repeated(overloaded, 99), requests: 9, least: 2 * time.Minute, most: 2 * time.Minute,
			fails: "provider overloaded (529): told by the server; 9 requests failed within the patience of 2 min (retry_patience)"},
		{name: "patience that is configured", retry: agent.Retry{Patience: 10 * time.Minute}, failures: repeated(asking(time.Minute), 9), requests: 10, least: 9 * time.Minute, most: 9 * time.Minute},
		{name: "no patience", retry: agent.Retry{Patience: -1}, failures: repeated(overloaded, 9), requests: 1, fails: "provider overloaded (529): told by the server"},
		{name: "a provider that asks for too much", failures: []error{asking(10 * time.Minute)}, requests: 1,
			fails: "rate limit (429): told by the server; the provider asks to wait 10 min, which is longer than the rest of the retry patience of 2 min (retry_patience)"},
		{name: "a provider that asks for more than is left", failures: []error{asking(time.Minute), asking(90 * time.Second)}, requests: 2, least: time.Minute, most: time.Minute,
			fails: "asks to wait 1 min 30 s"},
		{name: "a refused key", failures: []error{failing(llm.Auth, 401)}, requests: 1, fails: "authentication failed"},
		{name: "a refused request", failures: []error{failing(llm.BadRequest, 400)}, requests: 1, fails: "bad request"},
		{name: "a spent quota", failures: []error{&llm.Error{Class: llm.RateLimited, Status: 429, Code: "insufficient_quota"}}, requests: 1, fails: "rate limit"},
		{name: "a broken protocol", failures: repeated(&llm.Error{Class: llm.Server, Message: "bad JSON"}, 9), requests: 3, least: 3 * time.Second, most: 4 * time.Second, fails: "bad JSON"},
		{name: "an address where nothing listens", failures: repeated(&llm.Error{Class: llm.Network, Code: llm.CodeRefused}, 9), requests: 3, least: 3 * time.Second, most: 4 * time.Second, fails: "Connection refused"},
		{name: "a host that is not known", failures: repeated(&llm.Error{Class: llm.Network, Code: llm.CodeUnreachable}, 9), requests: 3, least: 3 * time.Second, most: 4 * time.Second, fails: "network error"},
		{name: "attempts without patience follow at once", retry: agent.Retry{Patience: -1, Attempts: 3}, failures: repeated(asking(0), 2), requests: 3},
		{name: "attempts without patience wait as asked", retry: agent.Retry{Patience: -1, Attempts: 3}, failures: repeated(asking(7*time.Second), 2), requests: 3, least: 14 * time.Second, most: 14 * time.Second,
			waits: []string{"rate limited, trying again in 7 s (2nd request)", "rate limited, trying again in 7 s (3rd request)"}},
		{name: "attempts without patience do not wait too long", retry: agent.Retry{Patience: -1, Attempts: 3}, failures: repeated(asking(time.Hour), 2), requests: 1, fails: "asks to wait 1 h"},
		{name: "each attempt has patience", retry: agent.Retry{Patience: 10 * time.Second, Attempts: 2}, failures: append(repeated(asking(9*time.Second), 1), failing(llm.Timeout, 408), failing(llm.Timeout, 408)), requests: 4, least: 10 * time.Second, most: 10 * time.Second},
	} {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &flaky{failures: k.failures}
				var waits []string
				r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Retry: k.retry}), Store: journal.NewMemory()}
				res, err := watchTurn(t, r, func(v any) {
					if wait, ok := v.(agent.RetryScheduled); ok {
						waits = append(waits, wait.Text())
					}
				})
				if k.fails == "" && (err != nil || agent.LastResponse(res.State) != "fine") || k.fails != "" && (err == nil || !strings.Contains(err.Error(), k.fails)) {
					t.Errorf("reply %q, error %v, want %q", agent.LastResponse(res.State), err, k.fails)
				}
				if last := m.times[len(m.times)-1]; len(m.times) != k.requests || last < k.least || k.most > 0 && last > k.most {
					t.Errorf("requests at %v, want %d, the last between %v and %v", m.times, k.requests, k.least, k.most)
				}
				if k.waits != nil && !cmp.Equal(waits, k.waits) {
					t.Errorf("waits (-want +got):\n%s", cmp.Diff(k.waits, waits))
				}
			})
		})
	}
}

// watchTurn runs a turn and passes on what its nodes emit.
func watchTurn(t *testing.T, r *graph.Runner, emitted func(any)) (res graph.Result, err error) {
	t.Helper()
	for ev, fault := range r.Run(t.Context(), graph.Input{Thread: "t", Topics: graph.AllTopics, Set: agent.Turn("hi")}) {
		if err = fault; err != nil {
			break
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			emitted(b.Value)
		case graph.RunEnded:
			if ev.Path == "" {
				res = b.Result
			}
		}
	}
	if err == nil {
		err = res.Err
	}
	return res, err
}

// A wait ends with its context, whatever ended that.
func TestAWaitEndsAtOnce(t *testing.T) {
	for _, k := range []struct {
		name string
		cut  func(context.Context) (context.Context, context.CancelFunc)
	}{
		{"on cancel", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(3*time.Second, func() { cancel(errors.New("interrupted")) })
			return ctx, func() { cancel(nil) }
		}},
		{"on a timeout", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 3*time.Second)
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &flaky{failures: repeated(asking(time.Minute), 9)}
				r := &graph.Runner{Graph: compile(t, agent.Config{Model: m}), Store: journal.NewMemory()}
				ctx, end := k.cut(t.Context())
				defer end()
				began := time.Now()
				res, err := r.Invoke(ctx, graph.Input{Thread: "t", Set: agent.Turn("hi")})
				if took := time.Since(began); took != 3*time.Second || res.Status != graph.Canceled {
					t.Errorf("%v after %v, error %v", res.Status, took, err)
				}
				m.failures = nil
				res, err = r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
				if err != nil || agent.LastResponse(res.State) != "fine" {
					t.Errorf("resumed: %v, %v", res.Status, err)
				}
			})
		})
	}
}

// What an agent has is not asked for again when a later request fails after its last try.
func TestARecordedReplyIsNotRequestedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counted
		requests := 0
		m := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				switch requests++; {
				case len(r.Messages) == 1:
					message := both(call("a", "look", `{"n":1}`))
					yield(llm.Delta{Done: &llm.Reply{Message: message, Stop: llm.StopTools}}, nil)
				case requests < 30:
					yield(llm.Delta{}, failing(llm.Overloaded, 503))
				default:
					yield(llm.Delta{Done: &llm.Reply{Message: say("fine")}}, nil)
				}
			}
		})
		r := &graph.Runner{Graph: loop(t, m, c.tool("look", "", false)), Store: journal.NewMemory()}
		_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")})
		var gaveUp *agent.PatienceError
		if !errors.As(err, &gaveUp) || gaveUp.Requests != requests-1 {
			t.Fatalf("error %v, %d requests", err, requests)
		}
		requests = 99
		res, err := r.InvokeResume(t.Context(), graph.Resume{Thread: "t"})
		if err != nil || agent.LastResponse(res.State) != "fine" || requests != 100 || len(c.calls) != 1 {
			t.Errorf("%v, %v, %d requests, calls %v", res.Status, err, requests, c.calls)
		}
	})
}

// The record of a reply says how long it took with all its requests, how often and how long it waited between them, and
// when the first part of the reply came that counts: not that of a request which has failed.
func TestTimesOfReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		m := agent.ModelFunc(func(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
			return func(yield func(llm.Delta, error) bool) {
				requests++
				time.Sleep(time.Second)
				if !yield(llm.Delta{Text: "fi"}, nil) {
					return
				}
				if requests < 3 {
					yield(llm.Delta{}, asking(time.Duration(requests)*10*time.Second))
					return
				}
				time.Sleep(2 * time.Second)
				yield(llm.Delta{Done: &llm.Reply{Message: say("fine"), Stop: llm.StopEnd}}, nil)
			}
		})
		r := &graph.Runner{Graph: loop(t, m), Store: journal.NewMemory()}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("hi")}); err != nil {
			t.Fatal(err)
		}
		want := history.Timing{
			Took:    35 * time.Second, // 1 + 10 + 1 + 20 + 1 + 2
			First:   33 * time.Second,
			Retries: 2,
			Waited:  30 * time.Second,
		}
		found := 0
		for e, err := range history.Entries(t.Context(), r.Store, "t") {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == journal.KindEffect && graph.ParseEffectID(e.ID).Name == "model" {
				found++
				if e.Timing != want {
					t.Errorf("%+v, want %+v", e.Timing, want)
				}
			}
		}
		if found != 1 {
			t.Errorf("%d replies are recorded", found)
		}
	})
}

func TestWaitsAreReported(t *testing.T) {
	for want, v := range map[string]agent.RetryScheduled{
		"rate limited, trying again in 20 s (2nd request)":              {Reason: "rate limited", Wait: 20 * time.Second, Request: 2},
		"connection lost, trying again in 1.3 s (3rd request)":          {Reason: "connection lost", Wait: 1300 * time.Millisecond, Request: 3},
		"rate limited, trying again in 1 min 1 s (11th request)":        {Reason: "rate limited", Wait: 61 * time.Second, Request: 11},
		"server error (500), trying again in 1 h 5 min (22nd request)":  {Reason: "server error (500)", Wait: 65 * time.Minute, Request: 22},
		"no connection, trying again in 0.1 s (101st request)":          {Reason: "no connection", Wait: 100 * time.Millisecond, Request: 101},
		"the provider is overloaded, trying again in 9 s (4th request)": {Reason: "the provider is overloaded", Wait: 9 * time.Second, Request: 4},
	} {
		if got := v.Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := fmt.Sprint(&agent.PatienceError{Err: errors.New("x"), Patience: time.Minute, Requests: 3}); got != "x; 3 requests failed within the patience of 1 min (retry_patience)" {
		t.Error(got)
	}
}
