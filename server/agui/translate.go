package agui

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// A translator turns the events of a run into those of AG-UI. It is used by one goroutine.
type translator struct {
	run    string // raddle's id
	send   func(*event)
	muted  bool                                // follow the events, but send nothing: the client has seen them
	values func(record string) json.RawMessage // the state at a record; nil: the agent is no graph

	replies  map[string]*reply // that have started, by the place of their node
	finished map[string]int    // replies by the place of their node
	ended    map[string]int64  // records of the last replies, by the place of their node
	calls    map[string]bool   // ids that the client knows
	steps    []step            // that have started
	asked    map[string]place  // where questions were asked, by their ids
	messages []message
	shown    json.RawMessage // the state that the client has; nil: none
	last     string          // id of the last journaled event
	lastText string          // of the last message of an agent
}

// A reply is a message of a model that has not ended.
type reply struct {
	id        string
	node      string
	text      strings.Builder
	reasoning strings.Builder
	opened    bool // the text has
	thinking  bool // the reasoning has started and not ended
}

// A step is a node that runs.
type step struct{ name, path, node, task string }

// A place is where a question was asked.
type place struct {
	record   string // the journal's record
	path     string // of the frame
	question graph.Question
}

func newTranslator(run string, send func(*event)) *translator {
	return &translator{run: run, send: send, replies: map[string]*reply{}, finished: map[string]int{}, ended: map[string]int64{}, calls: map[string]bool{}, asked: map[string]place{}}
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
	t.replies = map[string]*reply{}
	for _, s := range t.steps {
		t.emit(&event{Type: stepStarted, StepName: s.name})
	}
	t.sendState(t.last)
}

// translate sends what an event means.
func (t *translator) translate(ev *server.Event) {
	if ev.ID != "" {
		t.last = ev.ID
	}
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		t.sendState(ev.ID)
	case graph.TaskStarted:
		t.startStep(ev)
	case graph.TaskDone:
		t.finishSteps(func(s step) bool { return s.path == ev.Path && s.node == ev.Node })
	case graph.StepCommitted:
		t.finishSteps(func(s step) bool {
			return s.path == ev.Path && slices.Contains(b.Nodes, s.node) || isBelow(s.path, ev.Path, b.Nodes)
		})
		if ev.Path == "" {
			t.sendState(ev.ID)
		}
	case graph.QuestionAsked:
		t.asked[b.Question.ID] = place{record: recordOf(ev.ID), path: ev.Path, question: b.Question}
	case graph.ValueEmitted:
		t.translateValue(ev, b.Value)
	}
}

// isBelow reports whether a path is that of a child graph of one of the nodes of a frame.
func isBelow(path, frame string, nodes []string) bool {
	rest, ok := strings.CutPrefix(path, frame)
	return ok && slices.ContainsFunc(nodes, func(n string) bool {
		more, ok := strings.CutPrefix(rest, n)
		return ok && more != "" && strings.ContainsRune("/[#", rune(more[0]))
	})
}

// recordOf returns the record of an event's id.
func recordOf(id string) string {
	record, _, _ := strings.Cut(id, ".")
	return record
}

