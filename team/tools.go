package team

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// args contains the arguments of all tools of this package.
type args struct {
	Agent        text  `json:"agent"`
	Prompt       text  `json:"prompt"`
	ID           text  `json:"id"`
	IDs          texts `json:"ids"`
	Any          flag  `json:"any"`
	Wait         text  `json:"wait_seconds"`
	To           text  `json:"to"` // another name for id
	Subject      text  `json:"subject"`
	Description  text  `json:"description"`
	BlockedBy    texts `json:"blocked_by"`
	TaskID       text  `json:"task_id"`
	EscalationID text  `json:"escalation_id"`
	Reply        text  `json:"reply"`
	Message      text  `json:"message"`
}

// text is a text. It also accepts other values that models write instead of
// one.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = text(s)
	} else if v := string(b); v != "null" {
		*t = text(v)
	}
	return nil
}

// flag is a boolean. It also accepts a text or a number.
type flag bool

func (f *flag) UnmarshalJSON(b []byte) error {
	on, err := strconv.ParseBool(strings.TrimSpace(strings.Trim(string(b), `"`)))
	*f = flag(err == nil && on)
	return nil
}

// texts is a list of texts. It also accepts a single text, and a text that
// contains a list.
type texts []string

func (t *texts) UnmarshalJSON(b []byte) error {
	var list []text
	var one string
	switch {
	case json.Unmarshal(b, &list) == nil:
	case json.Unmarshal(b, &one) != nil || strings.TrimSpace(one) == "":
	case json.Unmarshal([]byte(one), &list) == nil:
	default:
		list = []text{text(one)}
	}
	*t = nil
	for _, x := range list {
		*t = append(*t, string(x))
	}
	return nil
}

// A teamTool is a tool that works on the state.
type teamTool struct {
	name, doc string
	params    string   // the properties of its schema
	required  []string // of them
	shared    bool     // calls of one reply run concurrently
	mail      bool     // every agent has it; if not set, only agents that may spawn have it
	run       func(ctx context.Context, h agentHandle, c tool.Call, a args) (tool.Result, error)
}

const (
	idParam   = `"id":{"type":"string","description":"The id of the agent"}`
	taskParam = `"task_id":{"type":"string","description":"The id of the task"}`
)

var teamTools = []teamTool{
	{name: "agent__spawn", required: []string{"agent", "prompt"}, run: changeTool(opSpawn),
		doc: "Start an agent that works while you continue. Returns its id at once; get its output with agent__collect. When as many agents run as may, it waits for a place.",
		params: `"agent":{"type":"string","description":"The name of the agent"},"prompt":{"type":"string","description":"What it is to do, with all it needs to know"},` +
			`"task_id":{"type":"string","description":"Ignored"}`},
	{name: "agent__check", required: []string{"id"}, params: idParam, run: checkAgent,
		doc: "Look whether an agent is done, without waiting. When it is, its output is handed over, once."},
	{name: collectTool, shared: true, run: collectAgents,
		doc: "Wait until an agent is done and get its output, once. Takes one id, or several ids: it waits for all of them, or with any until at least one is done. Returns early when an agent waits for your reply.",
		params: idParam + `,"ids":{"type":"array","items":{"type":"string"},"description":"The ids of several agents, in place of id"},` +
			`"any":{"type":"boolean","description":"Return as soon as one of them is done, with all that are; without ids, of all that you have started and not collected"}`},
	{name: "agent__list", run: listAgents, doc: "List the agents that you have started and not collected."},
	{name: "agent__list_available", run: listAvailable, doc: "List the agents that you can start, with what they are for."},
	{name: "agent__cancel", required: []string{"id"}, params: idParam, run: changeTool(opCancel), doc: "Stop an agent, and all that it has started. Its output is lost."},
	{name: "agent__task_create", required: []string{"subject"}, run: createTask,
		doc: "Put a task into your queue. With an agent and a prompt it is started as soon as nothing blocks it and there is a free place.",
		params: `"subject":{"type":"string","description":"A short title"},"description":{"type":"string","description":"Details"},` +
			`"blocked_by":{"type":"array","items":{"type":"string"},"description":"Ids of tasks that must be completed first"},` +
			`"agent":{"type":"string","description":"The agent that does it"},"prompt":{"type":"string","description":"What the agent is to do; required with agent"}`},
	{name: "agent__task_list", run: listTasks, doc: "List the tasks of your queue."},
	{name: "agent__task_complete", required: []string{"task_id"}, params: taskParam, run: changeTool(opComplete),
		doc: "Mark a task as completed. Tasks with an agent are completed when their agent is."},
	{name: "agent__task_fail", required: []string{"task_id"}, params: taskParam, run: changeTool(opFail), doc: "Mark a task as failed. What depends on it stays blocked."},
	{name: "agent__reply_escalation", required: []string{"escalation_id", "reply"}, run: changeTool(opReply), doc: "Answer the question of an agent that waits for your reply.",
		params: `"escalation_id":{"type":"string","description":"The id of the question"},"reply":{"type":"string","description":"The answer"}`},
	{name: "agent__send_message", mail: true, required: []string{"id", "message"}, run: changeTool(opSend),
		doc:    "Send a message to an agent that you have started, to one that works at the same time, or, with the id parent, to the one that has started you.",
		params: idParam + `,"message":{"type":"string","description":"The text"}`},
	{name: "agent__check_inbox", mail: true, run: checkInbox,
		doc:    "Take the messages out of your inbox. With wait_seconds, wait for one first; returns early when an agent waits for your reply, or when no agent runs that may write.",
		params: `"wait_seconds":{"type":"number","description":"How long to wait for a message, at most 300; 0: not at all"}`},
}

