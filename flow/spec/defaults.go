package spec

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
)

// defaultFields are the fields of nodes for which a graph may have values for all its nodes that have the field and do
// not set it.
var defaultFields = []string{"timeout", "max_attempts", "retry_patience", "fallback", "on_failure", "budget"}

// readDefaults reads the values of fields that nodes do not set themselves.
func (p *FileParser) readDefaults(m *strictyaml.Fields) {
	at := m.ReadMapping("defaults")
	if at == nil {
		return
	}
	s := strictyaml.NewFields(p.Problems, strictyaml.Mapping{Pos: m.Source.PositionOf(at), Node: at}, "defaults")
	s.Known = defaultFields
	p.File.Findings = append(p.File.Findings, s.UnknownKeys("", nil)...)
	p.defaults = strictyaml.ResolveAlias(at).Content
}

// withDefaults returns the members of a node, and those of the defaults that its type has and that it lacks. A node that
// the others lead to after a failure gets no way to itself.
func (p *FileParser) withDefaults(n *Node) strictyaml.Mapping {
	own := strictyaml.ResolveAlias(n.Source.Node)
	all := *own
	all.Content = slices.Clone(own.Content)
	for i := 0; i+1 < len(p.defaults); i += 2 {
		field := p.defaults[i].Value
		leadsToItself := field == "fallback" && p.defaults[i+1].Value == n.ID
		if slices.Contains(defaultFields, field) && n.Type.hasField(field) && !hasMember(own, field) && !leadsToItself {
			all.Content = append(all.Content, p.defaults[i], p.defaults[i+1])
		}
	}
	return strictyaml.Mapping{Pos: n.Source.Pos, Node: &all}
}

// hasMember reports whether a mapping has a key.
func hasMember(m *yaml.Node, key string) bool {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return true
		}
	}
	return false
}
