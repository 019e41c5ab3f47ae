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

// turnRef is the place of a turn in the journals.
type turnRef struct {
	run    string
	thread string
	start  int64 // number of its first record
	end    int64 // number of its last record
	at     time.Time
	status graph.Status
}

// listTurnRefs returns the turns of a branch, oldest first. It continues in the branches that this
// one was forked from, as long as they exist.
func listTurnRefs(ctx context.Context, st *runs.Store, thread string) (list []turnRef, err error) {
	upTo := int64(0)
	seen := map[string]bool{}
	for thread != "" && !seen[thread] {
		seen[thread] = true
		var origin journal.Point
		next := turnRef{thread: thread, status: graph.Crashed}
		for e, err := range history.Entries(ctx, st, thread) {
			if err != nil {
				return nil, err
			}
			switch {
			case upTo > 0 && e.Seq > upTo:
				if e.Kind == journal.KindStart {
					next = turnRef{thread: thread, status: graph.Crashed}
				}
				continue
			case next.end == 0:
				next.end = e.Seq
			}
			switch e.Kind {
			case journal.KindEnd:
				if next.status == graph.Crashed {
					next.status = statusOf(e.What)
				}
			case journal.KindStart:
				next.run = e.What
				next.start = e.Seq
				next.at = e.Time
				if upTo == 0 || next.status.Final() { // a fork at the start of a turn does not have it
					list = append(list, next)
				}
				next = turnRef{thread: thread, status: graph.Crashed}
			case journal.KindFork:
				origin = e.From
			}
		}
		thread = origin.Thread
		upTo = origin.Seq
	}
	slices.Reverse(list)
	return list, nil
}

// readEntries returns the conversation of a thread as its journal holds it, or nothing for a thread that does not
// exist.
func readEntries(ctx context.Context, st *runs.Store, thread string) ([]agent.Entry, error) {
	snap, err := history.Inspect(ctx, st, thread, 0)
	if errors.Is(err, journal.ErrNoThread) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := agent.ReadEntries(snap.Values, 0)
	if err != nil {
		return nil, fmt.Errorf("thread %s: %w", thread, err)
	}
	return entries, nil
}

// Messages returns the conversation of the current branch, without the system prompt.
func (c *Conversation) Messages(ctx context.Context) ([]llm.Message, error) {
	st, err := c.process.Runs.StoreToRead()
	if st == nil || err != nil || c.thread == "" {
		return nil, err
	}
	entries, err := readEntries(ctx, st, c.thread)
	return agent.Conversation(entries), err
}

// Turns returns the turns of the current branch, oldest first.
func (c *Conversation) Turns(ctx context.Context) ([]Turn, error) {
	if c.graph {
		return c.graphTurns(ctx)
	}
	st, turns, refs, err := c.readTurns(ctx)
	if err != nil || len(turns) == 0 {
		return nil, err
	}
	return turns, addFiles(ctx, st, turns, refs)
}

// readTurns returns the turns of the current branch without the files that they changed, and their places. It
// leaves out runs that a person did not start with a message.
func (c *Conversation) readTurns(ctx context.Context) (*runs.Store, []Turn, []turnRef, error) {
	st, err := c.process.Runs.StoreToRead()
	if st == nil || err != nil {
		return nil, nil, nil, err
	}
	all, err := listTurnRefs(ctx, st, c.thread)
	if err != nil {
		return nil, nil, nil, err
	}
	entries, err := readEntries(ctx, st, c.thread)
	if err != nil {
		return nil, nil, nil, err
	}
	said := groupEntries(entries)
	var turns []Turn
	var refs []turnRef
	for _, r := range all {
		t := Turn{Run: r.run, Seq: r.start, At: r.at, Status: r.status}
		c.addEntries(&t, said[r.run])
		if t.Prompt != "" || len(said[r.run]) > 0 || !r.status.Final() {
			turns = append(turns, t)
			refs = append(refs, r)
		}
	}
	return st, turns, refs, nil
}

// addFiles adds the files that tools changed in turns.
func addFiles(ctx context.Context, st *runs.Store, turns []Turn, refs []turnRef) error {
	for from := 0; from < len(refs); {
		to := from
		for to+1 < len(refs) && refs[to+1].thread == refs[from].thread {
			to++
		}
		list, err := st.ReadChanges(ctx, refs[from].thread, refs[from].start, refs[to].end)
		if err != nil {
			return err
		}
		for _, made := range list {
			i := from
			for i < to && made.Seq >= refs[i+1].start {
				i++
			}
			for _, f := range made.Changes {
				if !slices.Contains(turns[i].Files, f.Path) {
					turns[i].Files = append(turns[i].Files, f.Path)
				}
			}
		}
		from = to + 1
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
