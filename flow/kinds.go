package flow

import (
	"fmt"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/strictyaml"
	"slices"
	"strings"
)

// kind is one type of node. To add a type, add one entry here and one file.
type kind struct {
	name     string
	doc      string   // what such a node does, one sentence
	required []string // fields besides type
	optional []string // fields besides id, type, description and next
	scoped   string   // the variable that its state_updates can read; empty: none
	decode   func(m *strictyaml.Fields) Body
}

// kinds are all types of nodes, by name.
var kinds = []kind{
	agentKind, approvalKind, endKind, inputKind, llmKind, mapKind, ragKind, scriptKind,
}

// kindOrder is the order in which messages list the types.
var kindOrder = []string{"agent", "script", "approval", "input", "llm", "rag", "end", "map"}

// kindOf finds a type by name.
func kindOf(name string) (kind, bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return kinds[i], true
}

// kindsWith returns the types that have a field.
func kindsWith(field string) []string {
	var names []string
	for _, k := range kinds {
		if slices.Contains(k.required, field) || slices.Contains(k.optional, field) {
			names = append(names, k.name)
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
	return fmt.Sprintf("only nodes of type %s have it, and this one is of type %s", strings.Join(owners, ", "), k.name)
}

// outputSchema returns a node's output_schema, or nil if it has none.
func (n *Node) outputSchema() any {
	switch b := n.Body.(type) {
	case *LLMNode:
		return b.OutputSchema
	case *AgentNode:
		return b.OutputSchema
	}
	return nil
}

// schemaProperties returns the top-level properties that a node's output_schema
// declares, in file order.
func (n *Node) schemaProperties() []string {
	o, _ := n.outputSchema().(*jsonvalue.Object)
	properties, _ := o.Get("properties")
	declared, _ := properties.(*jsonvalue.Object)
	var names []string
	for name := range declared.All() {
		names = append(names, name)
	}
	return names
}

// openSchema reports whether a node has an output_schema that does not say
// which keys its result has.
func (n *Node) openSchema() bool {
	schema := n.outputSchema()
	if schema == nil {
		return false
	}
	if n.schemaProperties() == nil {
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
