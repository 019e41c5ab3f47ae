package agent_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// words is a text of so many words.
func words(n int, word string) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }

// measured is a model that counts a token for every four bytes of a request, and
// refuses what exceeds its window.
type measured struct {
	limit    int
	answer   func(r llm.Request) llm.Message
	largest  int
	requests []llm.Request
}

func (m *measured) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		n := len(r.System)
		for _, line := range shape(r.Messages) {
			n += len(line)
		}
		n /= 4
		m.requests = append(m.requests, r)
		if n > m.limit {
			yield(llm.Delta{}, &llm.Error{Class: llm.ContextLength, Status: 400, Message: "too long"})
			return
		}
		m.largest = max(m.largest, n)
		yield(llm.Delta{Done: &llm.Reply{Message: m.answer(r), Usage: llm.Usage{Input: n, Output: 10}}}, nil)
	}
}

// sizes counts the bytes and records of a store.
type sizes struct {
	journal.Store
	bytes, snapshots int
}

func (s *sizes) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	for _, r := range recs {
		if r.Kind == journal.KindSnapshot {
			s.snapshots += len(r.Data)
			continue
		}
		s.bytes += len(r.Head) + len(r.Data)
	}
	return s.Store.Append(ctx, thread, after, recs)
}

// TestTwoHundredTurns holds a conversation that is much longer than the window: what
// the journal takes grows with what is said, the window is kept, and a note or a
// summary replaces what was left out.
func TestTwoHundredTurns(t *testing.T) {
	for _, summed := range []bool{false, true} {
		t.Run(fmt.Sprint("summary ", summed), func(t *testing.T) {
			const window = 4000
			turns := map[bool]int{false: 200, true: 80}[summed]
			m := &measured{limit: window, answer: func(r llm.Request) llm.Message {
				if last := r.Messages[len(r.Messages)-1]; last.Role == llm.RoleTool {
					return say("answer " + words(30, "fine"))
				}
				return both(say("looking"), call("x", "look", `{"n":1}`))
			}}
			sums := 0
			config := agent.Config{Model: m, Window: agent.Window{Tokens: window}, Request: llm.Request{System: "Be brief."},
				Tools: []tool.Tool{{Name: "look", Effect: tool.ReadOnly, Polls: true, Run: func(context.Context, tool.Call) (tool.Result, error) {
					return tool.TextResult(words(60, "seen")), nil
				}}}}
			if summed {
				config.Window.Summary = agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
					sums++
					return func(yield func(llm.Delta, error) bool) {
						yield(llm.Delta{Done: &llm.Reply{Message: say(fmt.Sprint("summary number ", sums))}}, nil)
					}
				})
			}
			st := &sizes{Store: journal.NewMemory()}
			r := &graph.Runner{Graph: compile(t, config), Store: st}
			at := make([]int, turns+1)
			var res graph.Result
			for i := 1; i <= turns; i++ {
				var err error
				if res, err = r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(fmt.Sprintf("question %d %s", i, words(20, "please")))}); err != nil {
					t.Fatalf("turn %d: %v", i, err)
				}
				at[i] = st.bytes
			}
			early, late := (at[40]-at[20])/20, (at[turns]-at[turns-20])/20
			t.Logf("bytes a turn: %d early, %d late; %d in all, %d in snapshots; largest request %d tokens; %d requests, %d summaries",
				early, late, at[turns], st.snapshots, m.largest, len(m.requests), sums)
			if late > early+early/5 {
				t.Errorf("a turn takes %d bytes of journal at first and %d in the end", early, late)
			}
			if st.snapshots > 3*at[turns] {
				t.Errorf("%d bytes of snapshots for %d bytes of records", st.snapshots, at[turns])
			}
			if len(m.requests) != 2*turns {
				t.Errorf("%d requests: some were refused for their length", len(m.requests))
			}
			last := m.requests[len(m.requests)-1]
			note := map[bool]string{false: "earlier messages were left out", true: "[Summary of "}[summed]
			if first := last.Messages[0].Text(); !strings.Contains(first, note) || summed && !strings.Contains(first, fmt.Sprint("summary number ", sums)) {
				t.Errorf("the last request begins with %q", first)
			}
			if got := len(agent.History(res.State)); got != 4*turns {
				t.Errorf("the conversation holds %d messages, want all %d", got, 4*turns)
			}
			if view := agent.Views.Get(res.State)["think"]; view.Left == 0 || view.Left%2 == 1 && view.Left < 4 {
				t.Errorf("view %+v", view)
			}
		})
	}
}

