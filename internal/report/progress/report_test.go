//go:build unix

package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/testkit/termtest"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// A scene is a sequence of events that a Reporter writes about on a terminal.
type scene struct {
	r  *Reporter
	at time.Time
}

func (s *scene) event(path, node string, index int, body graph.Body) {
	task := ""
	if node != "" {
		task = fmt.Sprintf("1.%s.%d", node, index)
	}
	s.r.HandleEvent(graph.Event{Time: s.at, Path: path, Node: node, Task: task, Body: body})
}
func (s *scene) emits(path, node string, v any) { s.event(path, node, 0, graph.ValueEmitted{Value: v}) }
func (s *scene) starts(path, node, kind string) {
	s.event(path, node, 0, graph.TaskStarted{Kind: kind})
}
func (s *scene) done(path, node string, b graph.TaskDone) { s.event(path, node, 0, b) }
func (s *scene) after(d time.Duration)                    { s.at = s.at.Add(d) }

// report returns what the terminal shows of a scene.
func report(t *testing.T, a *flow.Agent, look Look, detail bool, play func(s *scene)) string {
	t.Helper()
	x := openTerminal(t, 80, 24)
	s := &scene{r: NewReporter(term.NewScreen(x.tty), look, a), at: time.Unix(0, 0)}
	s.r.Detail = detail
	s.event("", "", 0, graph.RunStarted{})
	play(s)
	return termtest.Render(80, x.close())
}

// asciiLook is the look of a terminal without UTF-8.
var asciiLook = NewLook(false, func(name string) string { return map[string]string{"LANG": "C"}[name] })

