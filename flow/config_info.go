package flow

import (
	"raddle.dev/agent"
	"raddle.dev/tool"
)

// Offer is what the agent's models may call, without the tools of its servers: of
// a graph, what its llm nodes may list.
func (a *Agent) Offer() []tool.Tool {
	if a.Config != nil {
		return a.conversation(nil).declared()
	}
	return a.offer()
}

// preview is a conversation that is never held.
func (a *Agent) preview() *conversation {
	c := a.conversation(nil)
	if a.crew != nil {
		c.team = a.roster()
	}
	return c
}

// Instructions is what a config.yaml's agent is told before a conversation, with
// the placeholders filled whose values are known. Instructions that a script
// makes are not made for this: the text is then empty but for what is added about
// tools.
func (a *Agent) Instructions() string {
	if a.Config == nil {
		return ""
	}
	c := a.preview()
	text := ""
	if !a.Config.Prompting.Dynamic {
		text = c.prose().fill(a.Config.Prompting.Instructions)
	}
	return a.host.redact(c.told(text))
}

// Starters are the agent's conversation starters, with their placeholders filled.
func (a *Agent) Starters() []string {
	if a.Config == nil {
		return append([]string{}, a.File.ConversationStarters...)
	}
	p := a.conversation(nil).prose()
	starters := []string{}
	for _, s := range a.Config.Prompting.Starters {
		starters = append(starters, p.fill(s))
	}
	return starters
}

// Starter is the conversation starter of a number, from 1. The error is a
// [*StarterError].
func (a *Agent) Starter(number int) (string, error) {
	starters := a.Starters()
	if number < 1 || number > len(starters) {
		return "", &StarterError{number, len(starters)}
	}
	return starters[number-1], nil
}

// declared is the tools in the order in which they are told: the agent's own, the
// todo tools, the built-in ones.
func (c *conversation) declared() []tool.Tool {
	own := len(c.agent.Tools.unique())
	if !c.agent.Config.Continue.Auto {
		return c.tools
	}
	tools := append([]tool.Tool(nil), c.tools[:own]...)
	tools = append(tools, agent.TodoTools()...)
	return append(tools, c.tools[own:]...)
}
