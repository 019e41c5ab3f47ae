package versus_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/report/versus"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// A builder makes the moments of a run, one after another.
type builder struct {
	run versus.Run
	seq int64
}

// newRun returns a run with a prompt that has ended with a status.
func newRun(name, prompt, status string) *builder {
	b := &builder{run: versus.Run{Prompt: prompt}}
	b.run.Info.Run = name
	b.run.Info.Agent = "writer"
	b.run.Info.Status = status
	b.add(journal.KindStart, "")
	return b
}

func (b *builder) add(kind journal.Kind, node string) *runs.Moment {
	b.seq++
	m := runs.Moment{Node: node}
	m.Seq = b.seq
	m.Kind = kind
	b.run.Moments = append(b.run.Moments, m)
	return &b.run.Moments[len(b.run.Moments)-1]
}

// reply adds a reply of a model at a node, which is then done.
func (b *builder) reply(node, model, text string, ms, retries int) *builder {
	m := b.add(journal.KindEffect, node)
	m.Reply = &flow.Reply{Model: model, Text: text, Usage: llm.Usage{Input: 100, Output: len(text)}}
	b.took(m, ms)
	m.Timing.Retries = retries
	return b.step(node)
}

func (b *builder) took(m *runs.Moment, ms int) {
	m.Took = time.Duration(ms) * time.Millisecond
	b.run.Active += m.Took
}

func (b *builder) step(node string) *builder {
	b.add(journal.KindStep, "").From = []string{node}
	return b
}

// script adds a script that wrote a text.
func (b *builder) script(node, output string, ms int) *builder {
	m := b.add(journal.KindEffect, node)
	m.Effect = "script"
	m.Output = output
	b.took(m, ms)
	return b.step(node)
}

func (b *builder) call(node, tool, args, outcome string, ms int) *builder {
	m := b.add(journal.KindEffect, node)
	m.Call = &runs.ToolCall{Tool: tool, Args: json.RawMessage(args), Status: "ok", Outcome: outcome}
	b.took(m, ms)
	return b
}

func (b *builder) answer(node, value string) *builder {
	b.add(journal.KindAnswer, node).Answer = []byte(value)
	return b
}

// fail ends the run at a node.
func (b *builder) fail(node, reason string) *builder {
	m := b.add(journal.KindEnd, "")
	m.Failure = reason
	m.FailedNodes = []string{node}
	b.run.Info.Reason = reason
	return b
}

func (b *builder) returned(text string) *builder {
	b.run.Output = text
	return b
}

// price says what replies of two models cost: a thousandth of a dollar for each token, and a tenth of that.
func price(model string, u llm.Usage) (float64, bool) {
	tokens := float64(u.Input + u.Output)
	switch model {
	case "large":
		return tokens / 1000, true
	case "small":
		return tokens / 10_000, true
	}
	return 0, false
}

