package runs

import (
	"context"
	"encoding/json"
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
	Took   time.Duration  // of an effect whose start is recorded, otherwise 0
	Effect string         // name of an effect
	Reply  *flow.Reply    // of a model
	Asks   []llm.ToolCall // the calls that a reply requests
	Call   *ToolCall      // of a tool, with its outcome
	Search *flow.Search
	Hook   *agent.HookRecord // what a hook has said

	// Failure is why the node, agent, item or call that it is about has failed, although the run continued; "": it has not. FailedNodes are
	// the paths of the nodes and agents that have failed, and FailedTasks the tasks of queues.
	Failure     string
	FailedNodes []string
	FailedTasks []team.Task

	Reasoning string // of a model before its reply, as far as its provider shows it
	Output    string // of a script
}

// ReadStory returns what happened in a run, oldest first: of a session only what belongs to the run. It
// leaves out records that say nothing to people, such as the start of an effect whose result is recorded.
// at is the last record that counts (0: the newest).
func (a *Archive) ReadStory(ctx context.Context, id string, at int64) ([]Moment, error) {
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return nil, err
	}
	if at > 0 {
		found.last = at
	}
	b := newStoryBuilder()
	if err := st.readRecords(ctx, found, func(history.Entry) bool { return true }, b.addRecord); err != nil {
		return nil, err
	}
	return b.finishStory(), nil
}

// scriptEffect is the name of the effect of a script node.
const scriptEffect = "script"

// conversationStart is the first node of the agent of a config.yaml.
const conversationStart = "begin"

// A storyBuilder makes moments of records, oldest first.
type storyBuilder struct {
	moments []Moment
	next    map[string][]string     // nodes that run next, by the path of their frame
	open    map[string]int          // indexes of intents without a result, by path and id
	calls   map[string]llm.ToolCall // requested calls, by path and id
	talks   map[string]bool         // frames of conversations
	teams   teamLogs
	front   frontier
	ended   map[string]bool // agents and tasks of teams whose failure was added
}

func newStoryBuilder() *storyBuilder {
	return &storyBuilder{next: map[string][]string{}, open: map[string]int{}, calls: map[string]llm.ToolCall{}, talks: map[string]bool{}, front: frontier{}, ended: map[string]bool{}}
}

// addRecord adds a record.
func (b *storyBuilder) addRecord(e history.Entry, r journal.Record) (err error) {
	m := Moment{Entry: e, Node: publicPath(e.Path)}
	if m.Content, err = history.DecodeContent(r); err != nil {
		return err
	}
	b.front.addEntry(e)
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
		if m.Failure = e.Failed; m.Failure != "" && len(m.From) == 1 { // of several, the records of their tasks say which
			m.FailedNodes = []string{joinNode(m.Node, m.From[0])}
		}
	case journal.KindTask:
		m.Node = publicPath(e.Path + e.What + "/")
		if m.Failure = m.Handled; m.Failure != "" {
			m.FailedNodes = []string{m.Node}
		}
	case journal.KindQuestion:
		m.Node, _, _ = strings.Cut(m.Question.ID, "#")
	case journal.KindAnswer:
		if m.Question = b.findQuestion(&m); m.Question != nil {
			m.Node, _, _ = strings.Cut(m.Question.ID, "#")
			if m.Failure = m.Refused; m.Question.Kind == graph.KindRemote && m.Failure != "" {
				m.FailedNodes = []string{m.Node}
			}
		}
	case journal.KindIntent, journal.KindEffect, journal.KindFailure:
		if team.IsLog(e.ID) {
			b.addTeamLog(m, r.Data)
			return nil
		}
		return b.addEffect(m, r.Data)
	}
	switch e.Kind {
	case journal.KindStart, journal.KindCall, journal.KindStep, journal.KindEdit, journal.KindFork, journal.KindSnapshot:
		b.next[e.Path] = e.Next
	}
	b.moments = append(b.moments, m)
	return nil
}

// findQuestion returns the question that an answer belongs to.
func (b *storyBuilder) findQuestion(answer *Moment) *graph.Question {
	for _, m := range slices.Backward(b.moments) {
		if m.Kind == journal.KindQuestion && m.Path == answer.Path && m.Asked == answer.Asked {
			return m.Question
		}
	}
	return nil
}

