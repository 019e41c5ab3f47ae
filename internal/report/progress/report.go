package progress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/updates"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// A Reporter writes what happens in a run on a terminal, as finished lines: one for each node that ends, and a block
// for each call of a tool. Off a terminal a narrator of flow/narrate writes lines instead. It needs the events of
// [ReportTopics], of one drive or of several drives of one run. It is not safe for concurrent use.
type Reporter struct {
	Detail  bool // show results, reasoning and prompts in full; must not change after the first event
	Replies bool // something else writes the text of replies between the lines; must not change after the first event

	screen *term.Screen
	look   Look
	agent  *flow.Agent
	names  *agentNames
	wide   int // columns of the names of nodes

	nodes     map[string]*reportedNode // that run, by their places
	talks     map[string]bool          // paths of conversations
	maps      map[string]*itemCounts   // that run, by their path
	said      updates.Calls
	reasoning map[string]*reasoning // by their places
	members   map[string]*reportedMember

	watch updates.Stopwatch
	last  lastWritten
}

// lastWritten is what was written last: an empty line separates replies from other lines.
type lastWritten int

const (
	wroteNothing lastWritten = iota
	wroteLines
	wroteReply
)

// ReportTopics are the events that a Reporter needs.
const ReportTopics = graph.TopicRun | graph.TopicTask | graph.TopicStep | graph.TopicEmit

// reportedNode is a node that runs.
type reportedNode struct {
	name, kind string
	waits      bool   // it has asked
	path       string // of what it calls
	since      time.Time
	tokens     int
	requests   int    // the number of the last request to a model, if it is not the first
	said       string // the end of the last reply
	failed     string // why it has failed although the run continues; "": it has not
}

// reportedMember is a spawned agent.
type reportedMember struct {
	since  time.Duration // on the stopwatch
	tokens int
}

// reasoning is what a model has thought before it replied.
type reasoning struct {
	text  strings.Builder
	since time.Time
}

// NewReporter returns what writes the lines about runs of an agent.
func NewReporter(screen *term.Screen, look Look, a *flow.Agent) *Reporter {
	r := &Reporter{screen: screen, look: look, agent: a, names: newAgentNames(a.Name, a.Config != nil), nodes: map[string]*reportedNode{},
		talks: map[string]bool{"": a.Config != nil}, maps: map[string]*itemCounts{}, said: updates.Calls{Replies: updates.Replies{Replaces: true}},
		reasoning: map[string]*reasoning{}, members: map[string]*reportedMember{}}
	r.wide = nameWidth(a)
	r.names.dot = look.dot
	return r
}

// nameWidth returns how wide the names of an agent's nodes are, within a limit.
func nameWidth(a *flow.Agent) (wide int) {
	const most = 20
	if a.File == nil {
		return 0
	}
	for _, n := range a.File.Nodes {
		if n.Kind() != "end" {
			wide = max(wide, term.TextWidth(n.ID))
		}
	}
	return min(wide, most)
}

// PrintStart writes which run it is, before the first event of a drive.
func (r *Reporter) PrintStart(id string, resumed bool) {
	head := r.look.colors.Paint(term.Bold, r.look.cut(r.agent.Name, r.cols()))
	if term.TextWidth(term.StripMarks(head)+r.look.Dot()+id) <= r.cols() {
		head += r.look.Dot() + id
	}
	if resumed {
		head += r.look.Dot() + "resumed"
	}
	hint := "ctrl-c to stop"
	if models := r.agent.Models(); len(models) > 0 {
		hint = r.look.cut(models[0], 30) + r.look.Dot() + hint
	}
	if gap := r.cols() - term.TextWidth(term.StripMarks(head)) - term.TextWidth(hint); gap >= 3 {
		head += strings.Repeat(" ", min(gap, max(3, 72-term.TextWidth(term.StripMarks(head))-term.TextWidth(hint)))) + r.look.dim(hint)
	}
	r.print(head)
}

// An Ending is what the last line about a run says.
type Ending struct {
	Status graph.Status
	Code   int    // exit code of the run's end
	Tokens int    // of all calls of models in this process
	Cost   string // "": there is none, or it is unknown
	Show   string // the command that shows the run; "": there is none
	Apart  bool   // write an empty line before it
}

