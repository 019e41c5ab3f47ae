package flow

import (
	"fmt"

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

// kinds are all types of nodes, in the order in which messages list them. To
// add a type, add one entry here and one file.
var kinds = []*kind{agentKind, scriptKind, approvalKind, inputKind, llmKind, ragKind, endKind, mapKind}

// graphKinds are the types of nodes as package spec uses them.
var graphKinds = func() spec.Kinds {
	list, err := specKinds(kinds)
	if err != nil {
		panic(err)
	}
	return list
}()

// ParseGraph reads the text of a graph.yaml, as [spec.Parse] does, with the
// types of nodes that raddle can run.
func ParseGraph(path string, text []byte) (*spec.File, error) {
	return spec.Parse(path, text, graphKinds)
}

// specKinds returns rows as package spec uses them. It fails if a row is
// incomplete.
func specKinds(rows []*kind) (spec.Kinds, error) {
	list := make(spec.Kinds, len(rows))
	for i, k := range rows {
		if k.Name == "" || k.Doc == "" || k.decode == nil {
			return nil, fmt.Errorf("the type of node %q has no name, no description or no function that decodes it", k.Name)
		}
		row := k.Kind
		row.Decode = func(m *spec.NodeFields) any { return k.decode(m) }
		list[i] = &row
	}
	return list, nil
}

// needsOf returns what a node needs of its agent.
func needsOf(n *spec.Node) nodeNeeds { return n.Body.(nodeBody).needs(n) }
