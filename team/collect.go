package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// collectTool is the name of the tool that returns the outputs of agents.
const collectTool = "agent__collect"

// agentIDs returns the agents that a call of agent__collect names, and whether
// the call uses the form for several agents. A model may write the list into
// id.
func (a args) agentIDs() (ids []string, several bool) {
	ids = slices.Clone(a.IDs)
	id := strings.TrimSpace(string(a.ID))
	var list texts
	switch {
	case strings.HasPrefix(id, "[") && json.Unmarshal([]byte(id), &list) == nil:
		return append(ids, list...), true
	case id != "":
		ids = append(ids, id)
	}
	return ids, bool(a.Any) || len(a.IDs) > 0
}

// collectAgents waits until agents have finished, or until one waits for a reply.
func collectAgents(ctx context.Context, h agentHandle, c tool.Call, a args) (tool.Result, error) {
	ids, several := a.agentIDs()
	switch {
	case several:
		return h.collectSeveral(ctx, c, ids, bool(a.Any))
	case len(ids) == 0:
		return tool.FailedResult(toolFailed + "'id' is required"), nil
	}
	return h.collectOne(ctx, c, ids[0])
}

func (h agentHandle) collectOne(ctx context.Context, c tool.Call, id string) (tool.Result, error) {
	known := false
	h.mu.Lock()
	for {
		m := h.state.childOf(h.id, id)
		_, again := h.old[c.Key]
		switch {
		case m == nil && known && !again:
			h.mu.Unlock()
			return formatOutcome(refuseEntry("Agent '%s' was cancelled, or another call has collected it.", id)), nil
		case m == nil || m.status != running || again:
			h.mu.Unlock()
			return h.deliverOutput(ctx, c, id)
		}
		known = true
		open, err := h.awaitOrAsk(ctx, []string{id}, time.Time{})
		if open == nil && err == nil {
			continue
		}
		h.mu.Unlock()
		if err != nil {
			return tool.Result{}, err
		}
		return tool.JSONResult(pendingResult{"pending", id, replyFirst, open}), nil
	}
}

const replyFirst = "An agent waits for your reply. Answer with agent__reply_escalation, then collect again."

// collectResult is the output of several agents.
type collectResult struct {
	Status  string         `json:"status"` // ok or pending
	Message string         `json:"message,omitempty"`
	Agents  []outputResult `json:"agents"`
	Left    []string       `json:"not_collected"` // all agents of the caller, in the order in which they started
	Unknown []string       `json:"not_found,omitempty"`
	Stuck   []stuckTask    `json:"blocked_for_ever,omitempty"` // tasks of the caller that no earlier result has named
	Pending []*escalation  `json:"pending_escalations,omitempty"`
}

// collectSeveral returns the output of all agents of a list. If one is true, it
// returns as soon as one of them has finished, with the output of all that
// have. An empty list means all agents that the caller has started and not
// collected.
func (h agentHandle) collectSeveral(ctx context.Context, c tool.Call, ids []string, one bool) (tool.Result, error) {
	h.mu.Lock()
	for {
		finished, busy, unknown := h.state.sortChildren(h.id, ids)
		_, again := h.old[c.Key]
		switch {
		case again || len(finished) > 0 && (one || len(busy) == 0):
			h.mu.Unlock()
			return h.deliverSeveral(ctx, c, finished, unknown)
		case len(busy) == 0:
			h.mu.Unlock()
			if len(ids) == 0 {
				return formatOutcome(refuseEntry("You have no agents to collect.")), nil
			}
			return formatOutcome(refuseEntry("None of these agents can be collected: %s. Use agent__list to see those that you have started and not collected.", joinIDs(ids))), nil
		}
		open, err := h.awaitOrAsk(ctx, busy, time.Time{})
		if open == nil && err == nil {
			continue
		}
		left := h.state.childIDs(h.id)
		h.mu.Unlock()
		if err != nil {
			return tool.Result{}, err
		}
		return tool.JSONResult(collectResult{Status: "pending", Message: replyFirst, Agents: []outputResult{}, Left: left, Unknown: unknown, Pending: open}), nil
	}
}

// sortChildren divides a list of agents into those that have finished, those
// that are running, and those that by has not started or has already collected.
// An empty list means all agents that by has started.
func (s *state) sortChildren(by string, ids []string) (finished, busy, unknown []string) {
	if len(ids) == 0 {
		ids = s.childIDs(by)
	}
	for i, id := range ids {
		m := s.childOf(by, id)
		switch {
		case slices.Contains(ids[:i], id):
		case m == nil:
			unknown = append(unknown, id)
		case m.status == running:
			busy = append(busy, id)
		default:
			finished = append(finished, id)
		}
	}
	return finished, busy, unknown
}

// childIDs returns the ids of the agents that an agent has started, in that
// order.
func (s *state) childIDs(of string) []string {
	ids := []string{}
	for _, m := range s.childrenOf(of) {
		ids = append(ids, m.id)
	}
	return ids
}