func wantLines(t *testing.T, want, got string) {
	t.Helper()
	if d := cmp.Diff(strings.TrimPrefix(want, "\n"), got+"\n"); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Lines of agents that work at the same time say whom they are about, by short names.
func TestReportOfATeam(t *testing.T) {
	boss := &flow.Agent{Name: "boss", Config: &spec.Config{}}
	play := func(s *scene) {
		s.starts("team/lead/", "think", "llm")
		s.emits("team/lead/", "act", agent.ToolStarted{ID: "a", Name: "agent__spawn", Args: []byte(`{"agent":"explore"}`)})
		s.emits("", team.Node, team.AgentStarted{ID: scout, Agent: "explore", Parent: team.Lead, Purpose: "find the\x1b[2J cellar"})
		s.emits("", team.Node, team.AgentStarted{ID: second, Agent: "explore", Parent: scout})
		s.emits("team/lead/", "act", agent.ToolDone{ID: "a", Name: "agent__spawn", Text: `{"id":"x"}`})
		s.emits("team/lead/", "act", agent.ToolStarted{ID: "b", Name: "agent__send_message", Args: []byte(`{"id":"` + scout + `","message":"tests are in\n./test"}`)})
		s.emits("team/lead/", "act", agent.ToolDone{ID: "b", Name: "agent__send_message"})
		s.emits("team/"+second+"/", "think", agent.ReplyDone{Usage: llm.Usage{Input: 1000, Output: 200}})
		s.emits("team/"+second+"/", "act", agent.ToolStarted{ID: "c", Name: "fs_grep", Args: []byte(`{"pattern":"func Parse","path":"src"}`)})
		s.emits("team/"+second+"/", "act", agent.ToolDone{ID: "c", Name: "fs_grep", Text: `{"output":"src/a.go:3\n"}`, Took: 30 * time.Millisecond})
		s.emits("team/"+second+"/", "act", agent.ToolDone{ID: "d", Name: "user__ask", Text: `"yes"`})
		s.after(2 * time.Second)
		s.emits("", team.Node, team.AgentEnded{ID: second, Agent: "explore", Status: "completed"})
		s.emits("", team.Node, team.AgentEnded{ID: scout, Agent: "explore", Status: "failed", Error: "no budget\nis left"})
	}
	wantLines(t, `
● explore·1 started: find the cellar
● explore·2 started by explore·1
lead → explore·1  “tests are in ./test”
● explore·2  fs_grep  func Parse  src  0.0 s
    src/a.go:3
✓ explore·2   2.0 s   1.2k tokens
✗ explore·1   2.0 s   failed: no budget is left
`, report(t, boss, stillLook, false, play))
	if got := report(t, boss, stillLook, true, play); !strings.Contains(got, "✓ explore·2 ("+second+")   2.0 s") {
		t.Errorf("with details there are no ids:\n%s", got)
	}
}

// Each node of a graph has one line when it ends, and the items of a map have none.
func TestReportOfAGraph(t *testing.T) {
	a := &flow.Agent{Name: "g", File: &spec.File{}}
	got := report(t, a, stillLook, false, func(s *scene) {
		s.starts("", "one", "llm")
		s.starts("", "two", "script")
		s.emits("", "one", agent.RetryScheduled{Reason: "rate limited", Wait: time.Second, Request: 3})
		s.emits("", "one", agent.ReplyDone{Message: llm.Message{Parts: []llm.Part{llm.Text{Text: "It is\nfine\x1b[31m."}}}, Usage: llm.Usage{Input: 90, Output: 10}})
		s.done("", "two", graph.TaskDone{Took: 1200 * time.Millisecond, Attempts: 2})
		s.done("", "one", graph.TaskDone{Took: 12 * time.Second})
		s.starts("", "ask", "approval")
		s.done("", "ask", graph.TaskDone{Waiting: true})
		s.event("", "", 0, graph.RunEnded{Result: graph.Result{Status: graph.Waiting}})
		s.after(40 * time.Second)
		s.event("", "", 0, graph.RunStarted{Resumed: true})
		s.done("", "ask", graph.TaskDone{Update: graph.Update{Goto: []string{"page"}}})
		s.starts("", "each", "map")
		s.starts("each/", flow.MapStart, "map")
		s.done("each/", flow.MapStart, graph.TaskDone{Update: graph.Update{Send: make([]graph.Send, 3)}})
		for i := range 3 {
			s.event("each/", "item", i+1, graph.TaskStarted{Kind: "script"})
		}
		s.event("each/", "item", 1, graph.TaskDone{})
		s.event("each/", "item", 2, graph.TaskDone{Err: errors.New("no such\nitem"), Took: time.Second})
		s.event("each/", "item", 3, graph.TaskDone{Err: context.Canceled})
		s.done("", "each", graph.TaskDone{Err: errors.New("an item failed")})
		s.starts("", "end", "end")
		s.done("", "end", graph.TaskDone{})
		s.event("", "", 0, graph.RunEnded{Result: graph.Result{Status: graph.Done}})
		s.r.PrintEnd(Ending{Status: graph.Done, Tokens: 100, Cost: "$0.0100", Show: "raddle runs show last"})
	})
	wantLines(t, `
✓ two   1.2 s   2nd attempt
✓ one   12 s    100 tokens   “It is fine.” · 3 requests
✓ ask   → page
✗ each/item·2   1.0 s   no such item
✗ each   0.0 s   3 items, 2 failed
✓ g done in 0.0 s (40 s waiting for you) · 100 tokens · $0.0100
`, got)
}

// A failed node looks like one whether a drive or a journal says so. A journal has no ends of nodes, and no warnings.
func TestReportOfFailures(t *testing.T) {
	a := &flow.Agent{Name: "shop", File: &spec.File{Nodes: []*spec.Node{}}}
	reason := "Script 'pay.sh' failed with exit code Some(3): oops"
	route := graph.Update{Goto: []string{"refund"}}
	driven := report(t, a, stillLook, false, func(s *scene) {
		s.starts("", "pay", "script")
		s.after(2 * time.Second)
		s.emits("", "pay", flow.NodeFailed{Reason: reason})
		s.emits("", "pay", agent.Warning{Text: "[graph:shop] script 'pay' failed, routing to fallback 'refund': " + reason})
		s.done("", "pay", graph.TaskDone{Took: 2 * time.Second, Update: route})
		s.starts("", "refund", "agent")
		s.starts("refund/", "ask", "llm")
		s.starts("", "note", "script")
		s.after(time.Second)
		s.done("refund/", "ask", graph.TaskDone{Took: time.Second, Err: errors.New("no such account")})
		s.done("", "refund", graph.TaskDone{Took: time.Second, Err: errors.New("no such account")})
		s.done("", "note", graph.TaskDone{Took: time.Second, Err: context.Canceled})
		s.event("", "", 0, graph.RunEnded{Result: graph.Result{Status: graph.Failed, Err: errors.New("node refund/ask (step 1): no such account")}})
	})
	read := report(t, a, stillLook, false, func(s *scene) {
		tell := func(path, node string, body graph.Body) {
			s.r.HandleEvent(graph.Event{Time: s.at, Path: path, Node: node, Body: body})
		}
		tell("", "pay", graph.TaskStarted{Kind: "script"})
		s.after(2 * time.Second)
		tell("", "pay", graph.ValueEmitted{Value: flow.NodeFailed{Reason: reason}})
		tell("", "", graph.StepCommitted{Nodes: []string{"pay"}, Next: route.Goto})
		tell("", "refund", graph.TaskStarted{Kind: "agent"})
		tell("refund/", "ask", graph.TaskStarted{Kind: "llm"})
		tell("", "note", graph.TaskStarted{Kind: "script"})
		s.after(time.Second)
		tell("", "", graph.RunEnded{Result: graph.Result{Status: graph.Failed, Err: errors.New("at node 'refund/ask': no such account")}})
	})
	wantLines(t, `
✗ pay   2.0 s   exit code 3: oops · → refund
✗ refund/ask   1.0 s   no such account
✗ refund   1.0 s
`, driven)
	wantLines(t, "\n"+driven+"\n", read)
}

// The same lines on a terminal that only has ASCII characters.
func TestReportInASCII(t *testing.T) {
	a := &flow.Agent{Name: "g", File: &spec.File{}}
	got := report(t, a, asciiLook, false, func(s *scene) {
		s.starts("", "ask", "approval")
		s.done("", "ask", graph.TaskDone{Update: graph.Update{Goto: []string{"page"}}})
		s.emits("", "x", agent.ToolDone{Name: "execute_command", Text: `{"output":"a\n"}`, Took: time.Second})
		s.emits("", "x", agent.ToolDone{Name: "boom", Text: `{"tool_call_error":"it broke"}`, Error: true})
		s.event("", "", 0, graph.RunEnded{Result: graph.Result{Status: graph.Failed}})
		s.r.PrintEnd(Ending{Status: graph.Failed, Tokens: 1500})
	})
	wantLines(t, `
ok ask   -> page
* execute_command  ok 1.0 s
    a
failed boom
    it broke
failed g failed after 0.0 s - 1.5k tokens
`, got)
}

// The block of a call says what it was about, how it ended, and what is worth reading.
func TestCallBlocks(t *testing.T) {
	image := func(text string) *tool.FileImage { return &tool.FileImage{Size: int64(len(text)), Text: text} }
	numbers := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintln(&b, i+1)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		done   agent.ToolDone
		args   string
		detail bool
		want   string
	}{
		"a python trace": {done: agent.ToolDone{Name: "boom", Error: true, Text: `{"tool_call_error":"Tool call 'boom' exited with code 1","stderr":"Traceback (most recent call last):\n  File \"/a/b/tools.py\", line 14, in boom\n    raise ValueError\nValueError: kaboom"}`},
			args: `{}`, want: "✗ boom\n    ValueError: kaboom  (tools.py:14)"},
		"a command that fails": {done: agent.ToolDone{Name: "execute_command", Error: true, Text: `{"tool_call_error":"Tool call 'execute_command' exited with code 2","output":"1\n2\n3\n4\n5\n6\n"}`},
			args: `{"command":"make\nmake test"}`, want: "✗ execute_command  make …\n    3\n    4\n    5\n    6\n    (exited with code 2)"},
		"much output": {done: agent.ToolDone{Name: "list", Text: `{"output":"1\n2\n3\n4\n5\n6\n"}`}, args: `{"n":3,"deep":true}`,
			want: "● list  deep true, n 3\n    1\n    2\n    3\n    4\n    5\n    (1 more line)"},
		"all of it": {done: agent.ToolDone{Name: "list", Text: `{"output":"1\n2\n3\n4\n5\n6\n"}`}, detail: true, want: "● list\n    1\n    2\n    3\n    4\n    5\n    6"},
		"a file":    {done: agent.ToolDone{Name: "fs_read", Text: `{"output":"1: a\n2: b\n"}`}, args: `{"path":"a.txt"}`, want: "● fs_read  a.txt  2 lines"},
		"nothing":   {done: agent.ToolDone{Name: "tidy", Text: `"DONE"`}, args: `no JSON`, want: "● tidy"},
		"a value":   {done: agent.ToolDone{Name: "get", Text: `{"b":1}`}, want: "● get\n    {\"b\":1}"},
		"hostile": {done: agent.ToolDone{Name: "x\x1b[2Jy\nz", Text: "a\x1b]0;t\ab\rc\u202ed"}, args: `{"path":"p\u001b[2Jq\nr"}`,
			want: "● xy z  pq …\n    ab\n    cd"},
		"two changes in a file": {done: agent.ToolDone{Name: "fs_patch", Changes: []tool.FileChange{{Kind: tool.FileChanged, Added: 2, Removed: 1,
			Before: image(numbers(12)), After: image(strings.Replace(strings.Replace(numbers(12), "2\n", "two\n", 1), "10\n", "10\nmore\n", 1))}}},
			args: `{"path":"n.txt"}`, want: "● fs_patch  n.txt  +2 −1\n     1   1\n     2 − 2\n     2 + two\n     3   3\n       …\n    10   10\n    11 + more\n    12   11"},
		"a long new file": {done: agent.ToolDone{Name: "fs_write", Changes: []tool.FileChange{{Kind: tool.FileCreated, Added: 30, After: image(numbers(30))}}},
			want: "● fs_write  +30\n" + numbered(20) + "    … 10 more lines"},
		"control characters in a file": {done: agent.ToolDone{Name: "fs_write", Changes: []tool.FileChange{{Kind: tool.FileCreated, Added: 1, After: image("a\x1b[2J\tb\u202e\n")}}},
			want: "● fs_write  +1\n    1 + a    b"},
		"a removed file": {done: agent.ToolDone{Name: "fs_rm", Changes: []tool.FileChange{{Kind: tool.FileRemoved, Removed: 3, Before: image("a\nb\nc\n")}}},
			args: `{"path":"a"}`, want: "● fs_rm  a  −3"},
		"a file with a secret": {done: agent.ToolDone{Name: "fs_write", Changes: []tool.FileChange{{Kind: tool.FileChanged, Withheld: tool.WithheldSecret, Before: image(""), After: image("")}}},
			want: "● fs_write  changed\n    (not shown: it contains a secret, or your rules do not let tools read it)"},
		"a large file": {done: agent.ToolDone{Name: "fs_write", Changes: []tool.FileChange{{Kind: tool.FileCreated, Withheld: tool.WithheldLarge, After: image("")}}},
			want: "● fs_write  created\n    (not shown: large)"},
		"the same content": {done: agent.ToolDone{Name: "fs_write", Text: `{"output":"written"}`}, args: `{"path":"a"}`, want: "● fs_write  a  unchanged"},
		"an unknown tool": {done: agent.ToolDone{Name: "fly", Error: true, Text: `{"tool_call_error":"Unexpected call: fly {\"to\":\"x\"}. This tool is not available or the call failed; use only tools listed in your catalog. Your tools: [a]"}`},
			want: "✗ fly\n    There is no tool fly for this agent."},
	} {
		t.Run(name, func(t *testing.T) {
			got := stillLook.formatCall("", json.RawMessage(c.args), c.done, 80, c.detail)
			if d := cmp.Diff(c.want, strings.Join(got, "\n")); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			for _, cols := range []int{10, 20, 40} {
				for _, line := range stillLook.formatCall("", json.RawMessage(c.args), c.done, cols, false) {
					if n := term.TextWidth(line); n > max(cols, 30) && !strings.HasPrefix(line, "    (not shown") {
						t.Errorf("%d columns, of %d: %q", n, cols, line)
					}
				}
			}
		})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    %2d + %d\n", i+1, i+1)
	}
	return b.String()
}

