package team

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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
	rules       map[string]Spawn  // by agent; an agent without a rule cannot spawn
	known       map[string]string // the existing agents, each with the reason why it cannot be spawned, or ""
	places      map[string]int    // how many agents each may run at once in this turn, according to its first entry
	agents      map[string]*member
	begun       []*member // started since the last call of launch
	lined       []*member // spawned without a place since the last call of launch
	queues      map[string]*queue
	escalations []*escalation
	spent       agent.Spend // of the agents that have ended
	crowded     []crowded   // tasks that wait for a place and have no event yet
}

// crowded is a task that could start if there were a free place.
type crowded struct {
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
	inbox            []mail
	children         []*member // in the order in which they were spawned
	atWork           int       // number of children, without those that are queued
}

// A mail is a message in an inbox.
type mail struct {
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

	Places map[string]int `json:"places,omitempty"` // how many agents each may run at once, for readers that have only the log
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

func refuse(format string, args ...any) outcome {
	return outcome{result: problem{"error", fmt.Sprintf(format, args...)}, refused: true}
}

// offers returns how many agents each agent may run at once according to the
// rules.
func (s *state) offers() map[string]int {
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

// admit refuses an entry that the rules do not allow now. Entries of the log
// are not checked again: what they have started continues under any rules.
func (s *state) admit(e entry) outcome {
	by, name := s.agents[e.By], e.Agent
	if e.Op == opCreate {
		name = e.Task.Agent
	}
	if by == nil || name == "" || e.Op != opSpawn && e.Op != opCreate {
		return outcome{}
	}
	if why := s.forbids(by, name); why != "" {
		return refuse("%s", why)
	}
	most, queued := s.most(by), by.queuedChildren()
	switch {
	case e.Op != opSpawn:
	case most <= 0:
		return refuse("At capacity: %d/%d agents running. Wait for one to finish or cancel one.", by.atWork, most)
	case by.atWork >= most && queued >= maxQueued:
		return refuse("Not spawned: %d/%d agents run and %d others wait for a place, which is the most. Collect or cancel some, then spawn again.", by.atWork, most, queued)
	}
	return outcome{}
}

// apply makes an entry's change, or refuses the entry and changes nothing.
func (s *state) apply(e entry) outcome {
	if e.By != "" && s.agents[e.By] == nil {
		return refuse("Agent '%s' was cancelled.", e.By) // while its call was being made
	}
	switch e.Op {
	case opBegin:
		s.places = e.Places
	case opSpawn:
		return s.spawn(e)
	case opEnd:
		return s.end(e)
	case opCollect:
		return s.collect(e)
	case opCancel:
		return s.cancel(e)
	case opCreate:
		return s.create(e)
	case opComplete:
		return s.complete(e)
	case opFail:
		return s.fail(e)
	case opSend:
		return s.send(e)
	case opInbox:
		return s.drain(e)
	case opEscalate:
		return s.escalate(e)
	case opReply, opGiveUp:
		return s.reply(e)
	case opSpent:
		s.spent = total(s.spent, e.Spent)
	}
	return outcome{}
}

// rule returns what an agent may spawn: nothing if it was cancelled.
func (s *state) rule(id string) Spawn {
	if m := s.agents[id]; m != nil {
		return s.rules[m.name]
	}
	return Spawn{Only: []string{}}
}

// most returns how many agents an agent may run at once.
func (s *state) most(m *member) int {
	if n, ok := s.places[m.name]; ok {
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

// full reports whether an agent runs as many agents as it may.
func (s *state) full(id string) bool {
	m := s.agents[id]
	return m != nil && m.atWork >= s.most(m)
}

// place starts an agent that was added.
func (s *state) place(m *member) {
	m.queued = false
	s.agents[m.parent].atWork++
	s.begun = append(s.begun, m)
}

// add adds an agent that has no place yet.
func (s *state) add(by, name, prompt, key string) *member {
	parent := s.agents[by]
	m := &member{id: s.newID(idPrefix+name+"_", key), name: name, parent: by, depth: parent.depth + 1, prompt: prompt, purpose: firstWords(prompt), status: running, queued: true}
	s.agents[m.id] = m
	parent.children = append(parent.children, m)
	return m
}

// forbids returns why an agent may never spawn another one, or "" if it may.
func (s *state) forbids(by *member, name string) string {
	rule, can := s.rules[by.name]
	fault, known := s.known[name]
	switch {
	case !can:
		return "No supervisor active; Agent spawning not enabled"
	case by.depth+1 > rule.Depth:
		return fmt.Sprintf("Max agent depth exceeded (%d/%d)", by.depth+1, rule.Depth)
	case rule.Only != nil && !slices.Contains(rule.Only, name):
		return fmt.Sprintf("Agent '%s' is not in this agent's `spawnable_agents` whitelist. Allowed: %s. Call `agent__list_available` to see what you can spawn.", name, cmp.Or(joined(rule.Only), "(none)"))
	case !known:
		return fmt.Sprintf("There is no agent '%s'. Agents: %s.", name, cmp.Or(joined(allowed(s.known, rule)), "(none)"))
	case fault != "":
		return toolFailed + fault
	}
	return ""
}

// allowed returns the agents that can be spawned under a rule.
func allowed(known map[string]string, rule Spawn) (names []string) {
	candidates := rule.Only
	if candidates == nil {
		candidates = sortedKeys(known)
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

// children returns the agents that an agent has spawned, in that order.
func (s *state) children(of string) []*member {
	if m := s.agents[of]; m != nil {
		return m.children
	}
	return nil
}

// child returns an agent that by has spawned, or nil.
func (s *state) child(by, id string) *member {
	if m := s.agents[id]; m != nil && m.parent == by && id != lead {
		return m
	}
	return nil
}

// remove deletes an agent and all agents below it, and returns those that were
// running or waiting for a place.
func (s *state) remove(m *member) (ended []string) {
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
	s.withdraw(m.id)
	return ended
}

func (s *state) removeBelow(m *member) (ended []string) {
	for len(m.children) > 0 {
		ended = append(ended, s.remove(m.children[0])...)
	}
	delete(s.queues, m.id)
	return ended
}

// withdraw removes the questions that an agent has asked.
func (s *state) withdraw(id string) {
	s.escalations = slices.DeleteFunc(s.escalations, func(x *escalation) bool { return x.From == id })
}

// pending returns the questions that wait for an agent's reply.
func (s *state) pending(to string) (open []*escalation) {
	for _, x := range s.escalations {
		if x.to == to && !x.replied {
			open = append(open, x)
		}
	}
	return open
}
