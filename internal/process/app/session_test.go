//go:build unix

package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// talker is an agent that keeps a list over its turns and asks in one of them.
const talker = `
name: Talker
model: script:t.yaml
agent_session: main
auto_continue: true
max_auto_continues: 1
variables: [{name: who, description: who is served, default: unknown}]
instructions: "You serve {{who}}. Mark: first file."
`

const talk = `
- match: ALPHA
  turn: 1
  tool_calls: [{name: todo__init, args: {goal: tea}}, {name: todo__add, args: {task: boil water}}, {name: todo__done, args: {id: 1}}, {name: todo__add, args: {task: pour}}]
- match: ALPHA
  turn: 2
  text: begun
- match: ALPHA
  turn: 3
  text: still begun
- match: BETA
  text: let me see
  tool_calls: [{name: user__input, args: {question: "How much?"}}]
- match: BETA
  text: asked
- match: GAMMA
  tool_calls: [{name: todo__list, args: {}}]
- match: GAMMA
  text: went on
- match: GAMMA
  text: went on again
`

// turn runs one turn of an agent in a process of its own, as a command does.
func turn(t *testing.T, work string, req Request, d Driver) (*Run, graph.Result, error) {
	t.Helper()
	p, err := Open(Options{Work: work, Environ: []string{"HOME=" + filepath.Join(work, "home"), "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	run, err := p.StartRun(req)
	if err != nil {
		return nil, graph.Result{}, err
	}
	defer run.Close()
	res, err := run.Drive(t.Context(), d)
	return run, res, err
}

// A turn of a session loads its agent once, and twice if only the session has the value of a variable.
func TestLoadsOfATurn(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "waiter", "config.yaml"), "name: waiter\nmodel: script:t.yaml\nagent_session: main\nvariables: [{name: who, description: who is served}]\ninstructions: Serve {{who}}.\n")
	testfile.WriteFile(t, filepath.Join(work, "waiter", "t.yaml"), "[{match: first, text: one}, {match: second, text: two}, {match: third, text: three}]\n")
	ada := map[string]string{"who": "Ada"}
	for i, test := range []struct {
		prompt    string
		variables map[string]string
		want      int
	}{{"first", ada, 1}, {"second", ada, 1}, {"third", nil, 2}} {
		var log strings.Builder
		trace := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: flow.LevelTrace}))
		if _, _, err := turn(t, work, Request{Agent: "./waiter", Prompt: test.prompt, Variables: test.variables, UIHooks: UIHooks{Log: trace}}, Driver{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "loading the agent"); n != test.want {
			t.Errorf("turn %d loads its agent %d times, want %d", i+1, n, test.want)
		}
	}
}

