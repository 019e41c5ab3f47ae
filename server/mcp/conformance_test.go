package mcp_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/clienttest"
)

// sampleAgents are the tools of MCP's conformance suite that an agent can be.
var sampleAgents = map[string]map[string]string{
	"test_simple_text": {
		"graph.yaml": "name: test_simple_text\nstart: e\nnodes:\n  e: {type: end, output: This is a simple text response for testing.}\n",
	},
	"test_error_handling": {
		"graph.yaml": "name: test_error_handling\nstart: s\nnodes:\n  s: {type: script, script: s.sh}\n  e: {type: end}\n",
		"s.sh":       "echo 'This tool intentionally returns an error for testing' >&2\nexit 1 # {\"_next\": \"e\"}\n",
	},
	"test_tool_with_progress": {
		"graph.yaml": "name: test_tool_with_progress\nstart: a\nnodes:\n  a: {type: script, script: s.sh, next: b}\n  b: {type: script, script: s.sh, next: c}\n  c: {type: script, script: s.sh, next: e}\n  e: {type: end, output: done}\n",
		"s.sh":       "echo '{}'\n",
	},
	"test_elicitation": {
		"graph.yaml": "name: test_elicitation\nvariables: [{name: message, description: the suite sends it, default: none}]\nstart: i\nnodes:\n  i: {type: input, question: Who are you?, default: nothing, next: e}\n  e: {type: end, output: \"{{input}}\"}\n",
	},
}

// conformant are the scenarios of the suite that raddle must pass. The others need tools that return pictures, sound, resources or log
// messages, sampling, resources, prompts, or forms with several fields, none of which an agent has.
var conformant = []string{
	"dns-rebinding-protection", "ping", "prompts-list", "resources-list", "server-initialize", "server-sse-multiple-streams",
	"tools-call-elicitation", "tools-call-error", "tools-call-simple-text", "tools-call-with-progress", "tools-list",
}

// TestExtraConformance runs MCP's conformance suite against raddle serve. The suite knows no tokens: a proxy adds it, and passes
// the header Host on.
func TestExtraConformance(t *testing.T) {
	home := clienttest.NewHome(t)
	for name, files := range sampleAgents {
		home.AddAgent(t, name, files)
	}
	server := home.Serve(t)
	target, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if name, _, _ := strings.Cut(r.In.Host, ":"); name == "127.0.0.1" || name == "localhost" {
			r.Out.Header.Del("Origin") // it names the port of the proxy
		} else {
			r.Out.Host = r.In.Host // of an attacker
		}
		r.Out.Header.Set("Authorization", "Bearer "+server.Token)
	}}
	// The proxy reads a request before it passes it on: where the two overlap, an answer is sometimes lost on a busy machine, and the suite
	// waits for it a minute. The server had ended the request then.
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	c := clienttest.NodeCommand(t, "conformance", "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", proxy.URL+"/mcp")
	out, _ := c.CombinedOutput() // it fails because of the other scenarios
	_, summary, _ := strings.Cut(string(out), "=== SUMMARY ===")
	var passed []string
	for line := range strings.Lines(summary) {
		if name, ok := strings.CutPrefix(line, "✓ "); ok {
			name, _, _ = strings.Cut(name, ":")
			passed = append(passed, name)
		}
	}
	for _, name := range conformant {
		if !slices.Contains(passed, name) {
			t.Errorf("%s fails:\n%s", name, out)
		}
	}
}
