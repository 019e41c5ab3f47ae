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

// Providers refuse a request with a schema that is not of an object: one tool would end the run. What can be read as no arguments is kept, and a
// tool of which no call can be made is left out, with an error that names it and its server.
func TestSchemasThatProvidersRefuse(t *testing.T) {
	s := &server{config: Server{ID: "e", Pos: "mcp.json:1:2"}, options: &Options{Seen: &Seen{}, Redact: func(text string) string { return text }}}
	const plain = `{"type":"object","properties":{}}`
	const left = `MCP server 'e': its tool bad is not offered under its own name, because its schema `
	for text, want := range map[string]string{
		`null`: plain, `[]`: plain, `true`: plain, `{}`: `{"properties":{},"type":"object"}`, `{"type":["object","null"]}`: `{"properties":{},"type":"object"}`,
		`{"properties":{"a":{}}}`: `{"properties":{"a":{}},"type":"object"}`, `{"type":"object","properties":{"b":{"type":"string"}}}`: `{"properties":{"b":{"type":"string"}},"type":"object"}`,
		`{"type":"object","anyOf":[{"properties":{"a":{"type":"array"}}},{"properties":{"b":{}}}]}`: `{"properties":{"a":{"items":{},"type":"array"},"b":{}},"type":"object"}`,
		`{"type":"object","properties":{"a":{"$ref":"#/gone"}}}`:                                    `{"properties":{"a":{"description":"Any value: the server does not describe it."}},"type":"object"}`,
		`{"type":"string"}`: left + `is that of a value of the type "string", and arguments are an object; mcp_invoke_e still calls it`,
		`"x"`:               left + `is not an object; mcp_invoke_e still calls it`,
	} {
		var list []*sdk.Tool
		if err := json.Unmarshal([]byte(`[{"name":"bad","inputSchema":`+text+`},{"name":"good","inputSchema":{"type":"object","properties":{}}}]`), &list); err != nil {
			t.Fatal(err)
		}
		tools, faults := s.directTools(list)
		var got string
		switch {
		case len(tools) == 2 && len(faults) == 0:
			got = string(tools[0].Schema)
		case len(tools) == 1 && len(faults) == 1:
			got = faults[0].Error()
		}
		if got != want || tools[len(tools)-1].Name != "mcp__e__good" {
			t.Errorf("%s becomes %s, want %s", text, got, want)
		}
	}
}

// A model that asks for the description of a tool reads its schema as the server wrote it, as that of an object.
func TestDescribedSchema(t *testing.T) {
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
