package spec

import (
	"slices"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// Node is one node of a graph: the fields that types share, and the rest in
// Body.
type Node struct {
	ID           string
	Type         *Kind
	Description  string
	Next         []string // nil: no next; empty: an empty list
	Updates      []Update // state_updates in order; nil: none; empty: an empty map
	OutputSchema any      // nil: the text is not parsed
	Skills       *Skills  // nil: the type has none
	Targets      []string // nodes that it may choose itself, if it declares them; nil: it does not
	Branch       *Branch  // of a node that runs another one for every item of a list; else nil
	// Queue is that of the workers that run the node's children where runs are distributed; nil: they run in the
	// process.
	Queue     *string
	Budget    *Budget // of a visit, with everything below it; nil: none
	Templates []TemplateUse
	Body      any // the other fields of its type, as Decode of the type returned them

	Source strictyaml.Mapping
	edges  []Edge // those of other fields than next
}

// Branch says which node another one runs for every item of a list.
type Branch struct {
	To             string // id of the node to run
	As             string // key of the item while the branch runs
	OutputKey      string // key of the branch's result
	CollectInto    string // key of the array of results
	MaxConcurrency *int   // nil: the graph's
	// OnFailure is OnFailureStop, OnFailureCollect or OnFailureSkip, or the id of the node that runs for each item whose
	// branch has failed.
	OnFailure string
}

// What happens to an item whose branch has failed, and to the others.
const (
	OnFailureStop    = "stop"    // the node fails when all items have ended
	OnFailureCollect = "collect" // the list of results has the failure at the place of the item
	OnFailureSkip    = "skip"    // the list of results leaves the item out
)

// FailureWords are the values of on_failure that are not the id of a node.
var FailureWords = []string{OnFailureStop, OnFailureCollect, OnFailureSkip}

// ReasonKey is the key with the reason of a failure or end, which only the handler of a failed item and the node of finally see.
const ReasonKey = "error"

// Handler returns the id of the node that runs for each failed item; "": there is none.
func (b *Branch) Handler() string {
	if slices.Contains(FailureWords, b.OnFailure) {
		return ""
	}
	return b.OnFailure
}

// Nodes returns the ids of the nodes that run for items: the branch, and the handler if there is one.
func (b *Branch) Nodes() []string {
	if h := b.Handler(); h != "" && h != b.To {
		return []string{b.To, h}
	}
	return []string{b.To}
}

// CountsKey returns the key under which the node keeps how many of its items have failed, which is its id; "": it fails
// with its first failed item, and keeps nothing.
func (n *Node) CountsKey() string {
	if n.Branch == nil || n.Branch.OnFailure == OnFailureStop {
		return ""
	}
	return n.ID
}

// QueueName returns the name of the node's queue; "": it has none.
func (n *Node) QueueName() string {
	if n.Queue == nil {
		return ""
	}
	return *n.Queue
}

// Kind returns the node's type as it is written in files.
func (n *Node) Kind() string { return n.Type.Name }

// Pos returns the position of the node's id.
func (n *Node) Pos() strictyaml.Pos { return n.Source.Pos }

// At returns the position of a field's value, or of the node if the field is
// missing.
func (n *Node) At(field string) strictyaml.Pos { return n.Source.FieldPosition(field) }

// TemplateUse is a template of a node and how the node uses it.
type TemplateUse struct {
	Field    string
	Item     int // index in the list or map, for state_updates
	Template Template
	Strict   bool // a missing value is a failure
}

// AllTemplates returns the templates in the fields of a node's type, then those
// of its state_updates.
func (n *Node) AllTemplates() []TemplateUse {
	list := make([]TemplateUse, len(n.Templates), len(n.Templates)+len(n.Updates))
	copy(list, n.Templates)
	for i, u := range n.Updates {
		list = append(list, TemplateUse{Field: "state_updates", Item: i, Template: u.Value})
	}
	return list
}

// SchemaProperties returns the top-level properties that a node's output_schema
// declares, in file order.
func (n *Node) SchemaProperties() []string {
	o, _ := n.OutputSchema.(*jsonvalue.Object)
	properties, _ := o.Get("properties")
	declared, _ := properties.(*jsonvalue.Object)
	var names []string
	for name := range declared.All() {
		names = append(names, name)
	}
	return names
}

// WritesAnyKey reports whether it is unknown which keys the node sets: its type
// allows any key, or it has an output_schema that does not say which keys its
// result has.
func (n *Node) WritesAnyKey() bool { return n.Type.WritesAnyKey || n.hasOpenSchema() }

func (n *Node) hasOpenSchema() bool {
	if n.OutputSchema == nil {
		return false
	}
	if n.SchemaProperties() == nil {
		return true
	}
	return IsOpenSchema(n.OutputSchema.(*jsonvalue.Object))
}

// NewSchema returns the schema of a JSON type; of an object with the given members.
func NewSchema(kind string, members ...jsonvalue.Member) *jsonvalue.Object {
	o := jsonvalue.NewObject(jsonvalue.Member{Key: "type", Value: kind})
	if members != nil {
		o.Set("properties", jsonvalue.NewObject(members...))
	}
	return o
}

// IsOpenSchema reports whether a schema of a map does not say which members there are.
func IsOpenSchema(o *jsonvalue.Object) bool {
	for _, word := range []string{"$ref", "allOf", "anyOf", "oneOf", "patternProperties", "if"} {
		if _, ok := o.Get(word); ok {
			return true
		}
	}
	more, ok := o.Get("additionalProperties")
	return ok && more != false
}