// PrintEnd writes the last line about a run.
func (r *Reporter) PrintEnd(e Ending) {
	took := r.watch.Took
	waited := r.watch.Waited
	mark := r.look.Done()
	verb := "done in"
	if e.Status != graph.Done {
		mark = r.look.colors.Paint(term.Red, r.look.failed)
		verb = "failed after"
	}
	line := verb + " " + formatTook(took)
	if waited >= time.Second {
		line += " (" + formatTook(waited) + " waiting for you)"
	}
	if e.Code != 0 && e.Status == graph.Done {
		line += fmt.Sprintf(", exit code %d", e.Code)
	}
	parts := []string{line}
	if e.Tokens > 0 {
		parts = append(parts, wording.FormatTokens(e.Tokens)+" tokens")
	}
	for _, part := range []string{e.Cost, e.Show} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	name := r.look.cut(r.agent.Name, 30)
	for len(parts) > 1 && term.TextWidth(term.StripMarks(mark)+name+strings.Join(parts, r.look.Dot()))+2 > r.cols() {
		parts = parts[:len(parts)-1]
	}
	if e.Apart && r.last != wroteReply {
		r.screen.PrintLine("")
	}
	r.print(mark + " " + name + " " + r.look.dim(strings.Join(parts, r.look.Dot())))
}

// HandleEvent writes the lines of an event.
func (r *Reporter) HandleEvent(ev graph.Event) {
	r.watch.HandleEvent(ev)
	r.names.long = r.Detail
	r.names.handleEvent(ev)
	for _, u := range r.said.HandleEvent(ev) {
		r.handleUpdate(ev, u)
	}
	switch b := ev.Body.(type) {
	case graph.TaskStarted:
		r.startTask(ev, b)
	case graph.TaskDone:
		r.endReasoning(ev)
		r.finishTask(ev, b)
	case graph.StepCommitted:
		r.finishStep(ev, b)
	case graph.RunEnded:
		if ev.Path == "" {
			r.finishFailed(ev, b.Result)
			maps.DeleteFunc(r.nodes, func(_ string, n *reportedNode) bool {
				return !n.waits && b.Result.Status != graph.Waiting // a journal does not say which nodes wait
			})
			clear(r.maps)
		}
	}
}

func (r *Reporter) cols() int {
	cols, _ := r.screen.Size()
	return max(10, cols-1)
}

// print writes lines in one piece.
func (r *Reporter) print(lines ...string) {
	if len(lines) == 0 {
		return
	}
	if r.last == wroteReply {
		r.screen.PrintLine("")
	}
	r.last = wroteLines
	r.screen.PrintLine(strings.Join(lines, "\n"))
}

// separateReply writes an empty line before a reply.
func (r *Reporter) separateReply(ev graph.Event) {
	if !r.Replies || !isReaderPath(ev.Path) {
		return
	}
	if r.last == wroteLines {
		r.screen.PrintLine("")
	}
	r.last = wroteReply
}

// printCut writes a line, cut at the width of the terminal if it is not painted.
func (r *Reporter) printCut(line string) { r.print(r.look.dim(r.look.cutRight(line, r.cols()))) }

func (r *Reporter) startTask(ev graph.Event, b graph.TaskStarted) {
	path := ev.ChildPath()
	switch {
	case slices.Contains(talkKinds, b.Kind) || ev.Path != "" && ev.Node == agent.NodeThink && b.Kind == "llm":
		r.talks[ev.Path] = true
		return
	case r.talks[ev.Path] || flow.IsMapStep(ev.Node):
		return
	case b.Kind == mapKind && r.maps[ev.Path] == nil:
		r.maps[path] = &itemCounts{}
	}
	r.nodes[updates.PlaceOf(ev)] = &reportedNode{name: r.names.displayName(path), kind: b.Kind, path: path, since: ev.Time}
}

func (r *Reporter) finishTask(ev graph.Event, b graph.TaskDone) {
	if m := r.maps[ev.Path]; m != nil {
		switch {
		case ev.Node == flow.MapStart:
			m.begin(b.Update.Send)
			return
		case !m.counts(ev):
		case b.Err != nil:
			m.failed++
		case !b.Waiting:
			m.done++
		}
	}
	n := r.nodes[updates.PlaceOf(ev)]
	if n != nil && b.Waiting {
		n.waits = true // it runs again after the answer
		return
	}
	delete(r.nodes, updates.PlaceOf(ev))
	if n == nil || n.kind == "end" && b.Err == nil || b.Recorded || errors.Is(b.Err, context.Canceled) {
		return
	}
	if r.isInMap(ev.Path) && b.Err == nil && !r.Detail {
		return
	}
	r.print(r.formatNode(ev, n, b))
	delete(r.maps, n.path)
}

