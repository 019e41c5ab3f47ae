package script

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
)

func parse(t testing.TB, text string) *Transcript {
	t.Helper()
	tr, err := Parse("dir/transcript.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// ask sends a request and returns the text of its reply or of its error.
func ask(t testing.TB, m llm.Model, r llm.Request) string {
	t.Helper()
	reply, err := llm.Generate(t.Context(), m, r)
	if err != nil {
		return "error: " + err.Error()
	}
	return reply.Text()
}

func user(texts ...string) llm.Request {
	var r llm.Request
	for _, s := range texts {
		r.Messages = append(r.Messages, llm.User(s))
	}
	return r
}

// after returns the request that follows a reply and a tool result.
func after(r llm.Request) llm.Request {
	r.Messages = append(r.Messages[:len(r.Messages):len(r.Messages)],
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{ID: "c", Name: "f", Args: json.RawMessage(`{"a": 1}`)}}},
		llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "c", Name: "f", Content: []llm.Part{llm.Text{Text: "18"}}}}})
	return r
}

func TestChoice(t *testing.T) {
	system := user("classify this")
	system.System = "You are a clerk."
	for _, c := range []struct {
		name     string
		script   string
		requests []llm.Request
		want     []string
		unused   []string
	}{
		{"in order", "- text: a\n- text: b", []llm.Request{user("x"), user("x")}, []string{"a", "b"}, nil},
		{"by content, in any order", "- match: one\n  text: a\n- match: two\n  text: b", []llm.Request{user("two"), user("one")}, []string{"b", "a"}, nil},
		{"content goes first", "- text: a\n- match: one\n  text: b", []llm.Request{user("one"), user("one")}, []string{"b", "a"}, nil},
		{"the first of two", "- match: x\n  text: a\n- match: x\n  text: b\n- match: x\n  text: c", []llm.Request{user("x"), user("x")}, []string{"a", "b"},
			[]string{`line 5 (match "x")`}},
		{"all strings", "- match: [a, b]\n  text: no\n- match: [a, c]\n  text: yes", []llm.Request{user("c and a")}, []string{"yes"},
			[]string{`line 1 (match "a", match "b")`}},
		{"system and all messages", "- match: [\"clerk.\\nclassify\"]\n  text: a\n- match: \"one\\ntwo\"\n  text: b", []llm.Request{system, user("one", "two")}, []string{"a", "b"}, nil},
		{"repeat", "- match: x\n  text: a\n  repeat: true\n- text: b\n  repeat: true", []llm.Request{user("y"), user("x"), user("x"), user("y")}, []string{"b", "a", "a", "b"}, nil},
		{"turns", "- turn: 2\n  text: b\n- turn: 1\n  text: a", []llm.Request{user("x"), after(user("x"))}, []string{"a", "b"}, nil},
		{"digest", "- request: " + requestDigest(user("x")) + "\n  text: a\n- request: " + requestDigest(user("xy")) + "\n  text: b", []llm.Request{user("xy"), user("x")}, []string{"b", "a"}, nil},
		{"errors", "- error: boom (429)\n- error: {status: 429, message: slow down}\n- error: {class: network, code: refused}\n- text: a",
			[]llm.Request{user("x"), user("x"), user("x"), user("x")}, []string{"error: boom (429)", "error: rate limit (429): slow down", "error: Connection refused", "a"}, nil},
		{"used up", "- text: a", []llm.Request{user("x"), user("the prompt")},
			[]string{"a", `error: script: dir/transcript.yaml: no reply for the request "the prompt" (turn 1): all replies (1) are used; add one, or set repeat on one of them`}, nil},
		{"unmatched", "- match: one\n  text: a\n- match: [two, " + strings.Repeat("long", 20) + "]\n  turn: 2\n  text: b", []llm.Request{user("three\n and " + strings.Repeat("more ", 40))},
			[]string{`error: script: dir/transcript.yaml: no reply for the request "three and ` + strings.Repeat("more ", 22) + `..." (turn 1): still unused: ` +
				`line 1 (match "one"); line 3 (match "two", match "` + strings.Repeat("long", 10) + `...", turn 2)`},
			[]string{`line 1 (match "one")`, `line 3 (match "two", match "` + strings.Repeat("long", 10) + `...", turn 2)`}},
		{"many unused", strings.Repeat("- match: z\n  text: a\n", 10), []llm.Request{user("x")}, []string{`error: script: dir/transcript.yaml: no reply for the request "x" (turn 1): still unused: ` +
			`line 1 (match "z"); line 3 (match "z"); line 5 (match "z"); line 7 (match "z"); line 9 (match "z"); line 11 (match "z"); line 13 (match "z"); line 15 (match "z") and 2 more`},
			[]string{`line 1 (match "z")`, `line 3 (match "z")`, `line 5 (match "z")`, `line 7 (match "z")`, `line 9 (match "z")`, `line 11 (match "z")`, `line 13 (match "z")`, `line 15 (match "z")`, `line 17 (match "z")`, `line 19 (match "z")`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr := parse(t, c.script)
			var got []string
			for _, r := range c.requests {
				got = append(got, ask(t, tr, r))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("replies (-want +got):\n%s", d)
			}
			if d := cmp.Diff(c.unused, tr.UnusedReplies()); d != "" {
				t.Errorf("unused (-want +got):\n%s", d)
			}
		})
	}
}

