package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/llm"
)

// These are the names of the effects that are model calls: those of ask, and
// those of the loops of agents.
const (
	effectModel   = "model attempt "
	effectExtract = "extractor"
	effectRepair  = "extractor repair"
	effectTalk    = "model"   // of package agent
	effectSummary = "summary" // of packages agent and team
)

func attemptName(n int) string { return fmt.Sprintf("%s%d", effectModel, n) }

// Reply is a model's reply as the journal stores it.
type Reply struct {
	ID    string    `json:"id,omitempty"` // the provider's id of the reply, if it has one
	Text  string    `json:"text"`
	Model string    `json:"model,omitempty"`
	Usage llm.Usage `json:"usage,omitzero"`
	// Flaw says what is wrong with the reply, as the Flaw of [llm.Reply] does. Useless reports whether the reply has no
	// text.
	Flaw    string `json:"flaw,omitempty"`
	Useless bool   `json:"useless,omitempty"`
	// Interrupted reports whether a person cut the reply off: its model and its usage are not known.
	Interrupted bool `json:"interrupted,omitempty"`
}

func newReply(r llm.Reply) Reply {
	kept := Reply{ID: r.ID, Text: r.Text(), Model: r.Model, Usage: r.Usage}
	kept.Flaw, kept.Useless = r.DescribeFlaw()
	return kept
}

// IsReply reports whether an effect of an agent's run is a model's reply. id
// is the effect's id, as [history.Entry] has it in ID.
func IsReply(id string) bool {
	name := graph.ParseEffectID(id).Name
	return strings.HasPrefix(name, effectModel) || slices.Contains([]string{effectExtract, effectRepair, effectTalk, effectSummary}, name)
}

// IsTalk reports whether an effect is a reply in a conversation or a summary.
// Such a reply belongs to a frame of its own; it is not a node's own model
// call.
func IsTalk(id string) bool {
	name := graph.ParseEffectID(id).Name
	return name == effectTalk || name == effectSummary
}

// effectFailure is the name of the effect that records why a node failed whose failure has a route: for the graph the
// node is done, for people it is not.
const effectFailure = "failure"

// IsFailure reports whether an effect records that a node failed and the run continued. Its data is the reason, for
// [ReadFailure].
func IsFailure(id string) bool { return graph.ParseEffectID(id).Name == effectFailure }

// ReadFailure decodes the data of a record for which [IsFailure] is true.
func ReadFailure(data []byte) string { return string(data) }

// recordFailure records that the node failed, and says so, before its route is taken.
func (nr *nodeRun) recordFailure(reason string) error {
	reason, err := graph.Do(nr, effectFailure, func(context.Context) (string, error) { return nr.host().redact(reason), nil })
	if err == nil {
		graph.Emit(nr, NodeFailed{Reason: reason})
	}
	return err
}

// ReadReply decodes the data of a record for which [IsReply] is true.
func ReadReply(data []byte) (r Reply, err error) {
	r, _, err = ReadReplyDone(data)
	return r, err
}

// ReadReplyDone is [ReadReply] with the value that the node has emitted for the reply. That of a reply that is not in a
// conversation with tools has only its text.
func ReadReplyDone(data []byte) (r Reply, done agent.ReplyDone, err error) {
	var stored struct {
		Reply
		Message llm.Message    `json:"message"` // of a conversation with tools
		Stop    llm.StopReason `json:"stop"`
		Cost    float64        `json:"cost"`
		Priced  bool           `json:"priced"`
	}
	if err := json.Unmarshal(data, &stored); err != nil {
		return r, done, fmt.Errorf("the recorded reply of a model: %w", err)
	}
	r = stored.Reply
	talk := llm.Reply{Message: stored.Message, Stop: stored.Stop}
	switch {
	case talk.Message.Role != "":
		r.Text = talk.Text()
		r.Interrupted = talk.Stop == agent.StopInterrupted
		r.Flaw, r.Useless = talk.DescribeFlaw()
	case r.Flaw == "" && r.Text == "": // recorded by a version that did not set it
		r.Flaw, r.Useless = talk.DescribeFlaw()
	}
	done = agent.ReplyDone{
		Message: stored.Message,
		Model:   r.Model,
		Usage:   r.Usage,
		Stop:    stored.Stop,
		Cost:    stored.Cost,
		Priced:  stored.Priced,
	}
	if done.Message.Role == "" {
		done.Message = llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: r.Text}}}
	}
	return r, done, nil
}
