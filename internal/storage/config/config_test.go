package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
)

func TestConfig(t *testing.T) {
	tests := map[string]struct {
		file string
		env  environ.Environ
		want Config
	}{
		"nothing":                   {},
		"a file with comments only": {file: "# model: x\n"},
		"the file": {
			file: "model: a:b\ntemperature: 0.5\ntop_p: 1\nfunction_calling_support: false\nread_timeout: 5m\nstream_timeout: 0\nmax_reply: 2\nmax_value: 3\nmax_state: 0\nmin_free_disk: 5\nretry_patience: 0\nretention_done: 30d\nretention_failed: 12h\nstore: 'memory:'\nrag_top_k: 3\n",
			want: Config{Model: "a:b", Temperature: new(0.5), TopP: new(1.0), FunctionCalling: new(false), ReadTimeout: 5 * time.Minute, StreamTimeout: -1, MaxReply: 2 << 20, MaxValue: 3 << 20, MaxState: -1, MinFreeDisk: 5 << 20, Patience: -1, Retention: Retention{30 * 24 * time.Hour, 12 * time.Hour}, Store: "memory:", RAG: RAG{TopK: new(3)}},
		},
		"the environment beats the file": {
			file: "model: a:b\nstore: sqlite:x\n",
			env:  environ.Environ{"RADDLE_MODEL=c:d", "RADDLE_STORE=", "RADDLE_READ_TIMEOUT=20"},
			want: Config{Model: "c:d", Store: "sqlite:x", ReadTimeout: 20 * time.Second},
		},
		"clients in a list": {
			file: "clients:\n- {type: openai, api_key: '${KEY}'}\n- name: mine\n  type: openai-compatible\n  api_base: http://x\n  models: [a, {name: b, type: embedding, reasoning_levels: [low]}]\n",
			env:  environ.Environ{"KEY=secret"},
			want: Config{Clients: []Client{
				{Name: "openai", Type: "openai", Key: "secret", KeyVar: "KEY", KeyLine: 2},
				{Name: "mine", Type: "openai-compatible", Base: "http://x", BaseAt: 5, Models: []Model{{Name: "a", Kind: "chat"}, {Name: "b", Kind: "embedding", Efforts: []string{"low"}}}},
			}},
		},
		"a command for a key": {
			file: "clients:\n- {type: openai, api_key_command: 'pass show \"work key\" $ACCOUNT'}\n- {type: gemini, api_key_command: [get-key, a b]}\n",
			env:  environ.Environ{"ACCOUNT=me"},
			want: Config{Clients: []Client{
				{Name: "openai", Type: "openai", KeyCommand: []string{"pass", "show", "work key", "me"}, KeyCommandAt: 2},
				{Name: "gemini", Type: "gemini", KeyCommand: []string{"get-key", "a b"}, KeyCommandAt: 3},
			}},
		},
		"clients by name": {
			file: "clients:\n  gemini: {api_key: k}\n  far: {type: ollama, api_base: h}\n",
			want: Config{Clients: []Client{{Name: "gemini", Type: "gemini", Key: "k", KeyLine: 2}, {Name: "far", Type: "ollama", Base: "h", BaseAt: 3}}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.file != "" {
				dir = writeConfig(t, test.file)
			}
			got, err := Load(dir, test.env)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// null means the default, at every key.
func TestNullIsTheDefault(t *testing.T) {
	var text strings.Builder
	for _, key := range configKeys() {
		if key != "clients" {
			text.WriteString(key + ": null\n")
		}
	}
	text.WriteString("clients:\n  - type: openai\n")
	for _, key := range clientKeys {
		if key != "type" && key != "models" {
			text.WriteString("    " + key + ": null\n")
		}
	}
	text.WriteString("    models:\n      - name: m\n")
	for _, key := range modelKeys {
		if key != "name" {
			text.WriteString("        " + key + ":\n")
		}
	}
	got, err := loadText(t, text.String())
	if err != nil {
		t.Fatal(err)
	}
	want, err := loadText(t, "clients: [{type: openai, models: [{name: m}]}]\n")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-without +null):\n%s", d)
	}
	if _, err := loadText(t, "clients: null\n"); err != nil {
		t.Error(err)
	}
}

// loadText returns the configuration of a file with a text.
func loadText(t *testing.T, text string) (Config, error) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(dir, nil)
}

// A key of the reference has a line that says what to do instead, and none of these keys is one of raddle's.
func TestReplacedKeys(t *testing.T) {
	_, err := loadText(t, "model: a:b\nstream: true\nvault_password_file: ~/x\nclients: [{type: openai, patch: {}}]\n")
	for _, want := range []string{
		`2:1: error: unknown key "stream" in the file (remove it: replies are shown as they come`,
		`3:1: error: unknown key "vault_password_file" in the file (remove it, and store keys with: raddle login PROVIDER`,
		`unknown key "patch" in a client (write extra_body or extra_headers)`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	for key := range replacedKeys {
		for _, known := range [][]string{configKeys(), clientKeys, modelKeys} {
			if slices.Contains(known, key) {
				t.Errorf("raddle knows the key %s", key)
			}
		}
	}
}

func TestConfigFaults(t *testing.T) {
	tests := map[string][]string{
		"modle: x\n":           {`1:1: error: unknown key "modle" in the file (did you mean model?)`},
		"- a\n":                {"1:1: error: the file must be a mapping"},
		"model: [a]\n":         {"1:8: error: model must be a single value"},
		"temperature: 3\n":     {"1:14: error: temperature: 3 is not between 0 and 2"},
		"temperature: .nan\n":  {"1:14: error: temperature: \".nan\" is not a number"},
		"max_reply: 16 MB\n":   {`1:12: error: max_reply: "16 MB" must be a whole number of MiB`},
		"read_timeout: soon\n": {`1:15: error: read_timeout: "soon" is not a time`},
		"model: a\nmodel: b\n": {"2:1: error: duplicate key `model` (first on line 1)"},
		"clients: {x: {}}\n":   {"1:14: error: a client needs a type"},
		"clients: [{type: openai, name: 'a:b'}]\n":                      {`1:11: error: the client's name "a:b" has a colon`},
		"clients: [{type: openai}, {type: openai}]\n":                   {`1:27: error: two clients are named "openai"`},
		"clients: [{type: openai-compatible, name: x}]\n":               {`1:11: error: client "x" needs an api_base`},
		"clients: [{type: openai, api_key_command: 'a $(b)'}]\n":        {"1:43: error: api_key_command cannot be divided into words"},
		"clients: [{type: openai, api_key_command: []}]\n":              {"1:43: error: api_key_command names no program"},
		"clients: [{type: openai, api_key: a, api_key_command: b}]\n":   {`1:11: error: client "openai" has an api_key and an api_key_command`},
		"clients: [{type: ollama, models: [{}]}]\n":                     {"1:35: error: a model needs a name"},
		"clients: [{type: ollama, models: {}}]\n":                       {"1:34: error: models must be a list"},
		"clients: [{type: ollama, models: [{name: a, type: chta}]}]\n":  {`1:51: error: unknown model type "chta"; the types are chat, embedding, reranker (did you mean chat?)`},
		"clients: [{type: ollama, wire: messages}]\n":                   {`1:32: error: unknown wire "messages"`},
		"clients: [{type: gemini, wire: chat}]\n":                       {`1:11: error: client "gemini": only clients with type openai, openai-compatible or ollama have a choice of wire`},
		"clients: [{type: openai, cache_ttl: 1h}]\n":                    {`1:11: error: client "openai": only clients with type anthropic have a cache_ttl`},
		"clients: [{type: anthropic, cache_ttl: 2h}]\n":                 {`1:40: error: cache_ttl must be one of 5m, 1h, not "2h"`},
		"clients: [{type: gemini, strict: on}]\n":                       {`1:11: error: client "gemini": only clients with type openai, openai-compatible or anthropic can be strict`},
		"clients: [{type: openai, models: [{name: a, strict: onn}]}]\n": {`1:53: error: strict must be one of auto, on, off, not "onn" (did you mean on?)`},
		"a: &x [*x]\n":         {`1:1: error: unknown key "a"`, "1:8: error: a[0]: alias *x refers to a value that contains it"},
		"model: 'x\n":          {"error: "},
		"top_p: x\nstroe: y\n": {"1:8: error: top_p", "2:1: error: unknown key \"stroe\" in the file (did you mean store?)"},
	}
	for file, wants := range tests {
		t.Run(file, func(t *testing.T) {
			dir := writeConfig(t, file)
			_, err := Load(dir, nil)
			var faults *FileError
			if !errors.As(err, &faults) || len(faults.Findings) != len(wants) {
				t.Fatalf("%v, want %d faults", err, len(wants))
			}
			for i, want := range wants {
				if got := faults.Findings[i].String(); !strings.Contains(got, want) {
					t.Errorf("%s\nlacks %s", got, want)
				}
			}
		})
	}
}

func TestConfigEnvironmentFault(t *testing.T) {
	_, err := Load(t.TempDir(), environ.Environ{"RADDLE_FUNCTION_CALLING_SUPPORT=maybe"})
	var e *failure.Error
	if !errors.As(err, &e) || e.Kind != failure.Invalid || !strings.Contains(e.Msg, "RADDLE_FUNCTION_CALLING_SUPPORT") {
		t.Errorf("%v", err)
	}
}

// writeConfig writes a config.yaml and returns its directory.
func writeConfig(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// What a client and a model add to their requests is kept as it is written.
func TestExtraBody(t *testing.T) {
	const file = "clients:\n- type: openai\n  extra_body: {seed: 1, list: [{a: true}]}\n  models: [{name: m, extra_body: {top_k: 3}}]\n"
	c, err := Load(writeConfig(t, file), nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, body := range map[string]map[string]any{`{"list":[{"a":true}],"seed":1}`: c.Clients[0].Body, `{"top_k":3}`: c.Clients[0].Models[0].Body} {
		if text, err := json.Marshal(body); string(text) != want || err != nil {
			t.Errorf("%s, %v; want %s", text, err, want)
		}
	}
}
