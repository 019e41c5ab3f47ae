package flow

import "raddle.dev/llm"

// Opening is what a config.yaml's agent would say to its model first: its system
// prompt, and the messages with the user's text. Nothing is run for it:
// instructions that a script makes are missing, and so are the tools of servers
// in the list of tools that instructions may ask for. Other agents have none.
func (a *Agent) Opening(prompt string) (system string, messages []llm.Message) {
	if a.Config == nil {
		return "", nil
	}
	c := a.preview()
	text := ""
	if !a.Config.Prompting.Dynamic {
		text = c.prose().fill(a.Config.Prompting.Instructions)
	}
	system, messages = opening(a.host.redact(text), prompt)
	return c.told(system), messages
}
