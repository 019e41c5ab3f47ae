package runs

import (
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// A Moment is one thing that happened in a run: a record of its journal with its content.
type Moment struct {
	history.Entry
	history.Content
	Node   string         // path of the node or agent that it belongs to; "": the run
	From   []string       // for a step: the nodes that ran
	Inner  bool           // for a start, step or task of a conversation, whose nodes and keys are raddle's own
	Took   time.Duration  // of an effect; 0: it is not known
	Effect string         // name of an effect
	Reply  *flow.Reply    // of a model
	Asks   []llm.ToolCall // the calls that a reply requests
	Call   *ToolCall      // of a tool, with its outcome
	Search *flow.Search
	Hook   *agent.HookRecord   // what a hook has said
	Sent   []agent.SentMessage // what people have said to an agent while it worked

	// Failure is why the node, agent, item or call that it is about has failed, although the run continued; "": it has
	// not. FailedNodes are the paths of the nodes and agents that have failed, and FailedTasks the tasks of queues.
	Failure     string
	FailedNodes []string
	FailedTasks []team.Task
	Tried       string // name of the effect with which a node has failed that handles it

	Reasoning string // of a model before its reply, as far as its provider shows it
	Output    string // of a script
}

// scriptEffect is the name of the effect of a script node.
const scriptEffect = "script"

// conversationStart is the first node of the agent of a config.yaml.
const conversationStart = "begin"

// A storyBuilder makes moments of records, oldest first.
type storyBuilder struct {
	*course
	moments []Moment
	open    map[string]int  // indexes of intents without a result, by path and id
	talks   map[string]bool // frames of conversations
	ended   map[string]bool // agents and tasks of teams whose failure was added
}

func newStoryBuilder(c *course) *storyBuilder {
	return &storyBuilder{
		course: c,
		open:   map[string]int{},
		talks:  map[string]bool{},
		ended:  map[string]bool{},
	}
}

// addFact adds a record.
func (b *storyBuilder) addFact(f *fact) {
	e := f.Entry
	m := Moment{Entry: e, Content: f.Content, Node: publicPath(e.Path)}
	switch e.Kind {
	case journal.KindEnd:
		if m.What == graph.Failed.String() {
			m.Failure, m.FailedNodes = m.Reason, listFailed(b.front, m.Open)
		}
	case journal.KindStep:
		m.From = b.next[e.Path]
		if len(m.From) == 1 && m.From[0] == conversationStart && len(e.Next) == 1 && (e.Next[0] == agent.NodeThink || e.Next[0] == team.Node) {
			b.talks[e.Path] = true
		}
		// of several, the records of their tasks say which
		if m.Failure = taskReason(e.Failed); m.Failure != "" && len(m.From) == 1 {
			m.FailedNodes = []string{joinNode(m.Node, m.From[0])}
		}
	case journal.KindTask:
		m.Node = publicPath(e.Path + e.What + "/")
		if m.Failure = taskReason(m.Handled); m.Failure != "" {
			m.FailedNodes = []string{m.Node}
		}
	case journal.KindQuestion:
		m.Node, _, _ = strings.Cut(m.Question.ID, "#")
	case journal.KindAnswer:
		if m.Question = b.findQuestion(f); m.Question != nil {
			m.Node, _, _ = strings.Cut(m.Question.ID, "#")
			if m.Failure = m.Refused; m.Question.Kind == graph.KindRemote && m.Failure != "" {
				m.FailedNodes = []string{m.Node}
			}
		}
	case journal.KindIntent, journal.KindEffect, journal.KindFailure:
		switch {
		case f.log != nil:
			b.addTeamLog(m, f.log)
		case !team.IsLog(e.ID):
			b.addEffect(m, f)
		}
		return
	}
	b.moments = append(b.moments, m)
}

// taskReason returns why a task has failed, in words for people and without the task: its moment names it.
func taskReason(handled string) string {
	reason := flow.PlainReason(handled)
	if _, after, ok := strings.Cut(reason, "': "); ok && strings.HasPrefix(reason, "at node '") {
		return after
	}
	return reason
}

// addEffect adds an intent, a result or a failure. A result replaces its intent.
func (b *storyBuilder) addEffect(m Moment, f *fact) {
	key := m.Path + m.ID
	m.Effect = f.effect.Name
	m.Took = m.Timing.Took
	if !flow.IsTalk(m.ID) && f.call == "" {
		m.Node = nodeOf(m.Entry)
	} else if flow.IsTalk(m.ID) {
		b.talks[m.Path] = true
	}
	b.addOutcome(&m, f)
	if flow.IsFailure(m.ID) {
		m.Failure = flow.PlainReason(flow.ReadFailure(f.data))
		m.FailedNodes = []string{m.Node}
		if n := len(b.moments) - 1; n >= 0 && b.moments[n].Kind == journal.KindFailure && b.moments[n].Node == m.Node {
			m.Took = b.moments[n].Took
			m.Tried = b.moments[n].Effect
			b.moments[n].Seq = 0 // this says it all
		}
	}
	if i, ok := b.open[key]; ok {
		if m.Kind == journal.KindIntent { // a note about the same effect
			return
		}
		if began := b.moments[i]; m.Took == 0 && m.Time.After(began.Time) {
			m.Took = m.Time.Sub(began.Time)
		}
		b.moments[i].Seq = 0 // the result says it all
		delete(b.open, key)
	} else if m.Kind == journal.KindIntent {
		b.open[key] = len(b.moments)
	}
	b.moments = append(b.moments, m)
}

// listFailed returns the paths of the nodes with which a drive has failed. Those that wait for an answer have not
// failed.
func listFailed(f frontier, questions []string) (nodes []string) {
	for _, task := range f.listOpen() {
		node := publicPath(task)
		waits := slices.ContainsFunc(questions, func(id string) bool {
			return id == node || strings.HasPrefix(id, node+"/") || strings.HasPrefix(id, node+"#")
		})
		if !waits && node != "" {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// joinNode puts a node after the path of its frame.
func joinNode(frame, node string) string { return strings.TrimPrefix(frame+"/"+node, "/") }

// addTeamLog adds a moment for an entry of a team's log with which an agent or a task has failed.
func (b *storyBuilder) addTeamLog(m Moment, l *teamLog) {
	for i := range l.past.Agents {
		if a := &l.past.Agents[i]; a.Status == failedInTeam && !b.ended[l.task+a.ID] {
			b.ended[l.task+a.ID] = true
			m.Effect, m.Node, m.Failure = agentEffect, l.agentPath(a.ID), a.Error
			m.FailedNodes = append(m.FailedNodes, m.Node)
		}
	}
	for _, t := range l.past.Tasks {
		if key := l.task + t.Parent + "#" + t.ID; t.Status == failedInTeam && !b.ended[key] {
			b.ended[key] = true
			m.FailedTasks = append(m.FailedTasks, t)
			if m.FailedNodes == nil {
				m.Effect, m.Node, m.Failure = agentEffect, l.agentPath(t.Parent), "task "+t.ID+" ("+t.Subject+") failed"
			}
		}
	}
	if m.Failure != "" || m.FailedNodes != nil {
		b.moments = append(b.moments, m)
	}
}

// agentEffect is the name of the effect of a moment that is about an agent of a team, and failedInTeam the status of
// one that failed.
const (
	agentEffect  = "agent"
	failedInTeam = "failed"
)

// addOutcome adds what an effect has returned.
func (b *storyBuilder) addOutcome(m *Moment, f *fact) {
	if f.call != "" {
		call := ToolCall{Path: m.Path, ID: f.call, Tool: f.tool(), Status: callUnrecorded}
		if c := b.calls.findCall(f); c != nil {
			call.Tool = c.Tool
			call.Args = c.Args
		}
		m.Call = &call
		if f.made == nil {
			return
		}
		if call.addTry(f.made); call.Status == callFailed {
			m.Failure = call.Outcome
		}
		return
	}
	m.Reply = f.reply
	m.Search = f.search
	m.Hook = f.hook
	m.Sent = f.sent
	for _, part := range f.done.Message.Parts {
		if r, ok := part.(llm.Reasoning); ok {
			m.Reasoning += r.Text
		}
	}
	m.Asks = slices.Clone(f.asks)
	if m.Kind == journal.KindEffect && m.Effect == scriptEffect {
		m.Output = string(f.data)
	}
}

// listMoments returns the moments without the intents that have a result, and marks the steps of conversations.
func (b *storyBuilder) listMoments() []Moment {
	for path := range b.talks { // a team's lead talks in a frame below that of the agent
		if above, lead := strings.CutSuffix(path, "#"+team.Lead+"/"); lead {
			b.talks[above[:strings.LastIndexByte(above, '/')+1]] = true
		}
	}
	ofFrames := []journal.Kind{journal.KindStart, journal.KindClaim, journal.KindCall, journal.KindStep, journal.KindTask}
	var list []Moment
	for _, m := range b.moments {
		if m.Seq == 0 {
			continue
		}
		m.Inner = b.talks[m.Path] && slices.Contains(ofFrames, m.Kind)
		list = append(list, m)
	}
	return list
}

// WasInterrupted reports whether a person interrupted the newest turn of a conversation.
func (d *Detail) WasInterrupted() bool {
	entries, err := agent.ReadEntries(d.Snapshot.Values, interruptedParts)
	return err == nil && agent.EndsInterrupted(entries)
}

// interruptedParts is the number of writes that hold the end of a turn.
const interruptedParts = 2

// Talks reports whether a run is a conversation of one model with its tools: its state is the conversation.
func (d *Detail) Talks() bool {
	return slices.ContainsFunc(d.Snapshot.Values, func(v history.StoredValue) bool { return v.Key == agent.Messages.Name() })
}
