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
	_, _, refs, err := c.readTurns(ctx)
	switch {
	case err != nil:
		return err
	case len(refs) == 0:
		return failure.NewUsage("", "there is no turn to undo")
	case n < 1 || n > len(refs):
		return failure.NewUsage("", "%d turns cannot be undone: the conversation has %s", n, wording.FormatCount(len(refs), "turn"))
	}
	return c.BranchAt(ctx, len(refs)-n+1)
}

// BranchAt continues from before a turn, counted from 1, on another branch.
func (c *Conversation) BranchAt(ctx context.Context, turn int) error {
	if c.graph {
		return c.errGraph()
	}
	st, _, refs, err := c.readTurns(ctx)
	if err != nil {
		return err
	}
	if err := checkTurn(turn, len(refs)); err != nil {
		return err
	}
	r := refs[turn-1]
	return c.forkAt(ctx, st, journal.Point{Thread: r.thread, Seq: max(1, r.start-1)}, r.start == 1)
}

// checkTurn returns an error for a turn that does not exist.
func checkTurn(turn, count int) error {
	if turn < 1 || turn > count {
		return failure.NewUsage("", "there is no turn %d: the conversation has %s", turn, wording.FormatCount(count, "turn"))
	}
	return nil
}

// forkAt makes a copy of a point the current branch. If empty is true, the point is the start of the first turn, which
// does not become part of the branch. A branch that ends at this point is used again.
func (c *Conversation) forkAt(ctx context.Context, st *runs.Store, at journal.Point, empty bool) error {
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return cmp.Or(err, errNotRecorded)
	}
	for _, b := range family.branches {
		if b.Thread == at.Thread || b.From == nil || b.From.Run != at.Thread || b.From.At != at.Seq {
			continue
		}
		refs, err := listTurnRefs(ctx, st, b.Thread)
		if err != nil {
			return err
		}
		if len(refs) == 0 || refs[len(refs)-1].thread != b.Thread {
			return c.switchTo(ctx, st, b.Thread)
		}
	}
	thread, err := c.forkInto(ctx, st, at, c.Name())
	if err == nil && empty {
		_, err = history.Abandon(ctx, st, thread, "the first turn was undone")
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
	now, err := listTurnRefs(ctx, st, c.thread)
	if err != nil {
		return err
	}
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return cmp.Or(err, errNotRecorded)
	}
	slices.SortFunc(family.branches, func(a, b runs.Session) int { return b.Updated.Compare(a.Updated) })
	for _, b := range family.branches {
		refs, err := listTurnRefs(ctx, st, b.Thread)
		if err != nil {
			return err
		}
		if len(refs) > len(now) && sharedTurns(refs, now) == len(now) {
			return c.switchTo(ctx, st, b.Thread)
		}
	}
	return failure.NewUsage("", "there is nothing to redo")
}

// sharedTurns counts the turns with which both branches begin.
func sharedTurns(a, b []turnRef) (n int) {
	for n < len(a) && n < len(b) && a[n].run == b[n].run {
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
	family, err := c.listFamily(ctx)
	if err != nil || family == nil {
		return nil, err
	}
	st, err := c.process.Runs.StoreToRead()
	if err != nil {
		return nil, err
	}
	turns := make([][]turnRef, len(family.branches))
	for i, b := range family.branches {
		if turns[i], err = listTurnRefs(ctx, st, b.Thread); err != nil {
			return nil, err
		}
	}
	var list []Branch
	for i, b := range family.branches {
		current := b.Thread == c.thread
		if !current && isCovered(turns, i) {
			continue
		}
		_, session, _ := runs.SessionOf(b.Thread)
		v := Branch{Name: nameBranch(i), Session: session, Turns: len(turns[i]), Current: current, Updated: b.Updated}
		if i > 0 {
			for j := range family.branches {
				if j != i {
					v.From = max(v.From, sharedTurns(turns[i], turns[j]))
				}
			}
		}
		if v.Last, err = c.lastPrompt(ctx, st, b.Thread); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// isCovered reports whether another branch has all turns of a branch: more of them, or the same and is older.
func isCovered(turns [][]turnRef, i int) bool {
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

// lastPrompt returns the first line of the last message of a person in a thread.
func (c *Conversation) lastPrompt(ctx context.Context, st *runs.Store, thread string) (string, error) {
	entries, err := readEntries(ctx, st, thread)
	for i := len(entries) - 1; i >= 0; i-- {
		if e := entries[i]; e.By == "" && e.Message.Role == llm.RoleUser {
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
