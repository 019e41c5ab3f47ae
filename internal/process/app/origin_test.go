//go:build unix

package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/graphtest"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runfile"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// sentFiles are an agent with a tool that notes what it was called with, in the directory in which it works.
var sentFiles = map[string]string{
	"bot/config.yaml": "name: bot\nmodel: script:t.yaml\n",
	"bot/tools.sh":    "# @cmd Notes a text.\n# @option --text!\nrun_it() { echo \"$argc_text\" >>ran.txt; }\n",
	"bot/t.yaml": "- {turn: 1, tool_calls: [{name: run_it, args: {text: one}}]}\n- {turn: 2, tool_calls: [{name: run_it, args: {text: two}}]}\n" +
		"- {turn: 3, text: done}\n",
}

// A sentRun is an exported run, made by someone who wants its next step to happen on another machine.
type sentRun struct {
	id   string
	file []byte
}

// sendRun makes a run of bot whose next call was allowed elsewhere, with a start record that change has changed, and exports it.
// answer is what was said to the first call; ahead are answers that its start brought.
func sendRun(t *testing.T, answer string, ahead []graph.Answer, change func(*runs.Record)) sentRun {
	t.Helper()
	m := newMachine(t, journal.NewMemory())
	m.write(sentFiles)
	run, err := m.StartRun(Request{Agent: "bot", Prompt: "go", UIHooks: UIHooks{Mode: permission.NewModeSwitch(permission.ModeAsk)}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := run.Drive(t.Context(), Driver{Ahead: ahead, Ask: answerAll(answer)})
	run.Close()
	if err != nil || res.Status != graph.Done {
		t.Fatal(res.Status, err)
	}
	st := openStore(t, m.Process)
	at := int64(0)
	for c, err := range history.Checkpoints(t.Context(), st, run.Thread) {
		if err != nil {
			t.Fatal(err)
		}
		snap, err := history.Inspect(t.Context(), st, run.Thread, c.Seq)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := agent.ReadEntries(snap.Values, 0)
		if err == nil && len(entries) > 0 && strings.Contains(string(callArgs(entries[len(entries)-1])), "two") && at == 0 {
			at = c.Seq
		}
	}
	rec := *run.Record
	rec.Mode = ""
	change(&rec)
	meta, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	id := graph.NewID(time.Now())
	if err := history.ForkWithMeta(t.Context(), st, run.Thread, at, id, meta); err != nil {
		t.Fatal(err)
	}
	f, err := runfile.Collect(t.Context(), runfile.Source{Archive: m.Runs, Run: id, Secrets: m.Tools.SecretSet()})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	return sentRun{id, b.Bytes()}
}

func callArgs(e agent.Entry) json.RawMessage {
	if calls := e.Message.ToolCalls(); len(calls) > 0 {
		return calls[0].Args
	}
	return nil
}

// answerAll gives the same answer to every question.
func answerAll(value string) AskFunc {
	return func(_ context.Context, open []graph.Question) (list []graph.Answer, park bool, err error) {
		for _, q := range open {
			list = append(list, graph.Answer{ID: q.ID, Value: value})
		}
		return list, false, nil
	}
}

// receiver is a machine with bot, onto which runs are imported, and a directory that is none of their business.
func newReceiver(t *testing.T) (m *machine, private string) {
	t.Helper()
	m = newMachine(t, journal.NewMemory(), "OWN_VALUE=the-value-of-this-machine")
	m.write(sentFiles)
	private = filepath.Join(m.home, "private")
	if err := os.MkdirAll(private, 0o700); err != nil {
		t.Fatal(err)
	}
	return m, private
}

func (m *machine) importRun(s sentRun) runfile.Imported {
	m.t.Helper()
	f, err := runfile.Read(bytes.NewReader(s.file))
	if err != nil {
		m.t.Fatal(err)
	}
	done, err := f.Import(m.t.Context(), openStore(m.t, m.Process), "bug.raddle")
	if err != nil {
		m.t.Fatal(err)
	}
	return done
}

// ran returns what the tool has noted in a directory.
func ran(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "ran.txt"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// Each thing that a journal can say in favour of itself is shown before the run continues, and does not count unless a person
// accepts the run as a whole. Until then nothing runs, whatever is done with the run.
func TestForeignRun(t *testing.T) {
	for name, c := range map[string]struct {
		answer string
		ahead  []graph.Answer
		change func(r *runs.Record, private string)
		shown  string
		left   func(r *runs.Record, private string) bool // whether the record has none of it
	}{
		"permission":          {answer: "run", shown: "permission: run_it"},
		"answers given ahead": {ahead: []graph.Answer{{Value: "once"}, {Value: "once"}, {Value: "once"}}, shown: `answer given ahead: any question = "once"`},
		"mode":                {change: func(r *runs.Record, _ string) { r.Mode = "plan" }, shown: "mode: plan", left: func(r *runs.Record, _ string) bool { return r.Mode == "ask" }},
		"workspace":           {change: func(*runs.Record, string) {}, shown: "workspace: PRIVATE; you are in", left: func(r *runs.Record, private string) bool { return r.Workspace != private }},
		"headless":            {change: func(r *runs.Record, _ string) { r.Headless = true }, shown: "headless: no one is asked", left: func(r *runs.Record, _ string) bool { return !r.Headless }},
		"model of all":        {change: func(r *runs.Record, _ string) { r.Override = "openai:expensive" }, shown: "model: openai:expensive", left: func(r *runs.Record, _ string) bool { return r.Override == "" }},
		"model":               {change: func(r *runs.Record, _ string) { r.Model = "openai:expensive" }, shown: "model: openai:expensive", left: func(r *runs.Record, _ string) bool { return r.Model == "" }},
		"templates":           {change: func(r *runs.Record, _ string) { r.Templates = map[string]string{"n": "obey"} }, shown: "prompt of node: n=obey", left: func(r *runs.Record, _ string) bool { return r.Templates == nil }},
		"variables":           {change: func(r *runs.Record, _ string) { r.Variables = map[string]string{"a": "b"} }, shown: "variable: a=b", left: func(r *runs.Record, _ string) bool { return r.Variables == nil }},
		"values of this place": {change: func(r *runs.Record, _ string) {
			r.Variables, r.VariablesFrom = map[string]string{"a": "[redacted]"}, map[string]string{"a": "OWN_VALUE"}
		}, shown: "value from your environment: a=OWN_VALUE", left: func(r *runs.Record, _ string) bool { return r.Variables == nil && r.VariablesFrom == nil }},
		"environment":      {change: func(r *runs.Record, _ string) { r.Overrides = map[string]string{"BOT_MODEL": "x:y"} }, shown: "variable of the environment: BOT_MODEL=x:y", left: func(r *runs.Record, _ string) bool { return r.Overrides == nil }},
		"approved scripts": {change: func(r *runs.Record, _ string) { r.Approved = []string{"bot", "other"} }, shown: "approved scripts: other", left: func(r *runs.Record, _ string) bool { return r.Approved == nil }},
		"bundle":           {change: func(r *runs.Record, _ string) { r.Bundle = strings.Repeat("ab", 32) }, shown: "bundle abab", left: func(r *runs.Record, _ string) bool { return r.Bundle == "" }},
		"other runs": {change: func(r *runs.Record, _ string) {
			r.Named, r.Remote, r.Parent = "/", true, &runs.Parent{Run: "x", Question: "q"}
		}, shown: "agent: bot", left: func(r *runs.Record, _ string) bool { return r.Named == "" && !r.Remote && r.Parent == nil }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, private := newReceiver(t)
			if c.answer == "" {
				c.answer = "once"
			}
			s := sendRun(t, c.answer, c.ahead, func(r *runs.Record) {
				r.Dir, r.Workspace = filepath.Join(m.Dirs.Agents, "bot"), private
				for i := range r.Sources {
					if filepath.IsAbs(r.Sources[i].Path) {
						r.Sources[i].Path = filepath.Join(r.Dir, filepath.Base(r.Sources[i].Path))
					}
				}
				if c.change != nil {
					c.change(r, private)
				}
			})
			m.importRun(s)
			q := m.checkUndecided(s.id, private)
			if shown := strings.ReplaceAll(c.shown, "PRIVATE", private); !strings.Contains(q.Prompt, shown) || !strings.Contains(q.Prompt, `call that waits: run_it {"text":"two"}`) {
				t.Errorf("the question does not show %q:\n%s", shown, q.Prompt)
			}
			m.checkContinued(s.id, private, c.left)
		})
	}
}

// checkUndecided does everything with an imported run that is possible before someone has decided about it. It returns the question.
func (m *machine) checkUndecided(id, private string) graph.Question {
	m.t.Helper()
	ctx := m.t.Context()
	for range 2 {
		run, err := m.ResumeRun(ctx, id, ResumeOptions{})
		if err != nil {
			m.t.Fatal(err)
		}
		asked := 0
		for _, d := range []Driver{{}, {Reply: func(graph.Question) (any, bool) { return "continue", true }}, {Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
			asked++
			return []graph.Answer{{ID: open[0].ID, Value: "no"}}, false, nil
		}}} {
			if res, err := run.Drive(ctx, d); err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 || res.Questions[0].Kind != flow.KindTrust {
				m.t.Errorf("before a decision: %v, %v, %v", res.Status, res.Questions, err)
			}
		}
		if asked != 1 {
			m.t.Errorf("the person was asked %d times", asked)
		}
		for _, a := range []graph.Answer{{ID: runs.OriginQuestion, Value: "yes"}, {ID: "bot", Value: "once"}, {Value: "once"}} {
			if err := run.CheckAnswers(ctx, a); err == nil {
				m.t.Errorf("the answer %v is accepted", a)
			}
		}
		run.Close()
	}
	fork, _, err := m.ForkRun(ctx, Fork{From: id, Set: nil})
	if err != nil {
		m.t.Fatal(err)
	}
	for _, id := range []string{id, fork} {
		d, err := m.Runs.ReadRunDetail(ctx, id)
		if err != nil || d.Foreign == nil || d.Foreign.From != "bug.raddle" || d.Status != "waiting" || len(d.Snapshot.Questions) != 1 || d.Snapshot.Questions[0].ID != runs.OriginQuestion {
			m.t.Fatalf("%s: %+v, %v", id, d, err)
		}
	}
	open, _, _, err := m.Runs.ListOpenRuns(ctx, runs.OpenPoint{}, 0)
	if err != nil || len(open) < 2 || slices.ContainsFunc(open, func(r runs.OpenRun) bool { return r.Open[0].Kind != flow.KindTrust }) {
		m.t.Errorf("the inbox has %d runs, %v", len(open), err)
	}
	f, err := runfile.Collect(ctx, runfile.Source{Archive: m.Runs, Run: id, Secrets: m.Tools.SecretSet()})
	if err != nil || len(f.Agents) > 0 {
		m.t.Errorf("an export of it has files of this machine: %v, %v", f.Agents, err)
	}
	if got := ran(m.t, private) + ran(m.t, m.Dirs.Work); got != "" {
		m.t.Errorf("before a decision, the tool has run: %q", got)
	}
	d, _ := m.Runs.ReadRunDetail(ctx, id)
	return d.Snapshot.Questions[0]
}

// checkContinued continues an imported run with nothing of what it brought: its next call asks.
func (m *machine) checkContinued(id, private string, left func(*runs.Record, string) bool) {
	m.t.Helper()
	run, err := m.ResumeRun(m.t.Context(), id, ResumeOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	var kinds []string
	res, err := run.Drive(m.t.Context(), Driver{Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		kinds = append(kinds, open[0].Kind)
		if open[0].Kind == agent.KindPermission {
			return nil, false, nil
		}
		return []graph.Answer{{ID: open[0].ID, Value: runs.OriginContinue}}, false, nil
	}})
	if err != nil || res.Status != graph.Waiting || !slices.Equal(kinds, []string{flow.KindTrust, agent.KindPermission}) {
		m.t.Errorf("after the decision: %v, asked %v, %v", res.Status, kinds, err)
	}
	if left != nil && !left(run.Record, private) {
		m.t.Errorf("after the decision its record is %+v", run.Record)
	}
	run.Close()
	if got := ran(m.t, private) + ran(m.t, m.Dirs.Work); got != "" {
		m.t.Errorf("the tool has run without permission: %q", got)
	}
	m.Dirs.Work = m.t.TempDir() // the decision says where it works, not where the person is next time
	again, err := m.ResumeRun(m.t.Context(), id, ResumeOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer again.Close()
	if left != nil && !left(again.Record, private) || again.Record.Workspace != filepath.Join(m.home, "work") || again.Mode.Mode() != "ask" {
		m.t.Errorf("a later resume has %+v in mode %s", again.Record, again.Mode.Mode())
	}
	res, err = again.Drive(m.t.Context(), Driver{Ask: answerAll("once")})
	if err != nil || res.Status != graph.Done || ran(m.t, filepath.Join(m.home, "work")) != "two" || ran(m.t, private) != "" {
		m.t.Errorf("allowed, it is %v with %v, and has noted %q and %q", res.Status, err, ran(m.t, filepath.Join(m.home, "work")), ran(m.t, private))
	}
}

// A run that is accepted as a whole does what was shown, where that was shown, and nothing is asked again. A copy from before what
// was shown asks again, and so does the run when it is removed and imported again.
func TestForeignRunIsAccepted(t *testing.T) {
	m, private := newReceiver(t)
	s := sendRun(t, "run", nil, func(r *runs.Record) {
		r.Dir, r.Workspace, r.Mode = filepath.Join(m.Dirs.Agents, "bot"), private, "ask"
		for i := range r.Sources {
			if filepath.IsAbs(r.Sources[i].Path) {
				r.Sources[i].Path = filepath.Join(r.Dir, filepath.Base(r.Sources[i].Path))
			}
		}
	})
	ctx := t.Context()
	for range 2 {
		if done := m.importRun(s); done.Known {
			t.Fatalf("%+v", done)
		}
		if done := m.importRun(s); !done.Known {
			t.Fatalf("%+v", done)
		}
		m.checkUndecided(s.id, private)
		run, err := m.ResumeRun(ctx, s.id, ResumeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := RecordChange(ctx, m.Process, RunChange{Run: run, Answers: []graph.Answer{{ID: runs.OriginQuestion, Value: runs.OriginAccept, By: "ann"}}}); err != nil {
			t.Fatal(err)
		}
		if run.Record.Workspace != private || run.Mode.Mode() != "ask" || ran(t, private) != "" {
			t.Errorf("accepted, it has %+v", run.Record)
		}
		res, err := run.Drive(ctx, Driver{})
		run.Close()
		if err != nil || res.Status != graph.Done || ran(t, private) != "two" || ran(t, m.Dirs.Work) != "" {
			t.Errorf("accepted, it is %v with %v and %v", res.Status, res.Questions, err)
		}
		list, err := m.Runs.ListCheckpoints(ctx, s.id)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []runs.Checkpoint{list[1], list[len(list)-1]} {
			fork, _, err := m.ForkRun(ctx, Fork{From: runs.Point{Run: s.id, At: c.At}.String()})
			if err != nil {
				t.Fatal(err)
			}
			mark, err := foreign.Find(ctx, openStore(t, m.Process), fork)
			if err != nil || mark == nil || mark.Accepted == nil || mark.Accepted.By != "ann" {
				t.Errorf("copy %d at @%d: %+v, %v", i, c.At, mark, err)
			}
			if _, err := m.Runs.RemoveRun(ctx, fork); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range []string{s.id} {
			if _, err := m.Runs.RemoveRun(ctx, r); err != nil {
				t.Fatal(err)
			}
		}
		for info, err := range m.Runs.EachRun(ctx, runs.RunRange{}) {
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Runs.RemoveRun(ctx, info.Run); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(filepath.Join(private, "ran.txt")); err != nil {
			t.Fatal(err)
		}
	}
}

// No one decides for a run whose content is not what was shown.
func TestForeignRunThatWasReplaced(t *testing.T) {
	m, private := newReceiver(t)
	send := func(text string) sentRun {
		return sendRun(t, "run", nil, func(r *runs.Record) {
			r.Dir, r.Workspace, r.Prompt = filepath.Join(m.Dirs.Agents, "bot"), private, text
		})
	}
	s := send("first")
	m.importRun(s)
	st := openStore(t, m.Process)
	mark, err := foreign.Find(t.Context(), st, s.id)
	if err != nil || mark == nil {
		t.Fatal(mark, err)
	}
	mark.Accepted = &foreign.Acceptance{Whole: true, Head: 1, Sum: 12345}
	if err := foreign.Put(t.Context(), st, s.id, *mark); err != nil {
		t.Fatal(err)
	}
	m.checkUndecided(s.id, private)
}

// A file cannot name its threads like the marks, or like the files of agents, and a run that is here already stays this store's own.
func TestForeignNames(t *testing.T) {
	m, private := newReceiver(t)
	s := sendRun(t, "run", nil, func(r *runs.Record) { r.Dir, r.Workspace = filepath.Join(m.Dirs.Agents, "bot"), private })
	f, err := runfile.Read(bytes.NewReader(s.file))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{foreign.NameThread(s.id), "agent:" + strings.Repeat("ab", 32)} {
		evil := *f
		evil.Threads = []runfile.Thread{{Name: name, Records: f.Threads[len(f.Threads)-1].Records}}
		evil.Thread = name
		var b bytes.Buffer
		if err := evil.Write(&b); err != nil {
			t.Fatal(err)
		}
		if _, err := runfile.Read(&b); err == nil || !strings.Contains(err.Error(), "cannot be the name of a run") {
			t.Errorf("%s: %v", name, err)
		}
	}
	testfile.WriteFiles(t, m.Dirs.Agents, map[string]string{"own/graph.yaml": "name: own\nstart: q\nnodes:\n  q: {type: input, question: Well?, next: e}\n  e: {type: end}\n"})
	own := m.park("own")
	file, err := runfile.Collect(t.Context(), runfile.Source{Archive: m.Runs, Run: own.ID, Secrets: m.Tools.SecretSet()})
	if err != nil {
		t.Fatal(err)
	}
	if done, err := file.Import(t.Context(), openStore(t, m.Process), "x"); err != nil || !done.Known {
		t.Errorf("%+v, %v", done, err)
	}
	if mark, err := foreign.Find(t.Context(), openStore(t, m.Process), own.ID); mark != nil || err != nil {
		t.Errorf("the store's own run is marked: %+v, %v", mark, err)
	}
}

// A decision is recorded by one write, and what follows from it is made up for: at each write of the store and for each way to fail, an
// error leaves the question open or, if the store does not say, the whole decision; and what the run brought counts in no case.
func TestForeignDecisionIsWhole(t *testing.T) {
	for _, fault := range graphtest.StoreFaults {
		for n := 1; ; n++ {
			m := newMachine(t, journal.NewMemory())
			failing := &graphtest.Failing{Store: journal.NewMemory()}
			if err := m.Runs.AttachStore(failing); err != nil {
				t.Fatal(err)
			}
			m.write(sentFiles)
			s := sendRun(t, "run", nil, func(r *runs.Record) {
				r.Dir = filepath.Join(m.Dirs.Agents, "bot")
				for i := range r.Sources {
					if filepath.IsAbs(r.Sources[i].Path) {
						r.Sources[i].Path = filepath.Join(r.Dir, filepath.Base(r.Sources[i].Path))
					}
				}
			})
			m.importRun(s)
			run, err := m.ResumeRun(t.Context(), s.id, ResumeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			failing.Arm(fault, n, n)
			at, given := RecordChange(t.Context(), m.Process, RunChange{Run: run, Answers: []graph.Answer{{ID: runs.OriginQuestion, Value: runs.OriginContinue}}})
			hit := failing.Hits() > 0
			failing.Arm(graphtest.StoreFault{}, 0, 0)
			run.Close()
			mark, err := foreign.FindCurrent(t.Context(), failing, s.id, 0)
			if err != nil || given == nil && (mark.IsOpen() || at.At == 0) || given != nil && !mark.IsOpen() && !failure.IsUnavailable(given) {
				t.Errorf("%s, write %d: %v at %v, and the mark says %+v, %v", fault.Name, n, given, at, mark, err)
			}
			m.checkContinuedAgain(s.id, mark.IsOpen())
			if !hit {
				break
			}
		}
	}
}

// checkContinuedAgain continues an imported run about which someone has decided, unless it is open, and sees that its next call asks.
func (m *machine) checkContinuedAgain(id string, open bool) {
	m.t.Helper()
	run, err := m.ResumeRun(m.t.Context(), id, ResumeOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	defer run.Close()
	res, err := run.Drive(m.t.Context(), Driver{})
	if err != nil || len(res.Questions) != 1 || (res.Questions[0].ID == runs.OriginQuestion) != open || !open && res.Questions[0].Kind != agent.KindPermission || ran(m.t, m.Dirs.Work) != "" {
		m.t.Errorf("it is %s with %v, %v, and has run %q", res.Status, res.Questions, err, ran(m.t, m.Dirs.Work))
	}
}

// A turn that a person starts here in a session from elsewhere is this person's own: it asks no question about where the session came from, and
// what it was allowed counts. A branch that ends in a turn from elsewhere is foreign, and so is its copy.
func TestOwnTurnsOfAForeignSession(t *testing.T) {
	files := map[string]string{"bot/config.yaml": sentFiles["bot/config.yaml"], "bot/tools.sh": sentFiles["bot/tools.sh"],
		"bot/t.yaml": "- {text: hello}\n- {tool_calls: [{name: run_it, args: {text: own}}]}\n- {text: done}\n"}
	from := newMachine(t, journal.NewMemory())
	from.write(files)
	run, err := from.StartRun(Request{Agent: "bot", Prompt: "hi", Session: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Done {
		t.Fatal(res.Status, err)
	}
	run.Close()
	f, err := runfile.Collect(t.Context(), runfile.Source{Archive: from.Runs, Run: run.Thread, Secrets: from.Tools.SecretSet()})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := f.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(from.Dirs.Agents); err != nil { // another machine
		t.Fatal(err)
	}
	m, _ := newReceiver(t)
	m.write(files)
	m.importRun(sentRun{run.Thread, b.Bytes()})
	st := openStore(t, m.Process)
	foreignHead := int64(0)
	for rec, err := range st.Read(t.Context(), run.Thread, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		foreignHead = rec.Seq
	}
	own, err := m.StartRun(Request{Agent: "bot", Prompt: "run it", Session: "talk", UIHooks: UIHooks{Mode: permission.NewModeSwitch(permission.ModeAsk)}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := own.Drive(t.Context(), Driver{})
	own.Close()
	if err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	d, err := m.Runs.ReadRunDetail(t.Context(), own.Thread)
	if err != nil || d.Foreign != nil || len(d.Snapshot.Questions) != 1 || d.Snapshot.Questions[0].Kind != agent.KindPermission {
		t.Errorf("%+v, %v", d.Foreign, err)
	}
	branch := own.Thread + "~2"
	if err := runs.ForkThread(t.Context(), st, journal.Point{Thread: own.Thread, Seq: foreignHead}, branch); err != nil {
		t.Fatal(err)
	}
	copied, _, err := m.ForkRun(t.Context(), Fork{From: own.Thread})
	if err != nil {
		t.Fatal(err)
	}
	for thread, want := range map[string]bool{own.Thread: false, copied: false, branch: true} {
		mark, err := foreign.FindCurrent(t.Context(), st, thread, 0)
		if err != nil || (mark != nil) != want {
			t.Errorf("%s is foreign: %+v, %v", thread, mark, err)
		}
	}
	if mark, err := foreign.FindCurrent(t.Context(), st, own.Thread, foreignHead); err != nil || mark == nil {
		t.Errorf("its turn from elsewhere is not foreign: %v", err)
	}
	again, err := m.ResumeRun(t.Context(), own.Thread, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if res, err := again.Drive(t.Context(), Driver{Ask: answerAll("once")}); err != nil || res.Status != graph.Done || ran(t, m.Dirs.Work) != "own" {
		t.Errorf("it is %s with %v, %v, and has run %q", res.Status, res.Questions, err, ran(t, m.Dirs.Work))
	}
}
