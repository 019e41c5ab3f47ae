package runs

import (
	"encoding/json"
	"fmt"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
	"raddle.dev/team"
)

// A fact is a record of a run with what it holds. It is decoded once, for all parts of a view.
type fact struct {
	history.Entry
	history.Content
	data []byte

	effect graph.EffectID     // of the effect, its intent or its failure; zero for other records
	call   string             // id of the call of a tool that the effect is; "": it is none
	made   *agent.CallOutcome // of such a call
	reply  *flow.Reply        // of a model
	done   agent.ReplyDone    // what its node has emitted for the reply
	asks   []llm.ToolCall     // calls that the reply requests
	search *flow.Search
	hook   *agent.HookRecord
	sent   []agent.SentMessage // that the agent has taken up
	log    *teamLog            // the log of a team with this entry
}

// newFact decodes what the effect of a record has returned. Results that only programs understand stay encoded. With an
// error, the fact has the rest.
func newFact(e history.Entry, c history.Content, data []byte) (f *fact, err error) {
	f = &fact{Entry: e, Content: c, data: data}
	switch e.Kind {
	case journal.KindIntent, journal.KindEffect, journal.KindFailure:
		f.effect = graph.ParseEffectID(e.ID)
		f.call = agent.CallOfEffect(f.effect)
	}
	if e.Kind != journal.KindEffect {
		return f, nil
	}
	switch {
	case f.call != "":
		var made agent.CallOutcome
		made, err = agent.ReadCall(data)
		f.made = &made
	case flow.IsReply(e.ID):
		f.reply = new(flow.Reply)
		*f.reply, f.done, err = flow.ReadReplyDone(data)
		f.asks = f.done.Message.ToolCalls()
	case flow.IsSearch(e.ID):
		f.search = new(flow.Search)
		*f.search, err = flow.ReadSearch(data)
	case f.effect.Name == agent.HookEffect:
		f.hook = new(agent.HookRecord)
		if err = json.Unmarshal(data, f.hook); err != nil {
			err = fmt.Errorf("the recorded answer of a hook: %w", err)
		}
	case f.effect.Name == agent.MessagesEffect:
		if err = json.Unmarshal(data, &f.sent); err != nil {
			err = fmt.Errorf("the recorded messages to the agent: %w", err)
		}
	}
	return f, err
}

// readFact is [newFact] for a record of which only the line is known.
func readFact(e history.Entry, r journal.Record) (*fact, error) {
	c, err := history.DecodeContent(r)
	if err != nil {
		return nil, err
	}
	return newFact(e, c, r.Data)
}

// tool returns the name of the tool that the effect calls; "": it is no call of a tool.
func (f *fact) tool() string {
	name, ok := agent.ToolOfEffect(f.effect.Name)
	if !ok {
		return ""
	}
	return name
}

// A course is what the parts of a view know together of where a run is.
type course struct {
	next      map[string][]string // nodes that run next, by the path of their frame
	front     frontier
	teams     teamLogs
	calls     *callLog
	questions map[string]*graph.Question // the newest of a frame and a key
}

func newCourse() *course {
	return &course{
		next:      map[string][]string{},
		front:     frontier{},
		calls:     newCallLog(),
		questions: map[string]*graph.Question{},
	}
}

// beginFact adds what a record says about itself, before the parts use it.
func (c *course) beginFact(f *fact) {
	if f.Kind == journal.KindEffect && team.IsLog(f.ID) {
		f.log = c.teams.add(f.Entry, f.data)
	}
	c.front.addEntry(f.Entry)
	if f.Question != nil {
		c.questions[f.Path+f.Asked] = f.Question
	}
}

// endFact adds what a record changes for those that follow it.
func (c *course) endFact(f *fact) {
	c.calls.addFact(f)
	if f.IsCheckpoint() || f.Kind == journal.KindSnapshot {
		c.next[f.Path] = f.Next
	}
}

// findQuestion returns the question that an answer belongs to; nil: it is not among the records.
func (c *course) findQuestion(answer *fact) *graph.Question {
	return c.questions[answer.Path+answer.Asked]
}

// parts are what a view says of the records of a run, part by part. They are fed the records, oldest first, and can be
// read after each.
type parts struct {
	*course
	path     visits
	story    *storyBuilder
	tree     *treeBuilder
	searches []flow.Search
}

func newParts() *parts {
	c := newCourse()
	return &parts{
		course:   c,
		story:    newStoryBuilder(c),
		tree:     newTreeBuilder(c),
		searches: []flow.Search{},
	}
}

// addFact adds a record.
func (p *parts) addFact(f *fact) {
	p.beginFact(f)
	if f.search != nil {
		p.searches = append(p.searches, *f.search)
	}
	p.path.addEntry(&f.Entry)
	p.story.addFact(f)
	p.tree.addFact(f)
	p.endFact(f)
}
