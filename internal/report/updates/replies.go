package updates

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/team"
)

// Replies are those of the models of a run, from its events: what is written of them, and which are complete. The zero
// value is ready to use. It is not safe for concurrent use.
type Replies struct {
	// Replaces says that a receiver can take back what it got of a reply: it learns at once that a reply begins again.
	// Otherwise the new text is compared with what the receiver has, and only passed on where it continues or differs.
	// It must not change after the first event.
	Replaces bool

	open     map[string]*Reply // that are not complete, by their places
	finished map[string]int    // numbers of complete replies, by their places
	ended    map[string]int64  // records of the last complete replies, by their places
	drive    int64             // the record of the newest start or resume
}

// HandleEvent takes an event, and returns what it adds to replies: [TextAdded], [ReasoningAdded], [ReplyWithdrawn] and
// [ReplyEnded], which is last.
func (rs *Replies) HandleEvent(ev graph.Event) (list []RunUpdate) {
	if rs.open == nil {
		rs.open = map[string]*Reply{}
		rs.finished = map[string]int{}
		rs.ended = map[string]int64{}
	}
	switch b := ev.Body.(type) {
	case graph.RunStarted:
		if ev.Path == "" {
			rs.drive = max(rs.drive, ev.Record)
		}
	case graph.TaskRetry:
		return rs.retryTask(ev)
	case graph.ValueEmitted:
		switch v := b.Value.(type) {
		case agent.TextDelta, agent.ReasoningDelta:
			return rs.addPiece(ev, v)
		case agent.RetryScheduled:
			if r := rs.FindReply(ev); r != nil {
				return r.beginAgain(v.Restart(), rs.Replaces)
			}
		case agent.ReplyDone:
			return rs.endReply(ev, v)
		}
	}
	return nil
}

// addPiece takes a piece of a reply. One that comes after the whole reply adds nothing.
func (rs *Replies) addPiece(ev graph.Event, piece any) (list []RunUpdate) {
	if rs.IsLate(ev) {
		return nil
	}
	r := rs.openReply(ev)
	if r.newest.Record < rs.drive && rs.drive <= ev.Record { // another drive writes it
		list = r.beginAgain(startsAgain, rs.Replaces)
	}
	r.newest = ev
	switch v := piece.(type) {
	case agent.TextDelta:
		list = append(list, r.addText(v.Text)...)
	case agent.ReasoningDelta:
		list = append(list, r.addReasoning(v.Text)...)
	}
	return list
}

// startsAgain says why a reply is withdrawn if its task or its drive has failed.
const startsAgain = "the reply starts again"

// IsSpeech reports whether a value that a node emits is a piece of a reply, or the whole reply.
func IsSpeech(value any) bool {
	switch value.(type) {
	case agent.TextDelta, agent.ReasoningDelta, agent.ReplyDone:
		return true
	}
	return false
}

// IsJournaled reports whether an event of a drive is also made from the journal, for those who read that.
func IsJournaled(body graph.Body) bool {
	switch b := body.(type) {
	case graph.RunStarted, graph.TaskStarted, graph.StepCommitted, graph.QuestionAsked, graph.QuestionAnswered, graph.RunEnded:
		return true
	case graph.ValueEmitted:
		switch b.Value.(type) {
		case agent.ReplyDone, agent.ToolStarted, agent.ToolDone, flow.NodeFailed:
			return true
		}
	}
	return false
}

// IsLate reports whether an event is a piece of a reply that was passed on as a whole.
func (rs *Replies) IsLate(ev graph.Event) bool {
	emitted, _ := ev.Body.(graph.ValueEmitted)
	switch emitted.Value.(type) {
	case agent.TextDelta, agent.ReasoningDelta:
		return ev.Record < rs.ended[PlaceOf(ev)]
	}
	return false
}

// openReply returns the reply that the task of an event gives now.
func (rs *Replies) openReply(ev graph.Event) *Reply {
	at := PlaceOf(ev)
	r := rs.open[at]
	if r == nil {
		r = &Reply{Place: at, Path: PlainPath(ev.Path), Node: ev.Path + ev.Node, Number: rs.finished[at] + 1, newest: ev}
		rs.open[at] = r
	}
	return r
}

// endReply takes a whole reply.
func (rs *Replies) endReply(ev graph.Event, done agent.ReplyDone) []RunUpdate {
	r := rs.openReply(ev)
	list, missing := r.finish(done.Message)
	delete(rs.open, r.Place)
	rs.finished[r.Place]++
	rs.ended[r.Place] = max(rs.ended[r.Place], ev.Record)
	return append(list, ReplyEnded{Reply: r, Done: done, Missing: missing})
}

// retryTask makes the replies of a task begin again, and those of the graphs below it.
func (rs *Replies) retryTask(ev graph.Event) (list []RunUpdate) {
	below := PlainPath(ev.ChildPath())
	if ev.Node == team.Node { // its lead has the path of the node
		below = PlainPath(ev.Path)
	}
	for _, r := range rs.OpenReplies() {
		if r.Place == PlaceOf(ev) || strings.HasPrefix(r.Path, below) {
			list = append(list, r.beginAgain(startsAgain, rs.Replaces)...)
		}
	}
	return list
}

// FindReply returns the reply that the task of an event gives now, or nil.
func (rs *Replies) FindReply(ev graph.Event) *Reply { return rs.open[PlaceOf(ev)] }

// OpenReplies returns the replies that are not complete, in the order of their places.
func (rs *Replies) OpenReplies() (list []*Reply) {
	for _, at := range slices.Sorted(maps.Keys(rs.open)) {
		list = append(list, rs.open[at])
	}
	return list
}

// DropOpen forgets the replies that are not complete.
func (rs *Replies) DropOpen() { clear(rs.open) }

// NoteEnded takes over which replies are complete for others: their pieces are late, also if the drive reports them
// only now.
func (rs *Replies) NoteEnded(others *Replies) {
	if rs.ended == nil {
		rs.HandleEvent(graph.Event{})
	}
	rs.drive = max(rs.drive, others.drive)
	for place, record := range others.ended {
		rs.ended[place] = max(rs.ended[place], record)
		if r := rs.open[place]; r != nil && r.newest.Record < record {
			delete(rs.open, place)
		}
	}
}

// leadPath is what the paths of events of a drive have for the lead of a team.
const leadPath = team.Node + "/" + team.Lead + "/"

// PlainPath returns the path of a conversation, each node followed by a slash. The lead of a team speaks for the node
// that has the team: the path team/lead/ of events becomes that of the node's graph.
func PlainPath(path string) string {
	if path != "" && !strings.HasSuffix(path, "/") {
		path += "/"
	}
	return strings.TrimPrefix(strings.ReplaceAll("/"+path, "/"+leadPath, "/"), "/")
}

// PlaceOf names the task that an event is about, as [Reply.Place] does: by the path of its conversation and its id, or
// its node if the event is one of a journal, which has no ids of tasks.
func PlaceOf(ev graph.Event) string { return PlainPath(ev.Path) + cmp.Or(ev.Task, ev.Node) }