// Tools returns the tools of an agent of a team. spawns says whether the agent
// may spawn others. Outside of a team the tools fail.
func Tools(spawns bool) (list []tool.Tool) {
	for i := range teamTools {
		if t := &teamTools[i]; t.mail || spawns {
			list = append(list, tool.Tool{Name: t.name, Description: t.doc, Schema: t.argsSchema(), Effect: tool.Idempotent, Parallel: t.shared, Polls: true, Touches: noTouch, Run: t.runCall})
		}
	}
	return list
}

// noTouch says that the tools touch nothing outside of the run: the calls of
// the agents themselves need their own permission.
func noTouch(json.RawMessage) (tool.Touch, error) { return tool.Touch{}, nil }

func (t *teamTool) argsSchema() json.RawMessage {
	required := ""
	if len(t.required) > 0 {
		b, _ := json.Marshal(t.required)
		required = `,"required":` + string(b)
	}
	return json.RawMessage(`{"type":"object","properties":{` + t.params + `}` + required + `}`)
}

// runCall runs the tool for the agent that ctx belongs to.
func (t *teamTool) runCall(ctx context.Context, c tool.Call) (tool.Result, error) {
	h, ok := handleOf(ctx)
	if !ok && t.name == "agent__spawn" {
		return tool.FailedResult(toolFailed + "No supervisor active; Agent spawning not enabled"), nil
	}
	if !ok {
		return tool.FailedResult(toolFailed + "No supervisor active"), nil
	}
	var a args
	if err := json.Unmarshal(c.Args, &a); err != nil {
		return tool.FailedResult(toolFailed+"%v", err), nil
	}
	a.ID = cmp.Or(a.ID, a.To)
	given := map[string]text{"agent": a.Agent, "prompt": a.Prompt, "id": a.ID, "subject": a.Subject, "task_id": a.TaskID,
		"escalation_id": a.EscalationID, "reply": a.Reply, "message": a.Message}
	for _, name := range t.required {
		if strings.TrimSpace(string(given[name])) == "" {
			return tool.FailedResult(toolFailed+"'%s' is required", name), nil
		}
	}
	return t.run(ctx, h, c, a)
}

// changeTool returns the function of a tool that makes one entry and returns its
// result.
func changeTool(o op) func(context.Context, agentHandle, tool.Call, args) (tool.Result, error) {
	return func(_ context.Context, h agentHandle, c tool.Call, a args) (tool.Result, error) {
		e := entry{Op: o, Key: c.Key, By: h.id, ID: string(a.ID)}
		switch o {
		case opSpawn:
			e.Agent = string(a.Agent)
			e.Text = string(a.Prompt)
		case opComplete, opFail:
			e.ID = taskID(string(a.TaskID))
		case opReply:
			e.ID = string(a.EscalationID)
			e.Text = string(a.Reply)
		case opSend:
			e.Text = string(a.Message)
		}
		return h.changeResult(e)
	}
}

// changeResult makes a change and returns its outcome for the model.
func (h agentHandle) changeResult(e entry) (tool.Result, error) {
	out, err := h.changeState(e)
	if err != nil {
		return tool.Result{}, err
	}
	return formatOutcome(out), nil
}

// toolFailed starts the message about a call that could not be processed.
const toolFailed = "Supervisor tool failed: "

// formatOutcome returns an outcome in the form in which a model sees it.
func formatOutcome(out outcome) tool.Result {
	p, bad := out.result.(errorResult)
	if strings.HasPrefix(p.Message, toolFailed) {
		return tool.FailedResult("%s", p.Message)
	}
	r := tool.JSONResult(out.result)
	r.Error = bad && out.refused
	return r
}

