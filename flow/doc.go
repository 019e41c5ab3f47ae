// Package flow turns agent files into graphs: it reads graph.yaml and
// config.yaml with the position of every field, reports all errors at once, and
// proves what can be proven before a model is called.
//
// Package spec reads the two file formats: it produces a [spec.File] or a
// [spec.Config] with findings of type [strictyaml.Finding], and renders
// templates. This package finds the agents, compiles their files to graphs and
// runs the nodes.
//
// # Values
//
// A value of a graph's state is one of nil, bool, string, int64, uint64 (only
// above the largest int64), float64, []any and [*jsonvalue.Object]. Integers and floats
// are different kinds: 3 is not 3.0. Objects keep the order of their members.
// Values must not be changed once they are in a state; nodes share them without
// copies.
package flow
