package conversation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// Branch is one way that a conversation went.
type Branch struct {
	Name    string // "main" for the first one, then "b2", "b3" in the order in which they began
	Session string // as commands name it
	Turns   int
	From    int // the turns that it shares with the branch it was forked from; 0 for the first one
	Current bool
	Updated time.Time
	Last    string // the first line of its last message
}

// outputOf returns the output of a run that has ended.
func outputOf(snap *history.Snapshot) string {
	return flow.OutcomeOf(graph.Result{Value: snap.Result}).Output
}

// errGraph returns the error of operations that need a session.
func (c *Conversation) errGraph() error {
	return failure.NewUsage("start it again with another message", "the agent '%s' is a graph: every message starts it from its beginning, so there is no way back", c.place.Name)
}

// Undo goes back n turns. The turns stay, as a branch.
func (c *Conversation) Undo(ctx context.Context, n int) error {
	if c.graph {
		return c.errGraph()
	}
	r, err := c.readTurns(ctx)
	if err != nil {
		return err
	}
	count := len(r.places)
	switch {
	case count == 0:
		return failure.NewUsage("", "there is no turn to undo")
	case n < 1 || n > count:
		return failure.NewUsage("", "%d turns cannot be undone: the conversation has %s", n, wording.FormatCount(count, "turn"))
	}
	return c.branchAt(ctx, r, count-n)
}

// BranchAt continues from before a turn, counted from 1, on another branch.
func (c *Conversation) BranchAt(ctx context.Context, turn int) error {
	r, err := c.readFrom(ctx, turn)
	if err != nil {
		return err
	}
	return c.branchAt(ctx, r, turn-1)
}

// AddBranch continues after the last turn on another branch. A branch that began here and has no turn of its own is used
// again.
func (c *Conversation) AddBranch(ctx context.Context) error {
	if c.graph {
		return c.errGraph()
	}
	r, err := c.readTurns(ctx)
	if err != nil {
		return err
	}
	if len(r.places) == 0 {
		return errNotRecorded
	}
	at := journal.Point{Thread: c.thread}
	newest := journal.Range{Newest: true, Limit: 1, Heads: true}
	for rec, err := range journal.Records(ctx, r.talks.Store, c.thread, newest) {
		if err != nil {
			return err
		}
		at.Seq = rec.Seq
	}
	return c.forkAt(ctx, r.talks, at, false)
}

// readFrom reads the current branch to change it from a turn on, counted from 1.
func (c *Conversation) readFrom(ctx context.Context, turn int) (*reading, error) {
	if c.graph {
		return nil, c.errGraph()
	}
	r, err := c.readTurns(ctx)
	if err != nil {
		return nil, err
	}
	if count := len(r.places); turn < 1 || turn > count {
		return nil, failure.NewUsage("", "there is no turn %d: the conversation has %s", turn, wording.FormatCount(count, "turn"))
	}
	return r, nil
}

// branchAt continues on another branch from before the turn that the reading has at index.
func (c *Conversation) branchAt(ctx context.Context, r *reading, index int) error {
	turn := r.places[index]
	return c.forkAt(ctx, r.talks, journal.Point{Thread: turn.Thread, Seq: max(1, turn.First-1)}, turn.First == 1)
}

// forkAt makes a copy of a point the current branch. If empty is true, the point is the start of the first turn, which
// does not become part of the branch. A branch that ends at this point is used again.
func (c *Conversation) forkAt(ctx context.Context, talks *runs.Talks, at journal.Point, empty bool) error {
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return cmp.Or(err, errNotRecorded)
	}
	for _, b := range family.branches {
		if b.Thread == at.Thread || b.From == nil || b.From.Run != at.Thread || b.From.At != at.Seq {
			continue
		}
		turns, err := talks.ListTurns(ctx, b.Thread)
		if err != nil {
			return err
		}
		if len(turns) == 0 || turns[len(turns)-1].Thread != b.Thread {
			return c.switchTo(ctx, talks.Store, b.Thread)
		}
	}
	thread, err := c.forkInto(ctx, talks.Store, at, c.Name())
	if err == nil && empty {
		_, err = history.Abandon(ctx, talks.Store, thread, "the first turn was undone")
	}
	if err == nil {
		c.thread = thread
	}
	return err
}

