// Package flow turns agent files into graphs: it reads graph.yaml and
// config.yaml with the position of every field, reports all errors at once, and
// proves what can be proven before a model is called.
//
// The package has two halves. One half is pure: it reads text and produces a
// [File] or a [Config] and [Finding] values, renders templates, and encodes and
// decodes state values. The other half compiles files to graphs and runs their
// nodes.
//
// # Values
//
// A value of a graph's state is one of nil, bool, string, int64, uint64 (only
// above the largest int64), float64, []any and [*Object]. Integers and floats
// are different kinds: 3 is not 3.0. Objects keep the order of their members.
// Values must not be changed once they are in a state; nodes share them without
// copies.
package flow
