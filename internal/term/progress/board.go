package progress

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
	"raddle.dev/team"
)

// A statusBoard is what a run is doing, derived from its events: a row for each
// conversation of an agent with its model, and for each other node that runs.
type statusBoard struct {
	agent  string      // name of the run's agent
	talks  bool        // the agent is one conversation, or a team
	rows   []*boardRow // in the order of their start
	tasks  map[string]*boardRow
	tokens map[string]int // by path: a conversation continues in another drive
}

// A boardRow is one conversation or node that runs.
type boardRow struct {
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
	text   string    // the end of the text that its model is writing
	again  time.Time // when a failed request is sent again; zero: no such request
	why    string    // reason of a failure
}

// A runningCall is a call of a tool, and how far it is.
type runningCall struct {
	agent.ToolStarted
	progress string // as the tool reported it last; "" if it has not
}

func newStatusBoard(agent string, talks bool) *statusBoard {
	b := &statusBoard{agent: agent, talks: talks, tokens: map[string]int{}}
	b.clearRows()
	return b
}

func (b *statusBoard) clearRows() { b.rows, b.tasks = nil, map[string]*boardRow{} }

// handleEvent updates the board with one event.
func (b *statusBoard) handleEvent(ev graph.Event) {
	switch body := ev.Body.(type) {
	case graph.TaskStarted:
		r := b.ensureRow(b.rowPath(ev, body.Kind), ev.Time)
		r.tasks++
		r.kind, r.asked = body.Kind, false
		b.tasks[ev.Path+ev.Task] = r
	case graph.TaskDone:
		b.finishTask(ev, body)
	case graph.ValueEmitted:
		b.handleEmitted(ev, body.Value)
	case graph.RunEnded:
		if ev.Path == "" {
			b.clearRows()
		}
	}
}

// taskPath returns the path of what an event's task calls.
func taskPath(ev graph.Event) string {
	path := ev.Path + ev.Node
	if at := strings.LastIndexByte(ev.Task, '.'); at >= 0 && ev.Task[at+1:] != "0" {
		path += "[" + ev.Task[at+1:] + "]"
	}
	return path + "/"
}

// talkKinds are the kinds of nodes that only conversations have.
var talkKinds = []string{"begin", "tools", "continue", "remind"}

// rowPath returns the path of the row that a task belongs to.
func (b *statusBoard) rowPath(ev graph.Event, kind string) string {
	r := b.findRow(ev.Path)
	talk := ev.Path == "" && b.talks || ev.Path != "" && (slices.Contains(talkKinds, kind) || ev.Node == agent.NodeThink && kind == "llm")
	if r != nil && r.member && !r.began {
		r.began, r.talks = true, talk // its first node shows whether it is a conversation or a graph
	}
	if !talk && (r == nil || !r.talks) {
		return taskPath(ev)
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
		r = &boardRow{path: path, name: b.displayName(path), since: now, tokens: b.tokens[path]}
		b.rows = append(b.rows, r)
	}
	return r
}

// displayName returns a path for people: the name of a team's agent, or the nodes.
func (b *statusBoard) displayName(path string) string {
	path = strings.TrimSuffix(path, "/")
	above, last := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		above, last = path[:i], path[i+1:]
	}
	switch {
	case path == "" || last == team.Lead && above == team.Node && b.talks:
		return b.agent
	case last == team.Lead && strings.HasSuffix(above, "/"+team.Node):
		above = strings.TrimSuffix(above, "/"+team.Node)
		return above[memberEnd(above):]
	case team.AgentOf(last) != "":
		return shortAgentName(last)
	}
	return path[memberEnd(path):]
}

// memberEnd returns the offset after the slash that ends the path of the innermost spawned
// agent in a path, or 0 if there is none.
func memberEnd(path string) int {
	for end := len(path); end > 0; {
		from := strings.LastIndexByte(path[:end], '/')
		if team.AgentOf(path[from+1:end]) != "" {
			return min(end+1, len(path))
		}
		end = from
	}
	return 0
}

// shortAgentName returns the id of a spawned agent in a form for people.
func shortAgentName(id string) string {
	return team.AgentOf(id) + " " + id[strings.LastIndexByte(id, '_')+1:]
}

// removeRows removes the row of a path and the rows below it.
func (b *statusBoard) removeRows(path string) {
	b.rows = slices.DeleteFunc(b.rows, func(r *boardRow) bool { return strings.HasPrefix(r.path, path) })
}

