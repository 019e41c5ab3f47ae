package agent

import (
	"slices"

	"raddle.dev/llm"
)

// A round is the newest reply of a model node, and the state of its calls.
type round struct {
	calls   []llm.ToolCall
	pending []llm.ToolCall // without an outcome
	passed  bool           // another message followed the reply
	by      string         // the node that made the calls
	at      int            // the index of the reply's entry
	cut     bool           // a token limit cut the reply off
}

// newestRound returns the newest round of a node, or of any node if of is empty. The
// round has no calls if the reply has none or if there is no reply. newestRound
// reads as few entries as possible.
func newestRound(entries []Entry, of string) (r round) {
	var outcomes []llm.Part
	said := -1 // the highest number of entries that a writer of an OpSaid entry had seen
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		switch {
		case e.Op == OpClear:
			return r
		case e.Op == OpReplace: // it was not said after the reply
		case e.Message.Role == llm.RoleTool && (of == "" || e.For == "" || e.For == of):
			outcomes = append(outcomes, e.Message.Parts...)
		case e.Message.Role == llm.RoleAssistant && (of == "" || e.By == of):
			r.calls = e.Message.ToolCalls()
			r.by = e.By
			r.at = i
			r.cut = e.Reply != nil && e.Reply.Stop == llm.StopLength
			r.pending = pendingCalls(r.calls, outcomes)
			r.passed = r.passed || said > i
			return r
		case e.Op == OpSaid: // its writer may run in parallel and not have seen the reply
			said = max(said, e.After)
		case e.Message.Role == llm.RoleUser:
			r.passed = true
		}
	}
	return r
}

func pendingCalls(calls []llm.ToolCall, outcomes []llm.Part) (rest []llm.ToolCall) {
	for _, c := range calls {
		if !slices.ContainsFunc(outcomes, func(p llm.Part) bool { r, ok := p.(llm.ToolResult); return ok && r.CallID == c.ID }) {
			rest = append(rest, c)
		}
	}
	return rest
}

// otherPendingNode returns another node of the same path that has calls without an
// outcome at the same time as this round, or "" if there is none.
func (r *round) otherPendingNode(entries []Entry) string {
	seen := map[string]bool{r.by: true}
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		switch {
		case e.Op == OpClear, e.Message.Role == llm.RoleUser && e.Op == OpAppend && i < r.at:
			return ""
		case e.Message.Role != llm.RoleAssistant || seen[e.By] || e.Path != entries[r.at].Path:
			continue
		}
		seen[e.By] = true
		if o := newestRound(entries, e.By); len(o.pending) > 0 && !o.passed {
			return e.By
		}
	}
	return ""
}
