package story

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/storage/runs"
)

// whyCalls are calls with every kind of decision.
func whyCalls() []runs.ToolCall {
	call := func(args, status string, p *agent.Permission) runs.ToolCall {
		return runs.ToolCall{
			Tool: "execute_command", Args: json.RawMessage(`{"command":"` + args + `"}`), Status: status,
			Permission: p,
		}
	}
	ground := func(text, by, why string) agent.Ground { return agent.Ground{Text: text, By: by, Why: why} }
	asked := func(answer string, rules ...string) *agent.Permission {
		return &agent.Permission{Verdict: "ask", Answer: answer, Rules: rules}
	}
	boxed := call("make", "done", &agent.Permission{
		Verdict: "allow",
		Grounds: []agent.Ground{ground("make", "box", "is held by the box"), ground("x", "rule", "is allowed by")},
		More:    2,
	})
	boxed.Path = "1.team.0#agent_reader_00000001/"
	boxed.Held = []string{"a", "b", "c", "d", "e", "f\x1b[31m", "g"}
	edited := call("rm x", "done", asked("edit"))
	edited.MadeWith = json.RawMessage(`{"command":"rm y"}`)
	edited.AnsweredBy = "Ada\nLee"
	refused := call("old", "failed", nil)
	refused.Refused = true
	reached := call("old", "done", nil)
	reached.Reached = true
	return []runs.ToolCall{
		call("ls", "done", &agent.Permission{
			Verdict: "allow",
			Grounds: []agent.Ground{{Text: "ls", By: "rule", Rule: "allow ls", Why: "is allowed by"}},
		}),
		boxed, call("sudo", "failed", &agent.Permission{
			Verdict: "deny", Grounds: []agent.Ground{ground("sudo", "default", "is never allowed")},
		}),
		call("a", "done", asked("once")), call("b", "done", asked("words", "allow b", "allow c")), call("c", "done", asked("always")), edited,
		call("d", "failed", asked("headless")), call("e", "failed", asked("changed")), call("f", "open", asked("")), call("g", "failed", asked("no")),
		refused, reached, call("h", "done", nil), call("i", "failed", nil), call("j", "open", nil), call("k", "unrecorded", nil),
	}
}

const whyText = `● execute_command ls
  allowed: ls is allowed by allow ls
● reader: execute_command make
  allowed in the box:
    make is held by the box
    x is allowed by
    and 2 more
  held back: a
  held back: b
  held back: c
  held back: d
  held back: e
  held back: 2 more (--output json)
● execute_command sudo
  denied: sudo is never allowed
● execute_command a
  asked, allowed once
  you allowed this call only
● execute_command b
  asked, allowed in this run
  you allowed it for this run, with the rule allow b, allow c
● execute_command c
  asked, allowed always
  you allowed it always
● execute_command rm y
  asked, changed
  Ada Lee changed the call
● execute_command d
  asked, no one there
● execute_command e
  asked, answer outdated
  your answer did not count: what the call runs had changed since
● execute_command f
  asked, not answered
● execute_command g
  asked, not allowed
  you did not allow it
● execute_command old
  refused, not recorded why: the run is from an older version of raddle, or from a program that lets every call pass
● execute_command old
  not recorded: the run is from an older version of raddle, or from a program that lets every call pass
● execute_command h
  nothing to decide: it changes only what the agent notes for itself
● execute_command i
  nothing to decide: the call was not made, because it could not be understood or is not possible
● execute_command j
  not recorded: the call was not made yet
● execute_command k
  not recorded: the process ended during the call
17 calls: 2 allowed, 8 asked, 1 denied, 4 not recorded, 2 nothing to decide
`

