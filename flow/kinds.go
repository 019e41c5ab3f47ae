package flow

import (
	"fmt"

	"raddle.dev/flow/spec"
)

// kinds are all types of nodes, in the order in which messages list them. To
// add a type, add one entry here and one file.
var kinds = []*kind{agentKind, scriptKind, approvalKind, inputKind, llmKind, ragKind, endKind, mapKind, waitKind}

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