// isInMap reports whether a path is below a map, whose items are only counted.
func (r *Reporter) isInMap(path string) bool {
	for at := range r.maps {
		if strings.HasPrefix(path, at) {
			return true
		}
	}
	return false
}

// finishStep writes the nodes of a step whose ends the events do not contain, as those of a journal.
func (r *Reporter) finishStep(ev graph.Event, b graph.StepCommitted) {
	for _, name := range b.Nodes {
		ev.Node = name
		key := updates.PlaceOf(ev)
		if n := r.nodes[key]; n != nil {
			delete(r.nodes, key)
			if n.kind == "end" || r.isInMap(ev.Path) {
				continue
			}
			done := graph.TaskDone{Took: ev.Time.Sub(n.since)}
			if len(b.Nodes) == 1 {
				done.Update.Goto = b.Next
			}
			r.print(r.formatNode(ev, n, done))
		}
	}
	if len(b.Dropped) > 0 {
		r.printCut("  not run, because the graph has ended: " + strings.Join(b.Dropped, ", "))
	}
}

// finishFailed writes the nodes with which a drive has failed whose ends the events do not contain, as those of a
// journal: its reason names them. A node stands below those that it called.
func (r *Reporter) finishFailed(ev graph.Event, res graph.Result) {
	if res.Err == nil {
		return
	}
	ended := slices.SortedFunc(maps.Values(r.nodes), func(a, b *reportedNode) int { return strings.Compare(b.path, a.path) })
	for _, n := range ended {
		place := strings.TrimSuffix(n.path, "/")
		_, why, failed := strings.Cut(res.Err.Error(), "at node '"+place+"': ")
		if !failed && !strings.Contains(res.Err.Error(), "at node '"+n.path) {
			continue
		}
		at := strings.LastIndexByte(place, '/') + 1
		ev.Path = place[:at]
		ev.Node = place[at:]
		r.print(r.formatNode(ev, n, graph.TaskDone{Err: errors.New(why), Took: ev.Time.Sub(n.since)}))
	}
}

// formatNode returns the line of a node that has ended.
func (r *Reporter) formatNode(ev graph.Event, n *reportedNode, b graph.TaskDone) string {
	mark := r.look.Done()
	if b.Err != nil || n.failed != "" {
		mark = r.look.colors.Paint(term.Red, r.look.failed)
	}
	name := term.CleanLine(n.name)
	if len(name) < r.wide {
		name = term.PadText(name, r.wide)
	}
	line := mark + " " + name
	const gap = "   "
	width := func() int { return r.cols() - term.TextWidth(term.StripMarks(line)) - len(gap) }
	if took := formatTook(b.Took); n.kind != "approval" && n.kind != "input" && width() >= len(took) {
		line += gap + r.look.dim(term.PadText(took, min(5, width())))
	}
	if tokens := wording.FormatTokens(n.tokens) + " tokens"; n.tokens > 0 && width() >= len(tokens) {
		line += gap + r.look.dim(tokens)
	}
	sep := gap
	for _, part := range r.nodeParts(ev, n, b) {
		if room := width(); part != "" && room > 4 {
			line += sep + r.look.cut(part, room)
		}
		sep = r.look.Dot()
	}
	return line
}

