package flow

import (
	"go.yaml.in/yaml/v4"
)

// source is a mapping of the file and its position.
type source struct {
	pos  Pos
	node *yaml.Node
}

func (s source) positionOf(n *yaml.Node) Pos { return Pos{s.pos.File, n.Line, n.Column} }

// fieldNode returns the node of a field, or nil if the field is missing.
func (s source) fieldNode(field string) *yaml.Node {
	if s.node == nil {
		return nil
	}
	content := resolveAlias(s.node).Content
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == field && !isBroken(content[i]) {
			return content[i+1]
		}
	}
	return nil
}

func (s source) fieldPosition(field string) Pos {
	if n := s.fieldNode(field); n != nil {
		return s.positionOf(n)
	}
	return s.pos
}

// itemPositions returns a function with the position of every element of a list field,
// of every value of a map field, or of the only scalar.
func (s source) itemPositions(field string) func(i int) Pos {
	n := s.fieldNode(field)
	if n == nil {
		return func(int) Pos { return s.pos }
	}
	list := resolveAlias(n)
	return func(i int) Pos {
		switch {
		case list.Kind == yaml.SequenceNode && i < len(list.Content):
			return s.positionOf(list.Content[i])
		case list.Kind == yaml.MappingNode && 2*i+1 < len(list.Content):
			return s.positionOf(list.Content[2*i+1])
		}
		return s.positionOf(n)
	}
}

// keyPositions returns a function with the position of every key of a map field.
func (s source) keyPositions(field string) func(i int) Pos {
	n := s.fieldNode(field)
	if n == nil || resolveAlias(n).Kind != yaml.MappingNode {
		return func(int) Pos { return s.pos }
	}
	list := resolveAlias(n)
	return func(i int) Pos {
		if 2*i < len(list.Content) {
			return s.positionOf(list.Content[2*i])
		}
		return s.positionOf(n)
	}
}
