//go:build unix

package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

func TestSafeName(t *testing.T) {
	for name, want := range map[string]string{
		"mcp_search_ddg-search":              "mcp_search_ddg-search",
		"mcp__a.b__c/d":                      "mcp__a_b__c_d",
		"mcp__x__" + strings.Repeat("n", 80): "mcp__x__" + strings.Repeat("n", 47) + "_",
	} {
		if got := safeName(name, false); !strings.HasPrefix(got, want) || len(got) > 64 {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
	if a, b := safeName("mcp__x__a.b", true), safeName("mcp__x__a/b", true); a == b {
		t.Errorf("two names become %s", a)
	}
}

func TestEntry(t *testing.T) {
	for entry, want := range map[string]string{"mcp:github": "github", "mcp:": "", "github": "", "mcp_search_github": ""} {
		if id, ok := ParseEntry(entry); ok != (want != "") || ok && id != want {
			t.Errorf("%s: %q, %v", entry, id, ok)
		}
	}
}

func TestAbsent(t *testing.T) {
	some := open(t, entry(t, "good"), Options{})
	for _, c := range []struct {
		servers    *Servers
		call, want string
	}{
		{nil, "mcp_invoke_x", `{"tool_call_error":"MCP is not configured"}`},
		{some, "mcp_invoke_x", `{"tool_call_error":"Invoked MCP server does not exist: x"}`},
		{some, "mcp_describe_x", `{"tool_call_error":"x MCP server not found in config"}`},
		{some, "mcp_search_x", `[]`},
		{some, "mcp_search_good", `{"tool_call_error":"MCP server 'good' is not among the tools of this request"}`},
		{some, "other", ""},
	} {
		r, ok := c.servers.AnswerAbsent(llm.ToolCall{Name: c.call})
		if ok != (c.want != "") || ok && r.Text() != c.want {
			t.Errorf("%s: %s, %v, want %s", c.call, r.Text(), ok, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	if got := strings.Join(splitWords("readFile get_sum-2 HTTPServer Čas"), " "); got != "read file get sum 2 httpserver čas" {
		t.Errorf("words are %q", got)
	}
}

// Providers refuse a request with a schema that is not of an object: one tool would end the run.
func TestSchemasThatProvidersRefuse(t *testing.T) {
	for text, want := range map[string]string{
		`null`: `{"type":"object"}`, `"x"`: `{"type":"object"}`, `[]`: `{"type":"object"}`, `true`: `{"type":"object"}`, `{}`: `{"type":"object"}`,
		`{"type":"string"}`: `{"type":"object"}`, `{"properties":{"a":{}}}`: `{"properties":{"a":{}},"type":"object"}`, `{"type":["object","null"]}`: `{"type":"object"}`,
	} {
		var tool sdk.Tool
		if err := json.Unmarshal([]byte(`{"name":"x","inputSchema":`+text+`}`), &tool); err != nil {
			t.Fatal(err)
		}
		if got := string(describedSchema(&tool)); got != want {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

// A call carries the span of its caller, if there is one.
func TestCallNamesItsSpan(t *testing.T) {
	const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	call := tools(t, open(t, entry(t, "traced"), Options{}), "traced")["mcp__traced__parent"]
	want(t, run(t, call, "{}"), false, "parent: <nil>")
	r, err := call.Run(llm.WithTraceparent(t.Context(), parent), tool.Call{ID: "2", Args: json.RawMessage("{}")})
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, false, "parent: "+parent)
}
