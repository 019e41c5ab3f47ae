package runs

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
)

// placesOf returns what events of the kinds that journals hold are about: kind, path and node, each once, sorted.
func placesOf(events []graph.Event) (places []string) {
	for _, ev := range events {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", ev.Body), "graph.")
		node := ev.Node
		switch b := ev.Body.(type) {
		case graph.StepCommitted:
			node = strings.Join(b.Nodes, ", ") + " -> " + strings.Join(b.Next, ", ")
		case graph.ValueEmitted:
			switch b.Value.(type) {
			case agent.ReplyDone, agent.ToolStarted, agent.ToolDone:
			default:
				continue
			}
			kind = strings.TrimPrefix(fmt.Sprintf("%T", b.Value), "agent.")
			node = ""
		case graph.TaskStarted:
		case graph.QuestionAsked:
			node = b.Question.ID
		case graph.RunStarted, graph.RunEnded:
			if ev.Path != "" { // of a child graph: a journal has them only for drives
				continue
			}
		default:
			continue
		}
		places = append(places, kind+" "+ev.Path+" "+node)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// What follows a run says where its events happen in the words of the drive: the nodes above, each with a slash, and the
// lead of a team below the node of the team.
func TestFollowerHasThePathsOfTheDrive(t *testing.T) {
	for thread, g := range map[string]*graph.Graph{"counter": compileCounter(t), "team": compileTeam(t), "nested": compileNested(t)} {
		t.Run(thread, func(t *testing.T) {
			st := journal.NewMemory()
			a := NewArchive(config.Dirs{State: t.TempDir()}, "")
			if err := a.AttachStore(st); err != nil {
				t.Fatal(err)
			}
			var driven []graph.Event
			in := graph.Input{Thread: "r1", Run: "r1", Topics: graph.AllTopics}
			if thread != "nested" {
				in.Set = agent.Turn("Where is it?")
			}
			for ev, err := range (&graph.Runner{Graph: g, Store: st}).Run(t.Context(), in) {
				if err != nil {
					t.Fatal(err)
				}
				driven = append(driven, ev)
			}
			followed, more, err := a.FollowRun("r1").ReadEvents(t.Context(), false)
			if err != nil || more {
				t.Fatalf("more %t, %v", more, err)
			}
			if d := cmp.Diff(placesOf(driven), placesOf(followed)); d != "" {
				t.Errorf("(-the drive +what follows it):\n%s", d)
			}
		})
	}
}

// compileNested returns a graph with a node that runs another graph, which asks.
func compileNested(t *testing.T) *graph.Graph {
	t.Helper()
	g, err := graph.Compile(graph.Def{
		Name:  "nested",
		Nodes: []graph.Node{{Name: "child", Graph: compileAsking(t)}},
		Edges: []graph.Edge{{From: []string{"child"}, To: []string{graph.End}}},
		Start: []string{"child"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Each end of a drive says what the run was then: the result of a turn of a session, and the questions of a run that
// waited and then continued.
func TestFollowerReadsEnds(t *testing.T) {
	st := journal.NewMemory()
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	session := NameSession("asking", "main")
	r := &graph.Runner{Graph: compileAsking(t), Store: st}
	for _, run := range []string{"s1", "s2"} {
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: session, Run: run, Label: "asking"}); err != nil {
			t.Fatal(err)
		}
		answer := graph.Resume{Thread: session, Answers: []graph.Answer{{ID: "ask", Value: run}}}
		if _, err := r.InvokeResume(t.Context(), answer); err != nil {
			t.Fatal(err)
		}
	}
	for _, run := range []string{"s1", "s2"} {
		events, more, err := a.FollowRun(run).ReadEvents(t.Context(), false)
		if err != nil || more {
			t.Fatalf("more %t, %v", more, err)
		}
		ends := 0
		for _, ev := range events {
			end, ok := ev.Body.(graph.RunEnded)
			if !ok {
				continue
			}
			ends++
			want, err := history.Inspect(t.Context(), st, session, ev.Record)
			if err != nil {
				t.Fatal(err)
			}
			got := end.Result
			if got.Status != want.Status || got.Steps != want.Steps || cmp.Diff(want.Questions, got.Questions) != "" || cmp.Diff(want.Result, got.Value) != "" {
				t.Errorf("run %s, record %d: %+v, want %+v", run, ev.Record, got, want)
			}
		}
		if ends != 2 {
			t.Errorf("run %s has %d ends, want 2", run, ends)
		}
	}
}
