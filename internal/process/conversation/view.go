package conversation

import (
	"context"

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
	c, talks, err := viewBranch(ctx, p, agent, session)
	if err != nil {
		return nil, err
	}
	return c.listBranches(ctx, talks)
}

// BranchBefore makes a branch of a session that ends before the turn of a run, and returns the session of the branch.
// The next turn of that session is another one in the same place. Another process must not have the conversation open.
func BranchBefore(ctx context.Context, p *app.Process, agent, session, run string) (string, error) {
	if _, _, err := viewBranch(ctx, p, agent, session); err != nil {
		return "", err
	}
	c, err := Open(ctx, p, agent, session)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.thread = runs.NameSession(c.place.Name, session)
	r, err := c.readTurns(ctx)
	if err != nil {
		return "", err
	}
	for i, turn := range r.places {
		if turn.Run != run {
			continue
		}
		err := c.branchAt(ctx, r, i)
		return c.Session(), err
	}
	return "", failure.NewUsage("name the run of one of its turns", "the session %s of agent %s has no turn that is run %s", session, agent, run)
}

// viewBranch returns the branch of a session to read it, and what has read its state. The error says if there is no
// such session.
func viewBranch(ctx context.Context, p *app.Process, agent, session string) (*Conversation, *runs.Talks, error) {
	place, err := p.FindAgent(agent)
	if err != nil {
		return nil, nil, err
	}
	c := &Conversation{process: p, agent: agent, place: place, thread: runs.NameSession(place.Name, session)}
	st, err := p.Runs.StoreToRead()
	if err != nil {
		return nil, nil, err
	}
	if st != nil {
		talks := st.NewTalks()
		if snap, err := talks.ReadState(ctx, c.thread); snap != nil || err != nil {
			return c, talks, err
		}
	}
	return nil, nil, &runs.UnknownError{ID: c.thread}
}
