package conversation

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
)

// A Conversation is a session of an agent with its branches.
type Conversation struct {
	process *app.Process
	agent   string // as the caller named it
	place   app.Place
	graph   bool   // the agent is a graph: there is no session
	thread  string // of the current branch; it may not exist yet
	title   string
	lock    *runs.Lock
	runs    []string // the turns of a graph, in this process
}

// Open continues a conversation of an agent, or starts a new one. If name is empty, the new one gets
// a generated name. Nothing is recorded before the first turn. If another process has the
// conversation open, the error says so; the caller must call Close.
func Open(ctx context.Context, p *app.Process, agent, name string) (*Conversation, error) {
	place, err := p.FindAgent(agent)
	if err != nil {
		return nil, err
	}
	c := &Conversation{
		process: p,
		agent:   agent,
		place:   place,
		graph:   config.IsFile(filepath.Join(place.Dir, "graph.yaml")),
	}
	if c.graph {
		if name == "" {
			return c, nil
		}
		_, err := p.StartRun(app.Request{Agent: agent, Session: name}) // the error in the words of the file format
		if err == nil {
			err = failure.NewUsage("leave the name out", "the agent '%s' is a graph, and graphs have no sessions", place.Name)
		}
		return nil, err
	}
	if name == "" {
		c.thread = runs.NameSession(place.Name, graph.NewID(time.Now()))
		return c, nil
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	c.thread = runs.NameSession(place.Name, name)
	family, err := c.listFamily(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.lockFamily(family); err != nil {
		return nil, err
	}
	if family != nil {
		c.thread = family.newest().Thread
		c.title, _, err = family.readStart(ctx, p)
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// lockFamily keeps other processes from opening the conversation.
func (c *Conversation) lockFamily(f *family) error {
	st, err := c.process.Runs.OpenStore()
	if err != nil {
		return err
	}
	first := c.thread
	if f != nil {
		first = f.root.Thread
	}
	c.lock, err = st.LockRun("conversation/" + first)
	if driven, ok := errors.AsType[*runs.BusyError](err); ok {
		driven.Run = first
		return &failure.Error{Kind: failure.Stale, Err: driven, Next: "close it there, or start another conversation"}
	}
	return err
}

// Close lets other processes open the conversation.
func (c *Conversation) Close() {
	if c.lock != nil {
		c.lock.Release()
		c.lock = nil
	}
}

// Agent returns the agent as the caller of Open named it.
func (c *Conversation) Agent() string { return c.agent }

// Name returns the name of the session, without that of the branch. It is empty for a graph.
func (c *Conversation) Name() string {
	_, name, _ := runs.SessionOf(c.thread)
	name, _ = runs.SplitBranch(name)
	return name
}

// Session returns the session of the current branch, as commands name it.
func (c *Conversation) Session() string {
	_, name, _ := runs.SessionOf(c.thread)
	return name
}

// Family returns what all branches of the conversation share, by which its background commands are known.
func (c *Conversation) Family() string { return runs.FamilyOf(c.thread) }

// IsGraph reports whether the agent is a graph: then there is no session, and no way back.
func (c *Conversation) IsGraph() bool { return c.graph }

// Title returns the name that a person gave to the conversation, or its first message on one line. It is empty before
// the first message.
func (c *Conversation) Title() string {
	if name := c.Name(); name != "" && !isGenerated(name) {
		return name
	}
	return c.title
}

// StartTurn prepares the next turn of the current branch, as [app.Process.StartRun] does. It sets
// Agent and Session of the request.
func (c *Conversation) StartTurn(req app.Request) (*app.Run, error) {
	req.Agent, req.Session, req.Transient = c.agent, c.Session(), true
	if c.thread != "" && c.lock == nil {
		if err := c.lockFamily(nil); err != nil {
			return nil, err
		}
	}
	run, err := c.process.StartRun(req)
	if err != nil {
		return nil, err
	}
	if c.title == "" {
		c.title = titleOf(run.Record.Prompt)
	}
	if c.graph {
		c.runs = append(c.runs, run.ID)
	}
	return run, nil
}

// Compact prepares a run that summarizes the conversation of the current branch, whatever its size: later turns send
// the summary, the last message and the last reply to the model. It is not a turn. The caller drives it like one; a
// warning says if there is nothing to summarize.
func (c *Conversation) Compact(req app.Request) (*app.Run, error) {
	if c.graph {
		return nil, c.errGraph()
	}
	req.Compact = true
	req.Prompt = ""
	return c.StartTurn(req)
}

// OpenTurn returns the run of a turn that a kill, a question or a failure left open, with its
// status, or "" if there is none. The caller continues it with [app.Process.ResumeRun].
func (c *Conversation) OpenTurn(ctx context.Context) (run string, status graph.Status, err error) {
	snap, err := c.inspect(ctx)
	if err != nil {
		return "", graph.Done, err
	}
	run, status = openTurnOf(snap)
	return run, status, nil
}

// openTurnOf is OpenTurn for what the current branch holds.
func openTurnOf(snap *history.Snapshot) (run string, status graph.Status) {
	if snap == nil || snap.Status.Final() {
		return "", graph.Done
	}
	return snap.Run, snap.Status
}

// checkName returns an error for a name that a conversation cannot have.
func checkName(name string) error {
	bad := strings.ContainsFunc(name, func(r rune) bool { return r == '/' || r == '@' || unicode.IsSpace(r) || unicode.IsControl(r) })
	if bad || name == "" || name == "temp" {
		return failure.NewUsage("name it with letters, digits, '-', '_' and '.'", "%q cannot be the name of a conversation", name)
	}
	return nil
}

// isGenerated reports whether a name has the form of those that Open makes, or that it made when ids were shorter.
func isGenerated(name string) bool {
	const length, before = 20, 14
	return (len(name) == length || len(name) == before) && strings.Trim(name, "0123456789abcdefghjkmnpqrstvwxyz") == ""
}

// titleOf returns the first line of a message, at most 80 characters of it.
func titleOf(message string) string {
	const longest = 80
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return wording.CutText(strings.Join(strings.Fields(line), " "), longest, "…")
}
