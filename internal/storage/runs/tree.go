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
	// Path is of nodes and agents: "research", "fan/each[2]", "team/agent_explore_1f2e3d4c"; "" for the run.
	Path  string
	Agent string // name of a spawned agent, or of the run's
	// Status is that of the run; of others done, failed, cancelled, waiting, or the status of the run that they are
	// part of.
	Status    string
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
	failure   branchFailure
}

// A branchFailure is the newest effect that says why a branch has failed. It may have worked again since.
type branchFailure struct {
	record int64
	reason string
}

// ReadTree returns the parts of the run that worked. It includes agents that were collected, which are no longer in the
// run's state. It reads the runs of their own that are parts of the run, unless the view is of an earlier point.
func (v *View) ReadTree(ctx context.Context) (*Branch, error) {
	root, remote := v.parts.tree.buildTree(v.Detail)
	if v.At > 0 {
		return root, nil
	}
	for _, b := range remote {
		if err := readRemoteBranch(ctx, v.archive, b); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// readRemoteBranch reads the tree of a run of its own into the branch that it is.
func readRemoteBranch(ctx context.Context, a *Archive, b *Branch) error {
	b.Questions = nil
	v, err := a.ReadView(ctx, b.Run)
	if errors.As(err, new(*UnknownError)) { // it has not started, or was removed
		return nil
	}
	if err != nil {
		return err
	}
	tree, err := v.ReadTree(ctx)
	if err != nil {
		return err
	}
	path := b.Path
	run := b.Run
	tree.movePaths(path)
	*b = *tree
	b.Path = path
	b.Run = run
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
			calls.AddCalls(&c.Calls)
		}
		c.addRemoteCalls(calls, remote)
	}
}

// A treeBuilder builds a tree from the records of a journal.
type treeBuilder struct {
	*course
	root   *Branch
	paths  map[string]*Branch   // by path
	order  []*Branch            // in the order of their start, without the root
	in     map[*Branch]string   // the frame, in the journal, whose task it is
	steps  map[string]time.Time // start of the current step, by frame
	remote []remoteQuestion     // what runs of their own are started for
	by     map[string]string    // the path of the agent that has spawned an agent, by the path of the latter
}

// A remoteQuestion is a question that a run of its own answers.
type remoteQuestion struct {
	path  string
	run   string
	asked time.Time
}

// A teamLog is the log of a team, and the place of the team.
type teamLog struct {
	task       string // of the journal
	path       string // of the task, followed by a slash
	past       team.History
	incomplete bool // its beginning is no longer in the journal
}

func newTreeBuilder(c *course) *treeBuilder {
	root := &Branch{}
	return &treeBuilder{
		course: c,
		root:   root,
		paths:  map[string]*Branch{"": root},
		in:     map[*Branch]string{},
		steps:  map[string]time.Time{},
	}
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
func publicPath(journal string) string { return strings.Join(listPath(journal, false), "/") }

// drivePath returns the path of a frame as the events of a drive have it: the nodes and agents above, each followed by
// a slash. The lead of a team is one of them.
func drivePath(journal string) string {
	path := ""
	for _, name := range listPath(journal, true) {
		path += name + "/"
	}
	return path
}

// listPath returns the nodes and agents of a path of the journal, with or without the nodes of teams that only their
// leads are below, and these leads.
func listPath(journal string, leads bool) (names []string) {
	for part := range strings.SplitSeq(strings.TrimSuffix(journal, "/"), "/") {
		task, name, named := strings.Cut(part, "#")
		if named && name == team.Lead && !leads {
			continue
		}
		if node := taskName(task); node != "" {
			names = append(names, node)
		}
		if named && name != "" {
			names = append(names, name)
		}
	}
	return names
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
func (tb *treeBuilder) effectBranch(f *fact) *Branch {
	if flow.IsTalk(f.ID) || f.call != "" {
		return tb.openBranch(publicPath(f.Path), tb.steps[f.Path])
	}
	b := tb.openBranch(publicPath(f.Path+f.effect.Task+"/"), tb.steps[f.Path])
	tb.in[b] = f.Path
	return b
}

// addFact adds a record.
func (tb *treeBuilder) addFact(f *fact) {
	e := f.Entry
	switch e.Kind {
	case journal.KindQuestion:
		if call, ok := graph.RemoteCallOf(f.Question); ok {
			tb.remote = append(tb.remote, remoteQuestion{f.Question.ID, call.Run, e.Time})
		}
	case journal.KindStart, journal.KindEdit, journal.KindFork, journal.KindSnapshot:
		tb.steps[e.Path] = e.Time
	case journal.KindCall:
		tb.steps[e.Path] = e.Time
		b := tb.openBranch(publicPath(e.Path), e.Time)
		b.Ended, b.failed, tb.in[b] = time.Time{}, 0, parentFrame(e.Path) // it may start again
	case journal.KindEffect:
		if f.reply == nil && !flow.IsFailure(e.ID) && f.call == "" {
			break
		}
		b := tb.effectBranch(f)
		b.Ended = time.Time{}
		b.failed = 0
		switch {
		case f.reply != nil:
			b.Calls.addReply(*f.reply)
		case f.call != "":
			b.Tools++
		default:
			b.failed, b.failure = e.Seq, branchFailure{e.Seq, flow.PlainReason(flow.ReadFailure(f.data))}
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
				b.failed = e.Seq
				b.Error = e.Failed
			}
		}
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

// teamLogs are the logs of the teams of a run.
type teamLogs []*teamLog

// add adds an entry of a team's log, and returns the log. Without the beginning of the log, only the existence of its
// agents is known.
func (logs *teamLogs) add(e history.Entry, data []byte) *teamLog {
	task := e.Path + graph.ParseEffectID(e.ID).Task
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
