package story

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/draw"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// moment returns a moment at a second of a run.
func moment(second int, kind journal.Kind, path, node string) runs.Moment {
	return runs.Moment{Entry: history.Entry{Time: time.Unix(int64(second), 0), Kind: kind, Path: path}, Node: node}
}

func step(second int, path, node string, from, to []string) runs.Moment {
	m := moment(second, journal.KindStep, path, node)
	m.From, m.Next = from, to
	return m
}

func TestPictureOfARun(t *testing.T) {
	s := graph.Structure{
		Start: []string{"plan"},
		Nodes: []graph.NodeInfo{{Name: "plan", Kind: "llm"}, {Name: "each", Kind: "map"}, {Name: "one", Kind: "llm"}, {Name: "boss", Kind: "agent", Child: &graph.Structure{
			Nodes: []graph.NodeInfo{{Name: flow.PictureModel, Kind: "model"}, {Name: flow.PictureTools, Kind: "tools"}, {Name: "helper", Kind: "agent"}},
		}}, {Name: "ask", Kind: "approval"}, {Name: "done", Kind: "end"}},
		Edges: []graph.EdgeInfo{{From: "plan", To: "each"}, {From: "each", To: "boss"}, {From: "boss", To: "plan"}, {From: "boss", To: "ask"}, {From: "ask", To: "done"}},
	}
	reply := func(second int, path, node string, tokens int) runs.Moment {
		m := moment(second, journal.KindEffect, path, node)
		m.Reply = &flow.Reply{Usage: llm.Usage{Input: tokens}}
		return m
	}
	start := moment(0, journal.KindStart, "", "")
	start.Next = []string{"plan"}
	inner := moment(6, journal.KindStep, "2.boss.0/", "boss")
	inner.Inner, inner.From, inner.Next = true, []string{"begin"}, []string{"think"}
	call := moment(7, journal.KindEffect, "2.boss.0/", "boss")
	call.Call = &runs.ToolCall{Tool: "fs_read"}
	story := []runs.Moment{
		start, reply(1, "", "plan", 100), step(2, "", "", []string{"plan"}, []string{"each"}),
		reply(3, "1.each.0/", "each/one[1]", 10), reply(4, "1.each.0/", "each/one[2]", 20), step(5, "", "", []string{"each"}, []string{"boss"}),
		inner, reply(6, "2.boss.0/", "boss", 7), call, reply(8, "2.boss.0/1.team.0#agent_helper_00000001/", "boss/team/agent_helper_00000001", 5),
		step(9, "", "", []string{"boss"}, []string{"plan"}), step(12, "", "", []string{"plan"}, []string{"ask"}),
	}
	d := &runs.Detail{Info: runs.Info{Run: "r", Agent: "a", Status: "waiting"}, Snapshot: &history.Snapshot{RunInfo: history.RunInfo{Status: graph.Waiting}, Questions: []graph.Question{{ID: "ask"}}}}
	var o draw.Options
	AddRun(&o, &s, d, story)
	want := map[string]draw.Note{
		"plan": {Status: "done", Text: "2× · 5.0 s · 100 tokens"}, "each": {Status: "done", Text: "3.0 s · 30 tokens"}, "one": {Status: "done", Text: "30 tokens"},
		"boss": {Status: "done", Text: "4.0 s · 12 tokens · 1 call"}, "boss/model": {Status: "done", Text: "7 tokens"}, "boss/tools": {Status: "done", Text: "1 call"},
		"boss/helper": {Status: "done", Text: "5 tokens"}, "ask": {Status: "waiting", Text: "waits"},
	}
	if diff := cmp.Diff(want, o.Run); diff != "" {
		t.Error(diff)
	}
	taken := map[[2]string]bool{{"plan", "each"}: true, {"each", "boss"}: true, {"boss", "plan"}: true}
	if diff := cmp.Diff(taken, o.Taken); diff != "" {
		t.Error(diff)
	}
	if o.Title != "a · r · waiting" {
		t.Error(o.Title)
	}
	for status, want := range map[string]draw.Note{"running": {Status: "running", Text: "running"}, "crashed": {Status: "failed", Text: "failed"}} {
		d.Status, d.Snapshot.Status, d.Snapshot.Questions = status, graph.Crashed, nil
		if AddRun(&o, &s, d, story); o.Run["ask"] != want {
			t.Errorf("%s: %+v", status, o.Run["ask"])
		}
	}
}

func TestStructureOfAStory(t *testing.T) {
	start := moment(0, journal.KindStart, "", "")
	start.Next = []string{"a"}
	got := StructureOf(&runs.Detail{Info: runs.Info{Agent: "x"}}, []runs.Moment{start, step(1, "", "", []string{"a"}, []string{"b", "c"}), step(2, "1.b.0/", "b", []string{"in"}, nil), step(3, "", "", []string{"b", "c"}, []string{"a"}), step(4, "", "", []string{"a"}, []string{"b", "c"})})
	want := graph.Structure{Name: "x", Start: []string{"a"}, Nodes: []graph.NodeInfo{{Name: "a"}, {Name: "b"}, {Name: "c"}},
		Edges: []graph.EdgeInfo{{From: "a", To: "b", Kind: "edge"}, {From: "a", To: "c", Kind: "edge"}, {From: "b", To: "a", Kind: "edge"}, {From: "c", To: "a", Kind: "edge"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
