package team

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"raddle.dev/agent"
)

// lead is the id of the lead.
const lead = "lead"

// kindOf returns the kind of an agent among the children of the team's node. An
// agent may have the name "lead".
func kindOf(name string) string {
	if name == lead {
		return "#" + lead
	}
	return name
}

// A state is what the agents of a team know of each other. Only entries change
// it, one after the other: the same entries produce the same state. The rules
// only decide which new entries are accepted, because they may be different in
// each drive.
type state struct {
	rules        map[string]Spawn  // by agent; an agent without a rule cannot spawn
	known        map[string]string // the existing agents, each with the reason why it cannot be spawned, or ""
	limits       map[string]int    // how many agents each may run at once in this turn, according to its first entry
	agents       map[string]*member
	newlyStarted []*member // started since the last call of launch
	newlyQueued  []*member // spawned without a place since the last call of launch
	queues       map[string]*queue
	escalations  []*escalation
	spent        agent.Spend   // of the agents that have ended
	waitingTasks []waitingTask // tasks that wait for a place and have no event yet
}

// waitingTask is a task that could start if there were a free place.
type waitingTask struct {
	by   string // the agent whose queue it is in
	task *task
}

// These are the states of an agent.
const (
	running   = "running"
	completed = "completed"
	failed    = "failed"
)

// A member is an agent that is running, or one whose output has not been
// collected.
type member struct {
	id, name, parent string
	depth            int
	prompt           string
	purpose          string // the subject of its task, or the first words of its prompt
	status           string
	queued           bool // it counts as running for others, but has no place yet
	output, problem  string
	task             string // in the parent's queue
	inbox            []inboxMessage
	children         []*member // in the order in which they were spawned
	atWork           int       // number of children, without those that are queued
}

// An inboxMessage is a message in an inbox.
type inboxMessage struct {
	From      string  `json:"from"`
	Payload   payload `json:"payload"`
	Timestamp string  `json:"timestamp"`
}

type payload struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// An escalation is a question of an agent to the agent that spawned it.
type escalation struct {
	ID       string   `json:"escalation_id"`
	From     string   `json:"from_agent_id"`
	Name     string   `json:"from_agent_name"`
	Question string   `json:"question"`
	Options  []string `json:"options,omitempty"`

	to      string
	replied bool
	reply   string
}

// An entry is one change of the state, as the log records it.
type entry struct {
	Op      op          `json:"op"`
	Key     string      `json:"key,omitempty"` // of the call that made it
	By      string      `json:"by,omitempty"`  // the agent that made the call
	At      time.Time   `json:"at,omitzero"`
	ID      string      `json:"id,omitempty"`
	IDs     []string    `json:"ids,omitempty"` // of several agents that are collected together
	Agent   string      `json:"agent,omitempty"`
	Text    string      `json:"text,omitempty"`
	Error   string      `json:"error,omitempty"`
	Options []string    `json:"options,omitempty"`
	Task    *newTask    `json:"task,omitempty"`
	Queued  bool        `json:"queued,omitempty"` // there was no place for the spawned agent
	Spent   agent.Spend `json:"spent,omitzero"`

	// Places are how many agents each may run at once, for readers that have only the log.
	Places map[string]int `json:"places,omitempty"`
}

// newTask contains the fields of a new task.
type newTask struct {
	Subject     string   `json:"subject"`
	Description string   `json:"description,omitempty"`
	BlockedBy   []string `json:"blocked_by,omitempty"`
	Agent       string   `json:"agent,omitempty"`
	Prompt      string   `json:"prompt,omitempty"`
}

// An op is the kind of change that an entry makes.
type op string

const (
	opBegin    op = "begin"
	opSpawn    op = "spawn"
	opEnd      op = "end"
	opCollect  op = "collect"
	opCancel   op = "cancel"
	opCreate   op = "task_create"
	opComplete op = "task_complete"
	opFail     op = "task_fail"
	opSend     op = "send"
	opInbox    op = "inbox"
	opEscalate op = "escalate"
	opReply    op = "reply"
	opGiveUp   op = "give_up"
	opSpent    op = "spent" // the cost of a cancelled agent
)

