package strictyaml

import (
	"go.yaml.in/yaml/v4"
)

// Mapping is a mapping of the file and its position.
type Mapping struct {
	Pos  Pos
	Node *yaml.Node
}

func (m Mapping) PositionOf(n *yaml.Node) Pos { return Pos{m.Pos.File, n.Line, n.Column} }

// FieldNode returns the node of a field, or nil if the field is missing.
func (m Mapping) FieldNode(field string) *yaml.Node {
	if m.Node == nil {
		return nil
	}
	content := ResolveAlias(m.Node).Content
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == field && !IsBroken(content[i]) {
			return content[i+1]
		}
	}
	return nil
}

func (m Mapping) FieldPosition(field string) Pos {
	if n := m.FieldNode(field); n != nil {
		return m.PositionOf(n)
	}
	return m.Pos
}

// ItemPositions returns a function with the position of every element of a list field,
// of every value of a map field, or of the only scalar.
func (m Mapping) ItemPositions(field string) func(i int) Pos {
	n := m.FieldNode(field)
	if n == nil {
		return func(int) Pos { return m.Pos }
	}
	list := ResolveAlias(n)
	return func(i int) Pos {
		switch {
		case list.Kind == yaml.SequenceNode && i < len(list.Content):
			return m.PositionOf(list.Content[i])
		case list.Kind == yaml.MappingNode && 2*i+1 < len(list.Content):
			return m.PositionOf(list.Content[2*i+1])
		}
		return m.PositionOf(n)
	}
}

// KeyPositions returns a function with the position of every key of a map field.
func (m Mapping) KeyPositions(field string) func(i int) Pos {
	n := m.FieldNode(field)
	if n == nil || ResolveAlias(n).Kind != yaml.MappingNode {
		return func(int) Pos { return m.Pos }
	}
	list := ResolveAlias(n)
	return func(i int) Pos {
		if 2*i < len(list.Content) {
			return m.PositionOf(list.Content[2*i])
		}
		return m.PositionOf(n)
	}
}