// Runs of a session are turns of one conversation: its messages, its list and its
// instructions continue, and each turn is a run with its own id and budgets.
func TestSession(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "talker", "config.yaml"), talker)
	testfile.WriteFile(t, filepath.Join(work, "talker", "t.yaml"), talk)
	first, res, err := turn(t, work, Request{Agent: "./talker", Prompt: "ALPHA", Variables: map[string]string{"who": "Ada"}}, Driver{})
	if err != nil || flow.OutcomeOf(res).Output != "still begun" {
		t.Fatalf("%+v %v", res, err)
	}
	if first.Thread != "session/talker/main" || first.ID == first.Thread || agent.Continued.Get(res.State) != 1 {
		t.Errorf("thread %s of run %s, %d continuations", first.Thread, first.ID, agent.Continued.Get(res.State))
	}
	// The file may change between turns; the instructions of the conversation stay.
	testfile.WriteFile(t, filepath.Join(work, "talker", "config.yaml"), strings.Replace(talker, "first file", "second file", 1)+"max_iterations: 9\n")
	second, res, err := turn(t, work, Request{Agent: "./talker", Prompt: "GAMMA"}, Driver{})
	if err != nil || flow.OutcomeOf(res).Output != "went on again" {
		t.Fatalf("%+v %v", res, err)
	}
	if second.Thread != first.Thread || second.ID == first.ID || second.Record.Variables["who"] != "Ada" {
		t.Errorf("second turn: %s %s %v", second.Thread, second.ID, second.Record.Variables)
	}
	if got, n := agent.Spent.Get(res.State).Calls, agent.Continued.Get(res.State); got != 3 || n != 1 {
		t.Errorf("the second turn has spent %d calls and %d continuations, want its own 3 and 1", got, n)
	}
	said := fmt.Sprint(agent.History(res.State))
	if !strings.Contains(said, "ALPHA") || !strings.Contains(said, "boil water") || agent.Todo.Get(res.State).Open() != 1 {
		t.Errorf("the conversation is %s with the list %+v", said, agent.Todo.Get(res.State))
	}
	p := look(t, work)
	for id, want := range map[string]string{first.ID: "still begun", second.ID: "went on again", "session/talker/main": "went on again"} {
		d, err := p.Runs.ReadRunDetail(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if got := flow.OutcomeOf(graph.Result{Value: d.Snapshot.Result}).Output; got != want || d.Session != "main" || d.Status != "done" {
			t.Errorf("%s shows %q, %+v", id, got, d.Info)
		}
	}
	if c, err := p.Runs.ReadModelCalls(t.Context(), second.ID); err != nil || c.Count != 3 {
		t.Errorf("calls %+v %v", c, err)
	}
	if c, err := p.Runs.ReadModelCalls(t.Context(), first.ID); err != nil || c.Count != 3 {
		t.Errorf("calls of the first turn: %+v %v", c, err)
	}
	all := 0
	for _, id := range []string{first.ID, second.ID} {
		_, entries, err := p.Runs.ReadHistory(t.Context(), id)
		if err != nil || len(entries) == 0 || entries[len(entries)-1].Kind != journal.KindStart || entries[0].Kind != journal.KindEnd {
			t.Errorf("the records of %s: %v %v", id, entries, err)
		}
		all += len(entries)
	}
	if _, entries, err := p.Runs.ReadHistory(t.Context(), first.Thread); err != nil || len(entries) != all {
		t.Errorf("the session has %d records, its runs %d: %v", len(entries), all, err)
	}
	list, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != 1 || list[0].Run != second.ID || list[0].Session != "main" {
		t.Errorf("runs %+v %v", list, err)
	}
	if _, err := p.Runs.RemoveRun(t.Context(), first.ID); err == nil || !strings.Contains(err.Error(), "earlier turn") {
		t.Errorf("an earlier turn was removed: %v", err)
	}
}

func look(t *testing.T, work string) *Process {
	t.Helper()
	p, err := Open(Options{Work: work, Environ: []string{"HOME=" + filepath.Join(work, "home"), "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// A session whose last turn is not over says how to continue, and continues.
func TestSessionThatWaits(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "talker", "config.yaml"), talker)
	testfile.WriteFile(t, filepath.Join(work, "talker", "t.yaml"), talk)
	waiting, res, err := turn(t, work, Request{Agent: "./talker", Prompt: "BETA", Session: "other"}, Driver{})
	if err != nil || res.Status != graph.Waiting || waiting.Thread != "session/talker/other" {
		t.Fatalf("%+v %v", res, err)
	}
	_, _, err = turn(t, work, Request{Agent: "./talker", Prompt: "GAMMA", Session: "other"}, Driver{})
	e, ok := errors.AsType[*failure.Error](err)
	if !ok || e.Kind != failure.Stale || !strings.Contains(e.Next, "raddle resume "+waiting.ID) {
		t.Fatalf("%v", err)
	}
	p := look(t, work)
	run, err := p.ResumeRun(t.Context(), waiting.ID, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := look(t, work).StartRun(Request{Agent: "./talker", Prompt: "GAMMA", Session: "other"}); err == nil || !strings.Contains(err.Error(), "session 'other' of agent 'talker' is being driven by process") {
		t.Errorf("two processes drive one session: %v", err)
	}
	res, err = run.Drive(t.Context(), Driver{Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		return []graph.Answer{{ID: open[0].ID, Value: "2"}}, false, nil
	}})
	run.Close()
	if err != nil || flow.OutcomeOf(res).Output != "asked" {
		t.Fatalf("%+v %v", res, err)
	}
	if _, res, err = turn(t, work, Request{Agent: "./talker", Prompt: "GAMMA", Session: "other"}, Driver{}); err != nil || flow.OutcomeOf(res).Output != "went on" {
		t.Errorf("%+v %v", res, err)
	}
}

// A turn that was killed or is no longer wanted can be cancelled: the next one
// is informed of what was interrupted.
func TestSessionGivenUp(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "talker", "config.yaml"), talker)
	testfile.WriteFile(t, filepath.Join(work, "talker", "t.yaml"), talk)
	waiting, res, err := turn(t, work, Request{Agent: "./talker", Prompt: "BETA"}, Driver{})
	if err != nil || res.Status != graph.Waiting {
		t.Fatalf("%+v %v", res, err)
	}
	if _, err := look(t, work).Runs.CancelRun(t.Context(), waiting.ID); err != nil {
		t.Fatal(err)
	}
	_, res, err = turn(t, work, Request{Agent: "./talker", Prompt: "GAMMA"}, Driver{})
	if err != nil || res.Status != graph.Done {
		t.Fatalf("%+v %v", res, err)
	}
	if said := fmt.Sprint(agent.History(res.State)); !strings.Contains(said, "The call was cut off") {
		t.Errorf("the model was told %s", said)
	}
}

