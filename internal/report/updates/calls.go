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

	calls map[string]*Call // by their keys
	taken map[string]bool  // messages that the agent has taken up, by their ids
}

// HandleEvent takes an event, and returns what it adds to replies and calls, and the other values that nodes emit. It
// may be nothing.
func (cs *Calls) HandleEvent(ev graph.Event) []RunUpdate {
	list := cs.Replies.HandleEvent(ev)
	if b, ok := ev.Body.(graph.ValueEmitted); ok {
		return cs.handleValue(ev, b.Value, list)
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
func (cs *Calls) handleValue(ev graph.Event, value any, list []RunUpdate) []RunUpdate {
	if IsSpeech(value) {
		if end, ok := lastOf(list).(ReplyEnded); ok {
			for _, c := range end.Done.Message.ToolCalls() {
				call, added := cs.addCall(ev, c.ID, c.Name, end.Reply)
				call.Args = c.Args
				list = append(list, added...)
			}
		}
		return list
	}
	switch v := value.(type) {
	case agent.MessageTaken:
		if cs.taken[v.ID] {
			return list
		}
		if cs.taken == nil {
			cs.taken = map[string]bool{}
		}
		cs.taken[v.ID] = true
	case agent.ToolStarted:
		c, added := cs.addCall(ev, v.ID, v.Name, nil)
		if len(v.Args) > 0 {
			c.Args = v.Args
		}
		return append(added, CallStarted{c})
	case agent.ToolProgress:
		list = []RunUpdate{CallOutput{cs.findCall(ev, v.ID, v.Name), v.Text + "\n"}}
	case agent.ToolOutput:
		list = []RunUpdate{CallOutput{cs.findCall(ev, v.ID, v.Name), v.Text}}
	case agent.ToolDone:
		c, added := cs.addCall(ev, v.ID, v.Name, nil)
		return append(added, CallEnded{c, v})
	}
	return append(list, ValueAdded{value})
}

// findCall returns a call: a new one, which is not kept, if its start has not been seen.
func (cs *Calls) findCall(ev graph.Event, id, name string) *Call {
	c := &Call{ID: id, Path: PlainPath(ev.Path), Name: name}
	return cmp.Or(cs.calls[c.Key()], c)
}

// addCall returns a call, and that it is new.
func (cs *Calls) addCall(ev graph.Event, id, name string, reply *Reply) (c *Call, list []RunUpdate) {
	c = cs.findCall(ev, id, name)
	if cs.calls == nil {
		cs.calls = map[string]*Call{}
	}
	if cs.calls[c.Key()] == nil {
		cs.calls[c.Key()] = c
		list = append(list, CallAdded{Call: c, Reply: reply})
	}
	return c, list
}
