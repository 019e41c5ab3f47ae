package agent

import (
	"bytes"
	"encoding/json"
	"slices"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

// defaultRepeats is how often in a row the same call may be made with the same
// result before it counts as a loop.
const defaultRepeats = 2

// shownCalls is how many of the last calls the loop alert lists.
const shownCalls = 3

// A pastCall is a call that was made, or that is before another one in its
// reply.
type pastCall struct {
	name, args string
	result     string
	known      bool // result is known
	blocked    bool
}

// pastCalls returns the newest calls of the turn by the node of a round, oldest
// first: the pending calls of the round, and before calls in front of them.
func pastCalls(entries []Entry, r *round, before int) (past []pastCall) {
	rounds := 0
	results := map[string]string{}
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		user := (e.Op == OpAppend || e.Op == OpSaid) && e.Message.Role == llm.RoleUser
		if e.Op == OpClear || user && i < r.at || rounds > 0 && len(past) >= before {
			break
		}
		if e.Message.Role == llm.RoleTool {
			if e.For != "" && e.For != r.by {
				continue
			}
			for _, p := range e.Message.Parts {
				if r, ok := p.(llm.ToolResult); ok {
					results[r.CallID] = tool.Result{Content: r.Content}.Text()
				}
			}
			continue
		}
		if e.By != r.by {
			continue
		}
		calls := e.Message.ToolCalls()
		for j := len(calls) - 1; j >= 0; j-- {
			text, known := results[calls[j].ID]
			past = append(past, pastCall{name: calls[j].Name, args: canonicalJSON(calls[j].Args), result: text, known: known, blocked: isLoopAlert(text)})
		}
		if len(calls) > 0 {
			if rounds++; rounds == 1 {
				before += len(calls)
			}
			clear(results)
		}
	}
	slices.Reverse(past)
	return past
}

// isLooping reports whether the last call of past repeats the calls before it:
// most calls in a row are the same, all with the same result as far as it is
// known.
func isLooping(past []pastCall, most int) bool {
	last := past[len(past)-1]
	before := past[:len(past)-1]
	if most < 1 || len(before) < most {
		return false
	}
	result := ""
	known := false
	for i := len(before) - 1; i >= len(before)-most; i-- {
		p := before[i]
		switch {
		case p.name != last.name || p.args != last.args:
			return false
		case p.blocked || !p.known:
		case known && p.result != result:
			return false
		default:
			result = p.result
			known = true
		}
	}
	return true
}

// canonicalJSON returns the JSON text of arguments in one form, whatever their
// white space and the order of their names.
func canonicalJSON(args json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(args)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(args)
	}
	return string(b)
}

// loopAlert is the result of a call that is not made because it repeats itself.
type loopAlert struct {
	Alert struct {
		Error loopError `json:"error"`
	} `json:"tool_call_loop_alert"`
}

type loopError struct {
	Message string       `json:"message"`
	Code    int          `json:"code"`
	Param   string       `json:"param"`
	History []calledOnce `json:"call_history"`
}

type calledOnce struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"arguments"`
}

const loopAlertHead = `{"tool_call_loop_alert":`

func isLoopAlert(text string) bool {
	return len(text) > len(loopAlertHead) && text[:len(loopAlertHead)] == loopAlertHead
}

// newLoopAlert returns the result that informs the model that it repeats itself.
func newLoopAlert(past []pastCall) tool.Result {
	const badRequest = 400
	var a loopAlert
	a.Alert.Error = loopError{
		Message: "This call was not made: the same call has been made before with the same result, and would give it again.",
		Code:    badRequest,
		Param:   "Use the result you have. If it is not enough, call with other arguments, use another tool, or tell the user what is missing.",
	}
	for _, p := range past[max(0, len(past)-shownCalls):] {
		a.Alert.Error.History = append(a.Alert.Error.History, calledOnce{p.name, json.RawMessage(p.args)})
	}
	r := tool.JSONResult(a)
	r.Error = true
	return r
}
