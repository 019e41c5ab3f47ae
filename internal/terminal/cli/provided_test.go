package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/llmtest"
)

// What a provider searches by itself is shown with its sources, costs money, and stays in the run; a tool that it does not have is an error of check.
func TestProviderTools(t *testing.T) {
	vendor := llmtest.Searching(llmtest.OpenAIResponses())
	server := httptest.NewServer(vendor.NewHandler(func([]byte) (llmtest.Turn, int) { return llmtest.Turn{Text: "search"}, http.StatusOK }))
	t.Cleanup(server.Close)
	w := newWorkplace(t, `
-- finder/config.yaml --
name: finder
model: openai:gpt-5
provider_tools: [web_search]
-- reader/config.yaml --
name: reader
model: openai:gpt-5
provider_tools: [web_search, web_fetch]
-- plan/graph.yaml --
name: plan
model: local:m
provider_tools: [web_search]
start: ask
nodes:
  ask: {type: llm, prompt: x, next: done}
  done: {type: end, output: x}
`)
	w.write(".config/raddle/config.yaml", `
clients:
- {name: openai, type: openai, api_base: "`+server.URL+`/v1", api_key: k}
- {name: local, type: openai-compatible, api_base: "http://127.0.0.1:1/v1", models: [m]}
`)
	r := w.run("run", "./finder", "horses")
	if r.code != 0 || r.out != "Found it.\n" {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{`The provider searched the web for "horses", "ponies".`, "The provider read " + llmtest.SearchedPage, "source: Horses " + llmtest.SearchedPage} {
		if !strings.Contains(r.err, want) {
			t.Errorf("%q is missing in:\n%s", want, r.err)
		}
	}
	if show := w.run("runs", "show", "last", "--output", "json"); !strings.Contains(show.out, "0.0100") && !strings.Contains(show.out, "0.01006") {
		t.Errorf("the search has no price: %s", show.out)
	}
	for agent, want := range map[string]string{
		"./finder": "",
		"./reader": "provider_tools: the provider of model 'openai:gpt-5' does not have the tool 'web_fetch'",
		"./plan":   "provider_tools: the provider of model 'local:m' does not have the tool 'web_search'",
	} {
		r := w.run("check", agent)
		if (r.code != 0) != (want != "") || !strings.Contains(r.out+r.err, want) {
			t.Errorf("check %s: exit code %d, %s%s, want %q", agent, r.code, r.out, r.err, want)
		}
	}
}
