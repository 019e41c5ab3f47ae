package runlist_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/runlist"
	"raddle.dev/internal/storage/readtest"
)

// A line of the index, as the fields that the test cares about.
type line struct {
	run, agent, status, prompt, model string
	started                           time.Time
	seconds                           float64
	tokens                            int
}

// openLines returns a process whose store has these lines, and no journals.
func openLines(t testing.TB, lines []line) (*app.Process, *readtest.Counting) {
	t.Helper()
	st := &readtest.Counting{Memory: journal.NewMemory()}
	home := t.TempDir()
	p, err := app.Open(app.Options{Work: home, Environ: []string{"HOME=" + home}})
	if err == nil {
		err = p.Runs.AttachStore(st)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		details := fmt.Sprintf(`{"started": %d, "updated": %d, "head": 1, "prompt": %q, "active": %d, "via": "api",
			"calls": {"Count": 1, "Usage": {"Input": %d}, "Models": [{"Model": %q, "Count": 1, "Usage": {"Input": %[5]d}}]}}`,
			l.started.UnixMicro(), l.started.UnixMicro(), l.prompt, int64(l.seconds*1e9), l.tokens, l.model)
		index := &journal.Line{Thread: l.run, Order: l.run, Status: l.status, Label: l.agent, Details: []byte(details)}
		if err := st.Append(journal.WithLine(t.Context(), index), l.run, 0, []journal.Record{{Kind: journal.KindEnd}}); err != nil {
			t.Fatal(err)
		}
	}
	return p, st
}

var now = time.Now().Truncate(time.Second)

// runAt returns the id of a run that started some time ago.
func runAt(ago time.Duration, name string) string { return graph.DeriveID(now.Add(-ago), name) }

// A page has what a filter selects, in order; the next one continues behind it; no journal is read.
func TestReadPage(t *testing.T) {
	lines := []line{
		{run: runAt(time.Minute, "a"), agent: "one", status: "done", prompt: "Count ANTS", model: "m-1", started: now.Add(-time.Minute), seconds: 3},
		{run: runAt(2*time.Hour, "b"), agent: "two", status: "failed", prompt: "bees", model: "m-2", started: now.Add(-2 * time.Hour), seconds: 9},
		{run: runAt(30*time.Hour, "c"), agent: "one", status: "timed-out", prompt: "cats", model: "m-1", started: now.Add(-30 * time.Hour), seconds: 1},
		// of an experiment: its id has no time
		{run: graph.DeriveID(time.UnixMilli(7), "d"), agent: "one", status: "done", prompt: "dogs", model: "m-1", started: now.Add(-time.Hour), seconds: 2},
	}
	p, st := openLines(t, lines)
	for name, c := range map[string]struct {
		filter runlist.Filter
		want   string
	}{
		"all":           {runlist.Filter{}, "Count ANTS, bees, cats, dogs"},
		"text":          {runlist.Filter{Text: "ants"}, "Count ANTS"},
		"statuses":      {runlist.Filter{Status: "failed,timed-out"}, "bees, cats"},
		"agent":         {runlist.Filter{Agent: "one", Status: "done"}, "Count ANTS, dogs"},
		"model":         {runlist.Filter{Model: "m-2"}, "bees"},
		"seconds":       {runlist.Filter{LeastSeconds: 3}, "Count ANTS, bees"},
		"since":         {runlist.Filter{Since: now.Add(-90 * time.Minute)}, "Count ANTS, dogs"},
		"until":         {runlist.Filter{Until: now.Add(-time.Hour)}, "bees, cats, dogs"},
		"between":       {runlist.Filter{Since: now.Add(-3 * time.Hour), Until: now.Add(-90 * time.Minute)}, "bees"},
		"via":           {runlist.Filter{Via: "trigger"}, ""},
		"cost unknown":  {runlist.Filter{LeastCost: 0.01}, ""},
		"below another": {runlist.Filter{Below: lines[1].run}, "cats, dogs"},
	} {
		var got []string
		f := c.filter
		for {
			page, err := runlist.ReadPage(t.Context(), p, f, 1)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Items {
				got = append(got, i.Prompt)
			}
			if page.Next == "" {
				break
			}
			f.Below = page.Next
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
	for _, l := range lines {
		if got := st.Take(l.run); got.Passes+got.Parts > 0 {
			t.Errorf("the journal of %s was read: %s", l.prompt, got)
		}
	}
}

// A page that finds nothing among many runs ends, says how far it has looked, and the next one continues there.
func TestPageIsBounded(t *testing.T) {
	const n = 12_000
	lines := make([]line, 0, n)
	for i := range n {
		ago := time.Duration(i) * time.Second
		lines = append(lines, line{run: runAt(ago, "x"), agent: "a", status: "done", prompt: "hay", started: now.Add(-ago)})
	}
	lines[n-1].prompt = "needle"
	p, st := openLines(t, lines)
	pages := 0
	f := runlist.Filter{Text: "needle"}
	for {
		page, err := runlist.ReadPage(t.Context(), p, f, 50)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		if len(page.Items) == 1 {
			break
		}
		if page.Next == "" || page.Reached.IsZero() {
			t.Fatalf("page %d ends: %+v", pages, page)
		}
		f.Below = page.Next
	}
	if pages != 3 {
		t.Errorf("%d pages, want 3", pages)
	}
	if i := slices.IndexFunc(lines, func(l line) bool { got := st.Take(l.run); return got.Passes+got.Parts > 0 }); i >= 0 {
		t.Errorf("the journal of run %d was read", i)
	}
}

// Totals count the runs of a time, by agent, model and hour, with percentiles of what has ended.
func TestReadTotals(t *testing.T) {
	lines := []line{{run: runAt(50*time.Hour, "old"), agent: "one", status: "done", started: now.Add(-50 * time.Hour), seconds: 99}}
	for i := range 20 {
		ago := time.Duration(i) * time.Minute
		l := line{run: runAt(ago, "n"), agent: "one", status: "done", model: "m-1", started: now.Add(-ago), seconds: float64(i + 1), tokens: 10}
		if i == 19 {
			l.status = "failed"
		}
		lines = append(lines, l)
	}
	lines = append(lines, line{run: runAt(time.Hour, "w"), agent: "two", status: "waiting", model: "m-2", started: now.Add(-time.Hour), tokens: 5})
	p, _ := openLines(t, lines)
	got, err := runlist.ReadTotals(t.Context(), p, now.Add(-24*time.Hour), now)
	if err != nil {
		t.Fatal(err)
	}
	if got.Runs != 21 || got.Failed != 1 || got.Usage.Input != 205 || got.All != 22 || got.Waiting != 1 || got.Partial {
		t.Errorf("totals: %+v", got)
	}
	if len(got.Agents) != 2 || got.Agents[0].Agent != "one" || got.Agents[0].Median != 10 || got.Agents[0].Slow != 19 || got.Agents[1].Median != 0 {
		t.Errorf("agents: %+v", got.Agents)
	}
	if len(got.Models) != 2 || got.Models[0].Model != "m-1" || got.Models[0].Usage.Calls != 20 {
		t.Errorf("models: %+v", got.Models)
	}
	sum := 0
	for _, h := range got.Hours {
		sum += h.Runs
	}
	if sum != 21 || len(got.Hours) != 25 {
		t.Errorf("%d runs in %d hours", sum, len(got.Hours))
	}
}
