package flow

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/team"
)

// Narrator reports the progress of a run as lines of text for people. Pass it
// all events of [NarrateTopics], of one drive or of several drives of one run;
// the times that it prints do not include the time between drives. It is not
// safe for concurrent use.
type Narrator struct {
	Detail bool // also print replies, outcomes of calls, and branches of maps

	w            io.Writer
	agent        *Agent
	color        bool
	started      bool // the first line was printed
	watch        stopwatch
	agentTallies map[string]*agentTally // spawned agents by id

	purposes map[string]string // of spawned agents by id
}

// stopwatch adds up the time of drives. Between drives a run waits.
type stopwatch struct {
	startedAt time.Time
	took      time.Duration
}

func (s *stopwatch) observeEvent(e graph.Event) {
	if e.Path != "" {
		return
	}
	switch e.Body.(type) {
	case graph.RunStarted:
		s.startedAt = e.Time
	case graph.RunEnded:
		s.took += e.Time.Sub(s.startedAt)
	}
}

// elapsedAt returns the total time of all drives at a moment of the current drive.
func (s *stopwatch) elapsedAt(now time.Time) time.Duration { return s.took + now.Sub(s.startedAt) }

// NarrateTopics are the events that a Narrator needs.
const NarrateTopics = graph.TopicRun | graph.TopicTask | graph.TopicStep | graph.TopicEmit

// NewNarrator returns a narrator of the agent's runs. If color is true, the lines
// are dimmed.
func NewNarrator(w io.Writer, a *Agent, color bool) *Narrator {
	return &Narrator{w: w, agent: a, color: color, agentTallies: map[string]*agentTally{}, purposes: map[string]string{}}
}

// promptLines is how many lines of a child's prompt are shown.
const promptLines = 12

// frame is a part of a run with its own lines: an agent, or the conversation of
// one of its llm nodes.
type frame struct {
	agent   *Agent
	talks   bool // it is a conversation with a model
	team    bool // its children are the agents of a team
	branch  bool // its children are the branches of a map
	spawned bool // a spawned agent, or something inside of one
	indent  string
	label   string // starts the lines if several frames may print at the same time
}

// resolveFrame returns the frame of a path of the run. shown is false for branches of a
// map, which are details.
func (n *Narrator) resolveFrame(path string) (f frame, shown bool) {
	f = frame{agent: n.agent, talks: n.agent.Config != nil}
	at := 0
	for _, id := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' }) {
		at += len(id) + len("/")
		switch {
		case f.team:
			if f = f.memberFrame(id); id != team.Lead {
				f.label = n.label(id, id)
			}
		case f.talks && id == team.Node:
			f.team = true
		case f.talks || f.agent == nil:
			return f, false
		default:
			if f, shown = n.childFrame(f, id); !shown {
				return f, false
			}
			f.label = n.label(path[:at-len("/")], path[:at])
		}
	}
	return f, true
}

// childFrame returns the frame below a node of a graph.
func (n *Narrator) childFrame(f frame, id string) (frame, bool) {
	id, _, _ = strings.Cut(id, "[")
	node := f.agent.File.Node(id)
	if node == nil {
		return f, false
	}
	f.indent += "  "
	f.branch = false
	needs := needsOf(node)
	child := f.agent.children[needs.agent]
	switch {
	case child != nil:
		f.agent, f.talks = child, child.Config != nil
	case needs.request != nil:
		f.talks = true
	case node.Branch != nil:
		f.branch = true
		return f, n.Detail
	default:
		return f, false
	}
	return f, true
}

// Event prints one event, if it is relevant.
func (n *Narrator) Event(e graph.Event) {
	n.watch.observeEvent(e)
	n.countUsage(e)
	f, shown := n.resolveFrame(e.Path)
	if !shown {
		n.narrateWait(e)
		return
	}
	switch b := e.Body.(type) {
	case graph.RunStarted:
		if !n.started { // otherwise the run continues after an answer, which is not reported
			n.narrateStart(f)
		}
		n.started = true
	case graph.TaskStarted:
		if !f.talks && (!f.branch || e.Node != fanNode) {
			n.printLine(f.indent, "%s%s (%s)", f.linePrefix(), e.Node, b.Kind)
		}
	case graph.StepCommitted:
		if !f.talks && !f.branch {
			n.narrateMoves(f, b)
		}
	case graph.ValueEmitted:
		if !n.narrateTeam(f, e, b.Value) {
			n.narrateEmission(f, b.Value)
		}
	case graph.RunEnded:
		if b.Result.Status == graph.Done && e.Path == "" {
			n.printLine("", "%s done in %s", f.kindName(), formatElapsed(n.watch.took))
		}
	}
}

// narrateWait reports a wait if no other line does, so that the user knows why the
// run does not continue.
func (n *Narrator) narrateWait(e graph.Event) {
	if sent, ok := e.Body.(graph.ValueEmitted); ok {
		if wait, ok := sent.Value.(agent.RetryScheduled); ok {
			n.printLine("  ", "[%s%s[%s]] %s", e.Path, e.Node, e.Task[strings.LastIndexByte(e.Task, '.')+1:], wait.Text())
		}
	}
}

