// Package draw draws the structure of a graph, or what a run did in it: with box characters for a
// terminal, as Mermaid or DOT text for other tools, as an SVG or PNG picture, or as JSON. It needs no
// other program, because it computes the layout itself. The same structure always gives the same
// bytes.
//
// All pictures use the same signs:
//
//   - A node's shape and colour show its kind, which is also the small word below its name.
//   - A solid line is always taken. A long-dashed one is a case of a condition and a short-dashed one
//     a target that the node names itself, both with their label. A dotted red one is taken when the
//     node has failed.
//   - The sources of a join meet in a bar.
//   - A filled dot is the start, a ringed one the end. A node of the kind end is one itself.
//   - A node that runs a child graph is drawn as a frame around that graph. In drawings with
//     characters, the child graph follows below.
package draw