// TestOneLongTurn has a single turn outgrow the window: what the user wants stays.
func TestOneLongTurn(t *testing.T) {
	n := 0
	m := &measured{limit: 2000, answer: func(r llm.Request) llm.Message {
		if n++; n > 30 {
			return say("done")
		}
		return call(fmt.Sprint("c", n), "look", fmt.Sprintf(`{"n":%d}`, n))
	}}
	res := run(t, agent.Config{Model: m, Window: agent.Window{Tokens: 2000}, Tools: []tool.Tool{{Name: "look", Effect: tool.ReadOnly,
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			return tool.TextResult(words(150, "seen")), nil
		}}}}, "Find the needle.")
	if res.Status != graph.Done {
		t.Errorf("status %v", res.Status)
	}
	for i, r := range m.requests {
		if first := r.Messages[0].Text(); !strings.HasSuffix(first, "Find the needle.") {
			t.Fatalf("request %d begins with %q", i, first)
		}
	}
}

// TestAHugeOutcome is shortened where nothing can be left out.
func TestAHugeOutcome(t *testing.T) {
	m := &measured{limit: 2000, answer: func(r llm.Request) llm.Message {
		if len(r.Messages) > 1 {
			return say("done")
		}
		return call("c", "look", `{}`)
	}}
	res := run(t, agent.Config{Model: m, Window: agent.Window{Tokens: 2000}, Tools: []tool.Tool{{Name: "look", Effect: tool.ReadOnly,
		Run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult("begin " + words(50_000, "x") + " end"), nil
		}}}}, "Go.")
	got := shape(m.requests[1].Messages)[2]
	if !strings.Contains(got, "begin") || !strings.Contains(got, "end") || !strings.Contains(got, "shortened") || len(got) > 8000 {
		t.Errorf("the model gets %d bytes", len(got))
	}
	if full := shape(agent.History(res.State))[2]; len(full) < 100_000 {
		t.Errorf("the conversation holds %d bytes of it", len(full))
	}
}

func TestNothingFits(t *testing.T) {
	m := &measured{limit: 1 << 20}
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m, Window: agent.Window{Tokens: 500}})}
	_, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(words(5000, "word"))})
	var window *agent.WindowError
	if !errors.As(err, &window) || window.Tokens < 4000 || len(m.requests) != 0 {
		t.Errorf("error %v after %d requests", err, len(m.requests))
	}
}

// TestProviderSaysTooLong shortens a request whose limit is not configured.
func TestProviderSaysTooLong(t *testing.T) {
	m := &measured{limit: 1000, answer: func(llm.Request) llm.Message { return say(words(100, "well")) }}
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compile(t, agent.Config{Model: m})}
	for i := range 20 {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(words(50, "so"))}); err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
	}
	if len(m.requests) > 30 {
		t.Errorf("%d requests for 20 turns", len(m.requests))
	}
}

// TestWindowedHistoriesAreValid plays random conversations with small windows to a
// strict server.
func TestWindowedHistoriesAreValid(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := strict(t, func(w http.ResponseWriter, _ *http.Request, messages []wireMessage) {
			if rng.IntN(3) == 0 {
				saying(w, words(rng.IntN(100), "text"))
				return
			}
			var calls []string
			for range 1 + rng.IntN(3) {
				calls = append(calls, "look", fmt.Sprintf(`{"n":%d}`, rng.IntN(1000)))
			}
			calling(w, calls...)
		})
		config := agent.Config{Model: s.model(), Window: agent.Window{Tokens: 1500}, Calls: agent.Calls{Repeats: -1},
			Tools: []tool.Tool{{Name: "look", Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.TextResult(words(rng.IntN(200), "seen")), nil
			}}}}
		r := &graph.Runner{Graph: compile(t, config), Store: journal.NewMemory()}
		for range 15 {
			if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(words(1+rng.IntN(60), "ask"))}); err != nil {
				t.Fatal(err)
			}
		}
		s.check()
	}
}

