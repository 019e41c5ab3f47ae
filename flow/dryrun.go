package flow

import "raddle.dev/llm"

// OpeningMessages returns the first messages of a config.yaml's agent to its model: its
// system prompt, and the messages with the user's text. It runs nothing:
// instructions from a script are missing, and so are the tools of servers in a
// list of tools. For other agents it returns nothing.
func (a *Agent) OpeningMessages(prompt string) (system string, messages []llm.Message) {
	if a.Config == nil {
		return "", nil
	}
	c := a.previewConversation()
	text := ""
	if !a.Config.Prompting.Dynamic {
		text = c.newPlaceholderFiller().fillText(a.Config.Prompting.Instructions)
	}
	system, messages = openingMessages(a.host.redact(text), prompt)
	return c.withToolTexts(system), messages
}
