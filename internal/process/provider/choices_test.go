package provider

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/process/catalogue"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/llm"
)

func TestChoices(t *testing.T) {
	c := &config.Config{Clients: []config.Client{
		{Name: "mine", Type: "openai-compatible", Base: "http://x/v1", Models: []config.Model{{Name: "e", Kind: "embedding"}, {Name: "c", Kind: "chat"}}},
		{Name: "bare", Type: "openai-compatible", Base: "http://x/v1"},
		{Name: "work", Type: "anthropic", Key: "k"},
	}}
	m := NewResolver(c, config.Dirs{}, environ.Environ{"GEMINI_API_KEY=k"})
	var ids []string
	for _, model := range m.ListChoices("") {
		ids = append(ids, model.ID)
	}
	want := "mine:c work:claude-sonnet-5 work:claude-haiku-4-5 work:claude-opus-4-8 gemini:gemini-3.5-flash gemini:gemini-3.1-pro-preview gemini:gemini-3.1-flash-lite"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("choices: %s, want %s", got, want)
	}
	if model, needs := m.SuggestModel(); model != "mine:c" || needs != "" {
		t.Errorf("SuggestModel: %s, %s", model, needs)
	}
	if model, needs := NewResolver(&config.Config{}, config.Dirs{}, nil).SuggestModel(); model != "openai:gpt-5.4-mini" || needs != "openai" {
		t.Errorf("SuggestModel: %s, %s", model, needs)
	}
}

// Each suggestion names a provider that raddle knows, and what it costs is known where the catalogue has the vendor.
func TestSuggestions(t *testing.T) {
	for _, p := range config.Providers {
		if needsKey := p.IsKnown() && !p.Free; needsKey != (len(p.Suggested) > 0) {
			t.Errorf("%s needs a key: %v, and has %d suggestions", p.Name, needsKey, len(p.Suggested))
		}
		for _, model := range p.Suggested {
			facts, listed := catalogue.Embedded().Find(p.Listed, model)
			if !listed || facts.Retired || facts.NoTools || facts.Window == 0 || facts.Price.Output == 0 {
				t.Errorf("%s:%s: %+v", p.Name, model, facts)
			}
		}
	}
}

func TestLocalModels(t *testing.T) {
	reply, status := `{"models":[{"name":"b"},{"name":"a"},{"name":""}]}`, http.StatusOK
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/api/tags" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, reply)
	}))
	defer s.Close()
	list := func(host string) (ids []string) {
		for _, model := range NewResolver(&config.Config{}, config.Dirs{}, environ.Environ{"OLLAMA_HOST=" + host}).ListLocalModels(context.Background()) {
			ids = append(ids, model.ID)
		}
		return ids
	}
	for _, host := range []string{s.URL, strings.TrimPrefix(s.URL, "http://"), s.URL + "/v1"} {
		if got := list(host); !slices.Equal(got, []string{"ollama:a", "ollama:b"}) {
			t.Errorf("%s: %v", host, got)
		}
	}
	reply = "<html>"
	if got := list(s.URL); got != nil {
		t.Errorf("a page: %v", got)
	}
	reply, status = `{"models":[{"name":"b"}]}`, http.StatusFound
	if got := list(s.URL); got != nil {
		t.Errorf("a redirect: %v", got)
	}
	asked = 0
	for _, host := range []string{"192.0.2.1:11434", "ollama.example.org", "0.0.0.0:1"} {
		if isLoopback(host) {
			t.Errorf("%s counts as this machine", host)
		}
	}
	if got := list("127.0.0.1:1"); got != nil || asked != 0 {
		t.Errorf("a closed port: %v", got)
	}
}

// A stored key is read for the call only, and only if there is no other.
func TestStoredKey(t *testing.T) {
	keys := keystore.New(t.TempDir(), nil)
	for client, key := range map[string]string{"openai": "sk-stored", "gemini": "gk-stored"} {
		if _, _, err := keys.Save(client, key, true); err != nil {
			t.Fatal(err)
		}
	}
	var sent string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer s.Close()
	var learned []string
	call := func(env ...string) error {
		m := NewResolver(&config.Config{}, config.Dirs{}, append(env, "OPENAI_API_BASE="+s.URL))
		m.UseStoredKeys(keys, func(key string) { learned = append(learned, key) })
		for _, c := range m.ListClients() {
			if want := map[string]string{"openai": "keys.json", "gemini": "keys.json"}[c.Client]; env == nil && c.Key != want {
				t.Errorf("%s: the key is from %q", c.Client, c.Key)
			}
		}
		if learned = nil; !m.findClientFor(t, "openai").isReady() {
			t.Error("the client is not ready")
		}
		model, err := m.ForRun(nil, nil).Open(context.Background(), "", "openai:x")
		if err != nil {
			t.Fatal(err)
		}
		_, err = llm.Generate(context.Background(), model, llm.Request{Messages: []llm.Message{llm.User("hi")}})
		return err
	}
	if err := call(); sent != "Bearer sk-stored" || !slices.Equal(learned, []string{"sk-stored"}) || !strings.Contains(err.Error(), `The key of client "openai" (keys.json; to store another: raddle login openai) was refused.`) {
		t.Errorf("sent %s, learned %v: %v", sent, learned, err)
	}
	if err := call("OPENAI_API_KEY=sk-env"); sent != "Bearer sk-env" || learned != nil || !strings.Contains(err.Error(), `The key of client "openai" (OPENAI_API_KEY) was refused.`) {
		t.Errorf("sent %s, learned %v: %v", sent, learned, err)
	}
}

func (m *Resolver) findClientFor(t *testing.T, name string) *client {
	c, _ := m.findClient(name + ":x")
	if c == nil {
		t.Fatalf("there is no client %s", name)
	}
	return c
}

// A server that cannot be reached is reported with the place of its address.
func TestUnreachableServer(t *testing.T) {
	closed := "http://127.0.0.1:1"
	tests := map[string]struct {
		clients []config.Client
		env     environ.Environ
		id      string
		want    string
	}{
		"the file":     {clients: []config.Client{{Name: "mine", Type: "openai-compatible", Base: closed, BaseAt: 5}}, id: "mine:x", want: "is the address right? The address is from config.yaml:5."},
		"a variable":   {env: environ.Environ{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + closed}, id: "openai:x", want: "The address is from OPENAI_BASE_URL."},
		"its client's": {clients: []config.Client{{Name: "mine", Type: "ollama"}}, env: environ.Environ{"MINE_API_BASE=" + closed}, id: "mine:x", want: "The address is from MINE_API_BASE."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			model, err := NewResolver(&config.Config{Clients: test.clients}, config.Dirs{}, test.env).Open(context.Background(), "", test.id)
			if err != nil {
				t.Fatal(err)
			}
			_, err = llm.Generate(context.Background(), model, llm.Request{Messages: []llm.Message{llm.User("hi")}})
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
}
