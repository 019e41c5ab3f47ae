package agent

import (
	"context"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// Visibility says which entries of a conversation a viewer sees. The zero value
// is FullContext.
type Visibility struct {
	Timeline Timeline
	Branch   Branch
}

// These are the usual choices.
var (
	// FullContext is everything that was said, except by parallel agents.
	FullContext        = Visibility{}
	RequestContext     = Visibility{Timeline: ThisRun}                    // the same, in this run only
	IsolatedRequest    = Visibility{Timeline: ThisRun, Branch: OwnBranch} // what the same agent said in this run
	IsolatedInvocation = Visibility{Timeline: ThisVisit, Branch: OwnBranch}
)

// A Timeline says how far back a viewer sees.
type Timeline string

// These are the timelines.
const (
	AllRuns   Timeline = ""      // to the beginning
	ThisRun   Timeline = "run"   // to the beginning of the run
	ThisVisit Timeline = "visit" // to the beginning of this visit of the agent
)

// A Branch says from which paths a viewer sees entries.
type Branch string

// These are the branches.
const (
	RelatedBranches Branch = ""    // what was said at the viewer's path, above and below it
	AllBranches     Branch = "all" // also what parallel agents said
	OwnBranch       Branch = "own" // what was said at the viewer's path
)

// A Viewer is a node or an agent that reads a conversation. Its fields have the
// values of the entries that it writes.
type Viewer struct{ Run, Path, Visit string }

// newViewer returns the viewer of the node that ctx belongs to, or of the agent
// inside it.
func newViewer(ctx context.Context, inside string) Viewer {
	e := stampEntry(ctx, Entry{})
	if inside != "" {
		e.Path += inside + "/"
		e.Visit = graph.TaskPath(ctx) + "/"
	}
	return Viewer{e.Run, e.Path, e.Visit}
}

// VisibleEntries returns the entries that a viewer sees, in their order. An entry from
// the caller belongs to the run that answers it. The user's last message in the
// viewer's run is always visible.
func VisibleEntries(entries []Entry, v Visibility, at Viewer) []Entry {
	return filterEntries(entries, v.entryFilter(entries, at, true))
}

func filterEntries(entries []Entry, shown func(int) bool) (seen []Entry) {
	for i := range entries {
		if shown(i) {
			seen = append(seen, entries[i])
		}
	}
	return seen
}

// entryFilter returns a function that reports whether the entry with an index is
// visible. If said is true, the user's last message is visible.
func (v Visibility) entryFilter(entries []Entry, at Viewer, said bool) func(i int) bool {
	if v == FullContext {
		return func(i int) bool { return v.Branch.includesPath(entries[i].Path, at.Path) }
	}
	runs := runsOf(entries, at.Run)
	last := -1
	for i := len(entries) - 1; i >= 0 && last < 0 && said; i-- {
		if e := &entries[i]; e.By == "" && e.Message.Role == llm.RoleUser && runs(i) == at.Run {
			last = i
		}
	}
	return func(i int) bool {
		e := &entries[i]
		return i == last || v.Timeline.includesEntry(e, runs(i), at) && v.Branch.includesPath(e.Path, at.Path)
	}
}

func (t Timeline) includesEntry(e *Entry, run string, at Viewer) bool {
	switch t {
	case AllRuns:
		return true
	case ThisVisit:
		return run == at.Run && e.Visit == at.Visit
	}
	return run == at.Run
}

func (b Branch) includesPath(path, own string) bool {
	switch b {
	case AllBranches:
		return true
	case OwnBranch:
		return path == own
	}
	return strings.HasPrefix(path, own) || strings.HasPrefix(own, path)
}

// runsOf returns a function that maps the index of an entry to its run. An
// entry from the caller belongs to the run of the next entry that has one, or
// to the viewer's run.
func runsOf(entries []Entry, own string) func(int) string {
	var later []string // created when the first entry without a run is found
	return func(i int) string {
		if e := &entries[i]; e.Run != "" || e.By != "" {
			return e.Run
		}
		if later == nil {
			later = make([]string, len(entries))
			next := own
			for j := len(entries) - 1; j >= 0; j-- {
				if e := &entries[j]; e.Run != "" || e.By != "" {
					next = e.Run
				}
				later[j] = next
			}
		}
		return later[i]
	}
}