// nodeParts returns what is to be said about a node that has ended: what it wrote, where it led, and what did not go
// well.
func (r *Reporter) nodeParts(ev graph.Event, n *reportedNode, b graph.TaskDone) (parts []string) {
	if m := r.maps[n.path]; m != nil && m.total > 0 {
		text := wording.FormatCount(m.total, "item")
		if m.failed > 0 {
			text += fmt.Sprintf(", %d failed", m.failed)
		}
		parts = append(parts, text)
	}
	if b.Err == nil {
		parts = append(parts, r.writtenParts(n, b.Update.Writes)...)
	}
	file := r.nodeOf(ev)
	switch {
	case n.failed != "":
		parts = append(parts, r.look.cut(lastSentence(flow.PlainReason(n.failed)), 60))
		if to := strings.Join(b.Update.Goto, ", "); to != "" {
			parts = append(parts, r.look.arrow+" "+to)
		}
	case b.Failed:
		to := failureTarget(file)
		parts = append(parts, r.look.cut(reasonOf(b.Err), 60))
		if to != "" {
			parts = append(parts, "fallback "+r.look.arrow+" "+to)
		}
	case b.Err != nil && (r.isInMap(ev.Path) || ev.Path != ""):
		parts = append(parts, reasonOf(b.Err))
	case file == nil && (n.kind == "approval" || n.kind == "input"), file != nil && !slices.Equal(file.Next, b.Update.Goto) && len(b.Update.Goto) > 0:
		parts = append(parts, r.look.arrow+" "+strings.Join(b.Update.Goto, ", "))
	}
	if b.Attempts > 1 {
		parts = append(parts, formatOrdinal(b.Attempts)+" attempt")
	}
	if n.requests > 1 {
		parts = append(parts, wording.FormatCount(n.requests, "request"))
	}
	return parts
}

// nodeOf returns the node of an event in the file of the run's graph; nil if it is of another graph.
func (r *Reporter) nodeOf(ev graph.Event) *spec.Node {
	if ev.Path != "" || r.agent.File == nil {
		return nil
	}
	return r.agent.File.Node(ev.Node)
}

// failureTarget returns where a node leads when it fails, or "".
func failureTarget(n *spec.Node) string {
	if n == nil {
		return ""
	}
	for _, e := range n.DeclaredEdges() {
		if e.Role == spec.EdgeFailure {
			return e.To
		}
	}
	return ""
}

// reasonOf returns why a node failed, without the words around it.
func reasonOf(err error) string {
	if node, ok := errors.AsType[*graph.NodeError](err); ok && node.Err != nil {
		err = node.Err
	}
	return flow.PlainReason(err.Error())
}

// lastSentence returns the last line of a failure, which is the cause.
func lastSentence(text string) string {
	lines := textLines(text)
	if len(lines) == 0 {
		return ""
	}
	last := strings.TrimSpace(lines[len(lines)-1])
	if len(lines) == 1 {
		if _, code, ok := strings.Cut(last, "failed with exit code "); ok {
			last = "exit code " + code
		}
	}
	return last
}

// writtenParts returns what a node wrote: the values that are short, and the beginning of a reply if there is none.
func (r *Reporter) writtenParts(n *reportedNode, writes []graph.Write) (parts []string) {
	const most, longest = 60, 40 // columns of all, of one
	used := 0
	long := ""
	for _, w := range writes {
		value, ok := scalarText(w.Value())
		if !ok || value == "" {
			continue
		}
		if strings.Contains(value, "\n") || term.TextWidth(value) > longest {
			if long == "" {
				long = value
			}
			continue
		}
		part := w.Key() + " " + value
		if w.Key() == n.name {
			part = value
		}
		if used += term.TextWidth(part) + 3; used > most {
			break
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		if long == "" && (n.kind == "llm" || n.kind == "agent") {
			long = n.said
		}
		if text := r.look.quote(long, most); text != "" {
			parts = append(parts, text)
		}
	}
	return parts
}

// scalarText returns the text of a value that is a text, a number or a truth value.
func scalarText(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return strings.TrimSpace(v), true
	case bool, int, int64, uint64, float64, json.Number:
		return fmt.Sprint(v), true
	}
	return "", false
}