var errNotRecorded error = failure.NewUsage("", "the conversation has no turn yet")

// forkInto copies a point into the next free branch of a name.
func (c *Conversation) forkInto(ctx context.Context, st *runs.Store, at journal.Point, name string) (thread string, err error) {
	for n := 2; ; n++ {
		thread = runs.NameSession(c.place.Name, fmt.Sprintf("%s~%d", name, n))
		if err = runs.ForkThread(ctx, st, at, thread); !errors.Is(err, journal.ErrThreadExists) {
			return thread, err
		}
	}
}

// switchTo makes a branch the current one: it gets a record that is newer than all others.
func (c *Conversation) switchTo(ctx context.Context, st *runs.Store, thread string) error {
	lock, err := st.LockRun(thread)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err = history.WriteSnapshot(ctx, st, thread); err == nil {
		c.thread = thread
	}
	return err
}

// Redo takes back the last Undo: it continues with the newest branch that begins with all turns of the current one.
func (c *Conversation) Redo(ctx context.Context) error {
	if c.graph {
		return c.errGraph()
	}
	st, err := c.process.Runs.StoreToRead()
	if err != nil {
		return err
	}
	if st == nil {
		return errNotRecorded
	}
	talks := st.NewTalks()
	now, err := talks.ListTurns(ctx, c.thread)
	if err != nil {
		return err
	}
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return cmp.Or(err, errNotRecorded)
	}
	slices.SortFunc(family.branches, func(a, b runs.Session) int { return b.Updated.Compare(a.Updated) })
	for _, b := range family.branches {
		turns, err := talks.ListTurns(ctx, b.Thread)
		if err != nil {
			return err
		}
		if len(turns) > len(now) && sharedTurns(turns, now) == len(now) {
			return c.switchTo(ctx, st, b.Thread)
		}
	}
	return failure.NewUsage("", "there is nothing to redo")
}

// sharedTurns counts the turns with which both branches begin.
func sharedTurns(a, b []runs.TurnPlace) (n int) {
	for n < len(a) && n < len(b) && a[n].Run == b[n].Run {
		n++
	}
	return n
}

// Branches returns the branches of the conversation, in the order in which they began. It leaves out those
// whose turns are all part of another branch, unless they are current.
func (c *Conversation) Branches(ctx context.Context) ([]Branch, error) {
	if c.graph {
		return nil, c.errGraph()
	}
	st, err := c.process.Runs.StoreToRead()
	if st == nil || err != nil {
		return nil, err
	}
	var list []Branch
	branches, err := c.listBranches(ctx, st.NewTalks())
	for _, b := range branches {
		list = append(list, b.Branch)
	}
	return list, err
}

// listBranches is Branches with the turns of each branch.
func (c *Conversation) listBranches(ctx context.Context, talks *runs.Talks) ([]BranchTurns, error) {
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return nil, err
	}
	turns := make([][]runs.TurnPlace, len(family.branches))
	lasts := make([]string, len(family.branches))
	unread := make([]error, len(family.branches)) // why there is no last message
	for i, b := range family.branches {
		lasts[i], unread[i] = readLastPrompt(ctx, talks, b.Thread) // before its turns: one pass reads both
		if turns[i], err = talks.ListTurns(ctx, b.Thread); err != nil {
			return nil, err
		}
	}
	var list []BranchTurns
	for i, b := range family.branches {
		current := b.Thread == c.thread
		if !current && isCovered(turns, i) {
			continue
		}
		if unread[i] != nil {
			return nil, unread[i]
		}
		_, session, _ := runs.SessionOf(b.Thread)
		v := BranchTurns{Branch: Branch{
			Name:    nameBranch(i),
			Session: session,
			Turns:   len(turns[i]),
			Current: current,
			Updated: b.Updated,
			Last:    lasts[i],
		}}
		for _, t := range turns[i] {
			v.Runs = append(v.Runs, t.Run)
		}
		if i > 0 {
			for j := range family.branches {
				if j != i {
					v.From = max(v.From, sharedTurns(turns[i], turns[j]))
				}
			}
		}
		list = append(list, v)
	}
	return list, nil
}

