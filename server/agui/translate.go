package agui

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
	"raddle.dev/server"
)

// A translator turns the events of a run into those of AG-UI. It is used by one goroutine.
type translator struct {
	run    string // raddle's id
	send   func(*event)
	muted  bool                                // follow the events, but send nothing: the client has seen them
	values func(record string) json.RawMessage // the state at a record; nil: the agent is no graph

	tracker  updates.Tracker
	open     map[*updates.Reply]*reply // that have started
	messages []message
	shown    json.RawMessage // the state that the client has; nil: none
	joined   *joinedInput    // what the client has said while the run worked; nil: nothing
	last     string          // id of the last journaled event
	lastText string          // of the last message of an agent
}

// A joinedInput is what a client says to a run that works. The client gets the events from there on where the agent
// takes it up.
type joinedInput struct {
	text     string
	messages []message
}

// A reply is a message of a model that has not ended.
type reply struct {
	id       string
	opened   bool // the text has
	thinking bool // the reasoning has started and not ended
}

func newTranslator(run string, send func(*event)) *translator {
	return &translator{run: run, send: send, tracker: updates.Tracker{Calls: updates.Calls{Replies: updates.Replies{Replaces: true}}}, open: map[*updates.Reply]*reply{}}
}

// emit sends an event unless the client has seen it.
func (t *translator) emit(e *event) {
	if !t.muted {
		t.send(e)
	}
}

// unmute sends everything from now on. The client gets the nodes that run and the current state first.
func (t *translator) unmute() {
	if !t.muted {
		return
	}
	t.muted = false
	for _, s := range t.tracker.Steps() {
		t.emit(&event{Type: stepStarted, StepName: s.Name})
	}
	t.sendState(t.last)
	clear(t.open)
	for _, r := range t.tracker.OpenReplies() {
		t.appendReasoning(r, r.Reasoning())
		t.appendText(r, r.Text())
	}
}

// translate sends what an event means.
func (t *translator) translate(ev *server.Event) {
	if ev.ID != "" {
		t.last = ev.ID
	}
	for _, u := range t.tracker.HandleEvent(ev.Event) {
		t.sendUpdate(ev, u)
	}
}

// sendUpdate sends what an event adds.
func (t *translator) sendUpdate(ev *server.Event, u updates.RunUpdate) {
	switch u := u.(type) {
	case updates.StateChanged:
		t.sendState(ev.ID)
	case updates.StepStarted:
		t.emit(&event{Type: stepStarted, Timestamp: ev.Time.UnixMilli(), StepName: u.Step.Name})
	case updates.StepEnded:
		t.emit(&event{Type: stepFinished, StepName: u.Step.Name})
	case updates.TextAdded:
		t.appendText(u.Reply, u.Text)
	case updates.ReasoningAdded:
		if !u.Reply.Done || !t.openReply(u.Reply).opened { // else it would follow the text
			t.appendReasoning(u.Reply, u.Text)
		}
	case updates.ReplyWithdrawn:
		t.dropReply(u.Reply)
	case updates.ReplyEnded:
		t.finishReply(u)
	case updates.CallAdded:
		t.startCall(u)
	case updates.CallEnded:
		t.finishCall(u)
	case updates.ValueAdded:
		t.sendValue(ev, u.Value)
	}
}

// recordOf returns the record of an event's id.
func recordOf(id string) string {
	record, _, _ := strings.Cut(id, ".")
	return record
}

// sendValue sends a value that a node emitted. A text is a part of the message that the node writes.
func (t *translator) sendValue(ev *server.Event, value any) {
	switch v := value.(type) {
	case agent.MessageTaken:
		t.addTaken(v)
		t.sendCustom(ev, v.EventType(), v)
	case string:
		if r := t.open[t.tracker.FindReply(ev.Event)]; r != nil && r.opened {
			t.emit(&event{Type: textContent, MessageID: r.id, Delta: v})
			return
		}
		t.sendCustom(ev, "text", map[string]string{"node": ev.Path + ev.Node, "content": v})
	case graph.Progress:
		t.sendCustom(ev, "progress", struct {
			Node string `json:"node"`
			graph.Progress
		}{ev.Path + ev.Node, v})
	case graph.TypedValue:
		t.sendCustom(ev, v.EventType(), v)
	default:
		t.sendCustom(ev, "emitted", v)
	}
}