func formatOrdinal(n int) string {
	switch {
	case n%100/10 == 1:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

// handleUpdate writes the lines of what a node has said.
func (r *Reporter) handleUpdate(ev graph.Event, u updates.RunUpdate) {
	switch u := u.(type) {
	case updates.ReasoningAdded:
		if !u.AtEnd {
			r.addReasoning(ev, u.Text)
		}
	case updates.TextAdded:
		if !u.AtEnd {
			r.endReasoning(ev)
			r.separateReply(ev)
		}
	case updates.ReplyWithdrawn: // perhaps by the event of a task above
		if !u.AtEnd {
			delete(r.reasoning, u.Reply.Place)
		}
	case updates.ReplyEnded:
		r.endReasoning(ev)
		r.countReply(ev, u.Done.Usage, u.Done.Message.Text())
		for _, note := range u.Done.Notes() {
			r.printCut("  " + r.withLabel(ev.Path, note))
		}
	case updates.CallEnded:
		r.finishCall(ev, callArguments(u.Call.Args), u.Done)
	case updates.ValueAdded:
		r.handleValue(ev, u.Value)
	}
}

// handleValue writes the lines of a value that a node has emitted.
func (r *Reporter) handleValue(ev graph.Event, v any) {
	switch v := v.(type) {
	case agent.RetryScheduled:
		for _, n := range r.nodesAbove(ev) {
			n.requests = v.Request
		}
		switch {
		case v.Model != "": // another model answers than the person has chosen
			r.print(r.look.colors.Paint(term.Yellow, "! ") + term.CleanLine(r.withLabel(ev.Path, v.Text())))
		case r.Detail:
			r.printCut("  " + r.withLabel(ev.Path, v.Text()))
		}
	case agent.Warning:
		if n := r.nodes[updates.PlaceOf(ev)]; n != nil && n.failed != "" {
			if at := strings.Index(v.Text, n.failed); at >= 0 {
				n.failed = v.Text[at:] // with its causes: the line of the node says it
				return
			}
		}
		r.print(r.look.colors.Paint(term.Yellow, "! ") + term.CleanLine(r.withLabel(ev.Path, v.Text)))
	case flow.NodeFailed:
		if n := r.nodes[updates.PlaceOf(ev)]; n != nil {
			n.failed = v.Reason
		}
	case agent.WindowShortened:
		what := "are left out"
		if v.Summary {
			what = "are summarised"
		}
		r.printCut(fmt.Sprintf("  the conversation is long: %d earlier messages %s", v.Messages, what))
	case agent.MessageTaken:
		r.print(r.messageLines(v.Text)...)
	case agent.ContinuationSent:
		r.printCut(fmt.Sprintf("  continuing (%d of %d): %s left to do", v.Count, v.Max, wording.FormatCount(v.Open, "item")))
	case flow.ChildSpawned:
		if r.Detail {
			r.print(r.look.dim("  " + term.CleanLine(r.withLabel(ev.ChildPath(), "prompt:"))))
			r.print(r.detailLines(v.Prompt)...)
		}
	default:
		r.handleTeam(ev, v)
	}
}

// detailLines returns all lines of a text, dimmed and indented.
func (r *Reporter) detailLines(text string) (lines []string) {
	for _, line := range textLines(text) {
		lines = append(lines, r.look.dim("    "+line))
	}
	return lines
}

// messageLines returns what a person has said to the agent while it works.
func (r *Reporter) messageLines(text string) (lines []string) {
	prompt := "> "
	for _, line := range textLines(text) {
		lines = append(lines, r.look.colors.Paint(term.Cyan, prompt)+r.look.colors.Paint(term.Bold, line))
		prompt = "  "
	}
	return lines
}

// withLabel returns a text after the name of who it is about.
func (r *Reporter) withLabel(path, text string) string {
	if label := r.names.labelOf(path); label != "" {
		return label + "  " + text
	}
	return text
}

// nodesAbove returns the nodes that run and to which an event belongs.
func (r *Reporter) nodesAbove(ev graph.Event) (list []*reportedNode) {
	at := ev.ChildPath()
	for _, n := range r.nodes {
		if strings.HasPrefix(at, n.path) {
			list = append(list, n)
		}
	}
	return list
}

// countReply counts the tokens of a reply, and keeps its text.
func (r *Reporter) countReply(ev graph.Event, used llm.Usage, text string) {
	tokens := used.Input + used.Output
	for _, n := range r.nodesAbove(ev) {
		n.tokens += tokens
		if text != "" {
			n.said = text
		}
	}
	for id, m := range r.members {
		if strings.Contains("/"+ev.Path, "/"+id+"/") {
			m.tokens += tokens
		}
	}
}

// callArguments returns the arguments of a call as an object, also if the model wrote them as a text.
func callArguments(args json.RawMessage) json.RawMessage {
	var text string
	if json.Unmarshal(args, &text) == nil {
		return json.RawMessage(text)
	}
	return args
}

// finishCall writes the block of a call.
func (r *Reporter) finishCall(ev graph.Event, args json.RawMessage, v agent.ToolDone) {
	if r.isInMap(ev.Path) && !v.Error && !r.Detail {
		return
	}
	if v.Name == sendTool && !v.Error {
		r.showTeamMessage(ev, args)
		return
	}
	if !isSilent(v.Name, v.Error) || r.Detail {
		r.print(r.look.formatCall(r.names.labelOf(ev.Path), args, v, r.cols(), r.Detail)...)
	}
}

// addReasoning collects what a model thinks, if the person reads its replies or wants all details.
func (r *Reporter) addReasoning(ev graph.Event, text string) {
	if !isReaderPath(ev.Path) && !r.Detail || !r.talks[ev.Path] && !r.Detail {
		return
	}
	t := r.reasoning[updates.PlaceOf(ev)]
	if t == nil {
		t = &reasoning{since: ev.Time}
		r.reasoning[updates.PlaceOf(ev)] = t
	}
	t.text.WriteString(text)
}

// endReasoning writes a line about what a model has thought, or all of it.
func (r *Reporter) endReasoning(ev graph.Event) {
	t := r.reasoning[updates.PlaceOf(ev)]
	if t == nil {
		return
	}
	delete(r.reasoning, updates.PlaceOf(ev))
	head := "  " + r.withLabel(ev.Path, "thought for "+formatTook(ev.Time.Sub(t.since)))
	if r.Detail {
		r.print(append([]string{r.look.dim(term.CleanLine(head))}, r.detailLines(t.text.String())...)...)
		return
	}
	text := strings.Join(strings.Fields(term.CleanLine(t.text.String())), " ")
	if room := r.cols() - term.TextWidth(head) - 4; room > 8 && text != "" {
		if term.TextWidth(text) > room {
			text = r.look.more + term.CutStart(text, room-term.TextWidth(r.look.more))
		}
		head += "  " + text
	}
	r.printCut(head)
}

// sendTool is the tool that sends a message to another agent.
const sendTool = "agent__send_message"

// showTeamMessage writes a message from an agent to another.
func (r *Reporter) showTeamMessage(ev graph.Event, args json.RawMessage) {
	var m struct{ ID, Message string }
	if json.Unmarshal(args, &m) != nil {
		return
	}
	from := r.names.labelOf(ev.Path)
	to := m.ID
	if from == "" {
		from = team.Lead
	}
	if team.AgentOf(to) != "" {
		to = r.names.nameAgent(to)
	}
	head := from + " " + r.look.arrow + " " + term.CleanLine(to) + "  "
	r.printCut(head + r.look.quote(m.Message, max(20, r.cols()-term.TextWidth(head))))
}

// handleTeam writes what happens to the agents of a team.
func (r *Reporter) handleTeam(ev graph.Event, v any) {
	switch v := v.(type) {
	case team.AgentStarted:
		if r.members[v.ID] != nil {
			return
		}
		r.members[v.ID] = &reportedMember{since: r.watch.ElapsedAt(ev.Time)}
		if !v.Resumed || r.Detail {
			line := r.look.call + " " + r.names.nameAgent(v.ID) + " started"
			if v.Parent != team.Lead {
				line += " by " + r.names.nameAgent(v.Parent)
			}
			if v.Purpose != "" {
				line += ": " + v.Purpose
			}
			r.printCut(line)
		}
	case team.AgentEnded:
		r.finishMember(ev, v)
	}
}

func (r *Reporter) finishMember(ev graph.Event, v team.AgentEnded) {
	mark := r.look.Done()
	if v.Status != "completed" {
		mark = r.look.colors.Paint(term.Red, r.look.failed)
	}
	line := mark + " " + r.names.nameAgent(v.ID)
	if m := r.members[v.ID]; m != nil {
		line += r.look.dim("   " + formatTook(r.watch.ElapsedAt(ev.Time)-m.since))
		if tokens := max(m.tokens, v.Spent.Usage.Input+v.Spent.Usage.Output); tokens > 0 {
			line += r.look.dim("   " + wording.FormatTokens(tokens) + " tokens")
		}
	}
	delete(r.members, v.ID)
	if v.Status != "completed" {
		line += "   " + v.Status
	}
	if v.Error != "" {
		line += ": " + r.look.cut(v.Error, max(20, r.cols()-term.TextWidth(term.StripMarks(line))-2))
	}
	r.print(line)
}
