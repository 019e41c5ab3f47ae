package progress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/updates"
	"raddle.dev/team"
)

// A statusBoard is what a run is doing, derived from its events: a row for each
// conversation of an agent with its model, and for each other node that runs.
type statusBoard struct {
	names  *agentNames
	wide   int                  // columns of names at least
	talks  bool                 // the agent is one conversation, or a team
	rows   []*boardRow          // in the order of their start
	tasks  map[string]*boardRow // by their places
	tokens map[string]int       // by path: a conversation continues in another drive
	said   updates.Calls
	mute   bool // the person sees the text of the agent's own model elsewhere
}

// A boardRow is one conversation or node that runs.
type boardRow struct {
	names  *agentNames
	path   string // of its frame or task, followed by a slash
	name   string
	about  string // purpose of a spawned agent; "" if unknown
	parent string // path of the parent row; "": none
	since  time.Time
	talks  bool // it is a conversation: its nodes have no rows of their own
	member bool // it is a spawned agent: rows of its nodes are below it, and it stays
	began  bool // one of its tasks has started
	tasks  int  // running tasks
	kind   string
	calls  []runningCall
	asked  bool // one of its tasks waits for an answer
	queued bool // a task or an agent that waits for a place
	tokens int
	text   string      // the end of the text that its model is writing
	thinks bool        // the text is reasoning
	items  *itemCounts // of a map; nil: it is none
	again  time.Time   // when a failed request is sent again; zero: no such request
	why    string      // reason of a failure
	tries  int         // number of the request that is sent again

	starting string // a server of tools that it waits for; "": none
}

// itemCounts are the items of a map.
type itemCounts struct {
	total, running, done, failed int

	branch string // the node that runs for each item; "": it is not known yet
}

// begin sets what a map has sent.
func (n *itemCounts) begin(sent []graph.Send) {
	n.total = len(sent)
	if n.total > 0 {
		n.branch = sent[0].To
	}
}

// counts reports whether a task is that of an item, and not of what handles failed ones.
func (n *itemCounts) counts(ev graph.Event) bool {
	return !flow.IsMapStep(ev.Node) && (n.branch == "" || n.branch == ev.Node)
}

// A runningCall is a call of a tool, and how far it is.
type runningCall struct {
	*updates.Call
	since    time.Time
	progress string // as the tool reported it last; "" if it has not
	output   string // the end of what it has written
}

func newStatusBoard(agent string, talks bool) *statusBoard {
	said := updates.Calls{Replies: updates.Replies{Replaces: true}}
	b := &statusBoard{names: newAgentNames(agent, talks), talks: talks, tokens: map[string]int{}, said: said}
	b.clearRows()
	return b
}

func (b *statusBoard) clearRows() { b.rows, b.tasks = nil, map[string]*boardRow{} }

// handleEvent updates the board with one event.
func (b *statusBoard) handleEvent(ev graph.Event) {
	b.names.handleEvent(ev)
	for _, u := range b.said.HandleEvent(ev) {
		b.handleUpdate(ev, u)
	}
	switch body := ev.Body.(type) {
	case graph.TaskStarted:
		if above := b.mapAbove(ev); above != nil {
			if flow.IsMapStep(ev.Node) {
				return
			}
			if above.items.counts(ev) {
				above.items.running++
			}
		}
		r := b.ensureRow(b.rowPath(ev, body.Kind), ev.Time)
		if above := b.mapAbove(ev); above != nil {
			r.name = strings.TrimPrefix(r.name, above.name+"/")
		}
		if body.Kind == mapKind && r.items == nil {
			r.items = &itemCounts{}
		}
		r.tasks++
		r.kind = body.Kind
		r.asked = false
		b.tasks[updates.PlaceOf(ev)] = r
	case graph.TaskDone:
		b.finishTask(ev, body)
	case graph.ValueEmitted:
		b.handleTeam(ev, body.Value)
	case graph.RunEnded:
		if ev.Path == "" {
			b.clearRows()
		}
	}
}

// talkKinds are the kinds of nodes that only conversations have.
var talkKinds = []string{"begin", "tools", "continue", "remind"}

