package script

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/llm"
)

// live is a model made of a function.
type live func(r llm.Request) (llm.Reply, error)

func (f live) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply, err := f(r)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		_ = yield(llm.Delta{Text: reply.Text()}, nil) && yield(llm.Delta{Done: &reply}, nil)
	}
}

func says(parts ...llm.Part) llm.Reply {
	r := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: parts}, Stop: llm.StopEnd}
	if len(r.Message.ToolCalls()) > 0 {
		r.Stop = llm.StopTools
	}
	return r
}

func TestRecord(t *testing.T) {
	const secret = `p"ss<word>`
	path := filepath.Join(t.TempDir(), "t.yaml")
	replies := map[string]llm.Reply{
		"What is the weather\nin Oslo?": says(
			llm.Reasoning{Text: "hm\n\n  indented", Signature: "seal", Origin: "anthropic"},
			llm.ToolCall{ID: "c1", Name: "f", Args: json.RawMessage(`{"n":9007199254740993,"f":1.10,"s":"line\nbreak","e":{},"l":[true,null]}`), Signature: "x"}),
		"list": says(llm.Text{Text: "- a: b\n- c\n\n# no comment\ttab \n"}),
		"odd":  says(llm.Text{Text: "\u2028 \u0085\r\n x\x07"}),
		"none": says(),
		"tell": says(llm.Text{Text: "it is " + secret}, llm.ToolCall{ID: "c2", Name: "g", Args: json.RawMessage(`{"s":"p\"ss<word>"}`)}),
		"long": {Message: llm.Message{Parts: []llm.Part{llm.Text{Text: strings.Repeat("word ", 100)}}}, Stop: llm.StopLength, Usage: llm.Usage{Input: 4, Output: 3, Cached: 2, Reasoning: 1}},
	}
	rec := &Recorder{Path: path, Secrets: []string{secret, ""}, Model: live(func(r llm.Request) (llm.Reply, error) {
		if userText(r) == "fail "+secret {
			return llm.Reply{}, fmt.Errorf("wrapped: %w", &llm.Error{Class: llm.RateLimited, Status: 429, Code: "c", Host: "h", Message: "no " + secret, RetryAfter: 1500 * time.Microsecond, Err: errors.New("cause")})
		}
		return replies[userText(r)], nil
	})}
	prompts := []string{"list", "What is the weather\nin Oslo?", "odd", "none", "tell", "long", "fail " + secret, "list"}
	for _, p := range prompts {
		_ = ask(t, rec, user(p))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "word>") || strings.Contains(text, "seal") || !strings.HasPrefix(text, header) {
		t.Errorf("the file is\n%s", data)
	}
	tr, err := Open(path)
	if err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	for i := range prompts {
		p := prompts[len(prompts)-1-i] // the order does not matter
		got, err := llm.Generate(t.Context(), tr, user(p))
		if strings.HasPrefix(p, "fail") {
			if err == nil || err.Error() != "rate limit (429): no [redacted]" {
				t.Errorf("%q: error is %v", p, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", p, err)
			continue
		}
		want := replies[p]
		want.Message.Parts = append([]llm.Part(nil), want.Message.Parts...)
		for i, part := range want.Message.Parts {
			switch part := part.(type) {
			case llm.Text:
				want.Message.Parts[i] = llm.Text{Text: strings.ReplaceAll(part.Text, secret, "[redacted]")}
			case llm.Reasoning:
				want.Message.Parts[i] = llm.Reasoning{Text: part.Text, Origin: "script"}
			case llm.ToolCall:
				want.Message.Parts[i] = llm.ToolCall{ID: part.ID, Name: part.Name, Args: json.RawMessage(strings.ReplaceAll(string(part.Args), `p\"ss<word>`, "[redacted]"))}
			}
		}
		want.Message.Role = llm.RoleAssistant
		if d := cmp.Diff(want, got, cmpopts.IgnoreFields(llm.Reply{}, "ID", "Model"), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%q (-want +got):\n%s", p, d)
		}
	}
	if left := tr.UnusedReplies(); left != nil {
		t.Errorf("unused: %v", left)
	}
}

// TestRecordText pins the file that people read and edit.
func TestRecordText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	rec := &Recorder{Path: path, Model: live(func(r llm.Request) (llm.Reply, error) {
		if turnNumber(r) == 1 {
			return says(llm.Text{Text: "Let me see."}, llm.ToolCall{ID: "c", Name: "f", Args: json.RawMessage(`{"city":"Oslo"}`)}), nil
		}
		reply := says(llm.Text{Text: "It is\n18 degrees."})
		reply.Usage = llm.Usage{Input: 40, Output: 9}
		return reply, nil
	})}
	_ = ask(t, rec, user("\n What is the weather in Oslo?\nAnd elsewhere?"))
	_ = ask(t, rec, after(user("\n What is the weather in Oslo?\nAnd elsewhere?")))
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := header + `- match: What is the weather in Oslo?
  turn: 1
  request: '36ff58d64ccf84ec'
  text: Let me see.
  tool_calls:
  - id: c
    name: f
    args: {"city": "Oslo"}
- match: What is the weather in Oslo?
  turn: 2
  request: '01d9b64588dbe026'
  text: |-
    It is
    18 degrees.
  usage: {input: 40, output: 9}
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("file (-want +got):\n%s", d)
	}
}

func TestRecordConcurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.yaml")
	echo := live(func(r llm.Request) (llm.Reply, error) { return says(llm.Text{Text: "echo " + userText(r)}), nil })
	recorders := []*Recorder{{Path: path, Model: echo}, {Path: path, Model: echo}}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			p := fmt.Sprintf("prompt %d", i)
			if got := ask(t, recorders[i%2], user(p)); got != "echo "+p {
				t.Errorf("%s: %q", p, got)
			}
		})
	}
	wg.Wait()
	tr, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		p := fmt.Sprintf("prompt %d", i)
		if got := ask(t, tr, user(p)); got != "echo "+p {
			t.Errorf("%s: %q", p, got)
		}
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v", left)
	}
}

func TestRecordInto(t *testing.T) {
	yes := live(func(llm.Request) (llm.Reply, error) { return says(llm.Text{Text: "yes"}), nil })
	for _, c := range []struct{ name, old, want string }{
		{"empty file", "", "yes"},
		{"transcript", "- text: a", "yes"},
		{"list on one line", "[{text: a}]", "error: script: record PATH: raddle cannot add a reply to a list in this form; start its lines with - in the first column"},
		{"indented list", "  - text: a\n", "error: script: record PATH: raddle cannot add a reply to a list in this form; start its lines with - in the first column"},
		{"something else", "a: b\n", "error: script: record PATH: the file is not a transcript and was not changed: line 1: a transcript must be a list, not a mapping"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.yaml")
			if err := os.WriteFile(path, []byte(c.old), 0o640); err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(ask(t, &Recorder{Path: path, Model: yes}, user("x")), path, "PATH")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "yes" {
				if _, err := Parse("f", data); err != nil {
					t.Error(err)
				}
			} else if string(data) != c.old {
				t.Errorf("the file has become %q", data)
			}
		})
	}
}

func TestRecordKeepsLinkAndMode(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(path, []byte("- text: a\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	yes := live(func(llm.Request) (llm.Reply, error) { return says(llm.Text{Text: "yes"}), nil })
	if got := ask(t, &Recorder{Path: link, Model: yes}, user("x")); got != "yes" {
		t.Fatal(got)
	}
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if tr, err := Open(path); err != nil || len(tr.entries) != 2 || info.Mode() != 0o640 {
		t.Errorf("%v, %v", err, info.Mode())
	}
}

func TestRecordRefuses(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "t.yaml")
	for _, c := range []struct {
		name, path string
		reply      llm.Reply
		err        error
		want       string
	}{
		{"no directory", filepath.Join(dir, "none", "t.yaml"), says(llm.Text{Text: "a"}), nil, "no such file or directory"},
		{"image", path, says(llm.Image{URL: "u"}), nil, "a transcript cannot hold a reply with llm.Image"},
		{"arguments", path, says(llm.ToolCall{Name: "f", Args: json.RawMessage(`{`)}), nil, "the arguments of the tool call f: "},
		{"no class", path, llm.Reply{}, &llm.Error{Message: "odd"}, "the reply cannot be written as YAML"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := &Recorder{Path: c.path, Model: live(func(llm.Request) (llm.Reply, error) { return c.reply, c.err })}
			_, err := llm.Generate(t.Context(), rec, user("x"))
			if err == nil || !strings.Contains(err.Error(), c.want) || (c.err != nil && !errors.Is(err, c.err)) {
				t.Errorf("error is %v", err)
			}
		})
	}
	rec := &Recorder{Path: path, Model: live(func(llm.Request) (llm.Reply, error) { return llm.Reply{}, context.Canceled })}
	if _, err := llm.Generate(t.Context(), rec, user("x")); err != context.Canceled {
		t.Errorf("error is %v", err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the end of the context was recorded")
	}
}
