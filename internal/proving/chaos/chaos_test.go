//go:build unix

package chaos

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// agentFiles are those of an agent that asks a model, runs a script that takes longer than the pause between two
// starts, and asks a person.
var agentFiles = map[string]string{
	"graph.yaml": `name: order
model: openai:gpt-5-mini
start: sort
nodes:
  sort: {type: llm, prompt: "Sort {{initial_prompt}}", next: pay}
  pay: {type: script, script: pay.sh, next: ask}
  ask: {type: approval, question: Ship it?, options: ["yes", "no"], routes: {"yes": ship, "no": ship}, on_other: ship}
  ship: {type: script, script: ship.sh, next: done}
  done: {type: end, output: shipped}
`,
	"pay.sh":          "sleep 1\necho '{}'\n",
	"ship.sh":         "echo '{}'\n",
	"order.test.yaml": "tests:\n  - name: is shipped\n    prompt: two chairs\n    nodes: {sort: chairs}\n    answers: {ask: \"yes\"}\n",
}

// newCommand returns a command for the agent in a world of its own, and the directory of its state.
func newCommand(t *testing.T, files map[string]string) (c *Command, state string) {
	t.Helper()
	testneed.RequirePrograms(t, "bash", "sleep")
	home := t.TempDir()
	testfile.WriteFiles(t, filepath.Join(home, "order"), files)
	environ := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=must-not-be-used"}
	p, err := app.Open(app.Options{Environ: environ, Work: home})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Command{
		Program: clienttest.BuildRaddle(t),
		Environ: environ,
		Process: p,
		Agent:   filepath.Join(home, "order"),
		Length:  6 * time.Second,
		Servers: 2,
		Seed:    5,
		Say:     t.Logf,
	}, p.Dirs.State
}

// checkWell checks the report of runs that servers with faults have brought to their end.
func checkWell(t *testing.T, r *Report) {
	t.Helper()
	if !r.IsClean() {
		t.Errorf("%s", r.Text())
	}
	if r.Accepted < 5 || r.Unconfirmed > 0 || r.Done != r.Accepted || r.Effects != 3*r.Accepted {
		t.Errorf("%d accepted, %d unconfirmed, %d ended, %d effects: each run has 3", r.Accepted, r.Unconfirmed, r.Done, r.Effects)
	}
	if !slices.ContainsFunc(r.InDoubt, func(d Doubt) bool { return d.Node == "pay" && strings.Contains(d.What, "pay.sh") }) {
		t.Errorf("in doubt: %+v, want the script that works when its server is killed", r.InDoubt)
	}
}