func (b *statusBoard) finishTask(ev graph.Event, body graph.TaskDone) {
	id := ev.Path + ev.Task
	r := b.tasks[id]
	if r == nil {
		return
	}
	delete(b.tasks, id)
	r.tasks--
	r.asked = r.asked || body.Waiting
	if r.tasks == 0 {
		r.calls, r.text = nil, ""
	}
	if !body.Waiting {
		b.removeRows(taskPath(ev))
	}
}

func (b *statusBoard) handleEmitted(ev graph.Event, v any) {
	switch v := v.(type) {
	case team.AgentStarted:
		r := b.member(ev, v.ID, v.Parent, v.Purpose)
		r.talks, r.queued, r.since = true, false, ev.Time
		b.removeRows(queuePath(ev, v.Parent, v.Task))
		return
	case team.AgentQueued:
		b.member(ev, v.ID, v.Parent, v.Purpose).queued = true
		return
	case team.AgentEnded:
		b.removeRows(taskPath(ev) + v.ID + "/")
		return
	case team.TaskWaiting:
		r := b.ensureRow(queuePath(ev, v.Parent, v.ID), ev.Time)
		r.queued, r.parent, r.name = true, taskPath(ev)+v.Parent+"/", v.Agent+" for task "+v.ID+": "+v.Subject
		return
	}
	if r := b.tasks[ev.Path+ev.Task]; r != nil {
		b.recordProgress(r, v, ev.Time)
	}
}

// member returns the row of a spawned agent, with its name and its place.
func (b *statusBoard) member(ev graph.Event, id, parent, purpose string) *boardRow {
	r := b.ensureRow(taskPath(ev)+id+"/", ev.Time)
	r.member, r.parent, r.about = true, taskPath(ev)+parent+"/", purpose
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
	return taskPath(ev) + "#" + parent + " " + id + "/"
}

// recordProgress adds what a conversation or a node reports about itself.
func (b *statusBoard) recordProgress(r *boardRow, v any, now time.Time) {
	const most, rest = 4096, 2048
	switch v := v.(type) {
	case agent.TextDelta:
		r.text, r.again = r.text+v.Text, time.Time{}
	case agent.RetryScheduled:
		r.text, r.why, r.again = "", v.Reason, now.Add(v.Wait)
	case agent.ReplyDone:
		b.addTokens(r, v.Usage.Input+v.Usage.Output)
	case agent.ToolStarted:
		r.calls = append(r.calls, runningCall{ToolStarted: v})
	case agent.ToolProgress:
		if i := slices.IndexFunc(r.calls, func(c runningCall) bool { return c.ID == v.ID }); i >= 0 {
			r.calls[i].progress = wording.CutText(v.Text, mostProgress, "...")
		}
	case agent.ToolDone:
		r.calls = slices.DeleteFunc(r.calls, func(c runningCall) bool { return c.ID == v.ID })
	}
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
		shown[r.path] = (r.member || !above[r.path]) && now.Sub(r.since) >= patience
	}
	below := map[string][]*boardRow{}
	for _, r := range b.rows {
		parent := r.parent
		if inside := strings.TrimSuffix(r.path, "/"); !shown[parent] && !r.member {
			parent = inside[:memberEnd(inside)]
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
			list, depths = append(list, r), append(depths, depth)
			if r.path != "" {
				add(below[r.path], depth+1)
			}
		}
	}
	add(below[""], 0)
	return list, depths
}

// describeState returns what a row does, in a few words; "" if its name says it.
func (r *boardRow) describeState(now time.Time) string {
	switch {
	case r.again.After(now):
		return r.why + ", trying again in " + wording.FormatDuration(r.again.Sub(now))
	case r.queued:
		return "waiting for a place"
	case r.asked && r.tasks == 0:
		return "waiting for an answer"
	case len(r.calls) == 1:
		return r.describeCall()
	case len(r.calls) > 1:
		return r.describeCalls()
	case r.kind == "llm" || r.talks:
		return "thinking"
	}
	return r.kind
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
	return "tools " + strings.Join(names, ", ")
}

// mostProgress is how long the progress of a call may be in a row, in bytes.
const mostProgress = 60

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
		return "waiting for " + shortAgentName(args.ID)
	case err == nil && len(args.IDs) > 0:
		return "waiting for " + wording.FormatCount(len(args.IDs), "agent")
	case args.ID == "":
		return "waiting for agents"
	}
	if c.progress != "" {
		return "tool " + c.Name + ": " + c.progress
	}
	return "tool " + c.Name
}