// An outcome is the result of an entry.
type outcome struct {
	result  any      // for the model
	refused bool     // the entry has changed nothing
	ended   []string // agents that no longer run or wait for a place, and did not finish
}

func refuseEntry(format string, args ...any) outcome {
	return outcome{result: errorResult{"error", fmt.Sprintf(format, args...)}, refused: true}
}

// concurrencyLimits returns how many agents each agent may run at once according to the
// rules.
func (s *state) concurrencyLimits() map[string]int {
	places := map[string]int{}
	for name, r := range s.rules {
		places[name] = r.Max
	}
	return places
}

func newState(known map[string]string, rules map[string]Spawn) *state {
	s := &state{rules: rules, known: known, agents: map[string]*member{}, queues: map[string]*queue{}}
	s.agents[lead] = &member{id: lead, status: running}
	return s
}

// checkRules refuses an entry that the rules do not allow now. Entries of the log
// are not checked again: what they have started continues under any rules.
func (s *state) checkRules(e entry) outcome {
	by := s.agents[e.By]
	name := e.Agent
	if e.Op == opCreate {
		name = e.Task.Agent
	}
	if by == nil || name == "" || e.Op != opSpawn && e.Op != opCreate {
		return outcome{}
	}
	if why := s.spawnRefusal(by, name); why != "" {
		return refuseEntry("%s", why)
	}
	most := s.maxConcurrent(by)
	queued := by.queuedChildren()
	switch {
	case e.Op != opSpawn:
	case most <= 0:
		return refuseEntry("At capacity: %d/%d agents running. Wait for one to finish or cancel one.", by.atWork, most)
	case by.atWork >= most && queued >= maxQueued:
		return refuseEntry("Not spawned: %d/%d agents run and %d others wait for a place, which is the most. Collect or cancel some, then spawn again.", by.atWork, most, queued)
	}
	return outcome{}
}

// applyEntry makes an entry's change, or refuses the entry and changes nothing.
func (s *state) applyEntry(e entry) outcome {
	if e.By != "" && s.agents[e.By] == nil {
		return refuseEntry("Agent '%s' was cancelled.", e.By) // while its call was being made
	}
	switch e.Op {
	case opBegin:
		s.limits = e.Places
	case opSpawn:
		return s.applySpawn(e)
	case opEnd:
		return s.applyEnd(e)
	case opCollect:
		return s.applyCollect(e)
	case opCancel:
		return s.applyCancel(e)
	case opCreate:
		return s.applyCreate(e)
	case opComplete:
		return s.applyComplete(e)
	case opFail:
		return s.applyFail(e)
	case opSend:
		return s.applySend(e)
	case opInbox:
		return s.applyDrain(e)
	case opEscalate:
		return s.applyEscalate(e)
	case opReply, opGiveUp:
		return s.applyReply(e)
	case opSpent:
		s.spent = sumSpend(s.spent, e.Spent)
	}
	return outcome{}
}

// spawnRule returns what an agent may spawn: nothing if it was cancelled.
func (s *state) spawnRule(id string) Spawn {
	if m := s.agents[id]; m != nil {
		return s.rules[m.name]
	}
	return Spawn{Only: []string{}}
}

// maxConcurrent returns how many agents an agent may run at once.
func (s *state) maxConcurrent(m *member) int {
	if n, ok := s.limits[m.name]; ok {
		return n
	}
	return s.rules[m.name].Max
}

// maxQueued is how many agents of one agent may wait for a place. It limits how
// much a model that spawns in a loop adds to a run.
const maxQueued = 64

// queuedChildren returns how many agents of an agent wait for a place.
func (m *member) queuedChildren() (n int) {
	for _, c := range m.children {
		if c.queued {
			n++
		}
	}
	return n
}

// isFull reports whether an agent runs as many agents as it may.
func (s *state) isFull(id string) bool {
	m := s.agents[id]
	return m != nil && m.atWork >= s.maxConcurrent(m)
}

