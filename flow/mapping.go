package flow

import (
	"go.yaml.in/yaml/v4"
)

// source is a mapping of the file and its position.
type source struct {
	pos  Pos
	node *yaml.Node
}

func (s source) place(n *yaml.Node) Pos { return Pos{s.pos.File, n.Line, n.Column} }

// value returns the node of a field, or nil if the field is missing.
func (s source) value(field string) *yaml.Node {
	if s.node == nil {
		return nil
	}
	content := resolve(s.node).Content
	for i := 0; i+1 < len(content); i += 2 {
		if content[i].Value == field && !isBroken(content[i]) {
			return content[i+1]
		}
	}
	return nil
}

func (s source) at(field string) Pos {
	if n := s.value(field); n != nil {
		return s.place(n)
	}
	return s.pos
}

// items returns a function with the position of every element of a list field,
// of every value of a map field, or of the only scalar.
func (s source) items(field string) func(i int) Pos {
	n := s.value(field)
	if n == nil {
		return func(int) Pos { return s.pos }
	}
	list := resolve(n)
	return func(i int) Pos {
		switch {
		case list.Kind == yaml.SequenceNode && i < len(list.Content):
			return s.place(list.Content[i])
		case list.Kind == yaml.MappingNode && 2*i+1 < len(list.Content):
			return s.place(list.Content[2*i+1])
		}
		return s.place(n)
	}
}

// keys returns a function with the position of every key of a map field.
func (s source) keys(field string) func(i int) Pos {
	n := s.value(field)
	if n == nil || resolve(n).Kind != yaml.MappingNode {
		return func(int) Pos { return s.pos }
	}
	list := resolve(n)
	return func(i int) Pos {
		if 2*i < len(list.Content) {
			return s.place(list.Content[2*i])
		}
		return s.place(n)
	}
}
