package runs

import (
	"fmt"
	"slices"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/pattern"
)

// A Cause is why a value was missing at the node with which a run has failed: the node that was to write it has failed
// before, and the run has continued.
type Cause struct {
	Key    string `json:"key"`    // the value that was missing
	Node   string `json:"node"`   // that was to write it
	Reason string `json:"reason"` // why it did not
	At     int64  `json:"at"`     // number of the record of its failure
	From   int64  `json:"from"`   // the checkpoint before it ran
}

// String says what has happened, in a sentence without a stop.
func (c *Cause) String() string {
	return fmt.Sprintf("%q was to come from %s, %s", c.Key, c.Node, flow.DescribeFailure(c.Reason))
}

// missingKeys matches the keys that the reason of a failure says are missing.
var (
	missingKeys = pattern.CompileLater(`Template interpolation failed: ((?:'[^']*'(?:, )?)+) not found in state`)
	quotedKey   = pattern.CompileLater(`'([^'.\[]*)`)
)

// FindCause returns the cause of the failure with which the last drive of a run has ended: a node of the run's own graph
// that has failed before; nil: there is none, or the run has not failed.
func (v *View) FindCause() *Cause {
	if v.Snapshot.Status != graph.Failed || v.At > 0 {
		return nil
	}
	found := missingKeys().FindStringSubmatch(v.Snapshot.Reason)
	if found == nil {
		return nil
	}
	file := v.readDefinition()
	if file == nil {
		return nil // the journal does not say which node writes what
	}
	for _, key := range quotedKey().FindAllStringSubmatch(found[1], -1) {
		if c := v.findWriter(file, key[1]); c != nil {
			return c
		}
	}
	return nil
}

// findWriter returns the newest failure of a node that was to write a key and has not succeeded since.
func (v *View) findWriter(file *spec.File, key string) *Cause {
	writers := flow.ListWriters(file, key)
	from := int64(0)
	var cause *Cause
	moments := v.parts.story.moments
	for i := range moments {
		m := &moments[i]
		switch {
		case m.Path != "":
		case m.Kind == journal.KindEffect && flow.IsFailure(m.ID):
			if slices.Contains(writers, m.Node) {
				cause = &Cause{Key: key, Node: m.Node, Reason: m.Failure, At: m.Entry.Seq, From: from}
			}
		case slices.Contains([]journal.Kind{journal.KindStart, journal.KindStep, journal.KindEdit, journal.KindFork}, m.Kind):
			if cause != nil && cause.At < from && slices.Contains(m.From, cause.Node) {
				cause = nil // it has run again
			}
			from = m.Entry.Seq
		}
	}
	return cause
}

// readDefinition returns the file of the run's graph as it was when the run started; nil: the journal does not have it.
func (v *View) readDefinition() *spec.File {
	if v.Record == nil || !v.Record.IsGraph() {
		return nil
	}
	file, err := flow.ParseGraph("graph.yaml", []byte(v.Record.Definition))
	if err != nil {
		return nil
	}
	return file
}

// CountSkipped returns how many items of maps of the run's own graph have failed without a handler, although the run
// has continued, as its state says.
func (v *View) CountSkipped() (n int) {
	file := v.readDefinition()
	if file == nil {
		return 0
	}
	for _, node := range file.Nodes {
		if node.CountsKey() != "" && node.Branch.Handler() == "" {
			n += flow.CountFailedItems(v.Snapshot.Values, node.ID)
		}
	}
	return n
}
