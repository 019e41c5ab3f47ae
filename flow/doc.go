// Package flow turns agent files into graphs: it reads graph.yaml and config.yaml
// with the place of every field, tells all that is wrong with them at once, and
// proves what can be proven before a model is called.
//
// The package has two halves. This one is pure: text goes in, a [File] or a
// [Config] and [Finding] values come out, templates are rendered, state values
// are encoded and decoded. The other half compiles them to graphs and runs their
// nodes.
//
// Size: the exported names are the fields of two file formats, a type for each
// group of them, and the events of their nodes.
//
// # Values
//
// A value of a graph's state is one of nil, bool, string, int64, uint64 (only
// above the largest int64), float64, []any and [*Object]. Integers and floats
// are different kinds: 3 is not 3.0. Objects keep the order of their members.
// Values are immutable once they are in a state; nodes share them without
// copies.
package flow
