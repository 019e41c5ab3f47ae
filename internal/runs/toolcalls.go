package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/team"
	"raddle.dev/tool"
)

// ToolCall is a call of a tool that a model of a run has requested.
type ToolCall struct {
	Path    string          `json:"path,omitempty"` // nodes above the conversation, each followed by a slash
	ID      string          `json:"id"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Status  string          `json:"status"`            // one of the states below
	Outcome string          `json:"outcome,omitempty"` // as the model reads it
}

// These are the states of a call.
const (
	callDone       = "done"
	callFailed     = "failed"
	callOpen       = "open"
	callUnrecorded = "unrecorded" // its outcome is not recorded
)

// toolEffect is the prefix of the names of effects that are calls of tools.
const toolEffect = "tool "

// A callLog gathers the calls of a run from its records.
type callLog struct {
	calls []ToolCall
	at    map[string]int // index of a call by its path and id
}

// ToolCalls returns the calls of tools that a run's models have requested, up to a
// record (0: all), in the order of the requests.
func (a *Archive) ToolCalls(ctx context.Context, d *Detail) ([]ToolCall, error) {
	st, found, err := a.locateRun(ctx, d.Run)
	if err != nil {
		return nil, err
	}
	if d.At > 0 {
		found.last = d.At
	}
	log := &callLog{at: map[string]int{}}
	wanted := func(e history.Entry) bool {
		isCall := toolKey(e.ID) != ""
		return e.Kind == journal.KindEffect && (isCall || flow.IsReply(e.ID)) || e.Kind == journal.KindIntent && isCall
	}
	recorded := false
	err = st.readRecords(ctx, found, wanted, func(e history.Entry, r journal.Record) error {
		recorded = true
		return log.recordEntry(e, r.Data)
	})
	if err != nil || !recorded {
		return nil, err
	}
	log.addConversation(d.Snapshot.Values)
	return log.calls, nil
}

// toolKey returns the id of the call that an effect belongs to, or "" for other effects.
func toolKey(what string) string {
	parts := strings.Split(what, "\x00")
	const fields = 3 // task, name, and = with the key
	if len(parts) != fields || !strings.HasPrefix(parts[1], toolEffect) {
		return ""
	}
	key, _, _ := strings.Cut(strings.TrimPrefix(parts[2], "="), "#") // another attempt
	return key
}

func (l *callLog) recordEntry(e history.Entry, data []byte) error {
	switch id := toolKey(e.ID); {
	case id == "":
		return l.addReply(e.Path, data)
	case e.Kind == journal.KindIntent:
		l.setOutcome(e.Path, id, callUnrecorded, "")
		return nil
	default:
		result, err := readResult(data)
		if result != nil {
			l.setResult(e.Path, id, result)
		}
		return err
	}
}

// readResult returns the result of a call of a tool that an effect has recorded; nil if it has none.
func readResult(data []byte) (*tool.Result, error) {
	var made struct {
		Result *tool.Result `json:"result"`
	}
	if err := json.Unmarshal(data, &made); err != nil {
		return nil, fmt.Errorf("the recorded outcome of a call: %w", err)
	}
	return made.Result, nil
}

// addReply adds the calls that a reply requests.
func (l *callLog) addReply(path string, data []byte) error {
	var r struct {
		Message llm.Message `json:"message"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return fmt.Errorf("the recorded reply of a model: %w", err)
	}
	for _, c := range r.Message.ToolCalls() {
		l.at[path+c.ID] = len(l.calls)
		l.calls = append(l.calls, ToolCall{Path: path, ID: c.ID, Tool: c.Name, Args: c.Args, Status: callOpen})
	}
	return nil
}

func (l *callLog) setOutcome(path, id, status, text string) {
	if i, ok := l.at[path+id]; ok {
		l.calls[i].Status, l.calls[i].Outcome = status, text
	}
}

// addConversation adds the outcomes that are not effects: those of calls that were
// not made, or that change only the run's state.
func (l *callLog) addConversation(values []history.StoredValue) {
	entries, _ := agent.ReadEntries(values, 0) // none if another kind of graph has a key with this name
	for _, e := range entries {
		for _, p := range e.Message.Parts {
			if r, ok := p.(llm.ToolResult); ok {
				l.setResult("", r.CallID, &tool.Result{Content: r.Content, Error: r.Error})
			}
		}
	}
}

// setResult sets the outcome of a call to its result.
func (l *callLog) setResult(path, id string, r *tool.Result) {
	if i, ok := l.at[path+id]; ok {
		l.calls[i].setResult(r)
	}
}

// setResult sets the outcome of the call to its result. A call that returns the outputs of agents has failed if one of them has.
func (c *ToolCall) setResult(r *tool.Result) {
	c.Status, c.Outcome = callDone, r.Text()
	if failures, _ := team.ReadCollected(c.Tool, c.Outcome); r.Error || failures > 0 {
		c.Status = callFailed
	}
}
