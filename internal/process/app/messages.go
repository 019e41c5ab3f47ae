package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/mail"
	"raddle.dev/internal/storage/runs"
)

// sentMessages are what people have said to the agent of a run while it worked. The zero value has none. It is safe for
// concurrent use.
type sentMessages struct {
	mu     sync.Mutex
	list   []agent.SentMessage // that the conversation does not have, as far as is known
	handed int                 // how many of them the turn was given
	over   bool                // the turn ends: nothing is accepted
	stored bool                // some have come as letters
}

// acceptLetter is acceptMessage for the message of a letter.
func (s *sentMessages) acceptLetter(l *mail.Letter) bool {
	s.mu.Lock()
	s.stored = true
	s.mu.Unlock()
	return s.acceptMessage(agent.SentMessage{ID: l.ID, Text: l.Message.Text, By: l.Message.By})
}

// close accepts nothing any more.
func (s *sentMessages) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}

// hasLetters reports whether some have come as letters.
func (s *sentMessages) hasLetters() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stored
}

// acceptMessage adds a message, unless it is there. It reports false if the turn ends before it could take it up.
func (s *sentMessages) acceptMessage(m agent.SentMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.list, func(o agent.SentMessage) bool { return o.ID == m.ID }) {
		return true
	}
	if s.over {
		return false
	}
	s.list = append(s.list, m)
	return true
}

// waiting is an [agent.Mailbox].
func (s *sentMessages) waiting(isTaken func(id string) bool, last bool) []agent.SentMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(m agent.SentMessage) bool { return isTaken(m.ID) })
	s.handed = len(s.list)
	s.over = last && len(s.list) == 0
	return slices.Clone(s.list)
}

// dropMessage takes a message back that the turn was not given, and reports whether it could.
func (s *sentMessages) dropMessage(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.IndexFunc(s.list, func(m agent.SentMessage) bool { return m.ID == id })
	if at < s.handed {
		return false
	}
	s.list = slices.Delete(s.list, at, at+1)
	return true
}

// SayNow says something to the agent of a run that this process drives. The agent takes it up before its next request to
// the model; [agent.MessageTaken] says so. It is not stored before. SayNow reports false if the turn ends, or the agent
// is a graph: then the message belongs to the next turn.
func (r *Run) SayNow(m agent.SentMessage) bool {
	return r.Agent.Config != nil && r.sent.acceptMessage(m)
}

// Unsay takes back what SayNow said, and reports whether the agent does not have it.
func (r *Run) Unsay(id string) bool { return r.sent.dropMessage(id) }

// withMessages returns the context of a drive whose agent takes up what people say while it works. A run that is resumed
// gets what was said before.
func (r *Run) withMessages(ctx context.Context) context.Context {
	if r.Agent.Config == nil {
		return ctx
	}
	if r.Resumed {
		r.readMessages(ctx)
	}
	return agent.WithMailbox(ctx, r.sent.waiting)
}

// readMessages reads what was said to the run before this drive. What cannot be read now, the postman brings.
func (r *Run) readMessages(ctx context.Context) {
	box, err := r.process.openMail()
	if err != nil {
		return
	}
	letters, err := box.ListLettersTo(ctx, r.ID)
	if err != nil {
		return
	}
	for i := range letters {
		if letters[i].Message != nil && !letters[i].Late {
			r.sent.acceptLetter(&letters[i])
		}
	}
}

// takeMessage gives the agent the message of a letter, and tells its sender. The letter stays until the message is in
// the journal.
func (r *Run) takeMessage(ctx context.Context, box mail.Box, l *mail.Letter) error {
	if l.Accepted || l.Late {
		return nil
	}
	l.Accepted = r.Agent.Config != nil && r.sent.acceptLetter(l)
	l.Late = !l.Accepted
	err := box.PutLetter(ctx, l)
	if err != nil && l.Accepted && !r.Unsay(l.ID) {
		return nil // the agent has it already
	}
	return err
}

// forgetTaken removes the letters whose messages a drive has recorded.
func (r *Run) forgetTaken(ctx context.Context, res graph.Result) {
	if !r.sent.hasLetters() {
		return
	}
	box, err := r.process.openMail()
	if err != nil {
		return
	}
	for _, id := range agent.TakenMessages(agent.Messages.Get(res.State)) {
		l := &mail.Letter{Run: r.ID, ID: id}
		_, _ = box.RemoveLetter(context.WithoutCancel(ctx), l) // else it expires
	}
}