// "temp" and an empty name create no session; graphs refuse one.
func TestNoSession(t *testing.T) {
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "talker", "config.yaml"), talker)
	testfile.WriteFile(t, filepath.Join(work, "talker", "t.yaml"), talk)
	testfile.WriteFile(t, filepath.Join(work, "plain", "config.yaml"), strings.Replace(talker, "agent_session: main\n", "", 1))
	testfile.WriteFile(t, filepath.Join(work, "plain", "t.yaml"), talk)
	testfile.WriteFile(t, filepath.Join(work, "g", "graph.yaml"), "name: g\nstart: done\nnodes: {done: {type: end, output: x}}\n")
	for _, req := range []Request{{Agent: "./talker", Session: "temp"}, {Agent: "./plain"}} {
		req.Prompt = "GAMMA"
		if run, _, err := turn(t, work, req, Driver{}); err != nil || run.Thread != run.ID {
			t.Errorf("%+v: thread %v, %v", req, run, err)
		}
	}
	for _, req := range []Request{{Agent: "./g", Session: "x"}, {Agent: "./talker", Session: "a/b"}, {Agent: "./talker", Session: "a@1"}} {
		if _, _, err := turn(t, work, req, Driver{}); err == nil {
			t.Errorf("%+v was taken", req)
		}
	}
	testfile.WriteFile(t, filepath.Join(work, "elsewhere", "talker", "config.yaml"), talker)
	testfile.WriteFile(t, filepath.Join(work, "elsewhere", "talker", "t.yaml"), talk)
	if _, _, err := turn(t, work, Request{Agent: "./talker", Prompt: "GAMMA"}, Driver{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := turn(t, work, Request{Agent: "./elsewhere/talker", Prompt: "GAMMA"}, Driver{}); err == nil || !strings.Contains(err.Error(), "belongs to the agent in talker") {
		t.Errorf("another agent of the same name: %v", err)
	}
}

// Over 100 turns, in make soak 200, a session's journal grows by the new messages, and what the model
// receives stays within the limits of the file, with a note on what was summarized.
func TestSessionOfManyTurns(t *testing.T) {
	turns := 100
	if testneed.Soaks() {
		turns = 200
	}
	w := newPlace(t)
	m := &model{t: t, text: strings.Repeat("sure ", 30), rounds: [][]call{{{"1", "todo__list", "{}"}}}}
	w.serve(m)
	w.write("a/config.yaml", "name: A\nagent_session: long\nauto_continue: true\ncompression_threshold: 2000\n")
	p, _ := w.process(-1)
	for i := range turns {
		w.finish(p, Request{Agent: "./a", Prompt: fmt.Sprint("turn ", i, strings.Repeat(" please", 20))}, nil)
	}
	bytes, at := make([]int, turns+1), make([]int, turns+1)
	turn := 0
	for r, err := range openStore(t, p).Read(t.Context(), "session/a/long", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == journal.KindStart {
			turn++
		}
		if r.Kind != journal.KindSnapshot {
			bytes[turn] += len(r.Head) + len(r.Data)
		}
	}
	for i := range turns {
		at[i+1] = at[i] + bytes[i+1]
	}
	early, late := (at[60]-at[20])/40, (at[turns]-at[turns-40])/40
	largest := 0
	for _, b := range m.bodies {
		largest = max(largest, len(b))
	}
	t.Logf("bytes a turn: %d early, %d late; %d requests, the largest of %d bytes", early, late, m.requests(), largest)
	if turn != turns || late > early+early/5 {
		t.Errorf("%d turns; one takes %d bytes of journal at first and %d in the end", turn, early, late)
	}
	if largest > 4*4*2000 {
		t.Errorf("the largest request has %d bytes", largest)
	}
	if last := m.request(m.requests() - 1); !strings.Contains(fmt.Sprint(last.Messages[1].Content), "Summary of ") {
		t.Errorf("the last request begins with %v", last.Messages[1].Content)
	}
}
