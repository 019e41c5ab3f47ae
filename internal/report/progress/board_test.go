//go:build unix

package progress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// stillLook has no motion and no colours.
var stillLook = NewLook(false, func(name string) string { return map[string]string{"NO_MOTION": "1", "LANG": "C.UTF-8"}[name] })

// A play is a sequence of events of a run over time.
type play struct {
	b  *statusBoard
	at time.Time
}

func newPlay(agent string, talks bool) *play {
	return &play{b: newStatusBoard(agent, talks), at: time.Unix(0, 0)}
}

func (p *play) event(path, node string, index int, body graph.Body) {
	p.b.handleEvent(graph.Event{Time: p.at, Path: path, Node: node, Task: fmt.Sprintf("1.%s.%d", node, index), Body: body})
}

func (p *play) starts(path, node, kind string) {
	p.event(path, node, 0, graph.TaskStarted{Kind: kind})
}
func (p *play) emits(path, node string, v any) {
	p.event(path, node, 0, graph.ValueEmitted{Value: v})
}
func (p *play) done(path, node string) { p.event(path, node, 0, graph.TaskDone{}) }

func (p *play) shows(cols, most int) string {
	return strings.Join(renderBoard(p.b, p.at, cols, most, stillLook), "\n")
}

const scout, second, third, fourth = "agent_explore_1f2e3d4c", "agent_explore_00000002", "agent_review_00000003", "agent_flow_00000004"

// teamwork is a lead that waits for the first of three agents, one of which was
// spawned by another, and a task that waits for a place.
func teamwork() *play {
	p := newPlay("boss", true)
	p.starts("", "begin", "begin")
	p.done("", "begin")
	p.starts("", team.Node, "team")
	p.starts("team/lead/", "think", "llm")
	p.emits("team/lead/", "think", agent.ReplyDone{Usage: llm.Usage{Input: 1500, Output: 100}})
	p.done("team/lead/", "think")
	p.starts("team/lead/", "act", "tools")
	p.emits("", team.Node, team.AgentStarted{ID: scout, Agent: "explore", Parent: team.Lead, Purpose: "find the cellar"})
	p.emits("", team.Node, team.AgentStarted{ID: second, Agent: "explore", Parent: team.Lead, Task: "1"})
	p.emits("", team.Node, team.TaskWaiting{ID: "2", Subject: "Look\x1b[2J again", Agent: "explore", Parent: team.Lead})
	p.emits("team/lead/", "act", agent.ToolStarted{ID: "c", Name: "agent__collect", Args: json.RawMessage(`{"id":"` + scout + `"}`)})
	for _, id := range []string{scout, second} {
		p.starts("team/"+id+"/", "begin", "begin")
		p.done("team/"+id+"/", "begin")
		p.starts("team/"+id+"/", "think", "llm")
	}
	p.at = p.at.Add(65 * time.Second)
	p.emits("team/"+scout+"/", "think", agent.TextDelta{Text: "It is\nin the\x1b[31m cellar."})
	p.emits("team/"+second+"/", "think", agent.ReplyDone{Usage: llm.Usage{Input: 10, Output: 2}})
	p.done("team/"+second+"/", "think")
	p.starts("team/"+second+"/", "act", "tools")
	p.emits("team/"+second+"/", "act", agent.ToolStarted{ID: "c", Name: "fs_grep"})
	p.emits("", team.Node, team.AgentStarted{ID: third, Agent: "review", Parent: scout})
	p.starts("team/"+third+"/", "act", "tools")
	p.event("team/"+third+"/", "act", 0, graph.TaskDone{Waiting: true})
	p.at = p.at.Add(2 * time.Second)
	return p
}

type boardTest struct {
	p          *play
	then       func(p *play)
	cols, most int
	want       string
}

func testBoards(t *testing.T, tests map[string]boardTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.then != nil {
				test.then(test.p)
			}
			got := test.p.shows(test.cols, test.most)
			if d := cmp.Diff(strings.TrimPrefix(test.want, "\n"), got); d != "" {
				t.Errorf("-want +got\n%s\n%s", d, got)
			}
			for line := range strings.Lines(got) {
				if n := term.TextWidth(strings.TrimRight(line, "\n")); n > test.cols {
					t.Errorf("%d columns, of %d: %q", n, test.cols, line)
				}
			}
		})
	}
}

