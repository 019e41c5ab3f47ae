package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

type pending struct {
	Status  string        `json:"status"`
	ID      string        `json:"id"`
	Message string        `json:"message"`
	Pending []*escalation `json:"pending_escalations,omitempty"`
}

// check returns the output of an agent if there is one.
func check(ctx context.Context, s seat, c tool.Call, a args) (tool.Result, error) {
	id := string(a.ID)
	s.mu.Lock()
	m := s.state.child(s.id, id)
	if _, again := s.old[c.Key]; m != nil && m.status == running && !again {
		defer s.mu.Unlock()
		text := "Agent is still running"
		if m.queued {
			text = "Agent waits for a place"
		}
		return tool.JSON(pending{"pending", id, text, s.state.pending(s.id)}), nil
	} else if m == nil && !again {
		s.mu.Unlock()
		return said(refuse("No agent found with id '%s'", id)), nil
	}
	s.mu.Unlock()
	return s.hand(ctx, c, id)
}

// errTime ends a wait that has reached its time limit.
var errTime = errors.New("the time has passed")

// await waits for a change. on are the agents that the caller needs, at least
// one: if none of them can make progress in this drive, await suspends the
// node. The caller must hold mu, which is released during the wait.
func (s seat) await(ctx context.Context, on []string, limit <-chan time.Time) error {
	if s.broke != nil {
		return s.broke
	}
	if !slices.ContainsFunc(on, s.moves) {
		return graph.Suspend(ctx)
	}
	changed := s.changed
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-limit:
		return errTime
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// moves reports whether an agent can make progress in this drive. An agent that
// waits for a place can if one of the agents that have the places can. The
// caller must hold mu.
func (x *supervisor) moves(id string) bool {
	if p := x.posts[id]; p != nil {
		return !p.still
	}
	m := x.state.agents[id]
	if m == nil || !m.queued {
		return true
	}
	return slices.ContainsFunc(x.state.children(m.parent), func(o *member) bool {
		return o.status == running && !o.queued && x.moves(o.id)
	})
}

// spawnedSeat returns the seat of the spawned agent that ctx belongs to. The
// lead of a team inside an agent of another team uses that agent's seat.
func spawnedSeat(ctx context.Context) (s seat, ok bool) {
	for s, ok = seatOf(ctx); ok && s.id == lead; {
		s, ok = seatOf(s.ctx)
	}
	return s, ok
}

// escalating returns the function of a tool that asks the agent's spawner
// instead of a person. u checks the arguments.
func escalating(u tool.Tool, patience time.Duration) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		s, ok := spawnedSeat(ctx)
		if !ok {
			return u.Run(ctx, c)
		}
		r, err := u.Run(ctx, c) // without a person: the result says what would be asked
		var asked struct {
			Action, Question string
			Options          []string
		}
		if err != nil || r.Error || json.Unmarshal([]byte(r.Text()), &asked) != nil {
			return r, err
		}
		out, err := s.change(entry{Op: opEscalate, Key: c.Key, By: s.id, Text: fmt.Sprintf("[%s] %s", asked.Action, asked.Question), Options: asked.Options})
		if err != nil {
			return tool.Result{}, err
		}
		x, open := out.result.(*escalation)
		if !open { // it was cancelled in the meantime
			return said(out), nil
		}
		return s.answer(ctx, x.ID, patience)
	}
}

// noReply is the result for an agent whose question was not answered.
type noReply struct {
	Error    string `json:"error"`
	Fallback string `json:"fallback"`
}

const fallback = "Make your best judgment and proceed"

// answer waits for the reply to a question.
func (s seat) answer(ctx context.Context, id string, patience time.Duration) (tool.Result, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		x := s.state.escalation(id)
		switch {
		case x == nil: // the wait was ended before this drive
			return tool.JSON(late(patience)), nil
		case x.replied:
			return tool.JSON(map[string]string{"answer": x.reply}), nil
		}
		err := s.await(ctx, []string{x.to}, timer.C)
		if errors.Is(err, errTime) {
			if _, err = s.addLocked(entry{Op: opGiveUp, By: s.id, ID: id}); err == nil {
				continue
			}
		}
		if err != nil {
			return tool.Result{}, err
		}
	}
}

func late(patience time.Duration) noReply {
	return noReply{fmt.Sprintf("Escalation timed out after %d seconds waiting for user response", int(patience.Seconds())), fallback}
}

// escalation returns an open or answered question, or nil.
func (s *state) escalation(id string) *escalation {
	for _, x := range s.escalations {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// short returns an agent's output, summarized if it is longer than the
// threshold of the agent that collects it. If the summary fails, the output is
// cut.
func (s seat) short(ctx context.Context, f finished) (string, error) {
	s.mu.Lock()
	rule, name := s.state.rule(s.id), ""
	if m := s.state.agents[s.id]; m != nil {
		name = m.name
	}
	s.mu.Unlock()
	if utf8.RuneCountInString(f.Output) < rule.Threshold || f.Status != completed {
		return f.Output, nil
	}
	reply, err := graph.DoEffect(ctx, graph.Effect{Name: "summary", Key: f.ID}, func(ctx context.Context) (llm.Reply, error) {
		return sumUp(ctx, rule.Summary, s.team.of(name).Agent.Redact, f)
	})
	text := strings.TrimSpace(reply.Text())
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil || text == "":
		return cut(f.Output, rule.Threshold), nil
	}
	return text, nil
}
