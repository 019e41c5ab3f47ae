package provider

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

func TestClients(t *testing.T) {
	env := environ.Environ{"OPENAI_API_KEY=ok", "GOOGLE_API_KEY=gk", "OLLAMA_HOST=far:1", "WORK_API_KEY=wk", "MINE_API_BASE=http://mine"}
	c := &config.Config{Clients: []config.Client{
		{Name: "work", Type: "openai"},
		{Name: "mine", Type: "openai-compatible", Base: "http://x/v1"},
		{Name: "groq", Type: "openai-compatible", Models: []config.Model{{Name: "e", Kind: "embedding"}, {Name: "c", Kind: "chat"}}},
	}}
	got := map[string][3]string{}
	for _, cl := range collectClients(c, "", env) {
		got[cl.Name] = [3]string{cl.Key, cl.Base, cl.firstChatModel()}
	}
	want := map[string][3]string{
		"work":       {"wk", "", ""},
		"mine":       {"", "http://x/v1", ""},
		"groq":       {"", "https://api.groq.com/openai/v1", "c"},
		"openai":     {"ok", "", ""},
		"anthropic":  {"", "", ""},
		"gemini":     {"gk", "", ""},
		"ollama":     {"", "far:1", ""},
		"deepseek":   {"", "https://api.deepseek.com/v1", ""},
		"mistral":    {"", "https://api.mistral.ai/v1", ""},
		"openrouter": {"", "https://openrouter.ai/api/v1", ""},
		"xai":        {"", "https://api.x.ai/v1", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestModelsAreOpenedLate(t *testing.T) {
	m := NewResolver(&config.Config{}, config.Dirs{}, nil)
	model, err := m.Open(context.Background(), "", "openai:gpt-5")
	if err != nil {
		t.Fatalf("opening needs a key: %v", err)
	}
	_, err = llm.Generate(context.Background(), model, llm.Request{Messages: []llm.Message{llm.User("hi")}})
	var e *llm.Error
	if !errors.As(err, &e) || e.Class != llm.Auth || !strings.Contains(e.Error(), "OPENAI_API_KEY") {
		t.Errorf("calling without a key: %v", err)
	}
	for id, want := range map[string]bool{"openai:x": true, "openai": false, "opnai:x": false, "ollama:a:b": true, "script:none": false, "": false} {
		if got := m.IsKnown("", id); got != want {
			t.Errorf("Known(%q) = %v", id, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	for base, want := range map[string]string{
		"http://localhost:11434": "http://localhost:11434/v1", "far:1": "http://far:1/v1", "https://x/v1/": "https://x/v1",
	} {
		if got := ollamaBase(base); got != want {
			t.Errorf("ollamaBase(%q) = %q, want %q", base, got, want)
		}
	}
	for base, want := range map[string]string{
		"": "", "https://a/v1": "https://a", "https://a/v1beta/": "https://a", "https://a/x": "https://a/x",
	} {
		if got := cutVersion(base); got != want {
			t.Errorf("cutVersion(%q) = %q, want %q", base, got, want)
		}
	}
}