func createTask(_ context.Context, h agentHandle, c tool.Call, a args) (tool.Result, error) {
	if a.Agent != "" && strings.TrimSpace(string(a.Prompt)) == "" {
		return tool.FailedResult(toolFailed + "'prompt' is required when 'agent' is set"), nil
	}
	t := newTask{Subject: string(a.Subject), Description: string(a.Description), BlockedBy: a.BlockedBy, Agent: string(a.Agent), Prompt: string(a.Prompt)}
	return h.changeResult(entry{Op: opCreate, Key: c.Key, By: h.id, Task: &t})
}

type agentList struct {
	Active int           `json:"active_count"`
	Max    int           `json:"max_concurrent"`
	Agents []listedAgent `json:"agents"`
}

type listedAgent struct {
	ID     string `json:"id"`
	Agent  string `json:"agent"`
	Status string `json:"status"`
}

func listAgents(_ context.Context, h agentHandle, _ tool.Call, _ args) (tool.Result, error) {
	return h.viewResult(func(st *state) any {
		l := agentList{Agents: []listedAgent{}}
		if m := st.agents[h.id]; m != nil { // otherwise it was cancelled
			l.Active, l.Max = m.atWork, st.maxConcurrent(m)
		}
		for _, m := range st.childrenOf(h.id) {
			status := "finished"
			switch {
			case m.queued:
				status = queued
			case m.status == running:
				status = running
			}
			l.Agents = append(l.Agents, listedAgent{m.id, m.name, status})
		}
		return l
	})
}

type catalogue struct {
	Count  int              `json:"count"`
	Agents []spawnableAgent `json:"agents"`
}

func listAvailable(_ context.Context, h agentHandle, _ tool.Call, _ args) (tool.Result, error) {
	return h.viewResult(func(st *state) any {
		list := h.team.spawnableAgents(st.spawnRule(h.id))
		return catalogue{len(list), append([]spawnableAgent{}, list...)}
	})
}

func listTasks(_ context.Context, h agentHandle, _ tool.Call, _ args) (tool.Result, error) {
	return h.viewResult(func(st *state) any {
		tasks := []*task{}
		if q := st.queues[h.id]; q != nil {
			tasks = append(tasks, q.tasks...)
		}
		return map[string]any{"tasks": tasks}
	})
}

// viewResult returns a view of the state as a result. It changes nothing.
func (h agentHandle) viewResult(at func(*state) any) (tool.Result, error) {
	b, err := h.viewState(at)
	if err != nil {
		return tool.Result{}, fmt.Errorf("read the state of the team: %w", err)
	}
	return tool.JSONResult(b), nil
}

// WithEscalation returns list with changed tools: those that ask a person ask the
// agent that spawned this one instead, if there is one. patience is how long
// they wait for a reply; 0: five minutes.
func WithEscalation(list []tool.Tool, patience time.Duration) []tool.Tool {
	out := slices.Clone(list)
	for i, t := range out {
		for _, u := range agent.UserTools(true) {
			if t.Name == u.Name {
				out[i].Run = escalateTool(u, cmp.Or(patience, defaultPatience))
			}
		}
	}
	return out
}

type pendingResult struct {
	Status  string        `json:"status"`
	ID      string        `json:"id"`
	Message string        `json:"message"`
	Pending []*escalation `json:"pending_escalations,omitempty"`
}

// checkAgent returns the output of an agent if there is one.
func checkAgent(ctx context.Context, h agentHandle, c tool.Call, a args) (tool.Result, error) {
	id := string(a.ID)
	h.mu.Lock()
	m := h.state.childOf(h.id, id)
	if _, again := h.old[c.Key]; m != nil && m.status == running && !again {
		defer h.mu.Unlock()
		text := "Agent is still running"
		if m.queued {
			text = "Agent waits for a place"
		}
		return tool.JSONResult(pendingResult{"pending", id, text, h.state.pendingQuestions(h.id)}), nil
	} else if m == nil && !again {
		h.mu.Unlock()
		return formatOutcome(refuseEntry("No agent found with id '%s'", id)), nil
	}
	h.mu.Unlock()
	return h.deliverOutput(ctx, c, id)
}

// errTime ends a wait that has reached its time limit.
var errTime = errors.New("the time has passed")

