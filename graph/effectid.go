package graph

import "strings"

// An EffectID names one call of an effect, one question or one [SharedValue] among those of a frame, as the records of
// it do; see [raddle.dev/graph/history.Entry]. The zero value names none.
type EffectID struct {
	Task string // step.node.index; "": it belongs to the whole run
	Name string // [Effect.Name], or that of the question
	Call string // an = and [Effect.Key], or which call of the name in the task it is, from 0
}

// idSeparator stands between the parts of an EffectID.
const idSeparator = "\x00"

// String returns the id as records have it.
func (id EffectID) String() string {
	return id.Task + idSeparator + id.Name + idSeparator + id.Call
}

// Key returns the [Effect.Key]; "": the effect has none.
func (id EffectID) Key() string {
	key, ok := strings.CutPrefix(id.Call, "=")
	if !ok {
		return ""
	}
	return key
}

// sharedName is the name in the ids of shared values.
const sharedName = "shared"

// SharedName returns the name of the [SharedValue] that the id is of; "": it is another id.
func (id EffectID) SharedName() string {
	if id.Task != "" || id.Name != sharedName {
		return ""
	}
	return id.Key()
}

// ParseEffectID reads the id of a record. It is the zero value for a text that is none.
func ParseEffectID(text string) (id EffectID) {
	task, rest, _ := strings.Cut(text, idSeparator)
	name, call, ok := strings.Cut(rest, idSeparator)
	if !ok {
		return id
	}
	return EffectID{Task: task, Name: name, Call: call}
}
