package migration

import (
	"testing"

	"raddle.dev/graph/internal/record"
)

// Steps lead from the version that is named, also by the beginning of its hash, to the newest one.
func TestFindSteps(t *testing.T) {
	entries := []Entry{{From: "1", Steps: []Step{{To: "a"}}}, {From: "34df00a3f2ea", Steps: []Step{{To: "b"}}}, {From: "digest", Steps: []Step{{To: "c"}}}}
	for name, want := range map[string]string{"1": "abc", "34df00a3f2ea9999": "bc", "digest": "c", "digester": "", "": "", "34df00a3": ""} {
		got := ""
		steps, _ := findSteps(entries, "", name)
		for _, s := range steps {
			got += s.To
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A renamed node takes what its task has done, the graphs below it, its failures, visits and arrivals.
func TestRenameNode(t *testing.T) {
	f := &record.Frame{
		Step: 2, Tasks: []record.Task{{Node: "a", Index: 1}, {Node: "ab"}}, Visits: map[string]int{"a": 3},
		Done: map[string][]byte{"2.ab.0": nil}, Effects: map[string][]byte{"2.a.1\x00e\x000": {1}, "2.ab.0\x00e\x000": {2}},
		Asks: map[string]*record.AskedQuestion{"2.a.1\x00q\x000": {Question: record.Question{ID: "a", Node: "a"}}}, Order: []string{"2.a.1\x00q\x000"},
		Arrived: []record.Arrival{{Join: "a+x>y", Source: "a"}}, Failures: []record.Failure{{Node: "x", Handler: "a"}},
	}
	s := &record.ThreadState{Frames: map[string]*record.Frame{"": f, "2.a.1/": {}, "2.a.1#k/": {}, "2.ab.0/": {}}}
	s.Run.Broken = map[string]int{"2.a.1/": 4}
	m := &mover{state: s, frame: f, was: map[string]string{}, wrote: map[string]bool{}}
	if done, err := m.applyStep(Step{Op: RenameNode, From: "a", To: "b"}); err != nil || done != "node a is now b" {
		t.Fatal(done, err)
	}
	if f.Tasks[0].Node != "b" || f.Visits["b"] != 3 || f.Effects["2.b.1\x00e\x000"] == nil || f.Effects["2.ab.0\x00e\x000"] == nil || f.Order[0] != "2.b.1\x00q\x000" ||
		f.Asks[f.Order[0]].Question.Node != "b" || f.Asks[f.Order[0]].Question.ID != "a" || f.Arrived[0] != (record.Arrival{Join: "b+x>y", Source: "b"}) || f.Failures[0].Handler != "b" {
		t.Errorf("%+v", f)
	}
	if s.Frames["2.b.1/"] == nil || s.Frames["2.b.1#k/"] == nil || s.Frames["2.ab.0/"] == nil || len(s.Frames) != 4 || s.Run.Broken["2.b.1/"] != 4 {
		t.Errorf("%v, %v", s.Frames, s.Run.Broken)
	}
	if _, err := m.applyStep(Step{Op: RenameNode, From: "ab", To: "b"}); err != nil {
		t.Error(err) // another index: no conflict
	}
}

// A moved task begins again, and a task that has written a key that changes runs again.
func TestMoveAndRepeat(t *testing.T) {
	update := &record.TaskUpdate{Writes: []record.Patch{{Key: "k"}}}
	f := &record.Frame{
		Tasks: []record.Task{{Node: "a"}, {Node: "w", Over: []record.Patch{{Key: "k", Value: []byte("1")}}}}, Visits: map[string]int{"a": 1},
		Done: map[string][]byte{"0.w.0": update.Encode()}, Effects: map[string][]byte{"0.a.0\x00e\x000": {1}, "0.w.0\x00e\x000": {1}},
		Asks: map[string]*record.AskedQuestion{"0.a.0\x00q\x000": {Base: "a"}}, Order: []string{"0.a.0\x00q\x000"}, Keys: map[string][]record.Patch{"k": {{Key: "k"}}}, Tags: map[string]string{},
	}
	s := &record.ThreadState{Frames: map[string]*record.Frame{"": f, "0.a.0/": {}}, Asked: map[string]int{"a": 1}}
	m := &mover{state: s, frame: f, was: map[string]string{}, wrote: map[string]bool{}}
	for _, step := range []Step{{Op: MoveTask, From: "a", To: "b"}, {Op: RenameKey, From: "k", To: "n"}} {
		if done, err := m.applyStep(step); err != nil || done == "" {
			t.Fatal(done, err)
		}
	}
	if f.Tasks[0].Node != "b" || len(f.Effects) != 1 || len(f.Asks)+len(f.Order)+len(s.Asked)+len(f.Done) != 0 || len(s.Frames) != 1 || f.Tasks[1].Over[0].Key != "n" || f.Keys["n"] == nil || !m.wrote["k"] {
		t.Errorf("%+v, %v", f, s.Asked)
	}
	f.Keys["k"] = f.Keys["n"]
	if _, err := m.applyStep(Step{Op: RenameKey, From: "k", To: "n"}); err == nil {
		t.Error("a key takes the place of another one")
	}
}