// The sentence says what differs most and what it comes from, and the split is the first thing that differs, at its records.
func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name  string
		a, b  *builder
		text  string
		split string // with its records
	}{
		{"the same", newRun("a", "x", "done").reply("draft", "m", "hi", 900, 0), newRun("b", "x", "done").reply("draft", "m", "hi", 901, 0),
			"they took the same time and did the same", ""},
		{"tried again", newRun("a", "x", "done").reply("draft", "m", "hi", 900, 0), newRun("b", "x", "done").reply("draft", "m", "hi", 2300, 1),
			"B is slower by 1.4 s because draft was tried again once in B", ""},
		{"faster", newRun("a", "x", "done").reply("draft", "m", "hi", 2300, 2), newRun("b", "x", "done").reply("draft", "m", "hi", 900, 0),
			"B is faster by 1.4 s because draft was tried again twice in A", ""},
		{"another model", newRun("a", "x", "done").reply("draft", "large", "hi", 2300, 0).returned("hi"), newRun("b", "x", "done").reply("draft", "small", "hi", 900, 0).returned("hi"),
			"B is faster by 1.4 s because draft used small instead of large; B costs 90 % less", "draft used the model large in A and small in B @2 @2"},
		{"a loop", newRun("a", "x", "done").reply("draft", "m", "1", 900, 0).script("check", "ok", 20),
			newRun("b", "x", "done").reply("draft", "m", "1", 900, 0).script("check", "again", 20).reply("draft", "m", "2", 900, 0).script("check", "ok", 20),
			"B is slower by 920 ms because draft ran twice in B instead of once", "the script at check has another result @4 @4"},
		{"only one", newRun("a", "x", "done").answer("ask", `"yes"`).script("send", "sent", 700), newRun("b", "x", "done").answer("ask", `"no"`),
			"B is faster by 700 ms because only A ran send", `ask was answered "yes" in A and "no" in B @2 @2`},
		{"failed", newRun("a", "x", "done").script("check", "ok", 30), newRun("b", "x", "failed").fail("check", "at node 'check': it failed:\nValueError: no number"),
			"A is done, B is failed (ValueError: no number)", "only B failed at check @0 @2"},
		{"more words", newRun("a", "x", "done").reply("", "m", "four", 900, 0), newRun("b", "x", "done").reply("", "m", "many more words", 2000, 0),
			"B is slower by 1.1 s because the agent wrote 15 tokens in B instead of 4", "the reply of m at the agent has another result @2 @2"},
		{"arguments", newRun("a", "x", "done").call("think", "fetch", `{"url":"a"}`, "page", 100), newRun("b", "x", "done").call("think", "fetch", `{"url":"b"}`, "page", 100),
			"they took the same time; the call of fetch at think has other arguments", "the call of fetch at think has other arguments @2 @2"},
		{"results", newRun("a", "x", "done").returned("1"), newRun("b", "y", "done").returned("2"), "they returned different results", "their prompts differ @1 @1"},
		{"nothing explains it", newRun("a", "x", "done").script("s1", "", 100).script("s2", "", 100).script("s3", "", 100).script("s4", "", 100),
			newRun("b", "x", "done").script("s1", "", 200).script("s2", "", 200).script("s3", "", 200).script("s4", "", 200), "B is slower by 400 ms", ""},
	} {
		got := versus.CompareRuns(&c.a.run, &c.b.run, price)
		split := ""
		if got.First != nil {
			split = fmt.Sprintf("%s @%d @%d", got.First.Text, got.First.A, got.First.B)
		}
		if got.Text != c.text || split != c.split {
			t.Errorf("%s: %q, split %q, want %q, %q", c.name, got.Text, split, c.text, c.split)
		}
	}
}

// Records that are about the same are paired in both orders, also those of agents whose ids differ; what a node did in all its items is one row.
func TestPairs(t *testing.T) {
	a := newRun("a", "x", "done").script("plan", "", 10).script("each[0]", "", 10).script("each[1]", "", 30).reply("agent_worker_11aa22bb", "m", "w", 5, 0)
	b := newRun("b", "x", "done").script("plan", "", 10).script("each[1]", "", 30).script("each[0]", "", 10).reply("agent_worker_33cc44dd", "m", "w", 5, 0)
	c := versus.CompareRuns(&a.run, &b.run, price)
	if d := cmp.Diff([]versus.RecordPair{{1, 1}, {2, 2}, {3, 3}, {4, 6}, {5, 7}, {8, 8}, {9, 9}}, c.Pairs); d != "" {
		t.Errorf("pairs (-want +got):\n%s", d)
	}
	if c.First != nil {
		t.Errorf("they part: %+v", c.First)
	}
	if len(c.Nodes) != 3 || c.Nodes[1].Node != "each" || c.Nodes[1].A.Took != 40 || c.Nodes[2].Node != "worker·1" || c.Nodes[2].B.Tokens != 101 {
		t.Errorf("nodes: %+v", c.Nodes)
	}
}