func (f frame) kindName() string {
	if f.talks {
		return "agent"
	}
	return "graph"
}

func (n *Narrator) narrateStart(f frame) {
	if f.talks {
		n.printLine("", "agent: %s (model: %s)", f.agent.Name, f.agent.modelID(""))
		return
	}
	n.printLine("", "graph: %s (start: %s)", f.agent.File.Name, f.agent.File.Start)
}

// narrateMoves prints where a step leads: one line for each node, or one line for
// several nodes with the same target.
func (n *Narrator) narrateMoves(f frame, b graph.StepCommitted) {
	for _, m := range b.Moves {
		if len(m.To) > 0 && m.To[0] != graph.End && !b.Halted {
			n.printLine(f.indent, "%s%s -> %s", f.linePrefix(), m.From, strings.Join(m.To, ", "))
		}
	}
	if len(b.Dropped) > 0 {
		n.printLine(f.indent, "  %snot run, because the graph has ended: %s", f.linePrefix(), strings.Join(b.Dropped, ", "))
	}
}

func (n *Narrator) narrateEmission(f frame, v any) {
	indent := f.indent + "  " + f.linePrefix()
	switch v := v.(type) {
	case ModelCall:
		model := v.Model
		if v.Active {
			model = "<active>"
		}
		n.printLine(indent, "llm call: model=%s tools=%s", model, cmp.Or(strings.Join(v.Tools, ","), "<none>"))
	case ScriptRun:
		n.printLine(indent, "running script '%s'", v.Script)
	case SearchRequest:
		n.printLine(indent, "rag lookup: node=%s top_k=%s", cmp.Or(v.Node, "<documents>"), topK(v.TopK))
	case KeysMerged:
		n.printLine(indent, "merged: %s", strings.Join(v.Keys, ", "))
	case ScriptNext:
		n.printLine(indent, "script set _next = '%s'", v.Node)
	case ExtractionStarted:
		if v.Repair {
			n.printLine(indent, "structured-output: extractor returned invalid JSON, retrying")
		} else {
			n.printLine(indent, "structured-output: parsing raw output failed, invoking extractor")
		}
	case ChildSpawned:
		n.narrateSpawn(indent, v)
	case agent.Warning:
		if f.talks {
			indent = f.indent + "  " + f.label
		}
		n.printLine(indent, "warning: %s", v.Text)
	case agent.ReplyDone:
		for _, note := range v.Notes() {
			n.printLine(f.indent+"  "+f.label, "%s", wording.CutText(note, maxArgs, "..."))
		}
		if n.Detail && f.talks {
			n.printLine(f.indent+"  "+f.label, "replied: %d tokens in, %d out", v.Usage.Input, v.Usage.Output)
		}
	default:
		n.narrateConversation(f.indent+"  "+f.label, v)
	}
}

// maxArgs is how many characters of the arguments of a call, or of a failure,
// are shown.
const maxArgs = 200

// narrateConversation prints what happens in a conversation with a model.
func (n *Narrator) narrateConversation(indent string, v any) {
	switch v := v.(type) {
	case agent.ToolStarted:
		n.printLine(indent, "tool call: %s %s", v.Name, wording.CutText(string(v.Args), maxArgs, "..."))
	case agent.ToolProgress:
		n.printLine(indent, "tool progress: %s: %s", v.Name, wording.CutText(v.Text, maxArgs, "..."))
	case agent.ToolDone:
		if v.Error {
			n.printLine(indent, "tool failed: %s: %s", v.Name, wording.CutText(v.Text, maxArgs, "..."))
		} else if n.Detail {
			n.printLine(indent, "tool done: %s in %s: %s", v.Name, formatElapsed(v.Took), wording.CutText(v.Text, maxArgs, "..."))
		}
	case agent.RetryScheduled:
		n.printLine(indent, "%s", v.Text())
	case agent.WindowShortened:
		what := "are left out"
		if v.Summary {
			what = "are summarised"
		}
		n.printLine(indent, "the conversation is long: %d earlier messages %s", v.Messages, what)
	case agent.ContinuationSent:
		n.printLine(indent, "📋 Auto-continuing (%d/%d): %d incomplete todo(s) remain", v.Count, v.Max, v.Open)
	}
}

func (n *Narrator) narrateSpawn(indent string, v ChildSpawned) {
	n.printLine(indent, "spawning agent '%s' with prompt:", v.Agent)
	lines := strings.Split(strings.TrimRight(v.Prompt, "\n"), "\n")
	for _, l := range lines[:min(len(lines), promptLines)] {
		n.writeLine(indent + "    " + l)
	}
	if more := len(lines) - promptLines; more > 0 {
		n.writeLine(fmt.Sprintf("%s    ... (%d more lines)", indent, more))
	}
}

func (n *Narrator) printLine(indent, format string, args ...any) {
	n.writeLine("▸ " + indent + fmt.Sprintf(format, args...))
}

// writeLine writes a line. The line may contain text of models, tools and files, so
// terminal control sequences are removed.
func (n *Narrator) writeLine(line string) {
	line = term.CleanLine(line)
	if n.color {
		line = "\x1b[2m" + line + "\x1b[0m"
	}
	_, _ = io.WriteString(n.w, line+"\n")
}

