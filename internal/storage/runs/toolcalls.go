package runs

import (
	"encoding/json"
	"slices"
	"strings"

	"raddle.dev/agent"
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

	// MadeWith are the arguments with which it was made, if a hook or a person has changed them.
	MadeWith json.RawMessage `json:"made_with,omitempty"`
	// Permission is how it was decided whether it may be made; null: it is not recorded.
	Permission *agent.Permission `json:"permission,omitempty"`
	// AnsweredBy is who answered its question about permission, if a name is recorded.
	AnsweredBy string `json:"answered_by,omitempty"`
	Refused    bool   `json:"refused,omitempty"` // it was not made
	// Held is what the box held back of it: files with the reason, and hosts.
	Held []string `json:"held_back,omitempty"`

	// Reached says that the journal has a record of the call itself, and not only of its outcome in the conversation.
	Reached bool `json:"-"`
}

// These are the states of a call.
const (
	callDone       = "done"
	callFailed     = "failed"
	callOpen       = "open"
	callUnrecorded = "unrecorded" // its outcome is not recorded
)

// A callLog gathers the calls of a run from its records.
type callLog struct {
	calls []ToolCall
	at    map[string]int          // index of a call by its path and id
	asked map[string]callQuestion // by the frame and the key of the question

	recorded bool // a record says something about calls
}

// A callQuestion is a question about the permission of a call.
type callQuestion struct {
	call  int // index
	about *agent.CallData
}

func newCallLog() *callLog {
	return &callLog{at: map[string]int{}, asked: map[string]callQuestion{}}
}

// ListRecordedCalls returns the calls of tools in the records of a journal, oldest first, in the order of the requests:
// see [View.ToolCalls]. Outcomes that are no effects are not among them.
func ListRecordedCalls(records []journal.Record) ([]ToolCall, error) {
	log := newCallLog()
	for _, r := range records {
		e, err := history.DecodeEntry(r)
		if err != nil {
			return nil, err
		}
		f, err := readFact(e, r)
		if err != nil {
			return nil, err
		}
		log.addFact(f)
	}
	return log.calls, nil
}

// listCalls returns the calls with the outcomes that are not effects but in the conversation, which is a value of a
// state. It is nil if no record says anything about calls.
func (l *callLog) listCalls(values []history.StoredValue) []ToolCall {
	if !l.recorded {
		return nil
	}
	whole := callLog{calls: slices.Clone(l.calls), at: l.at}
	whole.addConversation(values)
	return whole.calls
}

// addFact adds what a record says about calls of tools.
func (l *callLog) addFact(f *fact) {
	switch {
	case f.Kind == journal.KindQuestion || f.Kind == journal.KindAnswer:
		l.addQuestion(f)
	case f.hook != nil:
		l.addHook(f)
	case f.reply != nil:
		l.addReply(f)
	case f.call != "" && f.Kind == journal.KindIntent:
		l.setOutcome(f.Path, f.call, callUnrecorded, "")
	case f.made != nil:
		if c := l.findCall(f); c != nil {
			c.addTry(f.made)
		}
	default:
		return
	}
	l.recorded = true
}

// findCall returns the call that the effect of a record is a try of; nil: no reply has requested it.
func (l *callLog) findCall(f *fact) *ToolCall {
	i, ok := l.at[f.Path+f.call]
	if !ok {
		return nil
	}
	return &l.calls[i]
}

// readResult returns the result of a call of a tool that an effect has recorded; nil if it has none.
func readResult(data []byte) (*tool.Result, error) {
	made, err := agent.ReadCall(data)
	return made.Result, err
}

// addTry adds what the record of one try of the call says.
func (c *ToolCall) addTry(made *agent.CallOutcome) {
	c.Reached = true
	if len(made.Edited) > 0 {
		c.MadeWith = made.Edited
	}
	if p := made.Permission; p != nil {
		c.Permission = p
	}
	if c.Refused = made.Refused; made.Result != nil {
		c.setResult(made.Result)
	}
	if made.Result != nil && c.Permission.IsBoxed() {
		c.Held = listHeld(c.Outcome)
	}
}

// listHeld returns what the box held back of a command, from its outcome: files that it did not change, with the
// reasons, and hosts.
func listHeld(outcome string) (held []string) {
	var fields struct {
		Files string `json:"not_changed"`
		Hosts string `json:"refused_hosts"`
	}
	if json.Unmarshal([]byte(outcome), &fields) != nil {
		return nil
	}
	held = strings.FieldsFunc(fields.Files, func(r rune) bool { return r == '\n' })
	if fields.Hosts != "" {
		held = append(held, "no connection to "+fields.Hosts)
	}
	return held
}

// addQuestion adds a question about the permission of a call, or its answer. Journals of older versions, and those of
// processes that died during the call, have nothing else about the permission.
func (l *callLog) addQuestion(f *fact) {
	if q := f.Question; q != nil {
		var about agent.CallData
		if q.Kind != agent.KindPermission || json.Unmarshal(q.Data, &about) != nil {
			return
		}
		if i, ok := l.at[f.Path+about.ID]; ok {
			l.asked[f.Path+f.Asked] = callQuestion{i, &about}
			l.calls[i].Permission = about.ReadPermission()
		}
		return
	}
	asked, ok := l.asked[f.Path+f.Asked]
	if !ok {
		return
	}
	c := &l.calls[asked.call]
	c.AnsweredBy = f.By
	c.Permission.AddAnswer(f.Answer, f.Refused, asked.about)
}

// addHook adds the arguments by which a hook has replaced those of a call.
func (l *callLog) addHook(f *fact) {
	if i, ok := l.at[f.Path+agent.CallOfHook(f.effect.Key())]; ok && f.hook.Answer.Arguments != nil {
		l.calls[i].MadeWith = f.hook.Answer.Arguments
	}
}

// addReply adds the calls that a reply requests.
func (l *callLog) addReply(f *fact) {
	for _, c := range f.asks {
		l.at[f.Path+c.ID] = len(l.calls)
		l.calls = append(l.calls, ToolCall{Path: f.Path, ID: c.ID, Tool: c.Name, Args: c.Args, Status: callOpen})
	}
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

// setResult sets the outcome of the call to its result. A call that returns the outputs of agents has failed if one of
// them has.
func (c *ToolCall) setResult(r *tool.Result) {
	c.Status, c.Outcome = callDone, r.Text()
	if failures, _ := team.ReadCollected(c.Tool, c.Outcome); r.Error || failures > 0 {
		c.Status = callFailed
	}
}
