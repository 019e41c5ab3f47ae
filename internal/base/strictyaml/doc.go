// Package strictyaml reads YAML files strictly: every problem is found at once, each with its place, what was expected
// and the nearest known word. Scalars follow the core schema of YAML 1.2. A [Document] is the tree of a file, whose
// unusable nodes are marked and never reported twice; [Fields] reads the members of one mapping by name and type and
// reports keys that no reader asked for; a [Finding] is one thing to say about a file.
package strictyaml
