package conversation

import (
	"context"
	"errors"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// BranchTurns is one branch of a conversation with the runs of its turns, oldest first.
type BranchTurns struct {
	Branch
	Runs []string
}

// ListBranches returns the branches of the conversation that a session belongs to, as [Conversation.Branches] does. The
// branch of the session is current. Another process may have the conversation open.
func ListBranches(ctx context.Context, p *app.Process, agent, session string) ([]BranchTurns, error) {
	c, err := viewBranch(ctx, p, agent, session)
	if err != nil {
		return nil, err
	}
	branches, err := c.Branches(ctx)
	if err != nil {
		return nil, err
	}
	st, err := p.Runs.StoreToRead()
	if err != nil {
		return nil, err
	}
	var list []BranchTurns
	for _, b := range branches {
		refs, err := listTurnRefs(ctx, st, runs.NameSession(c.place.Name, b.Session))
		if err != nil {
			return nil, err
		}
		v := BranchTurns{Branch: b}
		for _, r := range refs {
			v.Runs = append(v.Runs, r.run)
		}
		list = append(list, v)
	}
	return list, nil
}

// BranchBefore makes a branch of a session that ends before the turn of a run, and returns the session of the branch.
// The next turn of that session is another one in the same place. Another process must not have the conversation open.
func BranchBefore(ctx context.Context, p *app.Process, agent, session, run string) (string, error) {
	if _, err := viewBranch(ctx, p, agent, session); err != nil {
		return "", err
	}
	c, err := Open(ctx, p, agent, session)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.thread = runs.NameSession(c.place.Name, session)
	_, _, refs, err := c.readTurns(ctx)
	if err != nil {
		return "", err
	}
	for i, r := range refs {
		if r.run != run {
			continue
		}
		err := c.BranchAt(ctx, i+1)
		return c.Session(), err
	}
	return "", failure.NewUsage("name the run of one of its turns", "the session %s of agent %s has no turn that is run %s", session, agent, run)
}

// viewBranch returns the branch of a session to read it. The error says if there is no such session.
func viewBranch(ctx context.Context, p *app.Process, agent, session string) (*Conversation, error) {
	place, err := p.FindAgent(agent)
	if err != nil {
		return nil, err
	}
	c := &Conversation{process: p, agent: agent, place: place, thread: runs.NameSession(place.Name, session)}
	st, err := p.Runs.StoreToRead()
	if err == nil && st != nil {
		_, err = history.Inspect(ctx, st, c.thread, 0)
	}
	if st == nil && err == nil || errors.Is(err, journal.ErrNoThread) {
		return nil, &runs.UnknownError{ID: c.thread}
	}
	return c, err
}
