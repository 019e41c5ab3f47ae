package updates

import (
	"cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// Calls are the replies of the models of a run and the calls of tools, from its events. The zero value is ready to use.
// It is not safe for concurrent use.
type Calls struct {
	Replies

	made callList
}

// HandleEvent takes an event, and returns what it adds to replies and calls, and the other values that nodes emit. It
// may be nothing.
func (cs *Calls) HandleEvent(ev graph.Event) []RunUpdate {
	return cs.made.handleEvent(ev, cs.Replies.HandleEvent(ev))
}

// A callList has the calls of a run by their keys.
type callList struct{ calls map[string]*Call }

// handleEvent adds what an event means for calls to what it means for replies.
func (l *callList) handleEvent(ev graph.Event, list []RunUpdate) []RunUpdate {
	if l.calls == nil {
		l.calls = map[string]*Call{}
	}
	if b, ok := ev.Body.(graph.ValueEmitted); ok {
		return l.handleValue(ev, b.Value, list)
	}
	return list
}

// lastOf returns the last update of a list, or nil.
func lastOf(list []RunUpdate) RunUpdate {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// handleValue adds what a value that a node has emitted means for calls to the updates of replies.
func (l *callList) handleValue(ev graph.Event, value any, list []RunUpdate) []RunUpdate {
	if IsSpeech(value) {
		if end, ok := lastOf(list).(ReplyEnded); ok {
			for _, c := range end.Done.Message.ToolCalls() {
				call, added := l.addCall(ev, c.ID, c.Name, end.Reply)
				call.Args = c.Args
				list = append(list, added...)
			}
		}
		return list
	}
	switch v := value.(type) {
	case agent.ToolStarted:
		c, added := l.addCall(ev, v.ID, v.Name, nil)
		if len(v.Args) > 0 {
			c.Args = v.Args
		}
		return append(added, CallStarted{c})
	case agent.ToolProgress:
		list = []RunUpdate{CallOutput{l.findCall(ev, v.ID, v.Name), v.Text + "\n"}}
	case agent.ToolOutput:
		list = []RunUpdate{CallOutput{l.findCall(ev, v.ID, v.Name), v.Text}}
	case agent.ToolDone:
		c, added := l.addCall(ev, v.ID, v.Name, nil)
		return append(added, CallEnded{c, v})
	}
	return append(list, ValueAdded{value})
}

// findCall returns a call: a new one, which is not kept, if its start has not been seen.
func (l *callList) findCall(ev graph.Event, id, name string) *Call {
	c := &Call{ID: id, Path: PlainPath(ev.Path), Name: name}
	return cmp.Or(l.calls[c.Key()], c)
}

// addCall returns a call, and that it is new.
func (l *callList) addCall(ev graph.Event, id, name string, reply *Reply) (c *Call, list []RunUpdate) {
	c = l.findCall(ev, id, name)
	if l.calls[c.Key()] == nil {
		l.calls[c.Key()] = c
		list = append(list, CallAdded{Call: c, Reply: reply})
	}
	return c, list
}