func TestBoard(t *testing.T) {
	testBoards(t, map[string]boardTest{
		"nothing": {p: newPlay("a", true), cols: 80, most: 9},
		"a conversation": {p: newPlay("helper", true), then: func(p *play) {
			p.starts("", "think", "llm")
			p.emits("", "think", agent.TextDelta{Text: "I say"})
			p.at = p.at.Add(3 * time.Second)
		}, cols: 80, most: 9, want: "… helper  3 s    writing  “I say”"},
		"too short to be told": {p: newPlay("helper", true), then: func(p *play) {
			p.starts("", "think", "llm")
			p.at = p.at.Add(patience - 1)
		}, cols: 80, most: 9},
		"a node": {p: newPlay("g", false), then: func(p *play) {
			p.starts("", "fetch", "script")
			p.at = p.at.Add(3 * time.Second)
		}, cols: 80, most: 9, want: "… fetch  3 s    running"},
		"agents at the same time": {p: newPlay("g", false), then: func(p *play) {
			p.starts("", "research", "agent")
			p.starts("", "review", "agent")
			p.starts("research/", "begin", "begin")
			p.done("research/", "begin")
			p.starts("research/", "think", "llm")
			p.starts("review/", "draft", "llm")
			p.emits("review/", "draft", agent.TextDelta{Text: "So"})
			p.at = p.at.Add(3 * time.Second)
		}, cols: 80, most: 9, want: `
… research      3 s    thinking
  review/draft  3 s    writing  “So”`},
		"branches of a map": {p: newPlay("g", false), then: func(p *play) {
			p.starts("", "fan", "map")
			p.event("fan/", "each", 0, graph.TaskStarted{Kind: "script"})
			p.event("fan/", "each", 1, graph.TaskStarted{Kind: "script"})
			p.event("fan/", "each", 2, graph.TaskStarted{Kind: "script"})
			p.event("fan/", "each", 1, graph.TaskDone{})
			p.at = p.at.Add(3 * time.Second)
		}, cols: 80, most: 9, want: `
… fan       3 s    1 of 3 done · 2 running · 0 failed  ▏████        ▏
    each    3 s    running
    each·2  3 s    running`},
	})
}

func TestBoardOfATeam(t *testing.T) {
	testBoards(t, map[string]boardTest{
		"a team": {p: teamwork(), cols: 110, most: 9, want: `
… boss                              1m07s  1.6k tokens  waiting for explore·1
    explore·1: find the cellar      1m07s               writing  “It is in the cellar.”
      review·1                      2 s                 waiting for you
    explore·2                       1m07s  12 tokens    calling fs_grep
    explore for task 2: Look again                      waiting for a place`},
		"a graph among agents, and one that waits for a place": {p: teamwork(), then: func(p *play) {
			p.emits("", team.Node, team.AgentEnded{ID: third, Agent: "review", Status: "completed"})
			p.emits("", team.Node, team.AgentStarted{ID: fourth, Agent: "flow", Parent: scout, Purpose: "sum it up"})
			p.emits("", team.Node, team.AgentQueued{ID: "agent_explore_00000005", Agent: "explore", Parent: scout, Purpose: "and the attic"})
			p.emits("", team.Node, team.AgentQueued{ID: "agent_explore_00000006", Agent: "explore", Parent: scout, Purpose: "too late"})
			p.emits("", team.Node, team.AgentEnded{ID: "agent_explore_00000006", Agent: "explore", Status: "cancelled"})
			p.starts("team/"+fourth+"/", "one", "script")
			p.done("team/"+fourth+"/", "one")
			p.starts("team/"+fourth+"/", "two", "script")
			p.starts("team/"+fourth+"/", "write", "agent")
			p.starts("team/"+fourth+"/write/", "think", "llm")
			p.at = p.at.Add(time.Second)
		}, cols: 110, most: 9, want: `
… boss                              1m08s  1.6k tokens  waiting for explore·1
    explore·1: find the cellar      1m08s               writing  “It is in the cellar.”
      flow·1: sum it up             1 s
        two                         1 s                 running
        write                       1 s                 thinking
      explore·3: and the attic                          waiting for a place
    explore·2                       1m08s  12 tokens    calling fs_grep
    explore for task 2: Look again                      waiting for a place`},
		"more than there is room for": {p: teamwork(), cols: 60, most: 3, want: `
… boss                          1m07s  waiting for explore·1
    explore·1: find the cellar  1m07s  writing  “…e cellar.”
  and 3 more`},
		"one line": {p: teamwork(), cols: 40, most: 1, want: "… 5 running: boss, explore·1, review·1, "},
		"narrow": {p: teamwork(), cols: 20, most: 2, want: `
… boss  waiting for…
  and 4 more`},
		"a place is free, one has ended, one has asked and was cancelled": {p: teamwork(), then: func(p *play) {
			p.emits("", team.Node, team.AgentEnded{ID: second, Agent: "explore", Status: "completed"})
			p.emits("", team.Node, team.AgentStarted{ID: "agent_explore_00000004", Agent: "explore", Parent: team.Lead, Task: "2"})
			p.emits("", team.Node, team.AgentEnded{ID: third, Agent: "review", Status: "cancelled"})
			p.at = p.at.Add(time.Second)
		}, cols: 100, most: 9, want: `
… boss                          1m08s  1.6k tokens  waiting for explore·1
    explore·1: find the cellar  1m08s               writing  “It is in the cellar.”
    explore·3                   1 s                 thinking`},
		"the lead ends": {p: teamwork(), then: func(p *play) {
			p.done("", team.Node)
			p.starts("", "done", "end")
		}, cols: 100, most: 9, want: "… boss  1m07s  thinking"},
		"another drive": {p: teamwork(), then: func(p *play) {
			p.event("", "", 0, graph.RunEnded{})
			p.starts("", team.Node, "team")
			p.emits("", team.Node, team.AgentStarted{ID: second, Agent: "explore", Parent: team.Lead, Resumed: true})
			p.starts("team/lead/", "act", "tools")
			p.at = p.at.Add(time.Second)
		}, cols: 100, most: 9, want: `
… boss         1 s    1.6k tokens  thinking
    explore·2  1 s    12 tokens    thinking`},
	})
}