// awaitChange waits for a change. on are the agents that the caller needs, at least
// one: if none of them can make progress in this drive, awaitChange suspends the
// node. The caller must hold mu, which is released during the wait.
func (h agentHandle) awaitChange(ctx context.Context, on []string, limit <-chan time.Time) error {
	if h.broke != nil {
		return h.broke
	}
	if h.interrupted { // then every context ends, that of the lead's calls, too
		h.mu.Unlock()
		defer h.mu.Lock()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if !slices.ContainsFunc(on, h.canProgress) {
		return graph.Suspend(ctx)
	}
	changed := h.changed
	h.mu.Unlock()
	defer h.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-limit:
		return errTime
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// canProgress reports whether an agent can make progress in this drive. An agent that
// waits for a place can if one of the agents that have the places can. The
// caller must hold mu.
func (sup *supervisor) canProgress(id string) bool {
	if p := sup.runningAgents[id]; p != nil {
		return !p.blocked
	}
	m := sup.state.agents[id]
	if m == nil || !m.queued {
		return true
	}
	return slices.ContainsFunc(sup.state.childrenOf(m.parent), func(o *member) bool {
		return o.status == running && !o.queued && sup.canProgress(o.id)
	})
}

// spawnedHandle returns the handle of the spawned agent that ctx belongs to. The
// lead of a team inside an agent of another team uses that agent's handle.
func spawnedHandle(ctx context.Context) (h agentHandle, ok bool) {
	for h, ok = handleOf(ctx); ok && h.id == lead; {
		h, ok = handleOf(h.ctx)
	}
	return h, ok
}

// escalateTool returns the function of a tool that asks the agent's spawner
// instead of a person. u checks the arguments.
func escalateTool(u tool.Tool, patience time.Duration) func(context.Context, tool.Call) (tool.Result, error) {
	return func(ctx context.Context, c tool.Call) (tool.Result, error) {
		h, ok := spawnedHandle(ctx)
		if !ok {
			return u.Run(ctx, c)
		}
		r, err := u.Run(ctx, c) // without a person: the result says what would be asked
		var asked struct {
			Action, Question string
			Options          []string
		}
		if err != nil || r.Error || json.Unmarshal([]byte(r.Text()), &asked) != nil {
			return r, err
		}
		out, err := h.changeState(entry{Op: opEscalate, Key: c.Key, By: h.id, Text: fmt.Sprintf("[%s] %s", asked.Action, asked.Question), Options: asked.Options})
		if err != nil {
			return tool.Result{}, err
		}
		x, open := out.result.(*escalation)
		if !open { // it was cancelled in the meantime
			return formatOutcome(out), nil
		}
		return h.awaitReply(ctx, x.ID, patience)
	}
}

// noReply is the result for an agent whose question was not answered.
type noReply struct {
	Error    string `json:"error"`
	Fallback string `json:"fallback"`
}

const fallback = "Make your best judgment and proceed"

// awaitReply waits for the reply to a question.
func (h agentHandle) awaitReply(ctx context.Context, id string, patience time.Duration) (tool.Result, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		x := h.state.findEscalation(id)
		switch {
		case x == nil: // the wait was ended before this drive
			return tool.JSONResult(timeoutReply(patience)), nil
		case x.replied:
			return tool.JSONResult(map[string]string{"answer": x.reply}), nil
		}
		err := h.awaitChange(ctx, []string{x.to}, timer.C)
		if errors.Is(err, errTime) {
			if _, err = h.addEntryLocked(entry{Op: opGiveUp, By: h.id, ID: id}); err == nil {
				continue
			}
		}
		if err != nil {
			return tool.Result{}, err
		}
	}
}

func timeoutReply(patience time.Duration) noReply {
	return noReply{fmt.Sprintf("Escalation timed out after %d seconds waiting for user response", int(patience.Seconds())), fallback}
}

// findEscalation returns an open or answered question, or nil.
func (s *state) findEscalation(id string) *escalation {
	for _, x := range s.escalations {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// summarizeOutput returns an agent's output, summarized if it is longer than the
// threshold of the agent that collects it. If the summary fails, the output is
// cut.
func (h agentHandle) summarizeOutput(ctx context.Context, f outputResult) (string, error) {
	h.mu.Lock()
	rule := h.state.spawnRule(h.id)
	name := ""
	if m := h.state.agents[h.id]; m != nil {
		name = m.name
	}
	h.mu.Unlock()
	if utf8.RuneCountInString(f.Output) < rule.Threshold || f.Status != completed {
		return f.Output, nil
	}
	reply, err := graph.DoEffect(ctx, graph.Effect{Name: "summary", Key: f.ID}, func(ctx context.Context) (llm.Reply, error) {
		return summarizeOutput(ctx, rule.Summary, h.team.memberByName(name).Agent.Redact, f)
	})
	text := strings.TrimSpace(reply.Text())
	switch {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case err != nil || text == "":
		return truncateMiddle(f.Output, rule.Threshold), nil
	}
	return text, nil
}
