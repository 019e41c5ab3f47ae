package runlist

import (
	"cmp"
	"context"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/runs"
)

// Totals is what the runs came to that started in a time. A session counts with its newest turn.
type Totals struct {
	Since   time.Time      `json:"since"`
	Runs    int            `json:"runs"`
	Failed  int            `json:"failed"`
	Usage   overview.Usage `json:"usage"`
	Agents  []AgentTotals  `json:"agents" nullable:"false"` // those with most runs first
	Models  []ModelTotals  `json:"models" nullable:"false"` // those with most calls first
	Hours   []HourTotals   `json:"hours" nullable:"false"`  // oldest first, without gaps
	Partial bool           `json:"partial"`

	// Waiting and Working are the runs of all times that wait for a person, and that work or are to; All is how many
	// runs there are.
	Waiting int     `json:"waiting"`
	Waited  float64 `json:"longest_wait_seconds"` // for which the question has been open that is open longest
	Working int     `json:"working"`
	All     int     `json:"all_runs"`
}

// AgentTotals is what the runs of one agent came to.
type AgentTotals struct {
	Agent  string         `json:"agent"`
	Runs   int            `json:"runs"`
	Failed int            `json:"failed"`
	Median float64        `json:"p50_seconds"` // for which runs that have ended have worked
	Slow   float64        `json:"p95_seconds"`
	Usage  overview.Usage `json:"usage"`

	seconds []float64
	calls   runs.Calls
}

// ModelTotals is what the calls of one model came to.
type ModelTotals struct {
	Model string         `json:"model"`
	Usage overview.Usage `json:"usage"`
}

// HourTotals is what the runs came to that started in one hour.
type HourTotals struct {
	Start  time.Time `json:"start"`
	Runs   int       `json:"runs"`
	Failed int       `json:"failed"`
	Cost   float64   `json:"cost_usd"`
}

// mostCounted is the number of runs of which totals are made.
const mostCounted = 20_000

// ReadTotals returns what the runs came to that started between two times. Of very many, it counts the newest, and says
// so.
func ReadTotals(ctx context.Context, p *app.Process, since, now time.Time) (Totals, error) {
	t := Totals{Since: since, Agents: []AgentTotals{}, Models: []ModelTotals{}}
	for at := since.Truncate(time.Hour); !at.After(now); at = at.Add(time.Hour) {
		t.Hours = append(t.Hours, HourTotals{Start: at})
	}
	byAgent := map[string]*AgentTotals{}
	var all runs.Calls
	f := Filter{Since: since, Until: now}
	for i, err := range f.walkRuns(ctx, p) {
		if err != nil {
			return t, err
		}
		if i.Started.Before(since) || i.Started.After(now) {
			continue
		}
		if t.Partial = t.Runs == mostCounted; t.Partial {
			break
		}
		a := byAgent[i.Agent]
		if a == nil {
			a = &AgentTotals{Agent: i.Agent}
			byAgent[i.Agent] = a
		}
		t.addRun(p, a, &i, &all)
	}
	t.Usage = overview.UsageOf(p, all)
	for _, a := range byAgent {
		a.sumUp(p)
		t.Agents = append(t.Agents, *a)
	}
	slices.SortFunc(t.Agents, func(a, b AgentTotals) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Agent, b.Agent))
	})
	for _, m := range all.Models {
		calls := runs.Calls{Count: m.Count, Usage: m.Usage, Models: []runs.ModelCalls{m}}
		t.Models = append(t.Models, ModelTotals{Model: m.Model, Usage: overview.UsageOf(p, calls)})
	}
	slices.SortStableFunc(t.Models, func(a, b ModelTotals) int { return cmp.Compare(b.Usage.Calls, a.Usage.Calls) })
	return t, t.readNow(ctx, p)
}

// addRun adds a run of an agent.
func (t *Totals) addRun(p *app.Process, a *AgentTotals, i *runs.Info, all *runs.Calls) {
	sum, _ := i.KnownSummary()
	failed := runs.HasFailed(i.Status) || i.Status == runs.GivenUp
	t.Runs++
	a.Runs++
	if failed {
		t.Failed++
		a.Failed++
	}
	if i.Final || failed {
		a.seconds = append(a.seconds, sum.Active.Seconds())
	}
	a.calls.AddCalls(&sum.Calls)
	all.AddCalls(&sum.Calls)
	at := slices.IndexFunc(t.Hours, func(h HourTotals) bool { return i.Started.Before(h.Start.Add(time.Hour)) })
	if at < 0 {
		return
	}
	h := &t.Hours[at]
	h.Runs++
	if failed {
		h.Failed++
	}
	if cost := overview.UsageOf(p, sum.Calls).Cost; cost != nil {
		h.Cost += *cost
	}
}

// sumUp computes what follows from all runs of the agent.
func (a *AgentTotals) sumUp(p *app.Process) {
	slices.Sort(a.seconds)
	a.Median = findPercentile(a.seconds, 50)
	a.Slow = findPercentile(a.seconds, 95)
	a.Usage = overview.UsageOf(p, a.calls)
}

// findPercentile returns the smallest of some sorted numbers that at least so many percent are not above; 0 without any.
func findPercentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}

// readNow sets what does not depend on a time.
func (t *Totals) readNow(ctx context.Context, p *app.Process) error {
	count, err := p.Runs.CountRuns(ctx)
	if err != nil {
		return err
	}
	for status, n := range count {
		t.All += n
		if runs.IsWorking(status) {
			t.Working += n
		}
	}
	t.Waiting = count[graph.Waiting.String()]
	load, err := p.Runs.ReadLoad(ctx)
	t.Waited = load.Wait.Seconds()
	return err
}