// A node that waits for a server of tools says so.
func TestBoardShowsStartsOfServers(t *testing.T) {
	p := newPlay("helper", true)
	p.starts("", "think", "llm")
	p.emits("", "think", agent.ServerStarting{Server: "shop"})
	p.at = p.at.Add(5 * time.Second)
	if got, want := p.shows(80, 5), "… helper  5 s    starting server shop"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.emits("", "think", agent.ServerStarting{Server: "shop", Over: true})
	if got, want := p.shows(80, 5), "… helper  5 s    thinking"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A wait for a provider is counted down, and is over when the model speaks.
func TestBoardShowsWaits(t *testing.T) {
	p := newPlay("helper", true)
	p.starts("", "think", "llm")
	p.emits("", "think", agent.TextDelta{Text: "half"})
	p.emits("", "think", agent.RetryScheduled{Reason: "rate limited", Wait: 20 * time.Second, Request: 2})
	p.at = p.at.Add(5 * time.Second)
	if got, want := p.shows(80, 5), "… helper  5 s    rate limited, again in 15 s (request 2)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.at = p.at.Add(16 * time.Second)
	if got, want := p.shows(80, 5), "… helper  21 s   thinking"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A board of many rows costs no more than reading them.
func TestBoardOfMany(t *testing.T) {
	p := newPlay("g", false)
	p.starts("", "fan", "map")
	const many = 2000
	for i := range many {
		p.event("fan/", "each", i, graph.TaskStarted{Kind: "llm"})
	}
	p.at = p.at.Add(time.Second)
	lines := renderBoard(p.b, p.at, 80, 5, stillLook)
	if len(lines) != 5 || !slices.Contains(lines, fmt.Sprintf("  and %d more", many-3)) {
		t.Errorf("%q", lines)
	}
}

func TestARowShowsHowFarACallIs(t *testing.T) {
	p := newPlay("boss", true)
	p.starts("", "act", "")
	p.emits("", "act", agent.ToolStarted{ID: "a", Name: "mcp__it__copy", Args: []byte("{}")})
	p.at = p.at.Add(5 * time.Second)
	for _, c := range []struct{ text, want string }{
		{"1 of 4", "calling mcp__it__copy: 1 of 4"},
		{"2 of 4", "calling mcp__it__copy: 2 of 4"},
		{"\x1b[31mred\nline", "calling mcp__it__copy: red"},
		{strings.Repeat("long ", 50), "calling mcp__it__copy: long long"},
	} {
		p.emits("", "act", agent.ToolProgress{ID: "a", Name: "mcp__it__copy", Text: c.text})
		p.emits("", "act", agent.ToolProgress{ID: "other", Name: "mcp__it__copy", Text: "of another call"})
		if got := p.shows(120, 5); !strings.Contains(got, c.want) || strings.ContainsAny(got, "\x1b\n") {
			t.Errorf("the row is %q, want %q", got, c.want)
		}
	}
	p.emits("", "act", agent.ToolDone{ID: "a", Name: "mcp__it__copy"})
	if got := p.shows(120, 5); strings.Contains(got, "copy") {
		t.Errorf("after the call: %q", got)
	}
}

// A map of twelve shows how far it is, and the items that run, on terminals of several widths.
func TestBoardOfAMap(t *testing.T) {
	p := newPlay("g", false)
	p.starts("", "each", "map")
	p.event("each/", flow.MapStart, 0, graph.TaskStarted{Kind: "map"})
	p.event("each/", flow.MapStart, 0, graph.TaskDone{Update: graph.Update{Send: make([]graph.Send, 12)}})
	for i := range 11 {
		p.event("each/", "one", i+1, graph.TaskStarted{Kind: "llm"})
		if i < 7 {
			p.event("each/", "one", i+1, graph.TaskDone{})
		}
	}
	p.event("each/", "one", 9, graph.ValueEmitted{Value: agent.ReasoningDelta{Text: "Let me see"}})
	p.event("each/", "one", 10, graph.ValueEmitted{Value: agent.TextDelta{Text: "日本語 This is a reply that is longer than the line"}})
	p.event("each/", "one", 11, graph.ValueEmitted{Value: agent.RetryScheduled{Reason: "rate limited", Wait: 5 * time.Second, Request: 2}})
	p.at = p.at.Add(3 * time.Second)
	for cols, want := range map[int]string{
		20: `
… each      7 of 12…
    one·8   thinking
    one·9   thinking
    one·10  writing
    one·11  rate li…`,
		40: `
… each      3 s    7 of 12 done · 4 run…
    one·8   3 s    thinking
    one·9   3 s    thinking  “…t me see”
    one·10  3 s    writing  “… the line”
    one·11  3 s    rate limited, again …`,
		80: `
… each      3 s    7 of 12 done · 4 running · 0 failed  ▏███████     ▏
    one·8   3 s    thinking
    one·9   3 s    thinking  “Let me see”
    one·10  3 s    writing  “…本語 This is a reply that is longer than the line”
    one·11  3 s    rate limited, again in 2 s (request 2)`,
		200: `
… each      3 s    7 of 12 done · 4 running · 0 failed  ▏███████     ▏
    one·8   3 s    thinking
    one·9   3 s    thinking  “Let me see”
    one·10  3 s    writing  “日本語 This is a reply that is longer than the line”
    one·11  3 s    rate limited, again in 2 s (request 2)`,
	} {
		if d := cmp.Diff(strings.TrimPrefix(want, "\n"), p.shows(cols, 12)); d != "" {
			t.Errorf("%d columns (-want +got):\n%s", cols, d)
		}
	}
}

// A reply that begins again takes its first words with it, also those of the graphs below a task that begins again; a
// reply of another task stays.
func TestBoardForgetsWithdrawnReplies(t *testing.T) {
	retry := graph.TaskRetry{Attempt: 1, MaxAttempts: 2}
	for name, c := range map[string]struct {
		path, node string // of what is written
		by         string // the node that begins again
		body       graph.Body
		want       string
	}{
		"a node":             {node: "think", by: "think", body: retry, want: "Second."},
		"a request":          {node: "think", by: "think", body: graph.ValueEmitted{Value: agent.RetryScheduled{}}, want: "Second."},
		"the node above":     {path: "work/", node: "think", by: "work", body: retry, want: "Second."},
		"the node of a team": {path: "team/lead/", node: "think", by: team.Node, body: retry, want: "Second."},
		"another node":       {node: "think", by: "other", body: retry, want: "First try. Second."},
	} {
		for _, thinks := range []bool{false, true} {
			p := newPlay("helper", true)
			p.starts(c.path, c.node, "llm")
			piece := func(text string) {
				if thinks {
					p.emits(c.path, c.node, agent.ReasoningDelta{Text: text})
				} else {
					p.emits(c.path, c.node, agent.TextDelta{Text: text})
				}
			}
			piece("First try. ")
			p.event("", c.by, 0, c.body)
			piece("Second.")
			if got := p.b.findRow(c.path).text; got != c.want {
				t.Errorf("%s, thinks %v: the row has %q, want %q", name, thinks, got, c.want)
			}
		}
	}
}
