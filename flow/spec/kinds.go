package spec

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/strictyaml"
)

// kind is one type of node. To add a type, add one entry here and one file.
type kind struct {
	Name     string
	Doc      string   // what such a node does, one sentence
	Required []string // fields besides type
	Optional []string // fields besides id, type, description and next
	Scoped   string   // the variable that its state_updates can read; empty: none
	Decode   func(m *strictyaml.Fields) Body
}

// Kinds are all types of nodes, by name.
var Kinds = []kind{
	agentKind, approvalKind, endKind, inputKind, llmKind, mapKind, ragKind, scriptKind,
}

// KindOrder is the order in which messages list the types.
var KindOrder = []string{"agent", "script", "approval", "input", "llm", "rag", "end", "map"}

// KindOf finds a type by name.
func KindOf(name string) (kind, bool) {
	i := slices.IndexFunc(Kinds, func(k kind) bool { return k.Name == name })
	if i < 0 {
		return kind{}, false
	}
	return Kinds[i], true
}

// kindsWith returns the types that have a field.
func kindsWith(field string) []string {
	var names []string
	for _, k := range Kinds {
		if slices.Contains(k.Required, field) || slices.Contains(k.Optional, field) {
			names = append(names, k.Name)
		}
	}
	return names
}

// hintForKey returns a hint that names the other types with a key that a node
// of type k does not have, or "" if there are none.
func (k *kind) hintForKey(key string) string {
	owners := kindsWith(key)
	if owners == nil {
		return ""
	}
	return fmt.Sprintf("only nodes of type %s have it, and this one is of type %s", strings.Join(owners, ", "), k.Name)
}

// OutputSchema returns a node's output_schema, or nil if it has none.
func (n *Node) OutputSchema() any {
	switch b := n.Body.(type) {
	case *LLMNode:
		return b.OutputSchema
	case *AgentNode:
		return b.OutputSchema
	}
	return nil
}

// SchemaProperties returns the top-level properties that a node's output_schema
// declares, in file order.
func (n *Node) SchemaProperties() []string {
	o, _ := n.OutputSchema().(*jsonvalue.Object)
	properties, _ := o.Get("properties")
	declared, _ := properties.(*jsonvalue.Object)
	var names []string
	for name := range declared.All() {
		names = append(names, name)
	}
	return names
}

// OpenSchema reports whether a node has an output_schema that does not say
// which keys its result has.
func (n *Node) OpenSchema() bool {
	schema := n.OutputSchema()
	if schema == nil {
		return false
	}
	if n.SchemaProperties() == nil {
		return true
	}
	o := schema.(*jsonvalue.Object)
	for _, word := range []string{"$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"} {
		if _, ok := o.Get(word); ok {
			return true
		}
	}
	more, ok := o.Get("additionalProperties")
	return ok && more != false
}