// addEffect adds an intent, a result or a failure. A result replaces its intent.
func (b *storyBuilder) addEffect(m Moment, data []byte) error {
	key := m.Path + m.ID
	m.Effect = effectOf(m.ID)
	talk := flow.IsTalk(m.ID) || toolKey(m.ID) != ""
	if !talk {
		m.Node = nodeOf(m.Entry)
	} else if flow.IsTalk(m.ID) {
		b.talks[m.Path] = true
	}
	if err := b.readEffect(&m, data); err != nil {
		return err
	}
	if flow.IsFailure(m.ID) {
		m.Failure, m.FailedNodes = flow.ReadFailure(data), []string{m.Node}
		if n := len(b.moments) - 1; n >= 0 && b.moments[n].Kind == journal.KindFailure && b.moments[n].Node == m.Node {
			m.Took, b.moments[n].Seq = b.moments[n].Took, 0 // this says it all
		}
	}
	if i, ok := b.open[key]; ok {
		if m.Kind == journal.KindIntent { // a note about the same effect
			return nil
		}
		if began := b.moments[i]; m.Time.After(began.Time) {
			m.Took = m.Time.Sub(began.Time)
		}
		b.moments[i].Seq = 0 // the result says it all
		delete(b.open, key)
	} else if m.Kind == journal.KindIntent {
		b.open[key] = len(b.moments)
	}
	b.moments = append(b.moments, m)
	return nil
}

// listFailed returns the paths of the nodes with which a drive has failed. Those that wait for an answer have not failed.
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
func (b *storyBuilder) addTeamLog(m Moment, data []byte) {
	l := b.teams.add(m.Entry, data)
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

// agentEffect is the name of the effect of a moment that is about an agent of a team, and failedInTeam the status of one that failed.
const (
	agentEffect  = "agent"
	failedInTeam = "failed"
)

// effectOf returns the name of an effect by its id.
func effectOf(id string) string {
	if parts := strings.Split(id, "\x00"); len(parts) > 1 {
		return parts[1]
	}
	return ""
}

// readEffect reads the result of an effect.
func (b *storyBuilder) readEffect(m *Moment, data []byte) error {
	if id := toolKey(m.ID); id != "" {
		call := ToolCall{Path: m.Path, ID: id, Tool: strings.TrimPrefix(m.Effect, toolEffect), Status: callUnrecorded}
		if c, ok := b.calls[m.Path+id]; ok {
			call.Tool, call.Args = c.Name, c.Args
		}
		m.Call = &call
		if m.Kind != journal.KindEffect {
			return nil
		}
		made, err := agent.ReadCall(data)
		if err != nil {
			return err
		}
		if call.addTry(&made); call.Status == callFailed {
			m.Failure = call.Outcome
		}
		return nil
	}
	switch {
	case m.Kind != journal.KindEffect:
	case flow.IsReply(m.ID):
		r, err := flow.ReadReply(data)
		if err != nil {
			return err
		}
		m.Reply = &r
		var talk struct {
			Message llm.Message `json:"message"`
		}
		if json.Unmarshal(data, &talk) == nil {
			for _, part := range talk.Message.Parts {
				if r, ok := part.(llm.Reasoning); ok {
					m.Reasoning += r.Text
				}
			}
			for _, c := range talk.Message.ToolCalls() {
				b.calls[m.Path+c.ID] = c
				m.Asks = append(m.Asks, c)
			}
		}
	case flow.IsSearch(m.ID):
		s, err := flow.ReadSearch(data)
		if err != nil {
			return err
		}
		m.Search = &s
	case m.Effect == agent.HookEffect:
		m.Hook = new(agent.HookRecord)
		return json.Unmarshal(data, m.Hook)
	case m.Effect == scriptEffect:
		m.Output = string(data)
	}
	return nil
}

// finishStory returns the moments without the intents that have a result, and marks the steps of conversations.
func (b *storyBuilder) finishStory() []Moment {
	for path := range b.talks { // a team's lead talks in a frame below that of the agent
		if above, lead := strings.CutSuffix(path, "#"+team.Lead+"/"); lead {
			b.talks[above[:strings.LastIndexByte(above, '/')+1]] = true
		}
	}
	list := slices.DeleteFunc(b.moments, func(m Moment) bool { return m.Seq == 0 })
	for i := range list {
		list[i].Inner = b.talks[list[i].Path] && slices.Contains([]journal.Kind{journal.KindStart, journal.KindClaim, journal.KindCall, journal.KindStep, journal.KindTask}, list[i].Kind)
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