// TestServersAreKilled kills real servers that work on a file, and looks at what they leave: nothing.
func TestServersAreKilled(t *testing.T) {
	t.Parallel()
	c, state := newCommand(t, agentFiles)
	r, err := c.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkWell(t, r)
	if r.Case != "is shipped" || !slices.ContainsFunc(r.Faults, func(f DoneFault) bool { return f.Kind == Kill }) {
		t.Errorf("%+v", r)
	}
	if left, err := os.ReadDir(filepath.Join(state, "chaos")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestKeptRunsAreThere keeps the runs of a short chaos, and reads them.
func TestKeptRunsAreThere(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t, agentFiles)
	c.Keep = true
	c.Length = time.Second
	c.Runs = 2
	r, err := c.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := app.Open(app.Options{Environ: c.Environ, Work: t.TempDir(), Store: r.Kept})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	list, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != 2 || r.Accepted != 2 {
		t.Errorf("%d runs of %d are in %s, want 2 (%v)", len(list), r.Accepted, r.Kept, err)
	}
}

// TestStopEndsTheServers ends a chaos in its middle, as Ctrl-C does: nothing is left.
func TestStopEndsTheServers(t *testing.T) {
	t.Parallel()
	c, state := newCommand(t, agentFiles)
	c.Length = time.Minute
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	c.Say = func(string, ...any) { once.Do(cancel) } // at the first fault
	if r, err := c.Execute(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%+v, %v", r, err)
	}
	if left, err := os.ReadDir(filepath.Join(state, "chaos")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left %v, %v", left, err)
	}
}

// TestRefusals has what the command refuses before it starts a server, and an agent that fails without faults.
func TestRefusals(t *testing.T) {
	t.Parallel()
	broken := map[string]string{"order.test.yaml": "tests:\n  - {name: has no reply, prompt: two chairs}\n"}
	bare := map[string]string{"order.test.yaml": ""}
	cases := []struct {
		name, says string
		change     map[string]string
		set        func(*Command)
	}{
		{"a real model", "calls openai:gpt-5-mini, and no test case", bare, func(*Command) {}},
		{"an unknown case", `has the name "other"`, nil, func(c *Command) { c.Case = "other" }},
		{"a model that is no transcript", "would be called", nil, func(c *Command) { c.Model = "openai:gpt-5-mini" }},
		{"no servers", "--servers 0", nil, func(c *Command) { c.Servers = 0 }},
		{"a store that keeps nothing", "keeps no runs", nil, func(c *Command) { c.Store = "memory:" }},
		{"a failing case", "faults would prove nothing: model: nothing answers", broken, func(*Command) {}},
	}
	for _, each := range cases {
		t.Run(each.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{}
			maps.Copy(files, agentFiles)
			maps.Copy(files, each.change)
			maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
			c, _ := newCommand(t, files)
			each.set(c)
			err := c.Check()
			if err == nil {
				_, err = c.Execute(t.Context())
			}
			var refused *failure.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), each.says) || refused.Next == "" {
				t.Errorf("%v, want %q", err, each.says)
			}
		})
	}
}

// postgresSeed makes a plan with all kinds of faults for two servers.
const postgresSeed = 13

// TestExtraChaosOnPostgres kills, freezes and cuts off servers that share a PostgreSQL with a run of someone else, which
// stays.
func TestExtraChaosOnPostgres(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t, agentFiles)
	c.Store = pgtest.NewDatabase(t)
	first := *c
	first.Length = time.Millisecond // without a fault
	first.Runs = 1
	first.Keep = true
	if r, err := first.Execute(t.Context()); err != nil || r.Accepted != 1 || strings.Contains(r.Kept, pgtest.Password) {
		t.Fatalf("%+v, %v", r, err)
	}
	p, err := app.Open(app.Options{Environ: c.Environ, Work: t.TempDir(), Store: c.Store})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	before, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(before) != 1 {
		t.Fatalf("%+v, %v", before, err)
	}
	c.Length = 25 * time.Second
	c.Seed = postgresSeed
	r, err := c.Execute(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkWell(t, r)
	for _, kind := range []FaultKind{Kill, Freeze, Cut} {
		if !slices.ContainsFunc(r.Faults, func(f DoneFault) bool { return f.Kind == kind }) {
			t.Errorf("the plan has no %s: %+v", kind, r.Faults)
		}
	}
	after, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(after) != 1 || after[0].Run != before[0].Run {
		t.Errorf("the store has %+v, %v; want only the run of before", after, err)
	}
}

// TestStoreOfOthersIsRefused leaves a store alone in which a run is not over.
func TestStoreOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	c, _ := newCommand(t, agentFiles)
	c.Store = "sqlite:" + filepath.Join(t.TempDir(), "runs.db")
	p, err := app.Open(app.Options{Environ: c.Environ, Work: t.TempDir(), Store: c.Store})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	st, err := p.Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Append(t.Context(), "1m8ndmnth8f3gex4ncnr", 0, []journal.Record{{Seq: 1, Kind: journal.KindStart}}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Execute(t.Context()); err == nil || !strings.Contains(err.Error(), "the store has 1 run that may continue") {
		t.Errorf("%v", err)
	}
}