// addTaken adds a message that the agent has taken up while it works to the conversation.
func (t *translator) addTaken(m agent.MessageTaken) {
	if t.joined == nil || t.joined.text != m.Text {
		t.messages = append(t.messages, message{ID: t.run + "/sent/" + m.ID, Role: "user", Content: m.Text})
		return
	}
	t.messages = append(t.messages, t.joined.messages...)
	t.joined = nil
	t.unmute()
}

// sendCustom sends a value that AG-UI has no event for.
func (t *translator) sendCustom(ev *server.Event, name string, value any) {
	b, err := json.Marshal(value)
	if err != nil {
		return
	}
	t.emit(&event{Type: custom, Timestamp: ev.Time.UnixMilli(), Name: name, Value: b, Metadata: nodeData(ev.Path + ev.Node)})
}

// nodeData returns metadata that name a node.
func nodeData(node string) map[string]any {
	if node == "" {
		return nil
	}
	return map[string]any{"raddle": map[string]string{"node": node}}
}

// openReply returns what the client has of a reply.
func (t *translator) openReply(said *updates.Reply) *reply {
	r := t.open[said]
	if r == nil {
		r = &reply{id: t.messageID(said)}
		t.open[said] = r
	}
	return r
}

// messageID returns the id of a reply for the client. One that begins again has another one: it must not be joined with
// what was withdrawn.
func (t *translator) messageID(said *updates.Reply) string {
	id := t.run + "/" + said.ID()
	if said.Again > 0 {
		id += "/again/" + strconv.Itoa(said.Again)
	}
	return id
}

func (t *translator) appendText(said *updates.Reply, text string) {
	if text == "" {
		return
	}
	r := t.openReply(said)
	t.endReasoning(r)
	if !r.opened {
		r.opened = true
		t.emit(&event{Type: textStart, MessageID: r.id, Role: "assistant", Metadata: nodeData(said.Node)})
	}
	t.emit(&event{Type: textContent, MessageID: r.id, Delta: text})
}

func (t *translator) appendReasoning(said *updates.Reply, text string) {
	if text == "" {
		return
	}
	r := t.openReply(said)
	id := r.id + "/reasoning"
	if !r.thinking {
		r.thinking = true
		t.emit(&event{Type: reasoningStart, MessageID: id})
		t.emit(&event{Type: reasoningTextStart, MessageID: id, Role: "reasoning"})
	}
	t.emit(&event{Type: reasoningContent, MessageID: id, Delta: text})
}

func (t *translator) endReasoning(r *reply) {
	if r.thinking {
		r.thinking = false
		t.emit(&event{Type: reasoningTextEnd, MessageID: r.id + "/reasoning"})
		t.emit(&event{Type: reasoningEnd, MessageID: r.id + "/reasoning"})
	}
}

// endText ends what was sent of a reply.
func (t *translator) endText(r *reply) {
	t.endReasoning(r)
	if r.opened {
		t.emit(&event{Type: textEnd, MessageID: r.id})
	}
}

// dropReply ends a reply that its model begins again, and takes it out of the client's messages.
func (t *translator) dropReply(said *updates.Reply) {
	r := t.open[said]
	if r == nil {
		return
	}
	t.endText(r)
	delete(t.open, said)
	if r.opened {
		t.sendMessages()
	}
}

