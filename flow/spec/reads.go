package spec

// TemplateUse is a template of a node and how the node uses it.
type TemplateUse struct {
	Field    string
	Item     int // index in the list or map, for state_updates
	Template Template
	Strict   bool // a missing value is a failure
}

// BodyTemplates returns the templates in the fields of a node's type.
func (n *Node) BodyTemplates() []TemplateUse {
	strict := func(field string, t Template) TemplateUse {
		return TemplateUse{Field: field, Template: t, Strict: true}
	}
	switch b := n.Body.(type) {
	case *AgentNode:
		return []TemplateUse{strict("prompt", b.Prompt)}
	case *ApprovalNode:
		return []TemplateUse{strict("question", b.Question)}
	case *InputNode:
		return []TemplateUse{strict("question", b.Question), {Field: "default", Template: b.Default}}
	case *LLMNode:
		if b.Instructions != nil {
			return []TemplateUse{strict("instructions", *b.Instructions), strict("prompt", b.Prompt)}
		}
		return []TemplateUse{strict("prompt", b.Prompt)}
	case *RAGNode:
		return []TemplateUse{strict("query", b.Query)}
	case *EndNode:
		return []TemplateUse{{Field: "output", Template: b.Output}}
	case *MapNode:
		return []TemplateUse{strict("over", b.Over)}
	}
	return nil
}

// UpdateTemplates returns the templates of a node's state_updates.
func (n *Node) UpdateTemplates() []TemplateUse {
	list := make([]TemplateUse, len(n.Updates))
	for i, u := range n.Updates {
		list[i] = TemplateUse{Field: "state_updates", Item: i, Template: u.Value}
	}
	return list
}
