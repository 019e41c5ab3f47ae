package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddClient(t *testing.T) {
	added := Client{Name: "gate", Type: "openai-compatible", Base: "http://127.0.0.1:8080/v1"}
	const item = "  - name: gate\n    type: openai-compatible\n    api_base: http://127.0.0.1:8080/v1\n"
	tests := map[string]struct{ before, after string }{
		"no file":              {"", "clients:\n" + item},
		"no clients":           {"# mine\nmodel: a:b # warm\n", "# mine\nmodel: a:b # warm\nclients:\n" + item},
		"no line end":          {"model: a:b", "model: a:b\nclients:\n" + item},
		"a list":               {"clients:\n  # work\n  - type: openai # one\n\n# then\nmodel: a:b\n", "clients:\n  # work\n  - type: openai # one\n" + item + "\n# then\nmodel: a:b\n"},
		"a list at the margin": {"clients:\n- type: openai\n", "clients:\n- type: openai\n- name: gate\n  type: openai-compatible\n  api_base: http://127.0.0.1:8080/v1\n"},
		"a list of maps":       {"clients:\n  - {type: openai}", "clients:\n  - {type: openai}\n" + item},
		"a mapping":            {"clients:\n    openai: {api_key: a}\ntheme: dark\n", "clients:\n    openai: {api_key: a}\n    gate:\n      type: openai-compatible\n      api_base: http://127.0.0.1:8080/v1\ntheme: dark\n"},
		"models at the end":    {"clients:\n  - type: ollama\n    models:\n      - a\n      - name: b\n", "clients:\n  - type: ollama\n    models:\n      - a\n      - name: b\n" + item},
		"braces":               {"clients: [{type: openai}]\n", ""},
		"an empty list":        {"clients: []\n", ""},
		"nothing":              {"clients:\nmodel: a:b\n", ""},
		"the name is taken":    {"clients:\n  - name: gate\n    type: ollama\n", ""},
		"an invalid file":      {"modle: a\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if test.before != "" {
				dir = writeConfig(t, test.before)
			}
			path, err := AddClient(dir, added, nil)
			text, _ := os.ReadFile(filepath.Join(dir, FileName))
			if test.after == "" {
				if err == nil || string(text) != test.before || name == "braces" && !strings.Contains(err.Error(), item[:len(item)-1]) {
					t.Errorf("%v\n%s", err, text)
				}
				return
			}
			if diff := cmp.Diff(test.after, string(text)); err != nil || diff != "" || path != filepath.Join(dir, FileName) {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			c, err := Load(dir, nil)
			if err != nil || c.Clients[len(c.Clients)-1].Base != added.Base {
				t.Errorf("%+v, %v", c.Clients, err)
			}
		})
	}
}
