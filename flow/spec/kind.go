package spec

import (
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// Kind is one type of node, as the reader of files and the checks know it.
type Kind struct {
	Name     string
	Doc      string            // what such a node does, one sentence
	Required []string          // fields, without type
	Optional []string          // fields, without id, type, description and next
	Scoped   string            // the variable that its state_updates can read; empty: none
	Result   *jsonvalue.Object // JSON schema of that variable, if the format fixes it; nil: it does not
	Late     bool              // not in the first version of the file format, whose advice names the types

	Routing      Routing
	WritesAnyKey bool   // its result may set any key of the state
	Spawns       bool   // a graph with such a node offers its models the tools that spawn agents
	NotInBranch  bool   // a map cannot run it
	BranchFault  string // why the validator rejects it as the branch of a map; empty: it does not

	// Decode reads the fields of the type and returns the body of the node. It
	// adds the node's own edges and templates, and sets its branch.
	Decode func(f *NodeFields) any
}

// Routing says how a node of a type chooses the nodes that run after it.
type Routing int

const (
	RouteNext  Routing = iota // all nodes of next, which it needs
	RouteFirst                // the first node of next
	RouteAny                  // any node that it names at run time, else next
	RouteOwn                  // its own edges: next is not followed
	RouteEnd                  // none: it ends the run, and next is not followed
)

// IgnoresNext reports whether the next of a node is not followed.
func (r Routing) IgnoresNext() bool { return r == RouteOwn || r == RouteEnd }

// Kinds are types of nodes, in the order in which messages list them.
type Kinds []*Kind

// Find returns the type with a name, or nil if there is none.
func (kinds Kinds) Find(name string) *Kind {
	i := slices.IndexFunc(kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return kinds[i]
}

// Names returns the names of the types in their order.
func (kinds Kinds) Names() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.Name
	}
	return names
}

// IsScoped reports whether a name is the variable of some type's state_updates.
func (kinds Kinds) IsScoped(name string) bool {
	return name != "" && slices.ContainsFunc(kinds, func(k *Kind) bool { return k.Scoped == name })
}

// firstVersion returns the types of the first version of the file format.
func (kinds Kinds) firstVersion() Kinds {
	return slices.DeleteFunc(slices.Clone(kinds), func(k *Kind) bool { return k.Late })
}

// hasField reports whether nodes of the type have a field.
func (k *Kind) hasField(name string) bool {
	return slices.Contains(k.Required, name) || slices.Contains(k.Optional, name)
}

// hintForKey returns a function that returns a hint for a key that a node of
// type k does not have: the types that have it, or "" if there are none.
func (kinds Kinds) hintForKey(k *Kind) func(key string) string {
	return func(key string) string {
		if slices.Contains(conditionKeys, key) {
			return "conditions are in scripts, which print {\"_next\": \"NODE\"}, and in the routes of an approval: see raddle help cookbook"
		}
		owners := slices.DeleteFunc(slices.Clone(kinds), func(k *Kind) bool { return !k.hasField(key) }).Names()
		if len(owners) == 0 {
			return ""
		}
		slices.Sort(owners)
		return fmt.Sprintf("only nodes of type %s have it, and this one is of type %s", strings.Join(owners, ", "), k.Name)
	}
}

// conditionKeys are keys with which other formats make nodes depend on a condition.
var conditionKeys = []string{"when", "if", "unless", "condition", "conditions", "cond", "switch", "branches"}

// NodeFields are the fields of a node that its type reads.
type NodeFields struct {
	*strictyaml.Fields
	Node *Node
}

// AddStrict parses a template of the node. Every placeholder in it must have a
// value when the node runs.
func (f *NodeFields) AddStrict(field, text string) Template {
	t := ParseTemplate(text)
	f.Node.Templates = append(f.Node.Templates, TemplateUse{Field: field, Template: t, Strict: true})
	return t
}

// AddLenient parses a template of the node. A placeholder without a value is
// replaced by the empty text.
func (f *NodeFields) AddLenient(field, text string) Template {
	t := ParseTemplate(text)
	f.Node.Templates = append(f.Node.Templates, TemplateUse{Field: field, Template: t})
	return t
}

// ReadTargets reads the nodes that the node may choose itself.
func (f *NodeFields) ReadTargets() { f.Node.Targets = f.ReadTexts("targets", strictyaml.Optional) }

// ReadQueue reads the queue whose workers run the children of the node.
func (f *NodeFields) ReadQueue() {
	if f.HasValue("queue") {
		f.Node.Queue = new(f.ReadText("queue", strictyaml.Optional))
	}
}

// AddEdge adds an edge that the node declares in a field other than next.
func (f *NodeFields) AddEdge(e Edge) { f.Node.edges = append(f.Node.edges, e) }

// ReadFallback returns the node after a failure and adds the edge to it, or
// returns "" if the node has none.
func (f *NodeFields) ReadFallback(updates bool) string {
	id := f.ReadText("fallback", strictyaml.Optional)
	if id != "" {
		f.AddEdge(Edge{To: id, Field: "fallback", Role: EdgeFailure, Updates: updates, Picture: "fallback"})
	}
	return id
}

// DecodeNode reads the fields of a node that depend on its type.
func (k *Kind) DecodeNode(m *strictyaml.Fields, n *Node) {
	n.Type = k
	n.Body = k.Decode(&NodeFields{m, n})
	if k.hasField("output_schema") {
		n.OutputSchema = m.ReadAny("output_schema")
	}
	if k.hasField("budget") {
		if n.Budget = readBudget(m, n.ID); n.Budget.Handler() != "" {
			n.edges = append(n.edges, budgetEdge(n.Budget.Handler()))
		}
	}
	if k.hasField("enabled_skills") {
		n.Skills = new(readSkills(m))
	}
	if k.hasField("state_updates") {
		for _, pair := range m.ReadPairs("state_updates", strictyaml.Optional) {
			n.Updates = append(n.Updates, Update{pair.Key, ParseTemplate(pair.Value)})
		}
		if n.Updates == nil && m.HasValue("state_updates") {
			n.Updates = []Update{}
		}
	}
}
