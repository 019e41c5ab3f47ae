package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/internal/testkit/testneed"
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
	return NewResolver(&c, config.Dirs{Config: dir, Work: dir, Home: env.Get("HOME")}, env)
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
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
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

// newCommandClient returns the models of a client whose key a script of bash writes, and where the script counts how often it has run.
func newCommandClient(t *testing.T, url, script string) (r *Resolver, runs func() int, learned func() []string) {
	testneed.RequirePrograms(t, "bash")
	count := filepath.Join(t.TempDir(), "count")
	file := "clients: [{name: work, type: openai-compatible, api_base: '" + url + "', api_key_command: [bash, -c, \"" + script + "\"]}]\n"
	r = openWith(t, file, append(environ.New(nil), "COUNT="+count, "SECRET=sk-of-the-command"))
	var mu sync.Mutex
	var keys []string
	r.UseStoredKeys(keystore.New(t.TempDir(), nil), func(key string) {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, key)
	})
	return r, func() int {
			text, _ := os.ReadFile(count)
			return strings.Count(string(text), "x")
		}, func() []string {
			mu.Lock()
			defer mu.Unlock()
			return keys
		}
}

// A command writes the key once for all calls, only when it is needed, and the redactor knows the key first.
func TestKeyCommand(t *testing.T) {
	url, keys := newKeyRecorder(t)
	r, runs, learned := newCommandClient(t, url, "printf x >> $COUNT; printf ' %s \\nuser: me\\n' $SECRET")
	if info, _ := r.FindKey("work"); !info.Ready || info.Key != "a command" || runs() != 0 {
		t.Fatalf("before a call: %+v, %d runs", info, runs())
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if err := ask(t, t.Context(), r.ForRun(nil, nil), "work:a"); err == nil || !strings.Contains(err.Error(), "(api_key_command, config.yaml:1) was refused") {
				t.Errorf("refused: %v", err)
			}
		})
	}
	group.Wait()
	if runs() != 1 || len(*keys) != 3 || (*keys)[0] != "sk-of-the-command" || len(learned()) != 1 || learned()[0] != "sk-of-the-command" {
		t.Errorf("%d runs, sent %q, learned %q", runs(), *keys, learned())
	}
	if e, err := r.EmbeddingConfig("work:e"); err != nil || e.Key != "sk-of-the-command" || runs() != 1 {
		t.Errorf("embedding: %v, %v", e, err)
	}
}

func TestKeyCommandFails(t *testing.T) {
	url, keys := newKeyRecorder(t)
	for script, want := range map[string]string{
		"echo locked >&2; exit 2":     "(config.yaml:1) ended with exit code 2:\nlocked",
		"true":                        "wrote nothing",
		"echo two words":              "is no key",
		"printf %70000d 1 | tr ' ' a": "wrote more than 64 KiB",
		"kill -9 $$":                  "was ended by SIGKILL",
	} {
		r, _, learned := newCommandClient(t, url, "printf x >> $COUNT; "+script)
		err := ask(t, t.Context(), r, "work:a")
		var failed *llm.Error
		if !errors.As(err, &failed) || failed.Class != llm.Auth || !strings.Contains(err.Error(), want) || len(*keys) > 0 || len(learned()) > 0 {
			t.Errorf("%s: %v, sent %q", script, err, *keys)
		}
	}
	r := openWith(t, "clients: [{name: work, type: openai-compatible, api_base: '"+url+"', api_key_command: there-is-no-such-program}]\n", nil)
	if err := ask(t, t.Context(), r, "work:a"); err == nil || !strings.Contains(err.Error(), "there-is-no-such-program") {
		t.Errorf("no program: %v", err)
	}
}

// A call that is cancelled ends its command, and the next one runs it again.
func TestKeyCommandIsCancelled(t *testing.T) {
	url, keys := newKeyRecorder(t)
	r, runs, _ := newCommandClient(t, url, "printf x >> $COUNT; if test $(cat $COUNT) = x; then sleep 60; fi; echo $SECRET")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	time.AfterFunc(200*time.Millisecond, cancel)
	began := time.Now()
	model, err := r.Open(ctx, "", "work:a")
	if err != nil {
		t.Fatal(err)
	}
	request := llm.Request{Messages: []llm.Message{llm.User("hi")}}
	if _, err := llm.Generate(ctx, model, request); !errors.Is(err, context.Canceled) || time.Since(began) > 20*time.Second {
		t.Errorf("cancelled: %v after %v", err, time.Since(began))
	}
	if _, err := llm.Generate(t.Context(), model, request); err == nil || runs() != 2 || len(*keys) != 1 {
		t.Errorf("again: %v, %d runs, sent %q", err, runs(), *keys)
	}
}

// A client without a model that is known by name is listed only where a name is typed after it.
func TestListNamed(t *testing.T) {
	r := openWith(t, "clients: [{name: far, type: openai-compatible, api_base: 'http://127.0.0.1:1'}, {name: near, type: openai-compatible, api_base: 'http://127.0.0.1:1', models: [a]}]\n", nil)
	var ids []string
	for _, m := range r.ListNamed() {
		ids = append(ids, m.ID)
	}
	if strings.Join(ids, " ") != "near:a" {
		t.Errorf("%q", ids)
	}
}
