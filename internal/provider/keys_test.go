package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/config"
	"raddle.dev/internal/environ"
	"raddle.dev/internal/failure"
	"raddle.dev/llm"
)

// openWith returns the models of a config.yaml.
func openWith(t *testing.T, file string, env environ.Environ) *Resolver {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, config.FileName), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(dir, env)
	if err != nil {
		t.Fatal(err)
	}
	return NewResolver(&c, config.Dirs{Config: dir, Work: dir}, env)
}

// ask sends a request to a model.
func ask(t *testing.T, ctx context.Context, r *Resolver, id string) error {
	t.Helper()
	model, err := r.Open(ctx, "", id)
	if err != nil {
		t.Fatal(err)
	}
	_, err = llm.Generate(ctx, model, llm.Request{Messages: []llm.Message{llm.User("hi")}})
	return err
}

// newKeyRecorder returns a server that refuses every key, and the keys that it got.
func newKeyRecorder(t *testing.T) (url string, keys *[]string) {
	keys = &[]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*keys = append(*keys, r.Header.Get("X-Api-Key")+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL, keys
}

// A key that config.yaml names in either notation is sent as its value, and never as it is written.
func TestKeyOfReference(t *testing.T) {
	url, keys := newKeyRecorder(t)
	for _, notation := range []string{"${CLAUDE_KEY}", "{{CLAUDE_KEY}}", "{{ CLAUDE_KEY }}"} {
		file := "clients: [{type: claude, api_base: '" + url + "/v1', api_key: '" + notation + "'}]\n"
		r := openWith(t, file, environ.Environ{"CLAUDE_KEY=sk-ant-0123456789"})
		if err := ask(t, t.Context(), r, "anthropic:claude-x"); err == nil || len(*keys) != 1 || (*keys)[0] != "sk-ant-0123456789" {
			t.Errorf("%s: %v, %v", notation, *keys, err)
		}
		*keys = nil
		r = openWith(t, file, nil)
		err := ask(t, t.Context(), r, "anthropic:claude-x")
		if err == nil || !strings.Contains(err.Error(), "set CLAUDE_KEY") || !strings.Contains(err.Error(), "config.yaml:1:") || len(*keys) > 0 {
			t.Errorf("%s: not set: %v, %v", notation, *keys, err)
		}
		if unset := r.ListUnset([]string{"anthropic:claude-x"}); len(unset) != 1 || unset[0].Name != "CLAUDE_KEY" {
			t.Errorf("%s: %v", notation, unset)
		}
	}
}

// A key does not go to the provider's own address if config.yaml names another one whose variable has no value.
func TestAddressWithoutValue(t *testing.T) {
	for _, env := range []environ.Environ{nil, {"GATEWAY="}, {"OPENAI_API_BASE=http://127.0.0.1:9"}} {
		r := openWith(t, "clients: [{type: openai, api_base: '{{GATEWAY}}', api_key: sk-work}, {name: far, type: openai-compatible, api_base: '${GATEWAY}'}]\n", env)
		for _, id := range []string{"openai:gpt-5", "far:x"} {
			err := ask(t, t.Context(), r, id)
			var invalid *failure.Error
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "api_base names the variable GATEWAY, which is ") {
				t.Errorf("%s: %v", id, err)
			}
			if _, err := r.EmbeddingConfig(id); !errors.As(err, &invalid) {
				t.Errorf("%s: embedding: %v", id, err)
			}
			name, _, _ := strings.Cut(id, ":")
			if info, _ := r.FindKey(name); info.Ready || len(info.Unset) != 1 {
				t.Errorf("%s: %+v", id, info)
			}
		}
	}
}
