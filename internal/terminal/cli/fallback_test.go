//go:build unix

package cli_test

import "testing"

// A person at a terminal sees that another model answers than the first of the list, and it stays above the answer.
func TestFallbackOnATerminal(t *testing.T) {
	w := newWorkplace(t, `
-- .config/raddle/config.yaml --
clients:
- {name: near, type: openai-compatible, api_base: 'http://127.0.0.1:1/v1'}
-- helper/config.yaml --
name: helper
model: ["near:m", "script:t.yaml"]
-- helper/t.yaml --
- text: Here I am.
`)
	s := w.screen(nil, "run", "./helper", "hello")
	s.awaitNext("near:m: connection refused, asking script:t.yaml")
	s.ends(0, "Here I am.")
}
