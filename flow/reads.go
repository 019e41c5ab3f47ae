package flow

// use is a template of a node and how the node uses it.
type use struct {
	field    string
	item     int // index in the list or map, for state_updates
	template Template
	strict   bool // a missing value is a failure
}

// bodyTemplates returns the templates in the fields of a node's type.
func (n *Node) bodyTemplates() []use {
	strict := func(field string, t Template) use { return use{field: field, template: t, strict: true} }
	switch b := n.Body.(type) {
	case *AgentNode:
		return []use{strict("prompt", b.Prompt)}
	case *ApprovalNode:
		return []use{strict("question", b.Question)}
	case *InputNode:
		return []use{strict("question", b.Question), {field: "default", template: b.Default}}
	case *LLMNode:
		if b.Instructions != nil {
			return []use{strict("instructions", *b.Instructions), strict("prompt", b.Prompt)}
		}
		return []use{strict("prompt", b.Prompt)}
	case *RAGNode:
		return []use{strict("query", b.Query)}
	case *EndNode:
		return []use{{field: "output", template: b.Output}}
	case *MapNode:
		return []use{strict("over", b.Over)}
	}
	return nil
}

// updateTemplates returns the templates of a node's state_updates.
func (n *Node) updateTemplates() []use {
	list := make([]use, len(n.Updates))
	for i, u := range n.Updates {
		list[i] = use{field: "state_updates", item: i, template: u.Value}
	}
	return list
}
