package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/readtest"
	"raddle.dev/llm"
	"raddle.dev/llm/script"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// played is a model that says what a transcript says.
func played(t *testing.T, name, text string) llm.Model {
	t.Helper()
	m, err := script.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// compileTeam returns a team whose lead starts an agent, which calls a tool, and waits for it.
func compileTeam(t *testing.T) *graph.Graph {
	t.Helper()
	look := tool.Tool{Name: "look", Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("flow/parse.go"), nil }}
	lead := agent.Config{Model: played(t, "lead.yaml", `
- tool_calls:
    - {id: a, name: agent__spawn, args: {agent: explore, prompt: Find the parser.}}
- tool_calls:
    - {id: b, name: agent__collect, args: {id: agent_explore_205316bd}}
- text: The parser is in flow/parse.go.
`)}
	explore := agent.Config{Tools: []tool.Tool{look}, Model: played(t, "explore.yaml", `
- tool_calls:
    - {id: c, name: look, args: {}}
- text: flow/parse.go
`)}
	g, err := team.Config{
		Lead:   team.Member{Agent: lead, Spawn: &team.Spawn{}},
		Agents: map[string]team.Member{"explore": {Agent: explore, Description: "looks for things in the code"}},
	}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// compileCounter returns an agent that counts what is in stock with two calls of a tool.
func compileCounter(t *testing.T) *graph.Graph {
	t.Helper()
	count := tool.Tool{Name: "count", Effect: tool.ReadOnly, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.TextResult("5"), nil }}
	g, err := agent.Config{Tools: []tool.Tool{count}, Model: played(t, "counter.yaml", `
- text: I will count both.
  tool_calls:
    - {id: a, name: count, args: {article: bolts}}
    - {id: b, name: count, args: {article: nuts}}
- text: There are 5 of each.
`)}.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// recordRuns returns journals: those of earlier versions, of a conversation with calls, of a team, and of a run that
// asks, by thread.
func recordRuns(t *testing.T) map[string][]journal.Record {
	t.Helper()
	all := map[string][]journal.Record{}
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "graph", "testdata", "earlier", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no journals of earlier versions: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(content) {
			var r journal.Record
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(file)] = append(all[filepath.Base(file)], r)
		}
	}
	for thread, g := range map[string]*graph.Graph{"counter": compileCounter(t), "team": compileTeam(t), "asking": compileAsking(t)} {
		st := journal.NewMemory()
		in := graph.Input{Thread: thread, Run: "r1"}
		if thread != "asking" {
			in.Set = agent.Turn("Where is it?")
		}
		if _, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		for r, err := range st.Read(t.Context(), thread, journal.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			all[thread] = append(all[thread], r)
		}
	}
	return all
}

