package flow

import (
	"raddle.dev/agent"
	"raddle.dev/llm"
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
	project, _ := projectInstructions(a)
	text = joinParagraphs(text, project)
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

// ModelRequest is what a node of a graph sends to a model, as far as its file
// says: the placeholders in the texts are filled when it runs.
type ModelRequest struct {
	Node   string
	Model  string // that the node names; empty: the graph's
	System string
	Prompt string
	Tools  []string
}

// ModelRequests returns what the nodes of a graph send to models, in file
// order. For other agents it returns nothing.
func (a *Agent) ModelRequests() []ModelRequest {
	if a.File == nil {
		return nil
	}
	var list []ModelRequest
	for _, n := range a.File.Nodes {
		if r := needsOf(n).request; r != nil {
			list = append(list, *r)
		}
	}
	return list
}

// OpeningMessages returns the first messages of a config.yaml's agent to its model: its
// system prompt, and the messages with the user's text. It runs nothing:
// instructions from a script are missing, and so are the tools of servers in a
// list of tools. For other agents it returns nothing.
func (a *Agent) OpeningMessages(prompt string) (system string, messages []llm.Message) {
	if a.Config == nil {
		return "", nil
	}
	c := previewConversation(a)
	text := ""
	if !a.Config.Prompting.Dynamic {
		text = c.newPlaceholderFiller().fillText(a.Config.Prompting.Instructions)
	}
	project, _ := projectInstructions(a)
	text = joinParagraphs(text, project)
	system, messages = openingMessages(a.host.redact(text), prompt)
	return c.withToolTexts(system), messages
}
