// Package narrate writes what a run does as lines of text for people and of a log, while it works or from its journal.
package narrate

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
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

// Narrator reports the progress of a run as lines of text for people. Pass it
// all events of [Topics], of one drive or of several drives of one run;
// the times that it prints do not include the time between drives. It is not
// safe for concurrent use.
type Narrator struct {
	Detail bool // also print replies, outcomes of calls, and branches of maps

	w            io.Writer
	agent        *flow.Agent
	color        bool
	started      bool // the first line was printed
	said         updates.Calls
	watch        updates.Stopwatch
	agentTallies map[string]*agentTally // spawned agents by id

	purposes map[string]string // of spawned agents by id
}

// Topics are the events that a Narrator needs.
const Topics = graph.TopicRun | graph.TopicTask | graph.TopicStep | graph.TopicEmit

// New returns a narrator of the agent's runs. If color is true, the lines are dimmed.
func New(w io.Writer, a *flow.Agent, color bool) *Narrator {
	return &Narrator{w: w, agent: a, color: color, agentTallies: map[string]*agentTally{}, purposes: map[string]string{}}
}

// promptLines is how many lines of a child's prompt are shown.
const promptLines = 12

// frame is a part of a run with its own lines: an agent, or the conversation of
// one of its llm nodes.
type frame struct {
	agent   *flow.Agent
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
	child, talks := f.agent.ChildAt(id)
	switch {
	case child != nil:
		f.agent = child
		f.talks = child.Config != nil
	case talks:
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
	n.watch.HandleEvent(e)
	n.countUsage(e)
	said := n.said.HandleEvent(e)
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
		if !f.talks && (!f.branch || !flow.IsMapStep(e.Node)) {
			n.printLine(f.indent, "%s%s (%s)", f.linePrefix(), e.Node, b.Kind)
		}
	case graph.StepCommitted:
		if !f.talks && !f.branch {
			n.narrateMoves(f, b)
		}
	case graph.ValueEmitted:
		if n.narrateTeam(f, e, b.Value) {
			return
		}
		for _, u := range said {
			n.narrateUpdate(f, u)
		}
	case graph.RunEnded:
		if b.Result.Status == graph.Done && e.Path == "" {
			n.printLine("", "%s done in %s", f.kindName(), formatElapsed(n.watch.Took))
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

// agentName returns the name that the file of an agent or of a graph gives it.
func (f frame) agentName() string {
	if f.talks {
		return f.agent.Name
	}
	return f.agent.File.Name
}

func (n *Narrator) narrateStart(f frame) {
	if f.talks {
		n.printLine("", "agent: %s (model: %s)", f.agentName(), f.agent.DefaultModel())
		return
	}
	n.printLine("", "graph: %s (start: %s)", f.agentName(), f.agent.File.Start)
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

// narrateUpdate prints what a model has said or called, or what else a node has emitted.
func (n *Narrator) narrateUpdate(f frame, u updates.RunUpdate) {
	indent := f.indent + "  " + f.label
	switch u := u.(type) {
	case updates.ReplyEnded:
		for _, note := range u.Done.Notes() {
			n.printLine(indent, "%s", wording.CutText(note, maxArgs, "..."))
		}
		if n.Detail && f.talks {
			n.printLine(indent, "replied: %d tokens in, %d out", u.Done.Usage.Input, u.Done.Usage.Output)
		}
	case updates.CallStarted:
		n.printLine(indent, "tool call: %s %s", u.Call.Name, wording.CutText(string(u.Call.Args), maxArgs, "..."))
	case updates.CallEnded:
		if u.Done.Error {
			n.printLine(indent, "tool failed: %s: %s", u.Done.Name, wording.CutText(u.Done.Text, maxArgs, "..."))
		} else if n.Detail {
			n.printLine(indent, "tool done: %s in %s: %s", u.Done.Name, formatElapsed(u.Done.Took), wording.CutText(u.Done.Text, maxArgs, "..."))
		}
	case updates.ValueAdded:
		n.narrateEmission(f, u.Value)
	}
}

func (n *Narrator) narrateEmission(f frame, v any) {
	indent := f.indent + "  " + f.linePrefix()
	switch v := v.(type) {
	case flow.ModelCall:
		model := v.Model
		if v.Active {
			model = "<active>"
		}
		n.printLine(indent, "llm call: model=%s tools=%s", model, cmp.Or(strings.Join(v.Tools, ","), "<none>"))
	case flow.ScriptRun:
		n.printLine(indent, "running script '%s'", v.Script)
	case flow.SearchRequest:
		n.printLine(indent, "rag lookup: node=%s top_k=%s", cmp.Or(v.Node, "<documents>"), topK(v.TopK))
	case flow.KeysMerged:
		n.printLine(indent, "merged: %s", strings.Join(v.Keys, ", "))
	case flow.ScriptNext:
		n.printLine(indent, "script set _next = '%s'", v.Node)
	case flow.ExtractionStarted:
		if v.Repair {
			n.printLine(indent, "structured-output: extractor returned invalid JSON, retrying")
		} else {
			n.printLine(indent, "structured-output: parsing raw output failed, invoking extractor")
		}
	case flow.ChildSpawned:
		n.narrateSpawn(indent, v)
	case agent.Warning:
		if f.talks {
			indent = f.indent + "  " + f.label
		}
		n.printLine(indent, "warning: %s", v.Text)
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
	case agent.ToolProgress:
		n.printLine(indent, "tool progress: %s: %s", v.Name, wording.CutText(v.Text, maxArgs, "..."))
	case agent.RetryScheduled:
		n.printLine(indent, "%s", v.Text())
	case agent.WindowShortened:
		what := "are left out"
		if v.Summary {
			what = "are summarised"
		}
		n.printLine(indent, "the conversation is long: %d earlier messages %s", v.Messages, what)
	case agent.MessageTaken:
		n.printLine(indent, "message: %s", v.Text)
	case agent.ContinuationSent:
		n.printLine(indent, "📋 Auto-continuing (%d/%d): %d incomplete todo(s) remain", v.Count, v.Max, v.Open)
	}
}

func (n *Narrator) narrateSpawn(indent string, v flow.ChildSpawned) {
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
	child := f.agent.Spawnable(team.AgentOf(id))
	f.agent = child
	f.talks = child == nil || child.Config != nil
	f.spawned = true
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
	c := n.agentTallies[spawnedAgentID(e.Path)]
	if c == nil {
		return
	}
	if call, ok := updates.ModelCallOf(e); ok && !call.Summary {
		c.calls++
		c.tokens += call.Usage.Input + call.Usage.Output
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
		n.agentTallies[v.ID] = &agentTally{startedAt: n.watch.ElapsedAt(e.Time)}
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
		text = fmt.Sprintf(" in %s (%s, %d tokens)", formatElapsed(n.watch.ElapsedAt(e.Time)-c.startedAt), wording.FormatCount(calls, "model call"), tokens)
	}
	if v.Error != "" {
		text += ": " + wording.CutText(v.Error, maxArgs, "...")
	}
	return text
}