func TestReply(t *testing.T) {
	tr := parse(t, `
- reasoning: Let me think.
  text: |
    It is
    18 degrees.
  tool_calls:
    - {name: f, args: {b: 1, a: [0x10, 1.10, 12345678901234567890123, yes, true, ~, 2001-01-01]}}
    - {id: mine, name: g}
  usage: {input: 4, output: 3, cached: 2, reasoning: 1}
`)
	var got []llm.Delta
	for d, err := range tr.Stream(t.Context(), user("x")) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, d)
	}
	const args = `{"b":1,"a":[16,1.10,12345678901234567890123,"yes",true,null,"2001-01-01"]}`
	want := []llm.Delta{
		{Reasoning: "Let me think."},
		{Text: "It "}, {Text: "is\n18 "}, {Text: "degrees.\n"},
		{ToolCall: &llm.ToolCallDelta{Index: 0, ID: "call_1_0", Name: "f", Args: args}},
		{ToolCall: &llm.ToolCallDelta{Index: 1, ID: "mine", Name: "g", Args: "{}"}},
		{Done: &llm.Reply{
			ID: "transcript.yaml#1", Model: "script:transcript.yaml", Stop: llm.StopTools, Usage: llm.Usage{Input: 4, Output: 3, Cached: 2, Reasoning: 1},
			Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{
				llm.Reasoning{Text: "Let me think.", Origin: "script"},
				llm.Text{Text: "It is\n18 degrees.\n"},
				llm.ToolCall{ID: "call_1_0", Name: "f", Args: json.RawMessage(args)},
				llm.ToolCall{ID: "mine", Name: "g", Args: json.RawMessage("{}")},
			}},
		}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("deltas (-want +got):\n%s", d)
	}
}

func TestStop(t *testing.T) {
	for in, want := range map[string]llm.StopReason{
		"- text: ''":                             llm.StopEnd,
		"- text:":                                llm.StopEnd,
		"- tool_calls: [{name: f}]":              llm.StopTools,
		"- {text: a, stop: length}":              llm.StopLength,
		"- {tool_calls: [{name: f}], stop: end}": llm.StopEnd,
	} {
		reply, err := llm.Generate(t.Context(), parse(t, in), user("x"))
		if err != nil || reply.Stop != want {
			t.Errorf("%s: stop is %q, error %v", in, reply.Stop, err)
		}
	}
}

func TestFailure(t *testing.T) {
	tr := parse(t, "- error: {class: overloaded, status: 503, code: busy, message: later, retry_after_ms: 1500}")
	_, err := llm.Generate(t.Context(), tr, user("x"))
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatalf("error %v is no *llm.Error", err)
	}
	want := llm.Error{Class: llm.Overloaded, Status: 503, Code: "busy", Message: "later", RetryAfter: 1500 * time.Millisecond}
	if d := cmp.Diff(want, *e); d != "" {
		t.Errorf("error (-want +got):\n%s", d)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := parse(t, "- {text: a, delay_ms: 3000}\n- {text: b, delay_ms: 3000}\n- {text: c}")
		start := time.Now()
		if got := ask(t, tr, user("x")); got != "a" || time.Since(start) != 3*time.Second {
			t.Errorf("got %q after %v", got, time.Since(start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := llm.Generate(ctx, tr, user("x"))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 4*time.Second {
			t.Errorf("error is %v after %v", err, time.Since(start))
		}
		if _, err := llm.Generate(ctx, tr, user("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after the deadline the error is %v", err)
		}
		// The second reply went to the request that was cancelled, the third to none.
		if got := ask(t, tr, user("x")); got != "c" {
			t.Errorf("got %q", got)
		}
	})
}

func TestCause(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := llm.Generate(ctx, parse(t, "- text: a"), user("x"))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) {
		t.Errorf("error is %v", err)
	}
}