// A MessageRequest is what a person says to the agent of a run.
type MessageRequest struct {
	Run  string // a whole id, or what names one
	Text string
	By   string // who says it; "": not known
	ID   string // distinguishes it from the others to the run: sending it again does nothing; "": a new one
}

// SendMessage says something to the agent of a run, in whatever process works on it. The agent takes it up before its
// next request to the model, or when the run continues if nothing drives it now. When SendMessage returns, the message is
// stored and will reach the agent; with an error it will not.
func (p *Process) SendMessage(ctx context.Context, req MessageRequest) error {
	if strings.TrimSpace(req.Text) == "" {
		return failure.NewUsage("", "the message is empty")
	}
	detail, err := p.Runs.ReadRunDetail(ctx, req.Run)
	if err != nil {
		return err
	}
	if detail.Record == nil || detail.Record.IsGraph() {
		return failure.NewUsage("answer its questions with raddle inbox, or send it an event with raddle events send",
			"run %s is not of an agent that takes messages: it is a graph, or a program started it", detail.Run)
	}
	if entries, err := agent.ReadEntries(detail.Snapshot.Values, 0); req.ID != "" && err == nil && slices.Contains(agent.TakenMessages(entries), req.ID) {
		return nil
	}
	if detail.Snapshot.Status.Final() {
		return errTurnEnded(&detail.Info)
	}
	box, err := p.openMail()
	if err != nil {
		return err
	}
	l := &mail.Letter{
		Run:     detail.Run,
		ID:      cmp.Or(req.ID, graph.NewID(time.Now())),
		Message: &mail.Message{Text: req.Text, By: req.By},
	}
	if earlier, found, err := box.ReadLetter(ctx, l.Run, l.ID); err != nil {
		return err
	} else if found && !earlier.Late {
		l = &earlier
	} else if err := box.PutLetter(ctx, l); err != nil {
		return err
	}
	if err := p.postman.offerMessage(ctx, box, l); err != nil {
		return errors.Join(err, takeBack(ctx, box, l))
	}
	return p.awaitMessage(ctx, box, l)
}

// offerMessage gives a message to a run that this process drives.
func (m *postman) offerMessage(ctx context.Context, box mail.Box, l *mail.Letter) error {
	m.mu.Lock()
	to, known := m.served[l.Run]
	m.mu.Unlock()
	if !known {
		return nil
	}
	return to.run.takeMessage(ctx, box, l)
}

// awaitMessage waits until a message is accepted, or is to wait until its run continues.
func (p *Process) awaitMessage(ctx context.Context, box mail.Box, l *mail.Letter) error {
	driven := true
	late := false
	settled, err := poll(ctx, func() (bool, error) {
		now, found, err := box.ReadLetter(ctx, l.Run, l.ID)
		if err != nil || !found || now.Accepted {
			return !found || now.Accepted, err
		}
		late = now.Late
		if late {
			return true, nil
		}
		driven, err = runs.IsDriven(ctx, p.Runs, l.Run)
		return !driven, err
	})
	switch {
	case err != nil:
		return errors.Join(err, takeBack(ctx, box, l))
	case !settled:
		err = failure.NewStale("try again", "run %s is working in another process, which did not take the message", l.Run)
		return errors.Join(err, takeBack(ctx, box, l))
	case driven && !late:
		return nil
	}
	detail, err := p.Runs.ReadRunDetail(ctx, l.Run)
	if err != nil {
		return errors.Join(err, takeBack(ctx, box, l))
	}
	if !late && !detail.Snapshot.Status.Final() {
		return nil // it is read when the run continues
	}
	if left, err := box.RemoveLetter(context.WithoutCancel(ctx), l); err != nil || !left {
		return err // it was taken in the last moment
	}
	if late && !detail.Snapshot.Status.Final() {
		return failure.NewStale("send it again when the turn has ended", "run %s takes no message any more: its turn is about to end, or summarizes the conversation", l.Run)
	}
	return errTurnEnded(&detail.Info)
}

// takeBack removes a letter whose message will not reach the agent.
func takeBack(ctx context.Context, box mail.Box, l *mail.Letter) error {
	_, err := box.RemoveLetter(context.WithoutCancel(ctx), l)
	return err
}

// errTurnEnded says that the turn of a run has ended, and what to do.
func errTurnEnded(of *runs.Info) error {
	next := "start another: raddle run " + of.Agent + ` "…"`
	if of.Session != "" {
		next = "begin the next turn: raddle run " + of.Agent + " --session " + of.Session + ` "…"`
	}
	return failure.NewStale(next, "run %s has ended, so its agent gets no message", of.Run)
}