// deliverOutput returns the output of an agent, summarized if it is long.
func (h agentHandle) deliverOutput(ctx context.Context, c tool.Call, id string) (tool.Result, error) {
	out, err := h.changeState(entry{Op: opCollect, Key: c.Key, By: h.id, ID: id})
	if err != nil {
		return tool.Result{}, err
	}
	f, ok := out.result.(outputResult)
	if !ok {
		return formatOutcome(out), nil
	}
	if f.Output, err = h.summarizeOutput(ctx, f); err != nil {
		return tool.Result{}, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.Pending = h.state.pendingQuestions(h.id)
	return tool.JSONResult(f), nil
}

// deliverSeveral returns the output of several agents, each summarized if it is
// long.
func (h agentHandle) deliverSeveral(ctx context.Context, c tool.Call, ids, unknown []string) (tool.Result, error) {
	out, err := h.changeState(entry{Op: opCollect, Key: c.Key, By: h.id, IDs: ids})
	if err != nil {
		return tool.Result{}, err
	}
	g, ok := out.result.(collectResult)
	if !ok {
		return formatOutcome(out), nil
	}
	g.Agents = slices.Clone(g.Agents)
	for i, f := range g.Agents {
		if g.Agents[i].Output, err = h.summarizeOutput(ctx, f); err != nil {
			return tool.Result{}, err
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	g.Unknown, g.Pending = unknown, h.state.pendingQuestions(h.id)
	return tool.JSONResult(g), nil
}

// A promptRecord records when agent__collect last returned because of a question.
type promptRecord struct {
	task  string // of the caller: calls of one reply have the same task
	at    time.Time
	pause time.Duration // the wait before the question ends a later call
}

// firstPause is how long agent__collect waits when it is called again while a
// question that it has returned is still open. The pause doubles each time.
const firstPause = 10 * time.Second

// awaitOrAsk waits for a change, or returns the open questions to the caller. A
// question ends the calls of one reply immediately. A later call waits first,
// so that a model that never answers does not call in a loop. If until is not
// zero, the wait ends then. The caller must hold mu.
func (h agentHandle) awaitOrAsk(ctx context.Context, on []string, until time.Time) (open []*escalation, err error) {
	open = h.state.pendingQuestions(h.id)
	task := graph.TaskPath(ctx)
	now := time.Now()
	wait := time.Duration(0)
	if !until.IsZero() {
		wait = max(1, until.Sub(now))
	}
	for _, x := range open {
		p, shown := h.prompted[x.ID]
		rest := p.at.Add(p.pause).Sub(now)
		if !shown || p.task == task || rest <= 0 {
			h.recordPrompt(open, task, now)
			return open, nil
		}
		if wait == 0 || rest < wait {
			wait = rest
		}
	}
	if wait == 0 {
		return nil, h.awaitChange(ctx, on, nil)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	if err = h.awaitChange(ctx, on, timer.C); errors.Is(err, errTime) {
		err = nil
	}
	return nil, err
}

// recordPrompt records that questions were returned to the caller. The caller must
// hold mu.
func (h agentHandle) recordPrompt(open []*escalation, task string, now time.Time) {
	for _, x := range open {
		if p := h.prompted[x.ID]; p.task != task {
			h.prompted[x.ID] = promptRecord{task, now, max(firstPause, 2*p.pause)}
		}
	}
}

const summaryPrompt = `You shorten the report of an agent for another agent that asked for it.
- Begin with the conclusion.
- Keep every path, identifier, command, error text, piece of code and recommendation as it is.
- Leave out what was tried without result, repetitions and politeness.
- List several findings as bullets.
- Use less than a third of the length. Write nothing but the report.`

// summarizeOutput asks a model to shorten an output. If redact is not nil, it removes
// secrets from the request and the reply.
func summarizeOutput(ctx context.Context, m llm.Model, redact func(string) string, f outputResult) (llm.Reply, error) {
	if m == nil {
		return llm.Reply{}, errors.New("there is no model for summaries")
	}
	req := llm.Request{System: summaryPrompt, Messages: []llm.Message{llm.User(fmt.Sprintf("The report of the agent %s:\n\n%s", f.Agent, f.Output))}}
	r, err := llm.Generate(ctx, llm.RedactModel(m, redact, nil), req)
	if err == nil {
		graph.Emit(ctx, agent.SummaryDone{Model: r.Model, Usage: r.Usage})
	}
	return r, err
}

// truncateMiddle returns the start and the end of a text, together about size characters.
func truncateMiddle(text string, size int) string {
	runes := []rune(text)
	head := size / 2
	tail := len(runes) - size/2
	return fmt.Sprintf("%s\n[… %d characters left out; the summary failed …]\n%s", string(runes[:head]), tail-head, string(runes[tail:]))
}