// A line about what a model thought is short; with details all of it is there.
func TestReportOfReasoning(t *testing.T) {
	helper := &flow.Agent{Name: "helper", Config: &spec.Config{}}
	thought := strings.Repeat("I think about it. ", 20)
	play := func(s *scene) {
		s.starts("", "think", "llm")
		s.emits("", "think", agent.ReasoningDelta{Text: thought[:100]})
		s.after(3 * time.Second)
		s.emits("", "think", agent.ReasoningDelta{Text: thought[100:]})
		s.emits("", "think", agent.TextDelta{Text: "So."})
		s.emits("", "think", agent.ReplyDone{})
	}
	wantLines(t, `
  thought for 3.0 s  …. I think about it. I think about it. I think about it.
`, report(t, helper, stillLook, false, play))
	if got := report(t, helper, stillLook, true, play); strings.Count(strings.ReplaceAll(got, "\n", ""), "I think") < 15 {
		t.Errorf("with details:\n%s", got)
	}
}

// What a model thought before its reply began again is not reported: not if its task, the task above it or its request
// begins again.
func TestReportForgetsWithdrawnReasoning(t *testing.T) {
	helper := &flow.Agent{Name: "helper", Config: &spec.Config{}}
	for name, c := range map[string]struct {
		path, by string
		body     graph.Body
	}{
		"a node":             {by: "think", body: graph.TaskRetry{}},
		"a request":          {by: "think", body: graph.ValueEmitted{Value: agent.RetryScheduled{}}},
		"the node of a team": {path: "team/lead/", by: team.Node, body: graph.TaskRetry{}},
	} {
		got := report(t, helper, stillLook, true, func(s *scene) {
			s.starts(c.path, "think", "llm")
			s.emits(c.path, "think", agent.ReasoningDelta{Text: "Old thoughts."})
			s.event("", c.by, 0, c.body)
			s.emits(c.path, "think", agent.ReasoningDelta{Text: "New thoughts."})
			s.emits(c.path, "think", agent.TextDelta{Text: "So."})
			s.emits(c.path, "think", agent.ReplyDone{})
		})
		if strings.Contains(got, "Old") || !strings.Contains(got, "New thoughts.") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}
