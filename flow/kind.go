package flow

import (
	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
)

// kind is one row of the table of types of nodes. Everything that differs by
// type is in its file kind_….go: the row, and the methods of the body that the
// row decodes.
type kind struct {
	spec.Kind
	decode func(m *spec.NodeFields) nodeBody
}

// nodeBody contains the fields of a node's type, and what the type does with
// them.
type nodeBody interface {
	check.Body
	// needs returns what the node needs of its agent.
	needs(n *spec.Node) nodeNeeds
	// compile sets the parts of node other than its function, such as the graph
	// that it calls.
	compile(c *nodeCompiler, node *graph.Node) error
	// run executes the node: it writes values and routes.
	run(nr *nodeRun) error
}

// nodeNeeds is what a node uses, as far as its file says.
type nodeNeeds struct {
	agent   string        // another agent that it runs
	script  string        // a script that it runs, as the file names it
	request *ModelRequest // to a model
	base    *knowledge    // that it searches
}

// needsOf returns what a node needs of its agent.
func needsOf(n *spec.Node) nodeNeeds { return n.Body.(nodeBody).needs(n) }