func TestSingleUseAndBreak(t *testing.T) {
	tr := parse(t, "- {text: a b}\n- {text: c}")
	seq := tr.Stream(t.Context(), user("x"))
	for d := range seq {
		if d.Text != "a " {
			t.Errorf("the first delta is %+v", d)
		}
		break
	}
	for _, err := range seq {
		if err == nil {
			t.Error("a stream may be ranged over twice")
		}
	}
	if got := ask(t, tr, user("x")); got != "c" {
		t.Errorf("got %q", got)
	}
}

// TestSkip: a second process continues where the first one was.
func TestSkip(t *testing.T) {
	const text = "- match: x\n  text: a\n- text: b\n- match: x\n  text: c\n- text: d\n"
	var ids []string
	first := parse(t, text)
	for _, prompt := range []string{"x", "y"} {
		reply, err := llm.Generate(t.Context(), first, user(prompt))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, reply.ID)
	}
	second := parse(t, text)
	if err := second.Skip(ids...); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, second, user("y")) + ask(t, second, user("x")); got != "dc" {
		t.Errorf("the second process got %q", got)
	}
	for _, id := range []string{"other.yaml#1", "transcript.yaml#0", "transcript.yaml#5", "transcript.yaml#x", ""} {
		third := parse(t, text)
		err := third.Skip("transcript.yaml#1", id)
		if err == nil || !strings.Contains(err.Error(), "has no reply") || len(third.UnusedReplies()) != 4 {
			t.Errorf("Skip(%q): error %v, unused %v", id, err, third.UnusedReplies())
		}
	}
}

type positionKey struct{}

func TestPosition(t *testing.T) {
	tr := parse(t, "- text: a\n- match: x\n  text: x\n- text: b\n- {text: c, repeat: true}")
	tr.Position = func(ctx context.Context, r llm.Request) (int, bool) {
		n, ok := ctx.Value(positionKey{}).(int)
		return n, ok
	}
	for _, c := range []struct {
		position any
		prompt   string
		want     string
	}{
		{1, "y", "b"}, {1, "y", "b"}, {0, "y", "a"}, {0, "x", "x"}, {2, "y", "c"}, {9, "y", "c"}, {-1, "y", "error"}, {nil, "y", "a"},
	} {
		reply, err := llm.Generate(context.WithValue(t.Context(), positionKey{}, c.position), tr, user(c.prompt))
		if got := reply.Text(); got != c.want && (err == nil || c.want != "error") {
			t.Errorf("at %v got %q, error %v; want %q", c.position, got, err, c.want)
		}
	}
	few := parse(t, "- text: a")
	few.Position = func(context.Context, llm.Request) (int, bool) { return 1, true }
	if got := ask(t, few, user("y")); !strings.HasPrefix(got, "error: script: ") {
		t.Errorf("past the end: %q", got)
	}
}

// TestParallel: with content, the order of arrival does not matter.
func TestParallel(t *testing.T) {
	var b strings.Builder
	words := strings.Fields("zero one two three four five six seven eight nine")
	for _, w := range words {
		b.WriteString("- match: is " + w + "?\n  text: it is " + w + "\n")
	}
	tr := parse(t, b.String())
	var wg sync.WaitGroup
	for _, w := range words {
		wg.Go(func() {
			if got := ask(t, tr, user("what is "+w+"?")); got != "it is "+w {
				t.Errorf("%s: %q", w, got)
			}
		})
	}
	wg.Wait()
	if left := tr.UnusedReplies(); left != nil {
		t.Errorf("unused: %v", left)
	}
}

func TestDigest(t *testing.T) {
	base := after(user("x"))
	same := after(user("x"))
	same.Messages[1].Parts = []llm.Part{
		llm.Reasoning{Text: "hm", Signature: "s"}, llm.Text{}, llm.ToolCall{ID: "c", Name: "f", Args: json.RawMessage(`{"a":1}`), Signature: "s", Origin: "gemini"},
	}
	same.Tools = []llm.ToolSpec{{Name: "f"}}
	if requestDigest(base) != requestDigest(same) {
		t.Error("what a transcript does not keep changes the digest")
	}
	seen := map[string]int{}
	for i, r := range []llm.Request{
		{}, user("x"), user("x", ""), user("", "x"), {System: "x"}, base,
		{Messages: []llm.Message{{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "x"}}}}},
		{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.Image{URL: "x"}}}}},
		{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.File{URL: "x"}}}}},
		{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{llm.File{Name: "x"}}}}},
		{Messages: []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "x"}}}}},
		{Messages: []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: "x", Error: true}}}}},
	} {
		if j, ok := seen[requestDigest(r)]; ok {
			t.Errorf("requests %d and %d have one digest", j, i)
		}
		seen[requestDigest(r)] = i
	}
}