// rowPath returns the path of the row that a task belongs to.
func (b *statusBoard) rowPath(ev graph.Event, kind string) string {
	r := b.findRow(ev.Path)
	talk := ev.Path == "" && b.talks || ev.Path != "" && (slices.Contains(talkKinds, kind) || ev.Node == agent.NodeThink && kind == "llm")
	if r != nil && r.member && !r.began {
		r.began = true
		r.talks = talk // its first node shows whether it is a conversation or a graph
	}
	if !talk && (r == nil || !r.talks) {
		return ev.ChildPath()
	}
	b.ensureRow(ev.Path, ev.Time).talks = true
	return ev.Path
}

func (b *statusBoard) findRow(path string) *boardRow {
	if i := slices.IndexFunc(b.rows, func(r *boardRow) bool { return r.path == path }); i >= 0 {
		return b.rows[i]
	}
	return nil
}

func (b *statusBoard) ensureRow(path string, now time.Time) *boardRow {
	r := b.findRow(path)
	if r == nil {
		r = &boardRow{names: b.names, path: path, name: b.names.displayName(path), since: now, tokens: b.tokens[path]}
		b.rows = append(b.rows, r)
	}
	return r
}

// removeRows removes the row of a path and the rows below it.
func (b *statusBoard) removeRows(path string) {
	b.rows = slices.DeleteFunc(b.rows, func(r *boardRow) bool { return strings.HasPrefix(r.path, path) })
}

// mapKind is the kind of a node that runs another one for each item of a list.
const mapKind = "map"

// mapAbove returns the row of the map whose item an event's task is, or nil.
func (b *statusBoard) mapAbove(ev graph.Event) *boardRow {
	if ev.Path == "" {
		return nil
	}
	if r := b.findRow(ev.Path); r != nil && r.items != nil {
		return r
	}
	return nil
}

// countItem counts a task of a map that has ended.
func (b *statusBoard) countItem(ev graph.Event, body graph.TaskDone) {
	above := b.mapAbove(ev)
	if above == nil {
		return
	}
	n := above.items
	if ev.Node == flow.MapStart {
		n.begin(body.Update.Send)
		return
	}
	if !n.counts(ev) {
		return
	}
	if !body.Recorded {
		n.running = max(0, n.running-1)
	}
	switch {
	case body.Waiting:
	case body.Err != nil:
		n.failed++
	default:
		n.done++
	}
}

func (b *statusBoard) finishTask(ev graph.Event, body graph.TaskDone) {
	b.countItem(ev, body)
	id := updates.PlaceOf(ev)
	r := b.tasks[id]
	if r == nil {
		return
	}
	delete(b.tasks, id)
	r.tasks--
	r.asked = r.asked || body.Waiting
	if r.tasks == 0 {
		r.calls = nil
		r.text = ""
	}
	if !body.Waiting {
		b.removeRows(ev.ChildPath())
	}
}

// handleTeam adds what happens to the agents of a team.
func (b *statusBoard) handleTeam(ev graph.Event, v any) {
	switch v := v.(type) {
	case team.AgentStarted:
		r := b.member(ev, v.ID, v.Parent, v.Purpose)
		r.talks = true
		r.queued = false
		r.since = ev.Time
		b.removeRows(queuePath(ev, v.Parent, v.Task))
	case team.AgentQueued:
		b.member(ev, v.ID, v.Parent, v.Purpose).queued = true
	case team.AgentEnded:
		b.removeRows(ev.ChildPath() + v.ID + "/")
	case team.TaskWaiting:
		r := b.ensureRow(queuePath(ev, v.Parent, v.ID), ev.Time)
		r.queued = true
		r.parent = ev.ChildPath() + v.Parent + "/"
		r.name = v.Agent + " for task " + v.ID + ": " + v.Subject
	}
}

// member returns the row of a spawned agent, with its name and its place.
func (b *statusBoard) member(ev graph.Event, id, parent, purpose string) *boardRow {
	r := b.ensureRow(ev.ChildPath()+id+"/", ev.Time)
	r.member, r.parent, r.about = true, ev.ChildPath()+parent+"/", purpose
	return r
}

