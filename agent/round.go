package agent

import (
	"slices"

	"raddle.dev/llm"
)

// A round is the newest reply of a model node, and what has become of its calls.
type round struct {
	calls   []llm.ToolCall
	pending []llm.ToolCall // without an outcome
	passed  bool           // somebody has spoken since
	by      string         // who called
	at      int            // the entry of the reply
}

// newest finds the newest round: of a node, or of any where that is empty. It has
// no calls where the reply has none, or where there is no reply. It looks at no
// more entries than it must.
func newest(entries []Entry, of string) (r round) {
	var outcomes []llm.Part
	said := -1 // how many entries those have seen who have said what the user says
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		switch {
		case e.Op == OpClear:
			return r
		case e.Op == OpReplace: // not said after the reply
		case e.Message.Role == llm.RoleTool && (of == "" || e.For == "" || e.For == of):
			outcomes = append(outcomes, e.Message.Parts...)
		case e.Message.Role == llm.RoleAssistant && (of == "" || e.By == of):
			r.calls, r.by, r.at = e.Message.ToolCalls(), e.By, i
			r.pending, r.passed = unanswered(r.calls, outcomes), r.passed || said > i
			return r
		case e.Op == OpSaid: // by a node beside that has not seen the reply, perhaps
			said = max(said, e.After)
		case e.Message.Role == llm.RoleUser:
			r.passed = true
		}
	}
	return r
}

func unanswered(calls []llm.ToolCall, outcomes []llm.Part) (rest []llm.ToolCall) {
	for _, c := range calls {
		if !slices.ContainsFunc(outcomes, func(p llm.Part) bool { r, ok := p.(llm.ToolResult); return ok && r.CallID == c.ID }) {
			rest = append(rest, c)
		}
	}
	return rest
}

// beside is another node of the same path that has calls without an outcome, beside
// those of a round; empty: there is none.
func (r *round) beside(entries []Entry) string {
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
		if o := newest(entries, e.By); len(o.pending) > 0 && !o.passed {
			return e.By
		}
	}
	return ""
}