// startMember starts an agent that was added.
func (s *state) startMember(m *member) {
	m.queued = false
	s.agents[m.parent].atWork++
	s.newlyStarted = append(s.newlyStarted, m)
}

// addMember adds an agent that has no place yet.
func (s *state) addMember(by, name, prompt, key string) *member {
	parent := s.agents[by]
	m := &member{id: s.newID(idPrefix+name+"_", key), name: name, parent: by, depth: parent.depth + 1, prompt: prompt, purpose: firstWords(prompt), status: running, queued: true}
	s.agents[m.id] = m
	parent.children = append(parent.children, m)
	return m
}

// spawnRefusal returns why an agent may never spawn another one, or "" if it may.
func (s *state) spawnRefusal(by *member, name string) string {
	rule, can := s.rules[by.name]
	fault, known := s.known[name]
	switch {
	case !can:
		return "No supervisor active; Agent spawning not enabled"
	case by.depth+1 > rule.Depth:
		return fmt.Sprintf("Max agent depth exceeded (%d/%d)", by.depth+1, rule.Depth)
	case rule.Only != nil && !slices.Contains(rule.Only, name):
		return fmt.Sprintf("Agent '%s' is not in this agent's `spawnable_agents` whitelist. Allowed: %s. Call `agent__list_available` to see what you can spawn.", name, cmp.Or(joinIDs(rule.Only), "(none)"))
	case !known:
		return fmt.Sprintf("There is no agent '%s'. Agents: %s.", name, cmp.Or(joinIDs(spawnableNames(s.known, rule)), "(none)"))
	case fault != "":
		return toolFailed + fault
	}
	return ""
}

// spawnableNames returns the agents that can be spawned under a rule.
func spawnableNames(known map[string]string, rule Spawn) (names []string) {
	candidates := rule.Only
	if candidates == nil {
		candidates = slices.Sorted(maps.Keys(known))
	}
	for _, name := range candidates {
		if fault, ok := known[name]; ok && fault == "" {
			names = append(names, name)
		}
	}
	return names
}

// newID returns an id that the state does not contain. It is the same for the
// same key.
func (s *state) newID(prefix, key string) string {
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s%s %d", prefix, key, n))
		id := prefix + hex.EncodeToString(sum[:idDigits/2])
		taken := slices.ContainsFunc(s.escalations, func(x *escalation) bool { return x.ID == id })
		if s.agents[id] == nil && !taken {
			return id
		}
	}
}

// childrenOf returns the agents that an agent has spawned, in that order.
func (s *state) childrenOf(of string) []*member {
	if m := s.agents[of]; m != nil {
		return m.children
	}
	return nil
}

// childOf returns an agent that by has spawned, or nil.
func (s *state) childOf(by, id string) *member {
	if m := s.agents[id]; m != nil && m.parent == by && id != lead {
		return m
	}
	return nil
}

// removeMember deletes an agent and all agents below it, and returns those that were
// running or waiting for a place.
func (s *state) removeMember(m *member) (ended []string) {
	ended = s.removeBelow(m)
	parent := s.agents[m.parent]
	if m.status == running {
		ended = append(ended, m.id)
		if !m.queued {
			parent.atWork--
		}
	}
	delete(s.agents, m.id)
	parent.children = slices.DeleteFunc(parent.children, func(o *member) bool { return o == m })
	s.withdrawQuestions(m.id)
	return ended
}

func (s *state) removeBelow(m *member) (ended []string) {
	for len(m.children) > 0 {
		ended = append(ended, s.removeMember(m.children[0])...)
	}
	delete(s.queues, m.id)
	return ended
}

// withdrawQuestions removes the questions that an agent has asked.
func (s *state) withdrawQuestions(id string) {
	s.escalations = slices.DeleteFunc(s.escalations, func(x *escalation) bool { return x.From == id })
}

// pendingQuestions returns the questions that wait for an agent's reply.
func (s *state) pendingQuestions(to string) (open []*escalation) {
	for _, x := range s.escalations {
		if x.to == to && !x.replied {
			open = append(open, x)
		}
	}
	return open
}
