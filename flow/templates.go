package flow

import (
	"maps"
	"slices"

	"raddle.dev/flow/spec"
)

// PromptTemplate is the template of a node's prompt.
type PromptTemplate struct {
	Node    string `json:"node"`
	Text    string `json:"text"`
	Changed bool   `json:"changed,omitempty" doc:"the run has another template than its agent"`
}

// promptBody is implemented by the types of nodes whose prompt is a template.
type promptBody interface{ promptTemplate() *spec.Template }

func (b *llmNode) promptTemplate() *spec.Template   { return &b.prompt }
func (b *agentNode) promptTemplate() *spec.Template { return &b.prompt }

// ListPromptTemplates returns the templates of prompts in the text of a graph.yaml, in the order of its nodes. changed
// replaces some of them, as [Host.Templates] does.
func ListPromptTemplates(definition string, changed map[string]string) ([]PromptTemplate, error) {
	f, err := spec.Parse(graphFile, []byte(definition), graphKinds)
	if err != nil {
		return nil, err
	}
	list := []PromptTemplate{}
	for _, n := range f.Nodes {
		if b, ok := n.Body.(promptBody); ok {
			text, set := changed[n.ID]
			if !set {
				text = b.promptTemplate().Text
			}
			list = append(list, PromptTemplate{n.ID, text, set})
		}
	}
	return list, nil
}

// replaceTemplates gives nodes of an agent other templates of their prompts.
func replaceTemplates(a *Agent, changed map[string]string) error {
	for _, id := range slices.Sorted(maps.Keys(changed)) {
		n := a.File.Node(id)
		if n == nil {
			return spec.Errorf("agent '%s' has no node '%s' whose prompt could be replaced", a.Name, id)
		}
		b, ok := n.Body.(promptBody)
		if !ok {
			return spec.Errorf("node '%s' of agent '%s' has no prompt that could be replaced: it is of the type %s", id, a.Name, n.Kind())
		}
		t := spec.ParseTemplate(changed[id])
		*b.promptTemplate() = t
		for i := range n.Templates {
			if n.Templates[i].Field == "prompt" {
				n.Templates[i].Template = t
			}
		}
	}
	return nil
}
