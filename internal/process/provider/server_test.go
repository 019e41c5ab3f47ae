package provider

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseServerAddress(t *testing.T) {
	for text, want := range map[string]ServerAddress{
		"http://127.0.0.1:8080/v1/":             {Base: "http://127.0.0.1:8080/v1", Host: "127.0.0.1"},
		" localhost:1234 ":                      {Base: "http://localhost:1234", Host: "localhost"},
		"[::1]:8000":                            {Base: "http://[::1]:8000", Host: "::1"},
		"gateway.example.com/llm":               {Base: "https://gateway.example.com/llm", Host: "gateway.example.com"},
		"http://gateway.example.com":            {Base: "http://gateway.example.com", Host: "gateway.example.com", Plain: true},
		"https://a.example/v1/models":           {Base: "https://a.example/v1", Host: "a.example"},
		"https://a.example/v1/chat/completions": {Base: "https://a.example/v1", Host: "a.example"},
	} {
		if got, err := ParseServerAddress(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "  ", "ftp://a.example", "file:///etc/passwd", "https://me:secret@a.example", "https://a.example?key=secret", "https://a.example#x", "http://", "://", "a b"} {
		if got, err := ParseServerAddress(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// Lists of models as servers write them, in the forms that their documentation shows: LM Studio (lmstudio.ai/docs/app/api/endpoints/openai) answers
// unknown paths with status 200 and an error; vLLM (docs.vllm.ai, "OpenAI-Compatible Server") only below /v1; llama.cpp (tools/server/README.md of
// ggml-org/llama.cpp) writes both "models" and "data"; LiteLLM (docs.litellm.ai/docs/proxy) wants a key; Together writes the list alone.
func TestListServerModels(t *testing.T) {
	const list = `{"object":"list","data":[{"id":"qwen3-8b","object":"model","owned_by":"vllm"},{"id":"gemma-3"},{"id":"bad name"},{"id":""},{"id":"qwen3-8b"}]}`
	serve := func(answers map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if text, ok := answers[r.URL.Path]; ok {
				_, _ = io.WriteString(w, text)
				return
			}
			http.NotFound(w, r)
		}
	}
	tests := map[string]struct {
		handler http.HandlerFunc
		path    string // of the address that is given
		key     string
		base    string // that is returned
		models  []string
		err     string
	}{
		"vLLM":              {handler: serve(map[string]string{"/v1/models": list}), base: "/v1", models: []string{"gemma-3", "qwen3-8b"}},
		"with /v1":          {handler: serve(map[string]string{"/v1/models": list}), path: "/v1", base: "/v1", models: []string{"gemma-3", "qwen3-8b"}},
		"LM Studio":         {handler: serve(map[string]string{"/models": `{"error":"Unexpected endpoint or method. (GET /models)"}`, "/v1/models": list}), base: "/v1", models: []string{"gemma-3", "qwen3-8b"}},
		"llama.cpp":         {handler: serve(map[string]string{"/models": `{"models":[{"name":"a.gguf","model":"a.gguf"}],"object":"list","data":[{"id":"a.gguf","meta":{"n_ctx_train":4096}}]}`}), models: []string{"a.gguf"}},
		"only names":        {handler: serve(map[string]string{"/models": `{"models":[{"name":"b:8b"}]}`}), models: []string{"b:8b"}},
		"the list alone":    {handler: serve(map[string]string{"/v1/models": `[{"id":"c"}]`}), base: "/v1", models: []string{"c"}},
		"an empty list":     {handler: serve(map[string]string{"/v1/models": `{"object":"list","data":[]}`}), base: "/v1"},
		"a page":            {handler: serve(map[string]string{"/models": "<html>", "/v1/models": "<html>"}), err: "something else than a list of models"},
		"nothing there":     {handler: serve(nil), err: "/models answers with status 404"},
		"too much":          {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, serverSize+10)) }, err: "more than 8 MiB"},
		"LiteLLM, no key":   {handler: requireKey(list), err: ErrKeyNeeded.Error()},
		"LiteLLM, a key":    {handler: requireKey(list), key: "sk-1234", models: []string{"gemma-3", "qwen3-8b"}},
		"LiteLLM, bad key":  {handler: requireKey(list), key: "sk-0000", err: ErrKeyNeeded.Error()},
		"the server breaks": {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, err: "cannot be reached"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(test.handler)
			defer server.Close()
			address, err := ParseServerAddress(server.URL + test.path)
			if err != nil {
				t.Fatal(err)
			}
			base, models, err := ListServerModels(t.Context(), address, test.key)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%q, %v", models, err)
				}
				return
			}
			if err != nil || base != server.URL+test.base || !cmp.Equal(models, test.models) {
				t.Errorf("%s, %q, %v", base, models, err)
			}
		})
	}
}

func requireKey(list string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-1234" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, list)
	}
}

// A redirect takes no key elsewhere.
func TestRedirectOfServer(t *testing.T) {
	var reached int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL+"/v1/models", http.StatusFound))
	defer server.Close()
	address, err := ParseServerAddress(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := ListServerModels(t.Context(), address, "sk-1234"); err == nil || !strings.Contains(err.Error(), "the server redirects to "+other.URL) || reached > 0 {
		t.Errorf("%v, %d requests", err, reached)
	}
}

func TestServerWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	defer server.Close()
	if _, _, err := ListServerModels(ctx, ServerAddress{Base: server.URL}, ""); err == nil || errors.Is(err, ErrKeyNeeded) {
		t.Errorf("%v", err)
	}
}

func TestNameServer(t *testing.T) {
	r := openWith(t, "clients: [{name: local, type: openai-compatible, api_base: 'http://127.0.0.1:1'}]\n", nil)
	for text, want := range map[string]string{"127.0.0.1:8000": "local-2", "https://api.gateway.example.com": "gateway", "https://groq.example.com": "groq-2", "http://server": "server"} {
		address, err := ParseServerAddress(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.NameServer(address); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
