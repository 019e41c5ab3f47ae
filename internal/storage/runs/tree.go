package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/team"
)

// A Branch is a part of a run that worked: an agent, or a node that called a
// model or ran a graph. One that started several times is one branch.
type Branch struct {
	Path      string     // of nodes and agents: "research", "fan/each[2]", "team/agent_explore_1f2e3d4c"; "" for the run
	Agent     string     // name of a spawned agent, or of the run's
	Status    string     // of the run; for others done, failed, cancelled, waiting, or the status of the run that they are part of
	Error     string     // reason of a failure
	Started   time.Time  // zero if it has not started
	Ended     time.Time  // zero if it has not ended; Updated is then its last known time
	Updated   time.Time  // time of its newest record
	Calls     Calls      // calls of models, without those of its children
	Tools     int        // recorded calls of tools, without those of its children
	Purpose   string     // for a spawned agent: its task's subject, or the first words of its prompt
	Task      *team.Task // the task of its parent's queue that it works on or is
	Questions []string   // ids of its open questions, without those of its children
	Children  []*Branch  // in the order in which they started
	Run       string     // id of the run of its own that the branch is; "": it is a part of this run
	failed    int64      // number of the record with which it has failed, although the run continued; 0: it has not
}

// ReadTree reads the parts of a run that worked from its journal, up to a record (0: all). It
// includes agents that were collected, which are no longer in the run's state.
func (a *Archive) ReadTree(ctx context.Context, d *Detail) (*Branch, error) {
	st, found, err := a.locateRun(ctx, d.Run)
	if err != nil {
		return nil, err
	}
	if d.At > 0 {
		found.last = d.At
	}
	root, remote, err := st.buildTree(ctx, found, d)
	if err != nil || d.At > 0 {
		return root, err
	}
	for _, b := range remote {
		if err := readRemoteBranch(ctx, a, b); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// readRemoteBranch reads the tree of a run of its own into the branch that it is.
func readRemoteBranch(ctx context.Context, a *Archive, b *Branch) error {
	b.Questions = nil
	d, err := a.ReadRunDetail(ctx, b.Run)
	if errors.As(err, new(*UnknownError)) { // it has not started, or was removed
		return nil
	}
	if err != nil {
		return err
	}
	tree, err := a.ReadTree(ctx, d)
	if err != nil {
		return err
	}
	path, run := b.Path, b.Run
	tree.movePaths(path)
	*b = *tree
	b.Path, b.Run = path, run
	return nil
}

// movePaths puts the branches below b under a path.
func (b *Branch) movePaths(path string) {
	for _, c := range b.Children {
		c.Path = path + "/" + c.Path
		c.movePaths(path)
	}
}

// RemoteCalls adds the model calls of the runs of their own that are below the branch to calls.
func (b *Branch) RemoteCalls(calls *Calls) { b.addRemoteCalls(calls, false) }

func (b *Branch) addRemoteCalls(calls *Calls, inside bool) {
	for _, c := range b.Children {
		remote := inside || c.Run != ""
		if remote {
			calls.addCalls(&c.Calls)
		}
		c.addRemoteCalls(calls, remote)
	}
}

// buildTree returns the tree of a run, and the branches in it that are runs of their own.
func (s *Store) buildTree(ctx context.Context, at runRef, d *Detail) (root *Branch, remote []*Branch, err error) {
	entries, err := s.listEntries(ctx, at)
	if err != nil {
		return nil, nil, err
	}
	tb := newTreeBuilder(d)
	for _, e := range slices.Backward(entries) {
		tb.addEntry(e)
	}
	hasContent := func(e history.Entry) bool {
		return e.Kind == journal.KindQuestion || e.Kind == journal.KindEffect && (flow.IsReply(e.ID) || flow.IsFailure(e.ID) || team.IsLog(e.ID))
	}
	if err := s.readContents(ctx, at, entries, hasContent, tb.addContent); err != nil {
		return nil, nil, err
	}
	return tb.finishTree(d), tb.remote, nil
}

// A treeBuilder builds a tree from the records of a journal.
type treeBuilder struct {
	root   *Branch
	paths  map[string]*Branch   // by path
	order  []*Branch            // in the order of their start, without the root
	in     map[*Branch]string   // the frame, in the journal, whose task it is
	steps  map[string]time.Time // start of the current step, by frame
	next   map[string][]string  // nodes of the current step, by frame
	front  frontier
	teams  teamLogs
	remote []*Branch         // runs of their own
	by     map[string]string // the path of the agent that has spawned an agent, by the path of the latter
}

// A teamLog is the log of a team, and the place of the team.
type teamLog struct {
	task       string // of the journal
	path       string // of the task, followed by a slash
	past       team.History
	incomplete bool // its beginning is no longer in the journal
}

func newTreeBuilder(d *Detail) *treeBuilder {
	root := &Branch{Agent: d.Agent, Started: d.Started, Updated: d.Updated}
	return &treeBuilder{root: root, paths: map[string]*Branch{"": root}, in: map[*Branch]string{}, steps: map[string]time.Time{}, next: map[string][]string{}, front: frontier{}, by: map[string]string{}}
}

// PlainPath returns the path of nodes and agents that a path of a journal means, each
// followed by a slash: "" for the run's own nodes, and for those of the lead of a team.
func PlainPath(journal string) string {
	if path := publicPath(journal); path != "" {
		return path + "/"
	}
	return ""
}

// publicPath returns the path of nodes and agents that a path of the journal means,
// without a slash at its end. The lead of a team has the path of the branch that it leads.
func publicPath(journal string) string {
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSuffix(journal, "/"), "/") {
		task, name, named := strings.Cut(part, "#")
		if task = taskName(task); named && name == team.Lead {
			continue
		}
		if parts = append(parts, task); named {
			parts = append(parts, name)
		}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

// taskName returns the public name of a task, step.node.index.
func taskName(task string) string {
	_, rest, _ := strings.Cut(task, ".")
	i := strings.LastIndexByte(rest, '.')
	if i < 0 {
		return ""
	}
	if n, err := strconv.Atoi(rest[i+1:]); err == nil && n > 0 {
		return fmt.Sprintf("%s[%d]", rest[:i], n)
	}
	return rest[:i]
}

// taskOf returns the task of an effect, step.node.index.
func taskOf(e history.Entry) string {
	task, _, _ := strings.Cut(e.ID, "\x00")
	return task
}

// openBranch returns the branch of a path, and creates it if it is new.
func (tb *treeBuilder) openBranch(path string, began time.Time) *Branch {
	b := tb.paths[path]
	if b == nil {
		b = &Branch{Path: path, Started: began}
		if i := strings.LastIndexByte(path, '/'); i >= 0 || team.AgentOf(path) != "" {
			b.Agent = team.AgentOf(path[i+1:])
		}
		tb.paths[path] = b
		tb.order = append(tb.order, b)
	}
	return b
}

// effectBranch returns the branch of an effect: that of its frame for a conversation,
// otherwise that of its task.
func (tb *treeBuilder) effectBranch(e history.Entry) *Branch {
	if flow.IsTalk(e.ID) || toolKey(e.ID) != "" {
		return tb.openBranch(publicPath(e.Path), tb.steps[e.Path])
	}
	b := tb.openBranch(publicPath(e.Path+taskOf(e)+"/"), tb.steps[e.Path])
	tb.in[b] = e.Path
	return b
}

// addEntry adds the head of a record.
func (tb *treeBuilder) addEntry(e history.Entry) {
	tb.front.addEntry(e)
	switch e.Kind {
	case journal.KindStart, journal.KindEdit, journal.KindFork, journal.KindSnapshot:
		tb.steps[e.Path] = e.Time
	case journal.KindCall:
		tb.steps[e.Path] = e.Time
		b := tb.openBranch(publicPath(e.Path), e.Time)
		b.Ended, b.failed, tb.in[b] = time.Time{}, 0, parentFrame(e.Path) // it may start again
	case journal.KindEffect:
		if !flow.IsReply(e.ID) && !flow.IsFailure(e.ID) && toolKey(e.ID) == "" {
			break
		}
		b := tb.effectBranch(e)
		b.Ended, b.failed = time.Time{}, 0
		switch {
		case flow.IsFailure(e.ID):
			b.failed = e.Seq
		case toolKey(e.ID) != "":
			b.Tools++
		}
	case journal.KindTask:
		tb.endBranch(publicPath(e.Path+e.What+"/"), e.Time)
	case journal.KindReturn:
		tb.endBranch(publicPath(e.Path), e.Time)
	case journal.KindStep:
		tb.steps[e.Path] = e.Time
		tb.endBranches(e.Path, e.Time)
		if from := tb.next[e.Path]; e.Failed != "" && len(from) == 1 {
			if b := tb.paths[joinNode(publicPath(e.Path), from[0])]; b != nil {
				b.failed, b.Error = e.Seq, e.Failed
			}
		}
	}
	switch e.Kind {
	case journal.KindStart, journal.KindCall, journal.KindStep, journal.KindEdit, journal.KindFork, journal.KindSnapshot:
		tb.next[e.Path] = e.Next
	}
	for path := publicPath(e.Path); ; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
		if b := tb.paths[path]; b != nil && b != tb.root {
			b.Updated = e.Time
		}
		if path == "" {
			return
		}
	}
}

func (tb *treeBuilder) endBranch(path string, at time.Time) {
	if b := tb.paths[path]; b != nil && b != tb.root && b.Ended.IsZero() {
		b.Ended = at
	}
}

// endBranches ends what a step of a frame has run.
func (tb *treeBuilder) endBranches(frame string, at time.Time) {
	for _, b := range tb.order {
		if tb.in[b] == frame && b.Ended.IsZero() {
			b.Ended = at
		}
	}
}

// parentFrame returns the frame around a frame of the journal.
func parentFrame(path string) string {
	return path[:strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1]
}

// addContent adds what a record holds in addition to its head.
func (tb *treeBuilder) addContent(e history.Entry, r journal.Record) error {
	if e.Kind != journal.KindQuestion {
		return tb.addEffect(e, r.Data)
	}
	c, err := history.DecodeContent(r)
	if err != nil {
		return err
	}
	if call, ok := graph.RemoteCallOf(c.Question); ok {
		b := tb.openBranch(c.Question.ID, e.Time)
		b.Run = call.Run
		tb.remote = append(tb.remote, b)
	}
	return nil
}

// addEffect adds the outcome of an effect.
func (tb *treeBuilder) addEffect(e history.Entry, data []byte) error {
	if team.IsLog(e.ID) {
		tb.teams.add(e, data)
		return nil
	}
	if flow.IsFailure(e.ID) {
		if b := tb.effectBranch(e); b.failed == e.Seq {
			b.Error = flow.ReadFailure(data)
		}
		return nil
	}
	r, err := flow.ReadReply(data)
	if err == nil {
		tb.effectBranch(e).Calls.addReply(r)
	}
	return err
}

// teamLogs are the logs of the teams of a run.
type teamLogs []*teamLog

// add adds an entry of a team's log, and returns the log. Without the beginning of the log, only the existence of its agents is known.
func (logs *teamLogs) add(e history.Entry, data []byte) *teamLog {
	task := e.Path + taskOf(e)
	i := slices.IndexFunc(*logs, func(l *teamLog) bool { return l.task == task })
	if i < 0 {
		i = len(*logs)
		*logs = append(*logs, &teamLog{task: task, path: publicPath(task + "/")})
	}
	l := (*logs)[i]
	if !l.incomplete {
		l.incomplete = l.past.Add(data) != nil
	}
	return l
}
