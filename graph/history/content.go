package history

import (
	"fmt"
	"slices"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
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

	// Expired reports, for a KindAnswer, that time has given it.
	Expired bool `json:",omitempty"`

	// Handled is, for a KindTask, why the task failed, if its node handles that with OnError.
	Handled string

	// Failures are, for a KindStep, those of its tasks and of the children that they called, which the run has survived.
	Failures []Failure `json:",omitempty"`

	// Reason is, for a KindEnd, why the drive stopped, if it failed, and Open are the ids of the
	// questions that were open then.
	Reason string
	Open   []string

	// Due is, for a KindEnd of a run that waits, when the first of its timers and deadlines has come; zero: it waits
	// for answers alone.
	Due time.Time `json:",omitzero"`
}

// A Failure is one that a run has survived: OnError of its node handles it.
type Failure struct {
	// Path is that of the child frame, the nodes above, each with a '/', as in graph.NodeError; "" is the root.
	Path string

	// Node is the node, and Index its task's place among those of a Send; 0 for the others.
	Node  string
	Index int

	// Text is the node's own error.
	Text string

	// Handler is the node that handles it; "": it has ended its path.
	Handler string
}

// DecodeContent decodes the content of a record that was read with its data. It needs no
// graph. The content of kinds that are not named in [Content] is empty.
func DecodeContent(r journal.Record) (c Content, err error) {
	b, err := readRecord(r)
	if err != nil {
		return c, err
	}
	return newContent(&r, &b)
}

// newContent returns the content of a record with these parts.
func newContent(r *journal.Record, b *record.Parts) (c Content, err error) {
	switch r.Kind {
	case journal.KindClaim, journal.KindStart, journal.KindCall, journal.KindStep, journal.KindEdit:
		c.Keys = patchKeys(b.Patches)
		for i := range b.Failures {
			f := &b.Failures[i]
			c.Failures = append(c.Failures, Failure{Path: f.Path, Node: f.Node, Index: f.Index, Text: f.Text, Handler: f.Handler})
		}
	case journal.KindTask:
		u := record.TaskUpdate{}
		if err := describeRecord(*r, u.Decode(b.Value)); err != nil {
			return c, err
		}
		c.Keys = patchKeys(u.Writes)
		c.Handled = u.Failed
	case journal.KindQuestion:
		c.Asked = b.ID
		c.Question = (*graph.Question)(b.Question)
	case journal.KindAnswer:
		c.Asked = b.ID
		c.Ahead = b.Ahead > 0
		c.Expired = b.Due != 0
		c.Refused = b.Refused
		c.Answer = slices.Clone(b.Value)
	case journal.KindEnd:
		c.Reason = b.Reason
		c.Due = record.TimeOf(b.Due)
		for _, q := range b.Open {
			c.Open = append(c.Open, q.ID)
		}
	}
	return c, nil
}

// readRecord reads a record. An error names the record.
func readRecord(r journal.Record) (b record.Parts, err error) {
	err = b.Read(uint8(r.Kind), r.Head, r.Data)
	return b, describeRecord(r, err)
}

// describeRecord returns an error with the record that it is about; nil if it is nil.
func describeRecord(r journal.Record, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("record %d (%s): %w", r.Seq, r.Kind, err)
}

// patchKeys returns the keys that patches write, each once.
func patchKeys(ps []record.Patch) (keys []string) {
	for _, p := range ps {
		if !slices.Contains(keys, p.Key) {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

// DecodeResult returns the value of the Halt that ended a run, of the KindEnd that was read with its data; nil without
// one.
func DecodeResult(r journal.Record) (any, error) {
	if r.Kind != journal.KindEnd || len(r.Data) == 0 {
		return nil, nil
	}
	b, err := readRecord(r)
	if err != nil {
		return nil, err
	}
	return value.DecodeAny(b.Value)
}