// finishReply ends a reply, and keeps its message. Its calls follow.
func (t *translator) finishReply(u updates.ReplyEnded) {
	r := t.openReply(u.Reply)
	t.endText(r)
	delete(t.open, u.Reply)
	said := message{ID: r.id, Role: "assistant", Content: u.Reply.Text()}
	for _, c := range u.Done.Message.ToolCalls() {
		said.ToolCalls = append(said.ToolCalls, toolCall{ID: callID(u.Reply.Path, c.ID), Type: "function", Function: functionCall{Name: c.Name, Arguments: string(c.Args)}})
	}
	if said.Content != "" || said.ToolCalls != nil {
		t.messages = append(t.messages, said)
	}
	if said.Content != "" {
		t.lastText = said.Content
	}
}

// callID returns the id of a call for the client: calls of child graphs could have the ids of other calls.
func callID(path, id string) string {
	return (&updates.Call{Path: updates.PlainPath(path), ID: id}).Key()
}

// startCall sends a call of a tool.
func (t *translator) startCall(u updates.CallAdded) {
	id := u.Call.Key()
	parent := ""
	if u.Reply != nil {
		parent = t.messageID(u.Reply)
	}
	t.emit(&event{Type: callStart, ToolCallID: id, ToolCallName: u.Call.Name, ParentMessageID: parent})
	t.emit(&event{Type: callArgs, ToolCallID: id, Delta: cmp.Or(string(u.Call.Args), "{}")})
	t.emit(&event{Type: callEnd, ToolCallID: id})
}

// finishCall sends the result of a call.
func (t *translator) finishCall(u updates.CallEnded) {
	id := u.Call.Key()
	m := message{ID: t.run + "/" + id + "/result", Role: "tool", Content: u.Done.Text, ToolCallID: id}
	e := &event{Type: callResult, MessageID: m.ID, ToolCallID: id, Content: &m.Content, Role: "tool"}
	if u.Done.Error {
		m.Error = u.Done.Text
		e.Metadata = map[string]any{"raddle": map[string]bool{"error": true}}
	}
	t.messages = append(t.messages, m)
	t.emit(e)
}

// sendState sends the state of a graph at a record: whole at first, then what has changed.
func (t *translator) sendState(record string) {
	if t.values == nil || t.muted || record == "" {
		return
	}
	is := t.values(recordOf(record))
	switch {
	case is == nil:
	case t.shown == nil:
		t.emit(&event{Type: stateSnapshot, Snapshot: is})
		t.shown = is
	default:
		if ops := diffValues(t.shown, is); len(ops) > 0 {
			t.emit(&event{Type: stateDelta, Delta: ops})
		}
		t.shown = is
	}
}

// sendWholeState sends the state at the last record again.
func (t *translator) sendWholeState() {
	t.shown = nil
	t.sendState(t.last)
}

// sendMessages sends the whole conversation.
func (t *translator) sendMessages() {
	seen := map[string]bool{} // a client may have sent messages of this run
	var list []message
	for _, m := range t.messages {
		if !seen[m.ID] {
			list = append(list, m)
		}
		seen[m.ID] = true
	}
	if len(list) > 0 {
		t.emit(&event{Type: messagesSnapshot, Messages: list})
	}
}

// addMessage appends a message that the run has not streamed as text.
func (t *translator) addMessage(id, text string) {
	t.emit(&event{Type: textStart, MessageID: id, Role: "assistant"})
	t.emit(&event{Type: textContent, MessageID: id, Delta: text})
	t.emit(&event{Type: textEnd, MessageID: id})
	t.messages = append(t.messages, message{ID: id, Role: "assistant", Content: text})
}

// endAll ends everything that has started.
func (t *translator) endAll() {
	for _, said := range t.tracker.OpenReplies() {
		r := t.openReply(said)
		t.endText(r)
		if r.opened {
			t.messages = append(t.messages, message{ID: r.id, Role: "assistant", Content: said.Text()})
		}
	}
	clear(t.open)
	for _, u := range t.tracker.EndSteps() {
		t.sendUpdate(nil, u)
	}
}