// title returns the row's name, with its purpose.
func (r *boardRow) title() string {
	if r.about == "" {
		return term.CleanLine(r.name)
	}
	return term.CleanLine(r.name + ": " + r.about)
}

// queuePath returns the path of the row of a task in a queue. It is not below the agent that
// owns the queue, which has a row of its own.
func queuePath(ev graph.Event, parent, id string) string {
	if id == "" {
		return "\x00"
	}
	return ev.ChildPath() + "#" + parent + " " + id + "/"
}

// handleUpdate adds what a conversation or a node says, in the row of the event's task. A reply may be withdrawn by the
// event of a task above.
func (b *statusBoard) handleUpdate(ev graph.Event, u updates.RunUpdate) {
	if u, ok := u.(updates.ReplyWithdrawn); ok {
		if r := b.tasks[u.Reply.Place]; r != nil && !u.AtEnd {
			r.text = ""
		}
		return
	}
	r := b.tasks[updates.PlaceOf(ev)]
	if r == nil {
		return
	}
	switch u := u.(type) {
	case updates.ReasoningAdded:
		if !u.AtEnd {
			r.addText(u.Text, true)
		}
	case updates.TextAdded:
		switch {
		case u.AtEnd:
		case b.mute && u.Reply.Path == "":
			r.addText(" ", false)
		default:
			r.addText(u.Text, false)
		}
	case updates.ReplyEnded:
		b.addTokens(r, u.Done.Usage.Input+u.Done.Usage.Output)
	case updates.CallStarted:
		r.calls = append(r.calls, runningCall{Call: u.Call, since: ev.Time})
	case updates.CallEnded:
		r.calls = slices.DeleteFunc(r.calls, func(c runningCall) bool { return c.ID == u.Call.ID })
	case updates.ValueAdded:
		r.recordProgress(u.Value, ev.Time)
	}
}

// recordProgress adds what a node reports while it waits or calls.
func (r *boardRow) recordProgress(v any, now time.Time) {
	switch v := v.(type) {
	case agent.RetryScheduled:
		r.text, r.why, r.again, r.tries = "", v.Reason, now.Add(v.Wait), v.Request
	case agent.ServerStarting:
		if r.starting = v.Server; v.Over {
			r.starting = ""
		}
	case agent.ToolProgress:
		if c := r.findCall(v.ID); c != nil {
			c.progress = wording.CutText(v.Text, maxProgress, "...")
		}
	case agent.ToolOutput:
		if c := r.findCall(v.ID); c != nil {
			text := c.output + v.Text
			c.output = strings.ToValidUTF8(text[max(0, len(text)-mostOutput):], "")
		}
	}
}

// findCall returns the call of an id that runs, or nil.
func (r *boardRow) findCall(id string) *runningCall {
	if i := slices.IndexFunc(r.calls, func(c runningCall) bool { return c.ID == id }); i >= 0 {
		return &r.calls[i]
	}
	return nil
}

// mostOutput is how much of the end of what a call writes is kept, in bytes.
const mostOutput = 4096

// addText adds a piece of a reply, or of the reasoning before it.
func (r *boardRow) addText(text string, thinks bool) {
	if r.thinks != thinks {
		r.text = ""
	}
	r.text = r.text + text
	r.thinks = thinks
	r.again = time.Time{}
	const most, rest = 4096, 2048
	if len(r.text) > most {
		r.text = r.text[len(r.text)-rest:]
	}
}

func (b *statusBoard) addTokens(r *boardRow, tokens int) {
	r.text = ""
	r.tokens += tokens
	b.tokens[r.path] = r.tokens
}

