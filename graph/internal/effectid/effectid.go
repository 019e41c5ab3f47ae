// Package effectid has the ids under which a journal keeps effects, questions and shared values.
package effectid

import "strings"

// An ID names one call of an effect, one question or one shared value among those of a frame, as the records of it do.
// The zero value names none.
type ID struct {
	Task string // step.node.index; "": it belongs to the whole run
	Name string // that of the effect or of the question
	Call string // an = and the key of the effect, or which call of the name in the task it is, from 0
}

// separator is between the parts of an ID.
const separator = "\x00"

// String returns the id as records have it.
func (id ID) String() string {
	return id.Task + separator + id.Name + separator + id.Call
}

// Key returns the key of the effect; "": it has none.
func (id ID) Key() string {
	key, ok := strings.CutPrefix(id.Call, "=")
	if !ok {
		return ""
	}
	return key
}

// shared is the name in the ids of shared values.
const shared = "shared"

// ShareName returns the id of the shared value with a name.
func ShareName(name string) ID { return ID{Name: shared, Call: "=" + name} }

// SharedName returns the name of the shared value that the id is of; "": it is another id.
func (id ID) SharedName() string {
	if id.Task != "" || id.Name != shared {
		return ""
	}
	return id.Key()
}

// Parse reads the id of a record. It is the zero value for a text that is none.
func Parse(text string) (id ID) {
	task, rest, _ := strings.Cut(text, separator)
	name, call, ok := strings.Cut(rest, separator)
	if !ok {
		return id
	}
	return ID{Task: task, Name: name, Call: call}
}
