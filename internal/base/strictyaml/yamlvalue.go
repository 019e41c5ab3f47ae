package strictyaml

import (
	"math"

	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/jsonvalue"
)

// ResolveAlias returns the node to which an alias refers.
func ResolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// DecodeValue converts an inspected YAML tree to a state value. Keys are read as
// text; a float that is not a finite number becomes null, because JSON has
// none.
func DecodeValue(n *yaml.Node) any {
	n = ResolveAlias(n)
	switch n.Kind {
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, child := range n.Content {
			list[i] = DecodeValue(child)
		}
		return list
	case yaml.MappingNode:
		o := &jsonvalue.Object{Members: make([]jsonvalue.Member, 0, len(n.Content)/2)}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; !IsBroken(key) {
				o.Set(key.Value, DecodeValue(n.Content[i+1]))
			}
		}
		return o
	}
	if IsBroken(n) {
		return nil
	}
	v, _ := DecodeScalar(n)
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return nil
	}
	return v
}
