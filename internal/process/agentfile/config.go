package agentfile

import (
	"bytes"

	"go.yaml.in/yaml/v4"
)

// A Field is a field of a config.yaml.
type Field struct {
	Key   string
	Value any // a text, a number, a bool, a list of texts, or a tree of them; nil, "" and empty lists are not written
}

// WriteConfig returns the text of a config.yaml with some fields in their order. The error says which value YAML does
// not have.
func WriteConfig(fields ...Field) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		if isBlank(f.Value) {
			continue
		}
		value := &yaml.Node{}
		if err := value.Encode(f.Value); err != nil {
			return nil, err
		}
		if value.Kind == yaml.SequenceNode && isFlat(value) {
			value.Style = yaml.FlowStyle
		}
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: f.Key}, value)
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

func isBlank(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []string:
		return len(v) == 0
	}
	return false
}

// isFlat reports whether a list has only scalars.
func isFlat(n *yaml.Node) bool {
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			return false
		}
	}
	return true
}
