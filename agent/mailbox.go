package agent

import (
	"context"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// A SentMessage is what a person says to an agent while its turn works.
type SentMessage struct {
	ID   string `json:"id"` // distinguishes it from the others that are sent to the run
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // who says it; "": not known
}

// MessageTaken is emitted when the agent takes up a message that was sent while its turn works. It is recorded already,
// and part of the next request to the model.
type MessageTaken struct {
	SentMessage
}

// EventType returns "message_taken".
func (MessageTaken) EventType() string { return "message_taken" }

// MessagesEffect is the name and the key of the effect that records the messages that the agent has taken up: a list of
// [SentMessage].
const MessagesEffect = "messages"

type mailboxKey struct{}

// A Mailbox returns the messages that have arrived and that the conversation does not have, oldest first; isTaken says of
// an id whether it has the message. last says that the turn ends if there is none: what arrives later belongs to the next
// turn. It is safe for concurrent use.
type Mailbox func(isTaken func(id string) bool, last bool) []SentMessage

// WithMailbox returns a context for a drive of an agent's graph in which the turn takes up what people say while it
// works: after each round of tool calls, and after a reply without calls, with which the turn would end. A message is
// in the journal before the model gets it, once, also if the drive ends in between. The agents that the agent calls get
// no messages. A nil box has none.
func WithMailbox(ctx context.Context, box Mailbox) context.Context {
	return context.WithValue(ctx, mailboxKey{}, box)
}

// withoutMailbox returns a context for what an agent calls.
func withoutMailbox(ctx context.Context) context.Context {
	if ctx.Value(mailboxKey{}) == nil {
		return ctx
	}
	return WithMailbox(ctx, nil)
}

// takeMessages returns the entries of the messages that the turn takes up now. entries are those of the conversation.
func takeMessages(ctx context.Context, entries []Entry, last bool) ([]Entry, error) {
	taken, ok, err := loadRecorded[[]SentMessage](ctx, MessagesEffect, MessagesEffect)
	if err != nil {
		return nil, err
	}
	if !ok {
		box, _ := ctx.Value(mailboxKey{}).(Mailbox)
		if box == nil {
			return nil, nil
		}
		taken = box(func(id string) bool { return wasTaken(entries, id) }, last)
		if len(taken) == 0 {
			return nil, nil
		}
		e := graph.Effect{Name: MessagesEffect, Key: MessagesEffect}
		taken, err = graph.DoEffect(ctx, e, func(context.Context) ([]SentMessage, error) { return taken, nil })
		if err != nil {
			return nil, err
		}
		for _, m := range taken {
			graph.Emit(ctx, MessageTaken{m})
		}
	}
	var added []Entry
	for _, m := range taken {
		added = append(added, stampEntry(ctx, Entry{Message: llm.User(m.Text), Sent: m.ID}))
	}
	return added, nil
}

// endsWithSent reports whether the newest entry is a message that the turn has taken up, and that no model has seen.
func endsWithSent(entries []Entry) bool {
	return len(entries) > 0 && entries[len(entries)-1].Sent != ""
}

// wasTaken reports whether a conversation has the message with an id.
func wasTaken(entries []Entry, id string) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Sent == id })
}

// TakenMessages returns the ids of the messages that the agent has taken up.
func TakenMessages(entries []Entry) (ids []string) {
	for i := range entries {
		if entries[i].Sent != "" {
			ids = append(ids, entries[i].Sent)
		}
	}
	return ids
}
