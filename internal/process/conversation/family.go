package conversation

import (
	"cmp"
	"context"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// A family is all branches of one conversation.
type family struct {
	root     runs.Session // the first branch
	branches []runs.Session
}

// newest returns the current branch: the one that was changed last.
func (f *family) newest() runs.Session {
	return slices.MaxFunc(f.branches, func(a, b runs.Session) int {
		return cmp.Or(a.Updated.Compare(b.Updated), cmp.Compare(a.Thread, b.Thread))
	})
}

// groupFamilies groups sessions into conversations: those that were forked from each other, and those
// whose names differ by the number of the branch.
func groupFamilies(sessions []runs.Session) []*family {
	slices.SortFunc(sessions, func(a, b runs.Session) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Thread, b.Thread))
	})
	leader := map[string]string{} // of a thread, or of a name
	var find func(x string) string
	find = func(x string) string {
		if up, ok := leader[x]; ok && up != x {
			leader[x] = find(up)
			return leader[x]
		}
		return x
	}
	for _, s := range sessions {
		leader[find(s.Thread)] = find(baseThread(s.Thread) + "/")
		if s.From != nil {
			leader[find(s.From.Run)] = find(baseThread(s.Thread) + "/")
			leader[find(baseThread(s.From.Run)+"/")] = find(s.Thread)
		}
	}
	byLeader := map[string]*family{}
	var families []*family
	for _, s := range sessions {
		key := find(s.Thread)
		f := byLeader[key]
		if f == nil {
			f = &family{root: s}
			byLeader[key] = f
			families = append(families, f)
		}
		if f.root.From != nil && s.From == nil {
			f.root = s
		}
		f.branches = append(f.branches, s)
	}
	return families
}

// baseThread returns the name of a thread without the number of the branch.
func baseThread(thread string) string {
	agent, session, ok := runs.SessionOf(thread)
	if !ok {
		return thread
	}
	name, _ := runs.SplitBranch(session)
	return runs.NameSession(agent, name)
}

// listFamily returns the conversation that the current thread belongs to, or nil if there is none yet.
func (c *Conversation) listFamily(ctx context.Context) (*family, error) {
	sessions, err := c.process.Runs.ListSessions(ctx, c.place.Name)
	if err != nil {
		return nil, err
	}
	for _, f := range groupFamilies(sessions) {
		for _, b := range f.branches {
			if b.Thread == c.thread || baseThread(b.Thread) == c.thread {
				return f, nil
			}
		}
	}
	return nil, nil
}

// readStart returns the first message of a conversation on one line, and what it was started with; nil if
// another program started it.
func (f *family) readStart(ctx context.Context, p *app.Process) (title string, rec *runs.Record, err error) {
	st, err := p.Runs.StoreToRead()
	if st == nil || err != nil {
		return "", nil, err
	}
	snap, err := history.Inspect(ctx, st, f.root.Thread, f.root.First)
	if err != nil {
		return "", nil, err
	}
	if rec, err = runs.DecodeRecord(snap.Meta); err != nil {
		return "", nil, nil
	}
	return titleOf(rec.Prompt), rec, nil
}

// Summary is a conversation in a list.
type Summary struct {
	Agent     string // its name, or its directory if the name means another agent
	Name      string
	Title     string
	Workspace string // the directory in which it was started
	Turns     int    // of the current branch
	Branches  int
	Updated   time.Time
	Status    graph.Status // of the last turn
	Run       string       // the last turn
}

// List returns the conversations that were started in a directory, or all of them if workspace is empty,
// newest first.
func List(ctx context.Context, p *app.Process, workspace string) ([]Summary, error) {
	sessions, err := p.Runs.ListSessions(ctx, "")
	if err != nil {
		return nil, err
	}
	var list []Summary
	for _, f := range groupFamilies(sessions) {
		s, err := f.summarize(ctx, p, workspace, true)
		if runs.IsDamage(err) { // the others can be listed
			continue
		}
		if err != nil {
			return nil, err
		}
		if s != nil {
			list = append(list, *s)
		}
	}
	slices.SortFunc(list, func(a, b Summary) int {
		return cmp.Or(b.Updated.Compare(a.Updated), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Latest returns the conversation of List that was changed last, or nil if there is none. It reads as little as
// possible, and does not count the turns.
func Latest(ctx context.Context, p *app.Process, workspace string) (*Summary, error) {
	sessions, err := p.Runs.ListSessions(ctx, "")
	if err != nil {
		return nil, err
	}
	families := groupFamilies(sessions)
	slices.SortStableFunc(families, func(a, b *family) int { return b.newest().Updated.Compare(a.newest().Updated) })
	for _, f := range families {
		s, err := f.summarize(ctx, p, workspace, false)
		if runs.IsDamage(err) {
			continue
		}
		if s != nil || err != nil {
			return s, err
		}
	}
	return nil, nil
}

// summarize returns the line of a conversation, or nil if it belongs to another directory.
func (f *family) summarize(ctx context.Context, p *app.Process, workspace string, count bool) (*Summary, error) {
	title, rec, err := f.readStart(ctx, p)
	if err != nil {
		return nil, err
	}
	if rec == nil || workspace != "" && rec.Workspace != workspace {
		return nil, nil
	}
	now := f.newest()
	agent, session, _ := runs.SessionOf(now.Thread)
	s := &Summary{
		Agent:     agent,
		Title:     title,
		Workspace: rec.Workspace,
		Updated:   now.Updated,
		Status:    runs.ParseStatus(now.Status),
		Run:       now.Run,
		Branches:  len(f.branches),
	}
	s.Name, _ = runs.SplitBranch(session)
	if !isGenerated(s.Name) {
		s.Title = s.Name
	}
	if place, err := p.FindAgent(agent); err != nil || place.Dir != rec.Dir {
		s.Agent = rec.Dir
	}
	if !count {
		return s, nil
	}
	st, err := p.Runs.StoreToRead()
	if err != nil {
		return nil, err
	}
	turns, err := st.NewTalks().ListTurns(ctx, now.Thread)
	s.Turns = len(turns)
	return s, err
}