// TestSoftLimit has a conversation summarized long before the window is full, with the newest
// messages as they were, and not again for every reply.
func TestSoftLimit(t *testing.T) {
	const turns, soft, keep = 40, 600, 4
	sums := 0
	m := &measured{limit: 100000, answer: func(llm.Request) llm.Message { return say(words(30, "sure")) }}
	summary := agent.ModelFunc(func(_ context.Context, _ llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			sums++
			yield(llm.Delta{Done: &llm.Reply{Message: say(fmt.Sprint("summary number ", sums))}}, nil)
		}
	})
	r := &graph.Runner{Graph: compile(t, agent.Config{Model: m, Window: agent.Window{Summary: summary, Soft: soft, Keep: keep}}), Store: journal.NewMemory()}
	for i := range turns {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(fmt.Sprintf("question %d %s", i, words(20, "please")))}); err != nil {
			t.Fatal(err)
		}
		req := m.requests[len(m.requests)-1]
		for back := range min(keep, 2*i+1) {
			if got := req.Messages[len(req.Messages)-1-back].Text(); strings.Contains(got, "Summary") || got == "" {
				t.Fatalf("turn %d: message %d from the end is %q", i, back, got)
			}
		}
	}
	if m.largest > 2*soft {
		t.Errorf("the largest request has %d tokens, with a soft limit of %d", m.largest, soft)
	}
	if sums == 0 || sums > turns/3 {
		t.Errorf("%d summaries for %d turns", sums, turns)
	}
	if first := m.requests[len(m.requests)-1].Messages[0].Text(); !strings.Contains(first, fmt.Sprint("summary number ", sums)) {
		t.Errorf("the last request begins with %q", first)
	}
}

// The request after a summary has the summary, and says how many messages it replaces: also the
// user's message, which stayed in the requests of its own turn.
func TestNoteAfterTheTurn(t *testing.T) {
	for _, c := range []struct {
		turns int
		want  string
	}{
		{1, "user: [Summary of 1 earlier messages, which were left out to fit the context window.]\nThey count. | assistant: a1 | user: Next?"},
		{2, "user: [Summary of 3 earlier messages, which were left out to fit the context window.]\nThey count. | assistant: a2 | user: Next?"},
	} {
		m := &asked{}
		r := &graph.Runner{Graph: compiled(agent.Config{Model: m}.Compile()), Store: journal.NewMemory()}
		turns := [][]graph.Write{}
		for i := range c.turns {
			m.answers = append(m.answers, say(fmt.Sprint("a", i+1)))
			turns = append(turns, agent.Turn(fmt.Sprint("q", i+1)))
		}
		m.answers = append(m.answers, say("They count."))
		for _, set := range append(turns, append(agent.ResetTurn(), agent.CompactTurn()...), agent.Turn("Next?")) {
			if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: set}); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.seen(c.turns + 1); got != c.want {
			t.Errorf("after %d turns:\n%s\nwant\n%s", c.turns, got, c.want)
		}
	}
}

// If a summary fails, the next one begins where that one did: what it left out is not lost.
func TestSummaryAfterAFailedOne(t *testing.T) {
	var texts []string
	flaky := agent.ModelFunc(func(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
		return func(yield func(llm.Delta, error) bool) {
			texts = append(texts, r.Messages[0].Text())
			if len(texts) == 1 {
				yield(llm.Delta{}, &llm.Error{Class: llm.BadRequest, Message: "not now"})
				return
			}
			yield(llm.Delta{Done: &llm.Reply{Message: say("They counted.")}}, nil)
		}
	})
	r := &graph.Runner{Store: journal.NewMemory(), Graph: compiled(agent.Config{Model: &asked{name: "m"}, Retry: agent.Retry{Patience: -1}, Window: agent.Window{Tokens: 300, Reply: 50, Summary: flaky}}.Compile())}
	for _, word := range []string{"first ", "second ", "third "} {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: "t", Set: agent.Turn(strings.Repeat(word, 120))}); err != nil {
			t.Fatal(err)
		}
	}
	if len(texts) != 2 || !strings.Contains(texts[1], "first") || !strings.Contains(texts[1], "second") {
		for _, text := range texts {
			t.Errorf("asked to summarize %.40q … %.40q", text, text[max(0, len(text)-40):])
		}
	}
}