func TestWhyCallsPassed(t *testing.T) {
	calls := whyCalls()
	words := &Describer{agents: map[string]string{"agent_reader_00000001": "reader"}}
	if diff := cmp.Diff(whyText, words.DescribeWhy(calls, 0, false)); diff != "" {
		t.Error(diff)
	}
	if got := words.DescribeWhy(nil, 0, false); got != "0 calls\n" {
		t.Errorf("no calls: %q", got)
	}
	painted := words.DescribeWhy(calls, 0, true)
	for style, text := range map[term.Style]string{
		term.Green: "allowed in the box", term.Red: "asked, no one there", term.Yellow: "asked, allowed once",
	} {
		if !strings.Contains(painted, "  "+term.PaintText(style, text)) {
			t.Errorf("%q is not painted", text)
		}
	}
	if n := strings.Count(painted, "[0m"); n != len(calls) {
		t.Errorf("the verdict of each call is painted, and nothing else: %d of %d in %q", n, len(calls), painted)
	}
}

// Wrapped lines are no wider than the width, stand below the text of their first line, and lose no word.
func TestWhyIsWrapped(t *testing.T) {
	words := &Describer{agents: map[string]string{"agent_reader_00000001": "reader"}}
	all := words.DescribeWhy(whyCalls(), 0, false)
	for _, width := range []int{30, 45, 72, 100} {
		got := words.DescribeWhy(whyCalls(), width, false)
		for line := range strings.Lines(got) {
			line = strings.TrimSuffix(line, "\n")
			if term.TextWidth(line) > width && !strings.HasPrefix(line, "17 calls") || strings.HasSuffix(line, " ") {
				t.Errorf("width %d: %q", width, line)
			}
			if !strings.HasPrefix(line, "● ") && !strings.HasPrefix(line, "  ") &&
				!strings.HasPrefix(line, "17 calls") {
				t.Errorf("width %d: %q is not indented", width, line)
			}
		}
		if diff := cmp.Diff(strings.Fields(all), strings.Fields(got)); diff != "" {
			t.Errorf("width %d: %s", width, diff)
		}
	}
}

func TestNamePath(t *testing.T) {
	for path, want := range map[string]string{
		"": "", "2.boss.0/": "boss", "2.boss.0/1.team.0#agent_helper_00000001/": "boss/helper",
		"1.team.0#agent_a_00000001/1.team.0#agent_b_00000002/": "a/b",
	} {
		if got := NamePath(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func TestChanges(t *testing.T) {
	long := strings.Repeat("x", 61)
	list := `["` + strings.Repeat("a", 40) + `","` + strings.Repeat("b", 40) + `"]`
	for _, tt := range []struct{ was, is, want string }{
		{"", `1`, "+ sub/key: 1"},
		{`"a b"`, "", "- sub/key: a b"},
		{`"1"`, `1`, `~ sub/key: "1" -> 1`},
		{`" a"`, `""`, `~ sub/key: " a" -> ""`},
		{`"true"`, `null`, `~ sub/key: "true" -> null`},
		{`"` + long[1:] + `"`, `0`, "~ sub/key: " + long[1:] + " -> 0"},
		{`"` + long + `"`, `0`, "~ sub/key\n  - " + long + "\n  + 0\n"},
		{`"a\nb\nc\nd"`, `"a\nb\nx\nd"`, "~ sub/key\n    (2 lines alike)\n  - c\n  + x\n    (1 line alike)\n"},
		{`"a\na"`, `"a\na\na"`, "~ sub/key\n    (2 lines alike)\n  + a\n"},
		{"", list, "+ sub/key\n  + [\n  +   \"" + strings.Repeat("a", 40) + "\",\n  +   \"" + strings.Repeat("b", 40) + "\"\n  + ]\n"},
		{`{broken`, `{}`, "~ sub/key: {broken -> {}"},
	} {
		c := &runs.Change{Path: "sub/", Key: "key"}
		if tt.was != "" {
			c.Was = json.RawMessage(tt.was)
		}
		if tt.is != "" {
			c.Is = json.RawMessage(tt.is)
		}
		if diff := cmp.Diff(tt.want, FormatChange(c, false)); diff != "" {
			t.Errorf("%s to %s: %s", tt.was, tt.is, diff)
		}
	}
	if got, want := FormatChange(&runs.Change{
		Key: "k", Was: []byte("1"),
	}, true), term.PaintText(term.Red, "-")+" "+term.PaintText(term.Bold, "k")+": 1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
