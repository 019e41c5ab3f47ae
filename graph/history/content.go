package history

import (
	"errors"
	"fmt"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
	"raddle.dev/graph/journal"
)

// Content is what a record holds in addition to its [Entry], for people.
type Content struct {
	// Keys are the keys that the record writes, each once: for a start, claim, call, step or
	// edit, and for the update of a task.
	Keys []string

	// Question is, for a KindQuestion, what is asked. Asked is the same text for a question
	// and its answer, among those of one frame.
	Question *graph.Question
	Asked    string

	// Answer is, for a KindAnswer, the value as JSON; Refused is the reason if the question
	// was refused. Ahead reports that the answer was given before the question.
	Answer  []byte
	Refused string
	Ahead   bool

	// Handled is, for a KindTask, why the task failed, if its node handles that with OnError.
	Handled string

	// Reason is, for a KindEnd, why the drive stopped, if it failed, and Open are the ids of the
	// questions that were open then.
	Reason string
	Open   []string
}

// DecodeContent decodes the content of a record that was read with its data. It needs no
// graph. The content of kinds that are not named in [Content] is empty.
func DecodeContent(r journal.Record) (c Content, err error) {
	h, d := &wire.Reader{Rest: r.Head}, &wire.Reader{Rest: r.Data}
	switch r.Kind {
	case journal.KindClaim:
		if len(r.Data) > 0 {
			c.Keys = patchKeys(d)
		}
	case journal.KindStart, journal.KindCall, journal.KindStep, journal.KindEdit, journal.KindTask:
		c.Keys = patchKeys(d)
		if r.Kind == journal.KindTask {
			c.Handled = readHandled(d)
		}
	case journal.KindQuestion:
		h.Text() // the frame
		var q fold.Question
		c.Asked = h.Text()
		q.Decode(d)
		c.Question = (*graph.Question)(&q)
	case journal.KindAnswer:
		h.Text() // the frame
		c.Asked, c.Ahead, c.Refused = h.Text(), h.Int() > 0, h.Text()
		c.Answer = slices.Clone(d.Rest)
	case journal.KindEnd:
		var l fold.Line
		l.ReadEnd(h)
		c.Reason = l.Reason
		for _, q := range l.Questions {
			c.Open = append(c.Open, q.ID)
		}
	}
	if err := errors.Join(h.Err, d.Err); err != nil {
		return Content{}, fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, err)
	}
	return c, nil
}

// patchKeys reads patches and returns the keys that they write, each once.
func patchKeys(d *wire.Reader) (keys []string) {
	for _, p := range fold.ReadPatches(d) {
		if !slices.Contains(keys, p.Key) {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// DecodeResult returns the value of the Halt that ended a run, of the KindEnd that was read with its data; nil without one.
func DecodeResult(r journal.Record) (any, error) {
	if r.Kind != journal.KindEnd || len(r.Data) == 0 {
		return nil, nil
	}
	d := &wire.Reader{Rest: r.Data}
	b := d.Bytes()
	if d.Err != nil {
		return nil, fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, d.Err)
	}
	return value.DecodeAny(b)
}

// readHandled returns why a task failed whose failure its node handles, from an update whose writes have been read.
func readHandled(d *wire.Reader) string {
	d.Bool()
	d.Texts() // Goto
	d.Bool()
	for range d.Count() { // Send
		d.Text()
		fold.ReadPatches(d)
	}
	return d.Text()
}
