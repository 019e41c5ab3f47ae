package flow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/llm"
)

// Names of the effects that are calls of a model: those of ask, and of the loops of
// agents.
const (
	effectModel   = "model attempt "
	effectExtract = "extractor"
	effectRepair  = "extractor repair"
	effectTalk    = "model"   // package agent's
	effectSummary = "summary" // package agent's and package team's
)

func attemptName(n int) string { return fmt.Sprintf("%s%d", effectModel, n) }

// Reply is what the journal keeps of a model's reply.
type Reply struct {
	ID    string    `json:"id,omitempty"` // the model's own, where it gives one
	Text  string    `json:"text"`
	Model string    `json:"model,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
	// Flaw is that of [llm.Reply]; Useless: there is no text at all.
	Flaw    string `json:"flaw,omitempty"`
	Useless bool   `json:"useless,omitempty"`
}

// IsReply tells whether an effect of an agent's run is a model's reply. what is
// the effect's id, as [graph.Entry] has it in ID.
func IsReply(what string) bool {
	name := effectName(what)
	return strings.HasPrefix(name, effectModel) || slices.Contains([]string{effectExtract, effectRepair, effectTalk, effectSummary}, name)
}

// IsTalk tells whether an effect is a reply in a conversation or sums up, which is a frame of
// its own, and not a node's own call of a model.
func IsTalk(what string) bool {
	name := effectName(what)
	return name == effectTalk || name == effectSummary
}

// effectName is the name of an effect by its id: what stands between the task and
// the key. A record that is no effect has none.
func effectName(what string) string {
	_, rest, _ := strings.Cut(what, "\x00")
	name, _, _ := strings.Cut(rest, "\x00")
	return name
}

// ReadReply reads the data of a record for which [IsReply] is true.
func ReadReply(data []byte) (r Reply, err error) {
	var stored struct {
		Reply
		Message llm.Message    `json:"message"` // of a conversation with tools
		Stop    llm.StopReason `json:"stop"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return r, fmt.Errorf("the recorded reply of a model: %w", err)
	}
	r = stored.Reply
	talk := llm.Reply{Message: stored.Message, Stop: stored.Stop}
	switch {
	case talk.Message.Role != "":
		r.Text = talk.Text()
		r.Flaw, r.Useless = talk.Flaw()
	case r.Flaw == "" && r.Text == "": // recorded by a version that did not say it
		r.Flaw, r.Useless = talk.Flaw()
	}
	return r, nil
}