// describeView writes down all that a view says.
func describeView(t *testing.T, v *View) any {
	t.Helper()
	models, err := v.ReadModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	points, err := v.Points(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tree, err := v.ReadTree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return []any{v.Info, v.Snapshot, v.Path(), v.Moments(), v.ToolCalls(), v.Searches(), models, points, tree}
}

// A view that follows its run says after each record what one says that has read the run at once; and one of an earlier
// point says that too.
func TestViewFollows(t *testing.T) {
	same := []cmp.Option{cmpopts.IgnoreUnexported(Branch{}, Info{}), cmpopts.IgnoreFields(Info{}, "PID", "Host"), cmpopts.EquateEmpty()}
	for thread, recs := range recordRuns(t) {
		t.Run(thread, func(t *testing.T) {
			st := &readtest.Counting{Memory: journal.NewMemory()}
			a := NewArchive(config.Dirs{State: t.TempDir()}, "")
			if err := a.AttachStore(st); err != nil {
				t.Fatal(err)
			}
			var v *View
			for i, r := range recs {
				if err := st.Append(t.Context(), thread, int64(i), []journal.Record{r}); err != nil {
					t.Fatal(err)
				}
				var err error
				if i == 0 {
					v, err = a.ReadView(t.Context(), thread)
				} else {
					_ = st.Take(thread)
					err = v.Update(t.Context())
					if got := st.Take(thread); err == nil && got.Records != 1 {
						t.Errorf("record %d: the view has read %s to follow one record", i+1, got)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
				now, err := a.ReadView(t.Context(), thread)
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(describeView(t, now), describeView(t, v), same...); d != "" {
					t.Fatalf("record %d (-read at once +followed):\n%s", i+1, d)
				}
			}
			for i := range recs {
				checkPoint(t, a, thread, recs[:i+1])
			}
		})
	}
}

// checkPoint compares the view at a point with the view of a journal that ends there.
func checkPoint(t *testing.T, whole *Archive, thread string, recs []journal.Record) {
	t.Helper()
	st := journal.NewMemory()
	if err := st.Append(t.Context(), thread, 0, recs); err != nil {
		t.Fatal(err)
	}
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	want, err := a.ReadView(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	got, err := whole.ReadView(t.Context(), fmt.Sprintf("%s@%d", thread, len(recs)))
	if err != nil {
		t.Fatal(err)
	}
	ofState := func(v *View) any {
		return []any{v.Snapshot.Values, v.Snapshot.Next, v.Snapshot.Steps, v.Path(), v.Moments(), v.ToolCalls(), v.Searches()}
	}
	if d := cmp.Diff(ofState(want), ofState(got), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s@%d (-a journal that ends there +the point):\n%s", thread, len(recs), d)
	}
}

// Each action of the archive that shows a run passes over its journal once.
func TestPassesOverAJournal(t *testing.T) {
	st := &readtest.Counting{Memory: journal.NewMemory()}
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	opened, err := a.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	r := &graph.Runner{Graph: compileTeam(t), Store: opened}
	if _, err := r.Invoke(t.Context(), graph.Input{Thread: "r1", Run: "r1", Set: agent.Turn("Where is it?")}); err != nil {
		t.Fatal(err)
	}
	session := NameSession("counter", "main")
	for _, id := range []string{"s1", "s2"} {
		r := &graph.Runner{Graph: compileCounter(t), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: session, Run: id, Label: "counter", Set: agent.Turn("How many?")}); err != nil {
			t.Fatal(err)
		}
	}
	asking := &graph.Runner{Graph: compileAsking(t), Store: st}
	if res, err := asking.Invoke(t.Context(), graph.Input{Thread: "q1", Run: "q1"}); err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	answer := graph.Resume{Thread: "q1", Answers: []graph.Answer{{ID: "ask", Value: "sea"}}}
	if res, err := asking.InvokeResume(t.Context(), answer); err != nil || res.Status != graph.Done {
		t.Fatal(res.Status, err)
	}
	head := int64(0)
	for rec, err := range st.Read(t.Context(), "r1", journal.Range{Heads: true}) {
		if err != nil {
			t.Fatal(err)
		}
		head = rec.Seq
	}
	all := func(v *View, err error) error {
		if err == nil {
			describeView(t, v)
		}
		return err
	}
	follow := func(id string) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			f := a.FollowRun(id)
			for more := true; more && err == nil; {
				_, more, err = f.ReadEvents(ctx, false)
			}
			return err
		}
	}
	needed := func(ctx context.Context) error {
		_, err := a.neededBundles(ctx)
		return err
	}
	for _, c := range []struct {
		name   string
		thread string
		passes int
		do     func(ctx context.Context) error
	}{
		{"view", "r1", 1, func(ctx context.Context) error { return all(a.ReadView(ctx, "r1")) }},
		{"view of a point", "r1", 1, func(ctx context.Context) error { return all(a.ReadView(ctx, "r1@5")) }},
		{"view of a session", session, 1, func(ctx context.Context) error { return all(a.ReadView(ctx, session)) }},
		{"view of a turn, which is found among those of its session", session, 2, func(ctx context.Context) error { return all(a.ReadView(ctx, "s1")) }},
		{"usage", "r1", 1, func(ctx context.Context) error { _, err := a.ReadModelCalls(ctx, "r1"); return err }},
		{"summary", "r1", 1, func(ctx context.Context) error { _, err := a.SummarizeRun(ctx, &Info{Run: "r1"}); return err }},
		{"story", "r1", 1, func(ctx context.Context) error { _, err := a.ReadStory(ctx, "r1", 0); return err }},
		{"list", "r1", 0, func(ctx context.Context) error { _, err := a.ListRuns(ctx, ""); return err }},
		{"history", "r1", 1, func(ctx context.Context) error { _, _, err := a.ReadHistory(ctx, "r1"); return err }},
		{"ids of replies", "r1", 1, func(ctx context.Context) error {
			s, err := a.OpenStore()
			if err == nil {
				_, err = s.ListReplyIDs(ctx, "r1", 0)
			}
			return err
		}},
		{"events", "r1", 1, follow("r1")},
		{"events of a run that has asked", "q1", 1, follow("q1")},
		{"events of a turn, which is found among those of its session", session, 2, follow("s2")},
		{"bundles that a run needs", "q1", 1, needed},
		{"bundles that the turns of a session need", session, 1, needed},
	} {
		_ = st.Take(c.thread)
		if err := c.do(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		got := st.Take(c.thread)
		t.Logf("%s: %s", c.name, got)
		if got.Passes != c.passes {
			t.Errorf("%s: %s over %d records, want %d passes", c.name, got, head, c.passes)
		}
		if c.thread == "r1" && c.passes == 1 && got.Records != int(head) {
			t.Errorf("%s: %d of %d records were read, want each once", c.name, got.Records, head)
		}
	}
}

// A turn that was copied into a branch is read where it was made, up to the point that was copied, whichever record of
// the branch is named.
func TestViewOfACopiedTurn(t *testing.T) {
	st := journal.NewMemory()
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	session := NameSession("counter", "main")
	for _, id := range []string{"s1", "s2"} {
		r := &graph.Runner{Graph: compileCounter(t), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: session, Run: id, Label: "counter", Set: agent.Turn("How many?")}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := a.ReadView(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		from string
		at   int64
		to   string
	}{
		{session, 0, session + "~2"},
		{session, first.Snapshot.Head, session + "~3"},
		{session + "~2", 0, session + "~4"},
	} {
		if err := history.Fork(t.Context(), st, f.from, f.at, f.to); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		point   string
		session string
		run     string
	}{
		{"~2", "main~2", "s2"},
		{"~2@1", "main~2", "s2"},
		{"~3", "main~3", "s1"},
		{"~3@1", "main~3", "s1"},
		{"~4", "main~4", "s2"},
		{"~4@1", "main~4", "s2"},
	} {
		v, err := a.ReadView(t.Context(), session+c.point)
		if err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"read", "updated"} {
			calls, err := v.ReadModels(t.Context())
			if err != nil || calls.Count != 2 || len(v.Moments()) != len(first.Moments()) || len(v.ToolCalls()) != 2 || v.Run != c.run || v.Session != c.session {
				t.Errorf("%s, %s: %d calls of models, %d moments and %d calls of tools of run %s in session %s, %v; want 2, %d and 2 of %s in %s",
					c.point, when, calls.Count, len(v.Moments()), len(v.ToolCalls()), v.Run, v.Session, err, len(first.Moments()), c.run, c.session)
			}
			if err := v.Update(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The newest turn of a session, at a point before it: what it has done by then is nothing, and what its models have
// replied is all of it.
func TestViewOfATurnBeforeItsStart(t *testing.T) {
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	st := journal.NewMemory()
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"s1", "s2"} {
		r := &graph.Runner{Graph: compileCounter(t), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Thread: NameSession("counter", "main"), Run: id, Label: "counter", Set: agent.Turn("How many?")}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := a.ReadView(t.Context(), "s2@1")
	if err != nil {
		t.Fatal(err)
	}
	calls, err := v.ReadModels(t.Context())
	if err != nil || calls.Count != 2 || len(v.Moments()) != 0 {
		t.Errorf("%d calls of models, %d moments, %v", calls.Count, len(v.Moments()), err)
	}
}

// What follows a turn of a session looks for it once, and does not show the turn after it.
func TestFollowerStaysInItsTurn(t *testing.T) {
	st := &readtest.Counting{Memory: journal.NewMemory()}
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	work := func(session, id string) {
		r := &graph.Runner{Graph: compileCounter(t), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Run: id, Thread: NameSession("counter", session), Label: "counter", Set: agent.Turn("How many?")}); err != nil {
			t.Fatal(err)
		}
	}
	work("other", "o1")
	work("main", "s1")
	f := a.FollowRun("s1")
	first, more, err := f.ReadEvents(t.Context(), true)
	if err != nil || more || len(first) == 0 {
		t.Fatalf("%d events, more %t, %v", len(first), more, err)
	}
	work("main", "s2")
	_ = st.Take(NameSession("counter", "other"))
	for range 2 {
		if next, more, err := f.ReadEvents(t.Context(), false); err != nil || more || len(next) > 0 {
			t.Errorf("the next turn adds %d events, more %t, %v", len(next), more, err)
		}
	}
	if got := st.Take(NameSession("counter", "other")); got != (readtest.Reads{}) {
		t.Errorf("another session was read: %s", got)
	}
}

// The newest turn of a session is found without reading other sessions, and a turn of a session that was copied is that of
// the original.
func TestNewestTurnIsFoundAtOnce(t *testing.T) {
	st := &readtest.Counting{Memory: journal.NewMemory()}
	a := NewArchive(config.Dirs{State: t.TempDir()}, "")
	if err := a.AttachStore(st); err != nil {
		t.Fatal(err)
	}
	main, other := NameSession("counter", "main"), NameSession("counter", "other")
	for _, turn := range []struct{ thread, id string }{{other, "o1"}, {main, "s1"}, {main, "s2"}} {
		r := &graph.Runner{Graph: compileCounter(t), Store: st}
		if _, err := r.Invoke(t.Context(), graph.Input{Run: turn.id, Thread: turn.thread, Label: "counter", Set: agent.Turn("How many?")}); err != nil {
			t.Fatal(err)
		}
	}
	store, err := a.OpenStore()
	if err == nil {
		err = ForkThread(t.Context(), store, journal.Point{Thread: main}, NameSession("counter", "copy"))
	}
	if err != nil {
		t.Fatal(err)
	}
	st.Take(other)
	for id, last := range map[string]bool{"s1": false, "s2": true} {
		_, at, err := a.LocateRun(t.Context(), id)
		if err != nil || at.Thread != main || (at.Seq == 0) != last {
			t.Errorf("run %s is at %v, %v", id, at, err)
		}
		if got := st.Take(other); last && got != (readtest.Reads{}) {
			t.Errorf("run %s: another session was read: %s", id, got)
		}
	}
}
