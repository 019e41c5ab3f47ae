// Package mail keeps what processes send to runs: letters to a run that another process drives, and events for runs that
// wait for them. They are entries beside the journals, in every kind of store, and expire. What a run does with them is
// in its journal.
package mail

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/memory"
)

// The tables of mail.
const (
	lettersPart = "letters"
	eventsPart  = "events"
	waitsPart   = "waits"
)

const (
	// letterLife is how long a letter is kept that no drive takes. Its sender takes it back long before.
	letterLife = time.Hour
	// messageLife is how long a message is kept for a run that nothing drives.
	messageLife = 7 * 24 * time.Hour
)

// EventLife is how long an event is kept unless its sender says otherwise.
const EventLife = 7 * 24 * time.Hour

// A Box is the mail of a store. It is safe for concurrent use.
type Box struct {
	Store memory.Store
}

// letters returns the table of the letters to a run; that of all letters without one.
func (b Box) letters(run ...string) entries.Table[Letter] {
	return entries.NewTable[Letter](b.Store, append([]string{lettersPart}, run...)...)
}

// events returns the table of the events with a name; that of all events without one.
func (b Box) events(name ...string) entries.Table[Event] {
	return entries.NewTable[Event](b.Store, append([]string{eventsPart}, name...)...)
}

// waits returns the table of what waits for an event; that of all waits without one.
func (b Box) waits(event ...string) entries.Table[Wait] {
	return entries.NewTable[Wait](b.Store, append([]string{waitsPart}, event...)...)
}

// A Letter is what another process asks of the drive of a run. Whoever has done it removes it.
type Letter struct {
	Run     string   `json:"run"`
	ID      string   `json:"id"`
	Answers []Answer `json:"answers,omitempty"`

	// Stop asks the drive to stop at once, because the run is to be ended.
	Stop bool `json:"stop,omitempty"`

	// Message is what a person says to the agent of the run; nil: nothing.
	Message *Message `json:"message,omitempty"`
	// Accepted says that the drive has the message, and gives it to the agent or leaves it to the drive that follows.
	Accepted bool `json:"accepted,omitempty"`
	// Late says that the turn had ended before the message came.
	Late bool `json:"late,omitempty"`

	// Fault says why the drive refuses it; nil: it does not.
	Fault *Fault `json:"fault,omitempty"`
}

// A Message is what a person says to an agent whose turn works.
type Message struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // who said it; "": not known
}

// A Fault is a graph.AnswerError as JSON.
type Fault struct {
	Question string   `json:"question"`
	Open     []string `json:"open"`
	Reason   string   `json:"reason"`
}

// An Answer is a graph.Answer as JSON.
type Answer struct {
	ID      string          `json:"id"`
	Value   json.RawMessage `json:"value,omitempty"`
	Refused string          `json:"refused,omitempty"`
	By      string          `json:"by,omitempty"`
}

// PackAnswers returns answers as a letter has them.
func PackAnswers(answers []graph.Answer) (packed []Answer, err error) {
	for _, a := range answers {
		value, err := json.Marshal(a.Value)
		if err != nil {
			return nil, err
		}
		packed = append(packed, Answer{ID: a.ID, Value: value, Refused: a.Refused, By: a.By})
	}
	return packed, nil
}

// UnpackAnswers returns the answers of a letter.
func (l *Letter) UnpackAnswers() (answers []graph.Answer) {
	for _, a := range l.Answers {
		answers = append(answers, graph.Answer{ID: a.ID, Value: a.Value, Refused: a.Refused, By: a.By})
	}
	return answers
}

// PutLetter leaves a letter, or changes it.
func (b Box) PutLetter(ctx context.Context, l *Letter) error {
	life := letterLife
	if l.Message != nil {
		life = messageLife
	}
	return b.letters(l.Run).PutValue(ctx, l.ID, *l, life)
}

// ReadLetter returns a letter; ok is false if it was removed.
func (b Box) ReadLetter(ctx context.Context, run, id string) (l Letter, ok bool, err error) {
	return b.letters(run).ReadValue(ctx, id)
}

// RemoveLetter removes a letter, and reports whether it was there.
func (b Box) RemoveLetter(ctx context.Context, l *Letter) (bool, error) {
	return b.letters(l.Run).RemoveValue(ctx, l.ID)
}

// ListLetters returns all letters, by run, and those of a run by id.
func (b Box) ListLetters(ctx context.Context) ([]Letter, error) {
	return b.letters().ListValues(ctx)
}

// ListLettersTo returns the letters to a run, by id.
func (b Box) ListLettersTo(ctx context.Context, run string) ([]Letter, error) {
	return b.letters(run).ListValues(ctx)
}

// An Event is one that was sent.
type Event struct {
	Name string          `json:"name"`
	Key  string          `json:"key"` // what distinguishes it from others with its name
	Data json.RawMessage `json:"data"`
	Run  string          `json:"run,omitempty"` // the only run that may take it; "": every run
	Sent time.Time       `json:"sent"`

	// Until is how long it is kept.
	Until time.Time `json:"until"`

	// Taken lists what has taken it: the id of a run, a blank, and the id of its question. A run takes an event once. No
	// run takes an event that others have taken before it waits.
	Taken []string `json:"taken"`

	// Delivered says that all runs that waited when it was sent have it.
	Delivered bool `json:"delivered"`
}

// RestOfLife returns how long an event is still kept: at least a moment.
func (e *Event) RestOfLife(now time.Time) time.Duration { return max(time.Second, e.Until.Sub(now)) }

// PutEvent keeps an event, or changes it. life is from now.
func (b Box) PutEvent(ctx context.Context, e *Event, life time.Duration) error {
	return b.events(e.Name).PutValue(ctx, e.Key, *e, life)
}

// ReadEvent returns an event; ok is false if there is none with the name and the key.
func (b Box) ReadEvent(ctx context.Context, name, key string) (e Event, ok bool, err error) {
	return b.events(name).ReadValue(ctx, key)
}

// ListEvents returns the events with a name that are kept, by key; with an empty name, those of all names.
func (b Box) ListEvents(ctx context.Context, name string) ([]Event, error) {
	if name == "" {
		return b.events().ListValues(ctx)
	}
	return b.events(name).ListValues(ctx)
}

// A Wait says that a question of a run waits for an event.
type Wait struct {
	Event    string `json:"event"`
	Run      string `json:"run"`
	Question string `json:"question"`
}

// key returns the key of the entry of a wait.
func (w *Wait) key() string {
	const size = 10
	sum := sha256.Sum256([]byte(w.Question)) // it may be longer than a key
	return w.Run + "-" + hex.EncodeToString(sum[:size])
}

// PutWait notes that a question waits. It is written before the question, so that no event can come between them.
func (b Box) PutWait(ctx context.Context, w *Wait) error {
	return b.waits(w.Event).PutValue(ctx, w.key(), *w, 0)
}

// RemoveWait removes a note of PutWait.
func (b Box) RemoveWait(ctx context.Context, w *Wait) error {
	_, err := b.waits(w.Event).RemoveValue(ctx, w.key())
	return err
}

// ListWaits returns the questions that may wait for an event with a name, by run; with an empty name, for any. Whether
// they still wait says the journal of the run.
func (b Box) ListWaits(ctx context.Context, event string) ([]Wait, error) {
	if event == "" {
		return b.waits().ListValues(ctx)
	}
	return b.waits(event).ListValues(ctx)
}
