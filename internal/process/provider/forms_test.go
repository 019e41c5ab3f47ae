package provider

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
)

// OpenAI's models are offered patches, all others the old and the new text.
func TestEditForm(t *testing.T) {
	t.Parallel()
	for form, names := range map[llm.Form][]string{
		llm.FormPatch: {"gpt-5", "gpt-5.6-terra", "gpt-5-mini-2025-08-07", "gpt-5.3-codex", "gpt-10", "gpt-4.1", "gpt-4.1-mini", "o3", "o4-mini", "codex-mini-latest", "openai/gpt-5.1", "openai.gpt-5", "ft:gpt-4.1:mine", "OpenAI/GPT-5"},
		llm.FormReplace: {"claude-opus-5", "anthropic/claude-sonnet-4.5", "gemini-3-pro", "gpt-4o", "gpt-4", "gpt-4-turbo", "gpt-3.5-turbo", "gpt-oss:20b", "openai/gpt-oss-120b", "openai.gpt-oss-120b-1:0", "o1",
			"mistral-large", "qwen3-coder", "my-deployment", "", "olmo-3", "neo3"},
	} {
		for _, name := range names {
			if got := editForm(name); got != form {
				t.Errorf("%q is offered %s, want %s", name, got, form)
			}
		}
	}
}

// Of the tools that do the same, those in the form of the model are kept; if there is none, all are.
func TestKeepForm(t *testing.T) {
	t.Parallel()
	read, edit, diff, patch := llm.ToolSpec{Name: "r"}, llm.ToolSpec{Name: "e", Form: llm.FormReplace}, llm.ToolSpec{Name: "d", Form: llm.FormDiff}, llm.ToolSpec{Name: "p", Form: llm.FormPatch}
	all := []llm.ToolSpec{patch, read, edit, diff}
	for _, c := range []struct{ tools, want []llm.ToolSpec }{
		{all, []llm.ToolSpec{patch, read}},
		{[]llm.ToolSpec{read, edit, diff}, []llm.ToolSpec{read, edit, diff}},
		{[]llm.ToolSpec{read}, []llm.ToolSpec{read}},
		{nil, nil},
	} {
		if d := cmp.Diff(c.want, keepForm(c.tools, llm.FormPatch)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	if len(all) != 4 || all[2].Name != "e" {
		t.Error("the tools of the request were changed")
	}
}