// visibleRows returns the rows to show, with their depths: spawned agents below the ones
// that have spawned them, the nodes of a spawned graph below it, and of all others those
// that have no rows below them.
func (b *statusBoard) visibleRows(now time.Time) (list []*boardRow, depths []int) {
	above := map[string]bool{}
	for _, r := range b.rows {
		above[""] = above[""] || r.path != ""
		for i := range len(r.path) - 1 {
			if r.path[i] == '/' {
				above[r.path[:i+1]] = true
			}
		}
	}
	shown := map[string]bool{}
	for _, r := range b.rows {
		shown[r.path] = (r.member || r.items != nil || !above[r.path]) && now.Sub(r.since) >= patience
	}
	below := map[string][]*boardRow{}
	for _, r := range b.rows {
		parent := r.parent
		if inside := strings.TrimSuffix(r.path, "/"); !shown[parent] && !r.member {
			parent = inside[:memberEnd(inside)]
		}
		if at := b.mapOf(r); at != "" && shown[at] {
			parent = at
		}
		if !shown[parent] {
			parent = ""
		}
		if shown[r.path] {
			below[parent] = append(below[parent], r)
		}
	}
	var add func(rows []*boardRow, depth int)
	add = func(rows []*boardRow, depth int) {
		for _, r := range rows {
			list = append(list, r)
			depths = append(depths, depth)
			if r.path != "" {
				add(below[r.path], depth+1)
			}
		}
	}
	add(below[""], 0)
	return list, depths
}

// mapOf returns the path of the map that a row is an item of, or "".
func (b *statusBoard) mapOf(r *boardRow) string {
	best := ""
	for _, o := range b.rows {
		if o.items != nil && o != r && strings.HasPrefix(r.path, o.path) && len(o.path) > len(best) {
			best = o.path
		}
	}
	return best
}

// describeState returns what a row does, in a few words.
func (r *boardRow) describeState(now time.Time, l Look) string {
	switch {
	case r.again.After(now):
		return fmt.Sprintf("%s, again in %s (request %d)", r.why, formatSince(r.again.Sub(now)+time.Second-1), r.tries)
	case r.queued:
		return "waiting for a place"
	case r.items != nil:
		return r.items.describe(l)
	case r.asked && r.tasks == 0, r.kind == "approval", r.kind == "input":
		return "waiting for you"
	case r.starting != "":
		return "starting server " + r.starting
	case len(r.calls) == 1:
		return r.describeCall()
	case len(r.calls) > 1:
		return r.describeCalls()
	case r.text != "" && !r.thinks:
		return "writing"
	case r.kind == "llm" || r.talks:
		return "thinking"
	case r.kind == "rag":
		return "searching"
	case r.kind == "":
		return ""
	}
	return "running"
}

// describe returns how far a map is.
func (n *itemCounts) describe(l Look) string {
	return fmt.Sprintf("%d of %d done%s%d running%s%d failed", n.done, max(n.total, n.done+n.running+n.failed), l.Dot(), n.running, l.Dot(), n.failed)
}

// describeCalls describes several calls.
func (r *boardRow) describeCalls() string {
	var names []string
	collects := 0
	for _, c := range r.calls {
		names = append(names, c.Name)
		if c.Name == collectTool {
			collects++
		}
	}
	if collects == len(names) {
		return fmt.Sprintf("waiting for %d agents", collects)
	}
	return "calling " + strings.Join(names, ", ")
}

// maxProgress is how long the progress of a call may be in a row, in bytes.
const maxProgress = 60

// collectTool is the tool that waits for a spawned agent.
const collectTool = "agent__collect"

// describeCall describes a call; if it waits for an agent, with the agent's name.
func (r *boardRow) describeCall() string {
	c := r.calls[0]
	var args struct {
		ID  string
		IDs []string
	}
	err := json.Unmarshal(c.Args, &args)
	switch {
	case c.Name != collectTool:
	case err == nil && len(args.IDs) == 0 && team.AgentOf(args.ID) != "":
		return "waiting for " + r.names.nameAgent(args.ID)
	case err == nil && len(args.IDs) > 0:
		return "waiting for " + wording.FormatCount(len(args.IDs), "agent")
	case args.ID == "":
		return "waiting for agents"
	}
	if strings.HasPrefix(c.Name, "user__") {
		return "waiting for you"
	}
	if c.progress != "" {
		return "calling " + c.Name + ": " + c.progress
	}
	return "calling " + c.Name
}
