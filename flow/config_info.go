package flow

import (
	"raddle.dev/agent"
	"raddle.dev/tool"
)

// AvailableTools returns the tools that the agent's models may call, without the tools
// of its servers. For a graph these are the tools that its llm nodes may list.
func (a *Agent) AvailableTools() []tool.Tool {
	if a.Config != nil {
		return newConversation(a, nil).allTools()
	}
	return a.localTools()
}

// previewConversation returns a conversation that is only used to describe the agent.
func previewConversation(a *Agent) *conversation {
	c := newConversation(a, nil)
	if a.spawnSet != nil {
		c.team = newRoster(a)
	}
	return c
}

// Instructions returns the instructions of a config.yaml's agent, with
// placeholders filled in whose values are known. It does not run a script for
// instructions: then the text contains only the parts about tools.
func (a *Agent) Instructions() string {
	if a.Config == nil {
		return ""
	}
	c := previewConversation(a)
	text := ""
	if !a.Config.Prompting.Dynamic {
		text = c.newPlaceholderFiller().fillText(a.Config.Prompting.Instructions)
	}
	return a.host.redact(c.withToolTexts(text))
}

// Starters returns the agent's conversation starters, with placeholders filled
// in.
func (a *Agent) Starters() []string {
	if a.Config == nil {
		return append([]string{}, a.File.ConversationStarters...)
	}
	p := newConversation(a, nil).newPlaceholderFiller()
	starters := []string{}
	for _, s := range a.Config.Prompting.Starters {
		starters = append(starters, p.fillText(s))
	}
	return starters
}

// Starter returns a conversation starter by its number, starting with 1. The
// error is a [*StarterError].
func (a *Agent) Starter(number int) (string, error) {
	starters := a.Starters()
	if number < 1 || number > len(starters) {
		return "", &StarterError{number, len(starters)}
	}
	return starters[number-1], nil
}

// allTools returns the tools in the order in which they are declared to the
// model: the agent's own, the todo tools, the built-in ones.
func (c *conversation) allTools() []tool.Tool {
	own := len(c.agent.Tools.uniqueTools())
	if !c.agent.Config.Continue.Auto {
		return c.tools
	}
	tools := append([]tool.Tool(nil), c.tools[:own]...)
	tools = append(tools, agent.TodoTools()...)
	return append(tools, c.tools[own:]...)
}
