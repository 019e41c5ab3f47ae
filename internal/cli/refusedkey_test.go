package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A refused key is named by its client and the place where it was found.
func TestRefusedKeys(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"wrong key."}}`)
	}))
	t.Cleanup(server.Close)
	const client = "# what I use\nclients:\n  - name: fake\n    type: %s\n    api_base: %s/v1\n%s    models: [small]\n"
	for _, k := range []struct {
		name, wire, key string
		env             string
		want            string
	}{
		{"of the file", "openai-compatible", "    api_key: sk-refused-0001\n", "", `wrong key. The key of client "fake" (config.yaml:6) was refused.`},
		{"of a variable that the file names", "openai-compatible", "    api_key: ${MINE}\n", "MINE=sk-refused-0002", `The key of client "fake" (MINE, named in config.yaml:6) was refused.`},
		{"of a variable", "openai-compatible", "", "FAKE_API_KEY=sk-refused-0003", `The key of client "fake" (FAKE_API_KEY) was refused.`},
		{"of Anthropic's wire", "anthropic", "    api_key: sk-refused-0004\n", "", `The key of client "fake" (config.yaml:6) was refused.`},
		{"of Google's wire", "gemini", "    api_key: sk-refused-0005\n", "", `The key of client "fake" (config.yaml:6) was refused.`},
		{"that is missing", "openai-compatible", "", "", "no API key was sent: set FAKE_API_KEY"},
	} {
		t.Run(k.name, func(t *testing.T) {
			w := newWorkplace(t, "-- a/config.yaml --\nname: a\nmodel: fake:small\n")
			w.write(".config/raddle/config.yaml", fmt.Sprintf(client, k.wire, server.URL, k.key))
			cmd, c := w.command("run", "./a", "hi"), newConsole()
			cmd.Stderr = c
			if k.env != "" {
				cmd.Env = append(cmd.Env, k.env)
			}
			_ = cmd.Run()
			if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(c.String(), k.want) || strings.Contains(c.String(), "to a key that is valid") || strings.Contains(c.String(), "sk-refused") {
				t.Errorf("exit code %d, want %q\n%s", cmd.ProcessState.ExitCode(), k.want, c)
			}
		})
	}
}
