package graph

import "raddle.dev/graph/internal/effectid"

// An EffectID names one call of an effect, one question or one [SharedValue] among those of a frame, as the records of
// it do; see [raddle.dev/graph/history.Entry]. Its Task is step.node.index, or "" if it belongs to the whole run; its Name
// is [Effect.Name] or that of the question; its Call is an = and [Effect.Key], or which call of the name in the task it
// is, from 0. The zero value names none.
type EffectID = effectid.ID

// ParseEffectID reads the id of a record. It is the zero value for a text that is none.
func ParseEffectID(text string) EffectID { return effectid.Parse(text) }
