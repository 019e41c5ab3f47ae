package provider

import (
	"slices"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/llm"
)

// patching matches the names of models that OpenAI has trained on its patches, whatever server has them: gpt-4.1, gpt-5
// and later, o3, o4 and Codex.
var patching = pattern.CompileLater(`(?i)(^|[/.:])(gpt-(4\.1|[5-9]|[1-9]\d)|o[34]|codex)\b`)

// editForm returns the form in which a model writes changes of files. Old and new text works with every model.
func editForm(name string) llm.Form {
	if patching().MatchString(name) {
		return llm.FormPatch
	}
	return llm.FormReplace
}

// keepForm returns the tools without those in other forms, if there is one in this form.
func keepForm(tools []llm.ToolSpec, form llm.Form) []llm.ToolSpec {
	if !slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return t.Form == form }) {
		return tools
	}
	var kept []llm.ToolSpec
	for _, t := range tools {
		if t.Form == "" || t.Form == form {
			kept = append(kept, t)
		}
	}
	return kept
}
