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

type pendingResult struct {
	Status  string        `json:"status"`
	ID      string        `json:"id"`
	Message string        `json:"message"`
	Pending []*escalation `json:"pending_escalations,omitempty"`
}

// checkAgent returns the output of an agent if there is one.
func checkAgent(ctx context.Context, s agentHandle, c tool.Call, a args) (tool.Result, error) {
	id := string(a.ID)
	s.mu.Lock()
	m := s.state.childOf(s.id, id)
	if _, again := s.old[c.Key]; m != nil && m.status == running && !again {
		defer s.mu.Unlock()
		text := "Agent is still running"
		if m.queued {
			text = "Agent waits for a place"
		}
		return tool.JSONResult(pendingResult{"pending", id, text, s.state.pendingQuestions(s.id)}), nil
	} else if m == nil && !again {
		s.mu.Unlock()
		return formatOutcome(refuseEntry("No agent found with id '%s'", id)), nil
	}
	s.mu.Unlock()
	return s.deliverOutput(ctx, c, id)
}

// errTime ends a wait that has reached its time limit.
var errTime = errors.New("the time has passed")

// awaitChange waits for a change. on are the agents that the caller needs, at least
// one: if none of them can make progress in this drive, await suspends the
// node. The caller must hold mu, which is released during the wait.
func (s agentHandle) awaitChange(ctx context.Context, on []string, limit <-chan time.Time) error {
	if s.broke != nil {
		return s.broke
	}
	if !slices.ContainsFunc(on, s.canProgress) {
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

// canProgress reports whether an agent can make progress in this drive. An agent that
// waits for a place can if one of the agents that have the places can. The
// caller must hold mu.
func (x *supervisor) canProgress(id string) bool {
	if p := x.runningAgents[id]; p != nil {
		return !p.blocked
	}
	m := x.state.agents[id]
	if m == nil || !m.queued {
		return true
	}
	return slices.ContainsFunc(x.state.childrenOf(m.parent), func(o *member) bool {
		return o.status == running && !o.queued && x.canProgress(o.id)
	})
}

// spawnedHandle returns the handle of the spawned agent that ctx belongs to. The
// lead of a team inside an agent of another team uses that agent's handle.
func spawnedHandle(ctx context.Context) (s agentHandle, ok bool) {
	for s, ok = handleOf(ctx); ok && s.id == lead; {
		s, ok = handleOf(s.ctx)
	}
	return s, ok
}

// escalateTool returns the function of a tool that asks the agent's spawner
// instead of a person. u checks the arguments.
func escalateTool(u tool.Tool, patience time.Duration) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		s, ok := spawnedHandle(ctx)
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
		out, err := s.changeState(entry{Op: opEscalate, Key: c.Key, By: s.id, Text: fmt.Sprintf("[%s] %s", asked.Action, asked.Question), Options: asked.Options})
		if err != nil {
			return tool.Result{}, err
		}
		x, open := out.result.(*escalation)
		if !open { // it was cancelled in the meantime
			return formatOutcome(out), nil
		}
		return s.awaitReply(ctx, x.ID, patience)
	}
}

// noReply is the result for an agent whose question was not answered.
type noReply struct {
	Error    string `json:"error"`
	Fallback string `json:"fallback"`
}

const fallback = "Make your best judgment and proceed"

// awaitReply waits for the reply to a question.
func (s agentHandle) awaitReply(ctx context.Context, id string, patience time.Duration) (tool.Result, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		x := s.state.findEscalation(id)
		switch {
		case x == nil: // the wait was ended before this drive
			return tool.JSONResult(timeoutReply(patience)), nil
		case x.replied:
			return tool.JSONResult(map[string]string{"answer": x.reply}), nil
		}
		err := s.awaitChange(ctx, []string{x.to}, timer.C)
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

func timeoutReply(patience time.Duration) noReply {
	return noReply{fmt.Sprintf("Escalation timed out after %d seconds waiting for user response", int(patience.Seconds())), fallback}
}

// findEscalation returns an open or answered question, or nil.
func (s *state) findEscalation(id string) *escalation {
	for _, x := range s.escalations {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// summariseOutput returns an agent's output, summarized if it is longer than the
// threshold of the agent that collects it. If the summary fails, the output is
// cut.
func (s agentHandle) summariseOutput(ctx context.Context, f outputResult) (string, error) {
	s.mu.Lock()
	rule, name := s.state.spawnRule(s.id), ""
	if m := s.state.agents[s.id]; m != nil {
		name = m.name
	}
	s.mu.Unlock()
	if utf8.RuneCountInString(f.Output) < rule.Threshold || f.Status != completed {
		return f.Output, nil
	}
	reply, err := graph.DoEffect(ctx, graph.Effect{Name: "summary", Key: f.ID}, func(ctx context.Context) (llm.Reply, error) {
		return sumUp(ctx, rule.Summary, s.team.memberByName(name).Agent.Redact, f)
	})
	text := strings.TrimSpace(reply.Text())
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil || text == "":
		return truncateMiddle(f.Output, rule.Threshold), nil
	}
	return text, nil
}
