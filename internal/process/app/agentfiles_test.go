//go:build unix

package app

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/testfile"
)

// A machine has a home directory of its own, and a store that others use, too.
type machine struct {
	t    *testing.T
	home string
	*Process
}

// newMachine opens a process with an empty home directory on a store. To the process the store is a server's.
func newMachine(t *testing.T, st journal.Store, env ...string) *machine {
	t.Helper()
	m := &machine{t: t, home: filepath.Join(t.TempDir(), "home")}
	testfile.WriteFiles(t, m.home, map[string]string{"work/x": ""})
	var err error
	m.Process, err = Open(Options{Store: "postgres://db/runs", Work: filepath.Join(m.home, "work"), Environ: append(env, "HOME="+m.home, "PATH="+os.Getenv("PATH"), "RADDLE_BOX=false")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	if err := m.Runs.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	return m
}

// write writes files below the agents directory.
func (m *machine) write(files map[string]string) {
	m.t.Helper()
	testfile.WriteFiles(m.t, m.Dirs.Agents, files)
}

// park starts a run that stops at a question.
func (m *machine) park(agent string) *Run {
	m.t.Helper()
	run, err := m.StartRun(Request{Agent: agent, Prompt: "go"})
	if err != nil {
		m.t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(m.t.Context(), Driver{}); err != nil || res.Status != graph.Waiting {
		m.t.Fatal(res.Status, err)
	}
	return run
}

// finish resumes a run, answers its question, and returns its output.
func (m *machine) finish(id string, o ResumeOptions) (*Run, string) {
	m.t.Helper()
	run, err := m.ResumeRun(m.t.Context(), id, o)
	if err != nil {
		m.t.Fatal(err)
	}
	defer run.Close()
	res, err := run.Drive(m.t.Context(), Driver{Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		return []graph.Answer{{ID: open[0].ID, Value: "yes"}}, false, nil
	}})
	if err != nil || res.Status != graph.Done {
		m.t.Fatal(res.Status, err)
	}
	return run, strings.TrimSpace(flow.OutcomeOf(res).Output)
}

const moving = `
name: moving
start: ask
initial_state: {mine: "", theirs: ""}
nodes:
  ask: {type: input, question: "Well?", next: mine}
  mine: {type: script, script: scripts/mine.sh, next: theirs}
  theirs: {type: agent, agent: helper, prompt: x, state_updates: {theirs: "{{output}}"}, next: end}
  end: {type: end, output: "{{mine}} {{theirs}}"}
`

const movingHelper = `
name: helper
start: say
initial_state: {said: ""}
nodes:
  say: {type: script, script: say.sh, next: end}
  end: {type: end, output: "{{said}}"}
`

// movingFiles are an agent and one that it names, which say a version.
func movingFiles(version string) map[string]string {
	return map[string]string{
		"moving/graph.yaml": moving, "moving/version.txt": version,
		"moving/scripts/mine.sh": "#!/usr/bin/env bash\nprintf '{\"mine\": \"%s\"}' \"$(cat \"$(dirname \"$0\")/../version.txt\")\"\n",
		"helper/graph.yaml":      movingHelper, "helper/say.sh": "#!/usr/bin/env bash\necho '{\"said\": \"helper-" + version + "\"}'\n",
	}
}

// A run parks on a machine that is the only one with the agent. Another machine continues it to the end, also after the agent has
// changed, and so does the first machine: each with the files that the run started with.
func TestRunContinuesOnAnotherMachine(t *testing.T) {
	st := journal.NewMemory()
	a, b := newMachine(t, st), newMachine(t, st)
	a.write(movingFiles("v1"))
	moved, edited, here, accepted := a.park("moving"), a.park("moving"), a.park("moving"), a.park("moving")
	away := a.home + ".away"
	if err := os.Rename(a.home, away); err != nil {
		t.Fatal(err)
	}
	run, out := b.finish(moved.ID, ResumeOptions{})
	if out != "v1 helper-v1" {
		t.Errorf("the other machine continues with %q", out)
	}
	if want := filepath.Join(b.Dirs.Cache, "agents", moved.Record.Bundle, "moving"); run.Agent.Dir != want || len(run.Notices) != 2 {
		t.Errorf("it uses %s, want %s, and says %q", run.Agent.Dir, want, run.Notices)
	}
	if want := filepath.Join(b.Dirs.State, "workspaces", moved.ID); run.Record.Workspace != want {
		t.Errorf("its working directory is %s, want %s", run.Record.Workspace, want)
	}
	if err := os.Rename(away, a.home); err != nil {
		t.Fatal(err)
	}
	a.write(movingFiles("v2"))
	if _, out := b.finish(edited.ID, ResumeOptions{}); out != "v1 helper-v1" {
		t.Errorf("after the change, the other machine continues with %q", out)
	}
	if _, out := a.finish(here.ID, ResumeOptions{}); out != "v1 helper-v1" {
		t.Errorf("after the change, the same machine continues with %q", out)
	}
	if _, out := a.finish(accepted.ID, ResumeOptions{AcceptChanges: true}); out != "v2 helper-v2" {
		t.Errorf("with --accept-changes it continues with %q", out)
	}
	now := a.park("moving")
	if _, out := a.finish(now.ID, ResumeOptions{}); out != "v2 helper-v2" || now.Record.Bundle == moved.Record.Bundle {
		t.Errorf("a new run has %q, bundle %s", out, now.Record.Bundle)
	}
	list, err := a.Runs.ListRuns(t.Context(), "")
	tree, _, other := a.Runs.ListRunTree(t.Context(), 0)
	if err != nil || other != nil || len(list) != 5 || len(tree) != 5 {
		t.Errorf("the runs are %v, %v, the tree has %d, %v", list, err, len(tree), other)
	}
	if _, _, err := a.Runs.FindThread(t.Context(), "agent:"+moved.Record.Bundle); !errors.As(err, new(*runs.UnknownError)) {
		t.Errorf("a bundle is found as a run: %v", err)
	}
}

// Without a bundle in the store, files that differ or are missing stop a resume, as the guide says.
func TestResumeWithoutBundle(t *testing.T) {
	st := journal.NewMemory()
	a, b := newMachine(t, st), newMachine(t, st)
	a.write(movingFiles("v1"))
	run := a.park("moving")
	if err := st.Prune(t.Context(), "agent:"+run.Record.Bundle, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	a.write(map[string]string{"moving/scripts/mine.sh": "echo changed"})
	if _, err := a.ResumeRun(t.Context(), run.ID, ResumeOptions{}); err == nil || !strings.Contains(err.Error(), "scripts/mine.sh has changed") {
		t.Errorf("with another file: %v", err)
	}
	if err := os.RemoveAll(a.home); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ResumeRun(t.Context(), run.ID, ResumeOptions{}); err == nil || !strings.Contains(err.Error(), "there is no directory "+run.Record.Dir) {
		t.Errorf("without the agent: %v", err)
	}
}

// An agent with a secret in a file runs, but its files do not leave the machine; to publish it is an error.
func TestSecretsAreNotPublished(t *testing.T) {
	st := journal.NewMemory()
	m := newMachine(t, st, "SHOP_API_KEY=sk-live-0123456789abcdef")
	m.write(movingFiles("v1"))
	m.write(map[string]string{"moving/notes.txt": "key: sk-live-0123456789abcdef"})
	_, err := m.PublishAgent(t.Context(), "moving")
	if refused, ok := errors.AsType[*failure.Error](err); !ok || !strings.Contains(refused.Error(), "moving/notes.txt has a secret") {
		t.Errorf("publish: %v", err)
	}
	run := m.park("moving")
	if run.Record.Bundle != "" || len(run.Notices) != 1 || !strings.Contains(run.Notices[0], "moving/notes.txt has a secret") || strings.Contains(run.Notices[0], "0123456789") {
		t.Errorf("the run has bundle %q and says %q", run.Record.Bundle, run.Notices)
	}
	for th, err := range st.Threads(t.Context(), "agent:") {
		t.Errorf("the store has %s, %v", th.Name, err)
	}
	m.write(map[string]string{"moving/.raddleignore": "notes.txt\n", "moving/.env": "OTHER_TOKEN=tok-0123456789abcdef\n", "moving/version.txt": "tok-0123456789abcdef"})
	if _, err := m.PublishAgent(t.Context(), "moving"); err == nil || !strings.Contains(err.Error(), "moving/version.txt has a secret") {
		t.Errorf("a secret of the agent's .env: %v", err)
	}
	m.write(map[string]string{"moving/version.txt": "v1", "moving/.raddleignore": "notes.txt\nscripts\n"})
	if _, err := m.PublishAgent(t.Context(), "moving"); err == nil || !strings.Contains(err.Error(), "mine.sh, which is left out") {
		t.Errorf("a script that is left out: %v", err)
	}
	m.write(map[string]string{"moving/.raddleignore": "notes.txt\n"})
	done, err := m.PublishAgent(t.Context(), "moving")
	if err != nil || done.Files != 5 || done.Known {
		t.Errorf("publish: %+v, %v", done, err)
	}
	again, err := m.PublishAgent(t.Context(), "moving")
	if done.Known = true; err != nil || !cmp.Equal(done, again) {
		t.Errorf("publish again: %+v, %v", again, err)
	}
}

// A store of this machine gets no bundle from a run. A run uses one that was published.
func TestPublishInAFile(t *testing.T) {
	m := newMachine(t, journal.NewMemory())
	p, err := Open(Options{Work: m.Dirs.Work, Environ: []string{"HOME=" + m.home, "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m.Process = p
	m.write(movingFiles("v1"))
	if run := m.park("moving"); run.Record.Bundle != "" {
		t.Errorf("a run has published %s", run.Record.Bundle)
	}
	done, err := p.PublishAgent(t.Context(), "moving")
	if err != nil {
		t.Fatal(err)
	}
	run := m.park("moving")
	if run.Record.Bundle != done.Hash || !cmp.Equal(run.Record.Approved, []string{"moving", "helper"}) {
		t.Errorf("the run has bundle %q, want %s, approved %q", run.Record.Bundle, done.Hash, run.Record.Approved)
	}
	m.write(movingFiles("v2"))
	if _, out := m.finish(run.ID, ResumeOptions{}); out != "v1 helper-v1" {
		t.Errorf("it continues with %q", out)
	}
	if run := m.park("moving"); run.Record.Bundle != "" {
		t.Errorf("a run has published what was not published: %s", run.Record.Bundle)
	}
}

// Bundles stay as long as a run names them, whether it is over or not.
func TestBundlesOfRunsStay(t *testing.T) {
	st := journal.NewMemory()
	m := newMachine(t, st)
	m.write(movingFiles("v1"))
	one, two := m.park("moving"), m.park("moving")
	m.finish(one.ID, ResumeOptions{})
	makeOld(t, st, one.Record.Bundle)
	for _, step := range []struct {
		remove *Run
		want   int
	}{{nil, 0}, {two, 0}, {one, 1}} {
		if step.remove != nil {
			if _, err := m.Runs.RemoveRun(t.Context(), step.remove.ID); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := runs.RemoveUnusedBundles(t.Context(), m.Runs); n != step.want || err != nil {
			t.Errorf("after %v: %d bundles removed, want %d, %v", step.remove, n, step.want, err)
		}
	}
}

// makeOld writes a bundle again, as if that had been done long ago.
func makeOld(t *testing.T, st journal.Store, hash string) {
	t.Helper()
	var recs []journal.Record
	for r, err := range st.Read(t.Context(), "agent:"+hash, journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		r.Time = time.Now().Add(-24 * time.Hour).UnixMicro()
		recs = append(recs, r)
	}
	if err := errors.Join(st.Prune(t.Context(), "agent:"+hash, math.MaxInt64), st.Append(t.Context(), "agent:"+hash, 0, recs)); err != nil {
		t.Fatal(err)
	}
}

// The tools of an agent get the environment of the machine that continues the run. On the machine of the start they still get the
// agent's .env file, which is in no bundle.
func TestToolsGetTheEnvironmentOfTheMachine(t *testing.T) {
	st := journal.NewMemory()
	a, b := newMachine(t, st), newMachine(t, st, "FROM_DOTENV=of-the-worker")
	a.write(map[string]string{
		"teller/config.yaml": "name: teller\nmodel: script:t.yaml\n",
		"teller/t.yaml":      "- {match: go, turn: 1, tool_calls: [{name: user__ask, args: {question: Sure?, options: [\"yes\", \"no\"]}}]}\n- {match: go, turn: 2, tool_calls: [{name: tell, args: {}}]}\n- {match: go, turn: 3, text: told}\n",
		"teller/tools.sh":    "# @cmd Tells.\n# raddle: read-only\ntell() { echo \"it is $FROM_DOTENV\" >>\"$LLM_OUTPUT\"; }\n",
		"teller/.env":        "FROM_DOTENV=of-the-agent\n",
	})
	first, second := a.park("teller"), a.park("teller")
	a.write(map[string]string{"teller/t.yaml": "- {match: go, text: changed}"})
	away := a.home + ".away"
	if err := os.Rename(a.home, away); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		on   *machine
		run  *Run
		want string
	}{{b, first, "it is of-the-worker"}, {a, second, "it is of-the-agent"}} {
		if c.on == a {
			if err := os.Rename(away, a.home); err != nil {
				t.Fatal(err)
			}
		}
		if _, out := c.on.finish(c.run.ID, ResumeOptions{}); out != "told" {
			t.Errorf("it ends with %q", out)
		}
		var all strings.Builder
		for r, err := range st.Read(t.Context(), c.run.ID, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			all.Write(r.Data)
		}
		if !strings.Contains(all.String(), c.want) {
			t.Errorf("the tool of run %s has not said %q", c.run.ID, c.want)
		}
	}
}

// A knowledge base is in no bundle. Another machine builds it from the files of the bundle, once for all runs.
func TestKnowledgeBasesAreBuiltOnEachMachine(t *testing.T) {
	st := journal.NewMemory()
	a, b := newMachine(t, st), newMachine(t, st)
	a.write(map[string]string{
		"finder/graph.yaml": "name: finder\nstart: ask\ninitial_state: {found: \"\"}\nnodes:\n  ask: {type: input, question: \"Well?\", next: kb}\n" +
			"  kb: {type: rag, documents: [docs], embedding_model: keyword, chunk_size: 500, chunk_overlap: 0, query: moose, state_updates: {found: \"{{output.context}}\"}, next: end}\n  end: {type: end, output: \"{{found}}\"}\n",
		"finder/docs/a.md": "the moose is home",
	})
	before := a.park("finder")
	if _, out := a.finish(a.park("finder").ID, ResumeOptions{}); !strings.Contains(out, "moose is home") {
		t.Errorf("the same machine finds %q", out)
	}
	if _, err := os.Stat(filepath.Join(a.Dirs.Agents, "finder", "kb.db")); err != nil {
		t.Error(err)
	}
	after := a.park("finder")
	if before.Record.Bundle == "" || before.Record.Bundle != after.Record.Bundle {
		t.Errorf("the knowledge base is part of the bundle: %s, then %s", before.Record.Bundle, after.Record.Bundle)
	}
	if err := os.RemoveAll(a.home); err != nil {
		t.Fatal(err)
	}
	var built os.FileInfo
	for _, run := range []*Run{before, after} {
		resumed, out := b.finish(run.ID, ResumeOptions{})
		if !strings.Contains(out, "moose is home") {
			t.Errorf("the other machine finds %q", out)
		}
		info, err := os.Stat(filepath.Join(b.Dirs.Cache, "agents", run.Record.Bundle, "finder", "kb.db"))
		if err != nil || resumed.Agent.Dir != filepath.Join(b.Dirs.Cache, "agents", run.Record.Bundle, "finder") {
			t.Fatal(resumed.Agent.Dir, err)
		}
		if built != nil && !os.SameFile(built, info) {
			t.Error("it was built twice")
		}
		built = info
	}
}

// What was approved when a run started counts where the files are the same, also if their directory is on the machine that continues
// and was not named there; and it counts for no other files at the same place.
func TestApprovalIsOfContents(t *testing.T) {
	st := journal.NewMemory()
	a, b := newMachine(t, st), newMachine(t, st)
	a.write(movingFiles("v1"))
	same, bundled, changed := a.park("moving"), a.park("moving"), a.park("moving")
	if run, out := b.finish(same.ID, ResumeOptions{}); out != "v1 helper-v1" || run.files != nil {
		t.Errorf("with the same files in the directory it says %q", out)
	}
	a.write(map[string]string{"helper/say.sh": "#!/usr/bin/env bash\necho '{\"said\": \"evil\"}'\n"})
	if run, out := b.finish(bundled.ID, ResumeOptions{}); out != "v1 helper-v1" || run.files == nil {
		t.Errorf("with other files in the directory it says %q", out)
	}
	run, err := b.ResumeRun(t.Context(), changed.ID, ResumeOptions{AcceptChanges: true})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	res, err := run.Drive(t.Context(), Driver{Ask: func(_ context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
		if open[0].Kind == flow.KindTrust {
			return nil, false, nil
		}
		return []graph.Answer{{ID: open[0].ID, Value: "yes"}}, false, nil
	}})
	if err != nil || res.Status != graph.Waiting || len(res.Questions) != 1 || res.Questions[0].Kind != flow.KindTrust {
		t.Errorf("the changed script: %v, %v, %v", res.Status, res.Questions, err)
	}
}
