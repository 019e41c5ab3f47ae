package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// Turn is one turn of a branch: a message of a person, and what the agent did about it.
type Turn struct {
	Run         string
	Seq         int64               // number of its first record; 0 if its journal is gone
	Prompt      string              // what the person wrote
	Media       []llm.Part          // pictures and documents that were attached to it
	Attached    []attach.Attachment // what they are
	Added       []string            // what the person wrote while the agent worked
	Reply       string
	Interrupted bool // the person stopped it
	Status      graph.Status
	Calls       []Call
	Files       []string // that its tools changed
	Usage       llm.Usage
	Cost        float64 // in US dollars, of the replies whose price is known
	At          time.Time
}

// Call is a call of a tool in a turn.
type Call struct {
	ID   string
	Name string
	Args json.RawMessage
	Done bool // it has an outcome
	OK   bool // the outcome is not an error
}

// entriesOf returns the conversation that a thread holds, or nothing for a thread that does not exist.
func entriesOf(snap *history.Snapshot) ([]agent.Entry, error) {
	if snap == nil {
		return nil, nil
	}
	entries, err := agent.ReadEntries(snap.Values, 0)
	if err != nil {
		return nil, fmt.Errorf("thread %s: %w", snap.Thread, err)
	}
	return entries, nil
}

// Messages returns the conversation of the current branch, without the system prompt.
func (c *Conversation) Messages(ctx context.Context) ([]llm.Message, error) {
	snap, err := c.inspect(ctx)
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(snap)
	return agent.Conversation(entries), err
}

// LastRun returns the id of the newest turn of the current branch; "": there is none, or the agent is a graph.
func (c *Conversation) LastRun(ctx context.Context) (string, error) {
	snap, err := c.inspect(ctx)
	if snap == nil || err != nil {
		return "", err
	}
	return snap.Run, nil
}

// inspect returns what the current branch holds; nil: nothing is recorded.
func (c *Conversation) inspect(ctx context.Context) (*history.Snapshot, error) {
	st, err := c.process.Runs.StoreToRead()
	if st == nil || err != nil || c.thread == "" {
		return nil, err
	}
	snap, err := history.Inspect(ctx, st, c.thread, 0)
	if errors.Is(err, journal.ErrNoThread) {
		return nil, nil
	}
	return snap, err
}

// Turns returns the turns of the current branch, oldest first.
func (c *Conversation) Turns(ctx context.Context) ([]Turn, error) {
	if c.graph {
		return c.graphTurns(ctx)
	}
	r, err := c.readTurns(ctx)
	if err != nil || len(r.turns) == 0 {
		return nil, err
	}
	return r.turns, r.addFiles(ctx)
}

// A reading is the current branch as one operation has read it.
type reading struct {
	talks  *runs.Talks
	state  *history.Snapshot // nil: nothing is recorded
	turns  []Turn            // without the files that they changed
	places []runs.TurnPlace  // of the turns
}

// readTurns reads the current branch. It leaves out runs that a person did not start with a message.
func (c *Conversation) readTurns(ctx context.Context) (*reading, error) {
	r := &reading{}
	st, err := c.process.Runs.StoreToRead()
	if st == nil || err != nil {
		return r, err
	}
	r.talks = st.NewTalks()
	if r.state, err = r.talks.ReadState(ctx, c.thread); err != nil {
		return nil, err
	}
	places, err := r.talks.ListTurns(ctx, c.thread)
	if err != nil {
		return nil, err
	}
	entries, err := entriesOf(r.state)
	if err != nil {
		return nil, err
	}
	said := groupEntries(entries)
	for _, at := range places {
		t := Turn{Run: at.Run, Seq: at.First, At: at.At, Status: at.Status}
		c.addEntries(&t, said[at.Run])
		if t.Prompt != "" || len(said[at.Run]) > 0 || !at.Status.Final() {
			r.turns = append(r.turns, t)
			r.places = append(r.places, at)
		}
	}
	return r, nil
}

// addFiles adds the files that tools changed in the turns. What a run did that was left out belongs to the turn before.
func (r *reading) addFiles(ctx context.Context) error {
	for i, at := range r.places {
		if next := i + 1; next < len(r.places) && r.places[next].Thread == at.Thread {
			at.Last = r.places[next].First - 1
		}
		changes, err := r.talks.ReadChanges(ctx, at)
		if err != nil {
			return err
		}
		for _, f := range changes {
			if !slices.Contains(r.turns[i].Files, f.Path) {
				r.turns[i].Files = append(r.turns[i].Files, f.Path)
			}
		}
	}
	return nil
}

// groupEntries returns the entries of each run. What a person said belongs to the run that answered.
func groupEntries(entries []agent.Entry) map[string][]agent.Entry {
	said := map[string][]agent.Entry{}
	var open []agent.Entry // written before there was a run
	for _, e := range entries {
		if e.Run == "" {
			open = append(open, e)
			continue
		}
		if open != nil {
			said[e.Run] = append(said[e.Run], open...)
			open = nil
		}
		said[e.Run] = append(said[e.Run], e)
	}
	return said
}

// addEntries adds what a run has added to the conversation.
func (c *Conversation) addEntries(t *Turn, entries []agent.Entry) {
	calls := map[string]int{}
	for _, e := range entries {
		switch m := e.Message; {
		case e.Sent != "":
			t.Added = append(t.Added, m.Text())
		case m.Role == llm.RoleUser && e.By == "":
			t.Prompt, t.Media, t.Attached = cmp.Or(e.Said, m.Text()), llm.Media(m.Parts), nil
			for _, p := range t.Media {
				t.Attached = append(t.Attached, attach.Describe(p))
			}
		case m.Role == llm.RoleAssistant && e.Reply != nil:
			t.Usage = t.Usage.Add(e.Reply.Usage)
			cost, _ := c.process.Models.UsageCost(e.Reply.Model, e.Reply.Usage)
			t.Cost += cost
			if t.Interrupted = e.Reply.Stop == agent.StopInterrupted; t.Interrupted && m.Text() == agent.InterruptedText {
				continue
			}
			if text := m.Text(); text != "" {
				t.Reply = text
			}
			for _, call := range m.ToolCalls() {
				calls[call.ID] = len(t.Calls)
				t.Calls = append(t.Calls, Call{ID: call.ID, Name: call.Name, Args: call.Args})
			}
		case m.Role == llm.RoleTool:
			for _, p := range m.Parts {
				r, ok := p.(llm.ToolResult)
				if !ok {
					continue
				}
				if i, known := calls[r.CallID]; known {
					t.Calls[i].Done = true
					t.Calls[i].OK = !r.Error
				}
			}
		}
	}
}

// graphTurns returns the runs of a graph that this process has started.
func (c *Conversation) graphTurns(ctx context.Context) ([]Turn, error) {
	var turns []Turn
	for _, id := range c.runs {
		d, err := c.process.Runs.ReadRunDetail(ctx, id)
		if err != nil {
			continue // it was not driven, or was removed
		}
		t := Turn{Run: id, Status: d.Snapshot.Status, At: d.Started}
		if d.Record != nil {
			t.Prompt = d.Record.Prompt
		}
		t.Reply = outputOf(d.Snapshot)
		turns = append(turns, t)
	}
	return turns, nil
}