// topK returns the text for a number of chunks, which the base may decide.
func topK(n int) string {
	if n == 0 {
		return "<default>"
	}
	return strconv.Itoa(n)
}

func formatElapsed(d time.Duration) string { return fmt.Sprintf("%.2fs", d.Seconds()) }

// This file prints the events of spawned agents. They run concurrently, so each
// line names its agent.

// agentTally is what a Narrator knows about a spawned agent.
type agentTally struct {
	startedAt time.Duration // on the stopwatch
	calls     int
	tokens    int
}

// memberFrame returns the frame of an agent of a team. What a spawned agent is
// inside follows from its events.
func (f frame) memberFrame(id string) frame {
	f.team = false
	if id == team.Lead {
		return f
	}
	var child *Agent
	if f.agent.spawnSet != nil {
		child = f.agent.spawnSet.agents[team.AgentOf(id)]
	}
	f.agent, f.talks, f.spawned = child, child == nil || child.Config != nil, true
	return f
}

// linePrefix returns the label of a frame whose own nodes are printed and cannot be
// identified by the indentation.
func (f frame) linePrefix() string {
	if f.branch || f.spawned {
		return f.label
	}
	return ""
}

// spawnedAgentID returns the id of the spawned agent to which a path belongs, or "" if
// there is none.
func spawnedAgentID(path string) string {
	for id := range strings.SplitSeq(path, "/") {
		if team.AgentOf(id) != "" {
			return id
		}
	}
	return ""
}

// describeAgent returns a spawned agent's id, with its purpose in a few words.
func (n *Narrator) describeAgent(id string) string {
	return team.AgentOf(id) + " (" + n.withPurpose(id, id) + ")"
}

// withPurpose adds the purpose of the agent to a name in brackets, as far as it
// is known.
func (n *Narrator) withPurpose(name, id string) string {
	if text := n.purposes[id]; text != "" {
		return name + ": " + text
	}
	return name
}

// labelWidth is how many characters of a purpose each line of an agent shows.
const labelWidth = 40

// label returns the start of each line about a path.
func (n *Narrator) label(name, path string) string {
	id := spawnedAgentID(path)
	if text := n.purposes[id]; text != "" {
		name += ": " + wording.CutText(text, labelWidth, "...")
	}
	return "[" + name + "] "
}

// countUsage adds up the cost of spawned agents.
func (n *Narrator) countUsage(e graph.Event) {
	b, ok := e.Body.(graph.ValueEmitted)
	if !ok {
		return
	}
	c := n.agentTallies[spawnedAgentID(e.Path)]
	if c == nil {
		return
	}
	if v, ok := b.Value.(agent.ReplyDone); ok {
		c.calls, c.tokens = c.calls+1, c.tokens+v.Usage.Input+v.Usage.Output
	}
}

// narrateTeam prints an event of a team and reports whether the event is one.
func (n *Narrator) narrateTeam(f frame, e graph.Event, v any) bool {
	f.label = ""
	switch v := v.(type) {
	case team.AgentStarted:
		verb := "started"
		n.purposes[v.ID] = v.Purpose
		if n.agentTallies[v.ID] != nil {
			return true // it continues after an answer, which is not reported
		}
		if v.Resumed {
			verb = "continues"
		}
		if v.Parent != team.Lead {
			verb += ", spawned by " + v.Parent
		}
		if v.Task != "" {
			verb += ", for task " + v.Task
		}
		n.agentTallies[v.ID] = &agentTally{startedAt: n.watch.elapsedAt(e.Time)}
		n.printLine(f.indent, "%s %s", n.describeAgent(v.ID), verb)
	case team.AgentEnded:
		n.printLine(f.indent, "%s %s%s", n.describeAgent(v.ID), v.Status, n.describeCost(e, v))
		delete(n.agentTallies, v.ID)
		delete(n.purposes, v.ID)
	case team.AgentQueued:
		if _, shown := n.purposes[v.ID]; shown { // in an earlier drive
			return true
		}
		n.purposes[v.ID] = v.Purpose
		n.printLine(f.indent, "%s waits for a place", n.describeAgent(v.ID))
	case team.TaskWaiting:
		n.printLine(f.indent, "task %s waits for a place: %s (%s)", v.ID, v.Subject, v.Agent)
	default:
		return false
	}
	return true
}

// describeCost returns what an agent has used, and why it failed.
func (n *Narrator) describeCost(e graph.Event, v team.AgentEnded) string {
	text := ""
	if c := n.agentTallies[v.ID]; c != nil {
		calls := max(c.calls, v.Spent.Calls)
		tokens := max(c.tokens, v.Spent.Usage.Input+v.Spent.Usage.Output)
		text = fmt.Sprintf(" in %s (%s, %d tokens)", formatElapsed(n.watch.elapsedAt(e.Time)-c.startedAt), wording.FormatCount(calls, "model call"), tokens)
	}
	if v.Error != "" {
		text += ": " + wording.CutText(v.Error, maxArgs, "...")
	}
	return text
}
