package flow

import "raddle.dev/llm"

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
	system, messages = openingMessages(a.host.redact(text), prompt)
	return c.withToolTexts(system), messages
}
