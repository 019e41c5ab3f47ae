package check

import (
	"fmt"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/wording"
)

// A shape is what is known of a value, as a JSON schema; nil: nothing is.
type shape = *jsonvalue.Object

// These are the shapes of values that the format fixes.
var (
	textShape   = spec.NewSchema("string")
	numberShape = spec.NewSchema("integer")
	listShape   = spec.NewSchema("array")
)

// adviseMembers reports placeholders that select in a value what its known shape does not have. Keys of the state are
// followed only if one node alone sets them, and no script that could set any key is in the graph.
func (a *Adviser) adviseMembers() {
	known := keyShapes(a.File)
	for _, n := range a.File.Nodes {
		for _, u := range n.AllTemplates() {
			for _, part := range u.Template.Parts {
				p := part.Path
				if p == nil || p.Never || a.IsFull() {
					continue
				}
				s := known[p.Root]
				if u.Field == "state_updates" && p.Root == n.Type.Scoped {
					s = resultShape(n)
				}
				if why, hint := findMiss(p, s); why != "" {
					a.WarnAt(n, a.text.locatePlaceholder(n, u, p), "template-member", fmt.Sprintf("{{%s}} never has a value: %s", p.Text, why), hint)
				}
			}
		}
	}
}

// resultShape returns the shape of the result of a node, which its state_updates can read.
func resultShape(n *spec.Node) shape {
	if n.OutputSchema != nil {
		s, _ := n.OutputSchema.(shape)
		return s
	}
	return n.Type.Result
}

// keyShapes returns the shapes of the keys of a state of which they are certain.
func keyShapes(f *spec.File) map[string]shape {
	known := map[string]shape{}
	writers := map[string]int{spec.PromptKey: 1}
	for key := range f.InitialState.All() {
		writers[key] = 2 // values of an input can be anything
	}
	for _, n := range f.Nodes {
		if n.WritesAnyKey() {
			return nil
		}
		for _, key := range writtenKeys(n) {
			writers[key]++
			known[key] = writtenShape(n, key)
		}
		b := n.Branch
		if b == nil {
			continue
		}
		writers[b.As]++
		writers[b.CollectInto]++
		known[b.CollectInto] = listShape
		if key := n.CountsKey(); key != "" {
			writers[key]++
			known[key] = spec.NewSchema("object", jsonvalue.Member{Key: "done", Value: numberShape}, jsonvalue.Member{Key: "failed", Value: numberShape}, jsonvalue.Member{Key: "failures", Value: listShape})
		}
	}
	for key := range known {
		if writers[key] > 1 || f.Reducer(key) != "" {
			delete(known, key)
		}
	}
	return known
}

// writtenShape returns the shape of what a node writes to a key: state_updates write texts, and come after the members
// of a reply.
func writtenShape(n *spec.Node, key string) shape {
	for _, u := range n.Updates {
		if u.Key == key {
			return textShape
		}
	}
	return memberOf(n.OutputSchema, key)
}

// memberOf returns the shape of a member of a map; nil: it is not known.
func memberOf(of any, name string) shape {
	o, _ := of.(shape)
	properties, _ := o.Get("properties")
	members, _ := properties.(*jsonvalue.Object)
	member, _ := members.Get(name)
	s, _ := member.(shape)
	return s
}

// findMiss returns why a path cannot select anything in a value of a shape; "": it can, or may be able to.
func findMiss(p *spec.Path, s shape) (why, hint string) {
	at := "`" + p.Root + "`"
	for name, index := range p.Steps() {
		kind, _ := s.Get("type")
		switch {
		case s == nil || spec.IsOpenSchema(s):
			return "", ""
		case kind == "string", kind == "number", kind == "integer", kind == "boolean":
			return fmt.Sprintf("%s is a %s, and has no parts", at, nameKind(kind)), ""
		case index >= 0 && kind == "array":
			items, _ := s.Get("items")
			s, _ = items.(shape)
			at = fmt.Sprintf("an item of %s", at)
		case index >= 0 && kind == "object":
			return at + " is a map, and not a list", ""
		case index < 0 && kind == "array":
			return at + " is a list, and not a map", "write the index of an item: key[0]"
		case index < 0:
			properties, _ := s.Get("properties")
			members, ok := properties.(*jsonvalue.Object)
			if !ok {
				return "", ""
			}
			if _, has := members.Get(name); !has {
				var names []string
				for member := range members.All() {
					names = append(names, member)
				}
				return fmt.Sprintf("%s has no `%s`", at, name), wording.SuggestNearest(name, names, "`")
			}
			s = memberOf(s, name)
			at = "`" + name + "`"
		default:
			return "", ""
		}
	}
	return "", ""
}

// nameKind returns the word of people for a type of a schema.
func nameKind(kind any) string {
	switch kind {
	case "string":
		return "text"
	case "boolean":
		return "truth value"
	}
	return "number"
}
