//go:build unix

package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
)

// remoteFiles are an agent that waits for a run of another one.
func remoteFiles() map[string]string {
	return map[string]string{
		"near/graph.yaml": "name: near\nvariables:\n  - {name: token, description: A token.}\nstart: ask\nnodes:\n  ask: {type: agent, agent: helper, prompt: \"for {{initial_prompt}}\", queue: gpu, timeout: 7, next: each}\n" +
			"  each: {type: map, over: \"{{list}}\", as: item, branch: say, queue: gpu, output_key: said, collect_into: all, next: end}\n  say: {type: script, script: say.sh}\n" +
			"  end: {type: end, output: \"{{all}}\"}\ninitial_state: {list: [1]}\n",
		"near/say.sh":       "#!/usr/bin/env bash\nprintf '{\"said\": \"%s in %s\"}' \"$(cat \"$(dirname \"$0\")/version.txt\")\" \"$RADDLE_WORKSPACE\"\n",
		"near/version.txt":  "v1",
		"helper/graph.yaml": movingHelper, "helper/say.sh": "#!/usr/bin/env bash\necho '{\"said\": \"helper-v1\"}'\n",
	}
}

// startRemote starts the run that the only open question of a run waits for, as a worker does.
func (m *machine) startRemote(run *Run) *runs.Detail {
	m.t.Helper()
	d, err := m.Runs.ReadRunDetail(m.t.Context(), run.ID)
	if err != nil || len(d.Snapshot.Questions) != 1 {
		m.t.Fatalf("%+v, %v", d, err)
	}
	q := d.Snapshot.Questions[0]
	call, ok := graph.RemoteCallOf(&q)
	if !ok {
		m.t.Fatalf("the question is %+v", q)
	}
	child, err := m.StartRemoteRun(run, d, &q, call)
	if err != nil {
		m.t.Fatal(err)
	}
	defer child.Close()
	if err := child.RecordRemoteStart(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	if d, err = m.Runs.ReadRunDetail(m.t.Context(), call.Run); err != nil || d.Status != "paused" || d.Record.Parent == nil || *d.Record.Parent != (runs.Parent{Run: run.ID, Question: q.ID}) {
		m.t.Fatalf("the child is %+v, %v", d, err)
	}
	return d
}

// driveRemote drives the run of a child to its end, and returns the answer to the question of its parent.
func (m *machine) driveRemote(d *runs.Detail) graph.Answer {
	m.t.Helper()
	run, err := m.ResumeRun(m.t.Context(), d.Run, ResumeOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(m.t.Context(), Driver{}); err != nil || res.Status != graph.Done {
		m.t.Fatal(res.Status, err, res.Questions)
	}
	v, err := m.Runs.ReadView(m.t.Context(), d.Run)
	if err != nil {
		m.t.Fatal(err)
	}
	a, err := m.RemoteAnswer(m.t.Context(), v, v.Record.Parent.Question, "")
	if err != nil {
		m.t.Fatal(err)
	}
	return a
}

// A child has the settings of the run that waits for it, and its files: the machine of its queue has neither of the agents.
func TestRemoteRunOnAnotherMachine(t *testing.T) {
	st := journal.NewMemory()
	a, b := newMachine(t, st, "SHOP_TOKEN=tok-0123456789abcdef"), newMachine(t, st, "SHOP_TOKEN=tok-0123456789abcdef")
	a.write(remoteFiles())
	run, err := a.StartRun(Request{Agent: "near", Prompt: "Ada", Variables: map[string]string{"token": "tok-0123456789abcdef"}, User: "zoe", Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Drive(t.Context(), Driver{})
	if err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	if open, _, _, err := a.Runs.ListOpenRuns(t.Context(), runs.OpenPoint{}, 0); err != nil || len(open) != 0 {
		t.Errorf("people are asked %+v, %v", open, err)
	}
	child := a.startRemote(run)
	if rec := child.Record; rec.Agent != "helper" || rec.Prompt != "for Ada" || rec.Workspace != run.Record.Workspace || !rec.Remote || rec.Input.Timeout.Seconds() != 7 || rec.Input.Depth != 1 ||
		rec.Named != run.Record.Dir || strings.Contains(rec.Variables["token"], "0123456789") || child.Snapshot.User != "zoe" || rec.Bundle == "" || rec.Bundle == run.Record.Bundle {
		t.Errorf("the child's record is %+v, for %q", rec, child.Snapshot.User)
	}
	run.Close()
	away := a.home + ".away"
	if err := os.Rename(a.home, away); err != nil {
		t.Fatal(err)
	}
	answer := b.driveRemote(child)
	if got, ok := answer.Value.(flow.RemoteResult); !ok || got.Output != "helper-v1" || got.Run != child.Run || answer.Refused != "" {
		t.Errorf("the answer is %+v", answer)
	}
	// The parent continues on the other machine with its bundle, and starts a run of one node from there.
	if run, err = b.ResumeRun(t.Context(), run.ID, ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if res, err = run.resumeDrive(t.Context(), Driver{}, []graph.Answer{answer}); err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	child = b.startRemote(run)
	if rec := child.Record; rec.Agent != "near" || rec.Input.Branch == nil || rec.Input.Branch.Node != "say" || rec.Input.State != nil || filepath.Base(rec.Dir) != "near" {
		t.Errorf("the child's record is %+v", rec)
	}
	if err := os.Rename(away, a.home); err != nil {
		t.Fatal(err)
	}
	answer = a.driveRemote(child)
	if got := answer.Value.(flow.RemoteResult); !strings.HasPrefix(got.Output, `"v1 in /`) {
		t.Errorf("the branch has %q", got.Output)
	}
	if res, err = run.resumeDrive(t.Context(), Driver{}, []graph.Answer{answer}); err != nil || res.Status != graph.Done || !strings.HasPrefix(flow.OutcomeOf(res).Output, `["v1 in /`) {
		t.Errorf("%s, %q, %v", res.Status, flow.OutcomeOf(res).Output, err)
	}
}

// The end of a child is the answer of its parent's question.
func TestRemoteAnswerOfAFailure(t *testing.T) {
	m := newMachine(t, journal.NewMemory())
	m.write(remoteFiles())
	run, err := m.StartRun(Request{Agent: "near", Variables: map[string]string{"token": "x"}, Remote: true})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if _, err := run.Drive(t.Context(), Driver{}); err != nil {
		t.Fatal(err)
	}
	child, err := m.Runs.ReadView(t.Context(), m.startRemote(run).Run)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := m.RemoteAnswer(t.Context(), child, "ask", "its workflow has ended"); err != nil || a.Refused != "Graph execution failed for agent 'helper': its workflow has ended" || a.ID != "ask" {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := runs.EndRun(t.Context(), m.Runs, child.Run, runs.TimePassed); err != nil {
		t.Fatal(err)
	}
	if err := child.Update(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, err := m.RemoteAnswer(t.Context(), child, "ask", ""); err != nil || !a.Value.(flow.RemoteResult).TimedOut || a.Refused != "run "+child.Run+" was cancelled" {
		t.Errorf("%+v, %v", a, err)
	}
}
