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
}

// MessageTaken is emitted when the agent takes up a message that was sent while its turn works. It is recorded already,
// and part of the next request to the model.
type MessageTaken struct {
	SentMessage
}

// EventType returns "message_taken".
func (MessageTaken) EventType() string { return "message_taken" }

// messagesEffect is the name and the key of the effect that records which messages the agent has taken up.
const messagesEffect = "messages"

type mailboxKey struct{}

// WithMailbox returns a context for a drive of an agent's graph in which the turn takes up what people say while it
// works. waiting returns the messages that have arrived, oldest first. It is called after each round of tool calls, and
// may return again what was taken up before. A message is in the journal before the model gets it, once, also if the
// drive ends in between. Messages that arrive during the last request of a turn are not taken up: the caller begins the
// next turn with them. The agents below the first one get no messages.
func WithMailbox(ctx context.Context, waiting func() []SentMessage) context.Context {
	return context.WithValue(ctx, mailboxKey{}, waiting)
}

// withoutMailbox returns a context for what an agent calls.
func withoutMailbox(ctx context.Context) context.Context {
	if ctx.Value(mailboxKey{}) == nil {
		return ctx
	}
	return WithMailbox(ctx, nil)
}

// takeMessages returns the entries of the messages that the turn takes up now. entries are those of the conversation.
func takeMessages(ctx context.Context, entries []Entry) ([]Entry, error) {
	taken, ok, err := loadRecorded[[]SentMessage](ctx, messagesEffect, messagesEffect)
	if err != nil {
		return nil, err
	}
	if !ok {
		waiting, _ := ctx.Value(mailboxKey{}).(func() []SentMessage)
		if waiting == nil {
			return nil, nil
		}
		taken = slices.DeleteFunc(slices.Clone(waiting()), func(m SentMessage) bool { return wasTaken(entries, m.ID) })
		if len(taken) == 0 {
			return nil, nil
		}
		e := graph.Effect{Name: messagesEffect, Key: messagesEffect}
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