// isCovered reports whether another branch has all turns of a branch: more of them, or the same and is older.
func isCovered(turns [][]runs.TurnPlace, i int) bool {
	for j := range turns {
		if j == i || sharedTurns(turns[i], turns[j]) < len(turns[i]) {
			continue
		}
		if len(turns[j]) > len(turns[i]) || j < i {
			return true
		}
	}
	return false
}

func nameBranch(i int) string {
	if i == 0 {
		return "main"
	}
	return fmt.Sprintf("b%d", i+1)
}

// readLastPrompt returns the first line of the last message of a person in a thread.
func readLastPrompt(ctx context.Context, talks *runs.Talks, thread string) (string, error) {
	snap, err := talks.ReadState(ctx, thread)
	if err != nil {
		return "", err
	}
	entries, err := entriesOf(snap)
	for _, e := range slices.Backward(entries) {
		if e.By == "" && e.Message.Role == llm.RoleUser {
			return titleOf(cmp.Or(e.Said, e.Message.Text())), err
		}
	}
	return "", err
}

// SwitchBranch makes a branch the current one. name is that of the branch or of its session.
func (c *Conversation) SwitchBranch(ctx context.Context, name string) error {
	if c.graph {
		return c.errGraph()
	}
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return cmp.Or(err, errNotRecorded)
	}
	st, err := c.process.Runs.StoreToRead()
	if err != nil {
		return err
	}
	var names []string
	for i, b := range family.branches {
		_, session, _ := runs.SessionOf(b.Thread)
		if name == nameBranch(i) || name == session {
			return c.switchTo(ctx, st, b.Thread)
		}
		names = append(names, nameBranch(i))
	}
	return failure.NewUsage(wording.SuggestNearest(name, names, ""), "there is no branch %q", name)
}

// Rename gives the conversation a name. The next turn is recorded under it; the turns so far stay
// where they are.
func (c *Conversation) Rename(ctx context.Context, name string) error {
	if c.graph {
		return c.errGraph()
	}
	if err := checkName(name); err != nil {
		return err
	}
	if _, n := runs.SplitBranch(name); n > 1 {
		return failure.NewUsage("end the name with something else", "%q names a branch", name)
	}
	if name == c.Name() {
		return nil
	}
	sessions, err := c.process.Runs.ListSessions(ctx, c.place.Name)
	if err != nil {
		return err
	}
	thread := runs.NameSession(c.place.Name, name)
	if slices.ContainsFunc(sessions, func(s runs.Session) bool { return baseThread(s.Thread) == thread }) {
		return failure.NewUsage("choose another name", "there is a conversation '%s' of agent '%s' already", name, c.place.Name)
	}
	if !slices.ContainsFunc(sessions, func(s runs.Session) bool { return s.Thread == c.thread }) {
		c.thread = thread // nothing is recorded yet
		return nil
	}
	st, err := c.process.Runs.StoreToRead()
	if err != nil {
		return err
	}
	if run, status, err := c.OpenTurn(ctx); err != nil {
		return err
	} else if run != "" {
		return failure.NewStale("end it first", "the last turn of the conversation has not ended: run %s (%s)", run, status)
	}
	if err = runs.ForkThread(ctx, st, journal.Point{Thread: c.thread}, thread); err == nil {
		c.thread = thread
	}
	return err
}
