// Package runlist finds the runs that people look for, and says what those of a time came to. It reads the index of the
// store and no journal, so that a page costs the same however many runs there are.
package runlist

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/runs"
)

// Item is a run as a list shows it. Of a session it is the newest turn.
type Item struct {
	runs.Info
	Title   string         `json:"title,omitempty"`  // of a session: the beginning of its first prompt
	Prompt  string         `json:"prompt,omitempty"` // its beginning
	Output  string         `json:"output,omitempty"` // the beginning of what the run has returned
	Via     string         `json:"via,omitempty"`    // what started it: terminal, api, a protocol, or trigger NAME
	By      string         `json:"by,omitempty"`     // for whom a server started it
	Seconds float64        `json:"active_seconds"`   // for which drives have worked on it
	Usage   overview.Usage `json:"usage"`
}

// newItem returns a run as a list shows it.
func newItem(p *app.Process, i *runs.Info) Item {
	sum, _ := i.KnownSummary()
	return Item{
		Info:    *i,
		Title:   sum.Title,
		Prompt:  sum.Prompt,
		Output:  sum.Output,
		Via:     sum.Via,
		By:      sum.By,
		Seconds: sum.Active.Seconds(),
		Usage:   overview.UsageOf(p, sum.Calls),
	}
}

// Filter selects runs. The zero Filter selects all of them.
type Filter struct {
	Below   string // only runs that come after this one, newest first
	Agent   string
	Status  string // or several, separated by commas
	Session string
	Model   string // that has answered
	Via     string // the beginning of what started it
	Text    string // in what an Item shows, in any case

	Since time.Time // when the run started: then, or later
	Until time.Time // or earlier

	LeastSeconds float64
	LeastCost    float64 // in US dollars; runs whose cost is not known have none
}

// mostLooked is the number of runs that one page looks at, also if it selects none of them.
const mostLooked = 5000

// Page is a part of a list, newest first.
type Page struct {
	Items []Item
	// Next is the Below of the next page; "": there are no more runs.
	Next string
	// Reached is the start of the oldest run that was looked at, if the page is not full and there may be more; zero
	// otherwise.
	Reached time.Time
}

// ReadPage returns the first runs that a filter selects, at most limit. It looks at a few thousand runs and no more: a
// page may have fewer items than there are, and then says where the next one continues.
func ReadPage(ctx context.Context, p *app.Process, f Filter, limit int) (page Page, err error) {
	page.Items = []Item{}
	looked := 0
	last := ""
	var reached time.Time
	for i, err := range f.walkRuns(ctx, p) {
		if err != nil {
			return page, err
		}
		item, wanted := f.selectRun(p, &i)
		if len(page.Items) == limit && wanted {
			page.Next = page.Items[limit-1].Run
			return page, nil
		}
		if looked == mostLooked {
			page.Next = last
			page.Reached = reached
			return page, nil
		}
		looked++
		last = i.Run
		reached = i.Started
		if wanted {
			page.Items = append(page.Items, item)
		}
	}
	return page, nil
}

// selectRun returns a run as an item; wanted is false if the filter does not select it.
func (f *Filter) selectRun(p *app.Process, i *runs.Info) (item Item, wanted bool) {
	if f.Session != "" && i.Session != f.Session || !f.Since.IsZero() && i.Started.Before(f.Since) || !f.Until.IsZero() && i.Started.After(f.Until) {
		return item, false
	}
	item = newItem(p, i)
	u := &item.Usage
	switch {
	case f.LeastSeconds > 0 && item.Seconds < f.LeastSeconds,
		f.LeastCost > 0 && (u.Cost == nil || *u.Cost < f.LeastCost),
		f.Model != "" && !slices.Contains(u.Models, f.Model),
		!strings.HasPrefix(item.Via, f.Via),
		f.Text != "" && !item.containsText(strings.ToLower(f.Text)):
		return item, false
	}
	return item, true
}

// containsText reports whether what is shown of a run contains a text in lower case.
func (item *Item) containsText(text string) bool {
	words := []string{item.Run, item.Agent, item.Session, item.Title, item.Prompt, item.Output, item.Reason}
	for _, q := range item.Questions {
		words = append(words, q.Prompt)
	}
	return strings.Contains(strings.ToLower(strings.Join(words, "\n")), text)
}

// Ids of runs begin with a time. Those of experiments begin with the first one that there is, so that they are last in
// lists.
var firstOrdinary = beginOfIDs(time.Unix(0, 0).AddDate(1, 0, 0))

// beginOfIDs returns what the ids that are made at a time begin with.
func beginOfIDs(at time.Time) string {
	const length = 9
	return graph.DeriveID(at)[:length]
}

// walkRuns returns the runs that may be wanted, newest first. Where the ids say that all others are older than a filter
// asks for, it continues with those whose ids have no time.
func (f *Filter) walkRuns(ctx context.Context, p *app.Process) iter.Seq2[runs.Info, error] {
	return func(yield func(runs.Info, error) bool) {
		r := runs.RunRange{Below: f.Below, Status: f.Status, Agent: f.Agent}
		if !f.Until.IsZero() {
			if end := beginOfIDs(f.Until.Add(time.Minute)); r.Below == "" || end < r.Below {
				r.Below = end
			}
		}
		oldest := ""
		if !f.Since.IsZero() {
			oldest = beginOfIDs(f.Since.Add(-time.Minute))
		}
		for again := true; again; {
			again = false
			for i, err := range p.Runs.EachRun(ctx, r) {
				if err == nil && i.Run < oldest && i.Run >= firstOrdinary {
					again = true
					r.Below = firstOrdinary
					break
				}
				if !yield(i, err) {
					return
				}
			}
		}
	}
}