// translateValue sends what a value that a node emitted means.
func (t *translator) translateValue(ev *server.Event, value any) {
	switch v := value.(type) {
	case agent.TextDelta:
		if ev.Record >= t.ended[placeOf(ev)] { // else the whole reply was sent
			t.appendText(t.openReply(ev), v.Text)
		}
	case agent.ReasoningDelta:
		if ev.Record >= t.ended[placeOf(ev)] {
			t.appendReasoning(t.openReply(ev), v.Text)
		}
	case agent.RetryScheduled:
		t.dropReply(ev)
		t.sendCustom(ev, v.EventType(), v)
	case agent.ReplyDone:
		t.finishReply(ev, v.Message)
	case agent.ToolStarted:
		t.startCall("", callID(ev.Path, v.ID), v.Name, string(v.Args))
	case agent.ToolDone:
		t.finishCall(ev, v)
	case string:
		if r := t.replies[placeOf(ev)]; r != nil && r.opened {
			t.appendText(r, v)
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

// startStep sends that a node starts. Nodes with the same name that run at the same time are numbered.
func (t *translator) startStep(ev *server.Event) {
	if ev.Task != "" && slices.ContainsFunc(t.steps, func(s step) bool { return s.path == ev.Path && s.task == ev.Task }) {
		return // it runs again, after an answer
	}
	base := ev.Path + ev.Node
	name := base
	for n := 2; slices.ContainsFunc(t.steps, func(s step) bool { return s.name == name }); n++ {
		name = base + "#" + strconv.Itoa(n)
	}
	t.steps = append(t.steps, step{name: name, path: ev.Path, node: ev.Node, task: ev.Task})
	t.emit(&event{Type: stepStarted, Timestamp: ev.Time.UnixMilli(), StepName: name})
}

// finishSteps sends that nodes have returned.
func (t *translator) finishSteps(done func(step) bool) {
	t.steps = slices.DeleteFunc(t.steps, func(s step) bool {
		if !done(s) {
			return false
		}
		t.emit(&event{Type: stepFinished, StepName: s.name})
		return true
	})
}

// placeOf names the task that an event is about.
func placeOf(ev *server.Event) string { return ev.Path + cmp.Or(ev.Task, ev.Node) }

// callID returns the id of a call for the client: calls of child graphs could have the ids of other calls.
func callID(path, id string) string { return path + id }

// openReply returns the reply that a node's model gives now.
func (t *translator) openReply(ev *server.Event) *reply {
	at := placeOf(ev)
	r := t.replies[at]
	if r == nil {
		r = &reply{id: t.run + "/" + at + "/" + strconv.Itoa(t.finished[at]+1), node: ev.Path + ev.Node}
		t.replies[at] = r
	}
	return r
}

func (t *translator) appendText(r *reply, text string) {
	if text == "" {
		return
	}
	t.endReasoning(r)
	if !r.opened {
		r.opened = true
		t.emit(&event{Type: textStart, MessageID: r.id, Role: "assistant", Metadata: nodeData(r.node)})
	}
	r.text.WriteString(text)
	t.emit(&event{Type: textContent, MessageID: r.id, Delta: text})
}

func (t *translator) appendReasoning(r *reply, text string) {
	if text == "" {
		return
	}
	id := r.id + "/reasoning"
	if !r.thinking {
		r.thinking = true
		t.emit(&event{Type: reasoningStart, MessageID: id})
		t.emit(&event{Type: reasoningTextStart, MessageID: id, Role: "reasoning"})
	}
	r.reasoning.WriteString(text)
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
func (t *translator) dropReply(ev *server.Event) {
	at := placeOf(ev)
	r := t.replies[at]
	if r == nil {
		return
	}
	t.endText(r)
	delete(t.replies, at)
	t.finished[at]++
	if r.opened {
		t.sendMessages()
	}
}

// finishReply sends what is missing of a reply, and its calls.
func (t *translator) finishReply(ev *server.Event, m llm.Message) {
	r := t.openReply(ev)
	var thoughts strings.Builder
	for _, p := range m.Parts {
		if thought, ok := p.(llm.Reasoning); ok {
			thoughts.WriteString(thought.Text)
		}
	}
	if rest, ok := strings.CutPrefix(thoughts.String(), r.reasoning.String()); ok && !r.opened {
		t.appendReasoning(r, rest)
	}
	if rest, ok := strings.CutPrefix(m.Text(), r.text.String()); ok {
		t.appendText(r, rest)
	}
	t.endText(r)
	at := placeOf(ev)
	delete(t.replies, at)
	t.finished[at]++
	t.ended[at] = ev.Record
	said := message{ID: r.id, Role: "assistant", Content: m.Text()}
	for _, c := range m.ToolCalls() {
		id := callID(ev.Path, c.ID)
		t.startCall(r.id, id, c.Name, string(c.Args))
		said.ToolCalls = append(said.ToolCalls, toolCall{ID: id, Type: "function", Function: functionCall{Name: c.Name, Arguments: string(c.Args)}})
	}
	if said.Content != "" || said.ToolCalls != nil {
		t.messages = append(t.messages, said)
	}
	if said.Content != "" {
		t.lastText = said.Content
	}
}

// startCall sends a call of a tool that the client does not know yet.
func (t *translator) startCall(parent, id, name, args string) {
	if t.calls[id] {
		return
	}
	t.calls[id] = true
	t.emit(&event{Type: callStart, ToolCallID: id, ToolCallName: name, ParentMessageID: parent})
	t.emit(&event{Type: callArgs, ToolCallID: id, Delta: cmp.Or(args, "{}")})
	t.emit(&event{Type: callEnd, ToolCallID: id})
}

// finishCall sends the result of a call.
func (t *translator) finishCall(ev *server.Event, d agent.ToolDone) {
	id := callID(ev.Path, d.ID)
	t.startCall("", id, d.Name, "")
	m := message{ID: t.run + "/" + id + "/result", Role: "tool", Content: d.Text, ToolCallID: id}
	e := &event{Type: callResult, MessageID: m.ID, ToolCallID: id, Content: &m.Content, Role: "tool"}
	if d.Error {
		m.Error = d.Text
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
	for _, at := range slices.Sorted(maps.Keys(t.replies)) {
		t.endText(t.replies[at])
		if r := t.replies[at]; r.opened {
			t.messages = append(t.messages, message{ID: r.id, Role: "assistant", Content: r.text.String()})
		}
	}
	t.replies = map[string]*reply{}
	t.finishSteps(func(step) bool { return true })
}
