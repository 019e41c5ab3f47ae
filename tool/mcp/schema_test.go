//go:build unix

package mcp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// serveTools is a server over HTTP with a list of tools as it is written here. A call answers with its arguments.
func serveTools(t *testing.T, list string) *Servers {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     *int
			Method string
			Params struct{ Arguments json.RawMessage }
		}
		if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		if m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		echo, _ := json.Marshal(string(m.Params.Arguments))
		result := map[string]string{
			"initialize": `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`,
			"tools/list": `{"tools":` + list + `}`,
			"tools/call": fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, echo),
		}[m.Method]
		w.Header().Set("Content-Type", "application/json")
		if result == "" {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no such method"}}`, *m.ID)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%d,"result":%s}`, *m.ID, cmp.Or(result, "{}"))
	}))
	t.Cleanup(web.Close)
	f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{"it":{"url":%q}}}`, web.URL))
	if err != nil {
		t.Fatal(err)
	}
	return open(t, f, Options{})
}

// A schema that no provider accepts leaves out its tool, with its name and that of its server. The others are offered.
func TestOneBadSchemaLeavesOutItsTool(t *testing.T) {
	s := serveTools(t, `[{"name":"good","inputSchema":{"type":"object","properties":{"say":{"type":"string"}}}},{"name":"bad","inputSchema":{"type":"string"}}]`)
	list, failed := s.Tools(t.Context(), []string{"it"})
	var names []string
	for _, v := range list {
		names = append(names, v.Name)
	}
	if got := strings.Join(names, " "); got != "mcp_invoke_it mcp_search_it mcp_describe_it mcp__it__good" {
		t.Errorf("the tools are %s", got)
	}
	if len(failed) != 1 {
		t.Fatalf("the errors are %v", failed)
	}
	left, ok := errors.AsType[*ToolError](failed[0])
	if !ok || left.Server != "it" || left.Tool != "bad" || !strings.Contains(left.Error(), "MCP server 'it': its tool bad is not offered under its own name") {
		t.Errorf("the error is %v", failed[0])
	}
}

// The model reads names that every provider accepts; the server gets its own, and its own schema is what arguments must match.
func TestRepairedArgumentsReachTheServer(t *testing.T) {
	s := serveTools(t, `[{"name":"calls","inputSchema":{"type":"object","properties":{"sid":{"type":"string"},"StartTime>":{"type":"string"}},"anyOf":[{"required":["sid"]},{"required":["StartTime>"]}]}}]`)
	all := tools(t, s, "it")
	direct := all["mcp__it__calls"]
	if text := string(direct.Schema); strings.Contains(text, "anyOf") || !strings.Contains(text, `"StartTime_"`) {
		t.Errorf("the schema is %s", text)
	}
	if !strings.Contains(direct.Description, "must also match") {
		t.Errorf("the description is %q", direct.Description)
	}
	want(t, run(t, direct, `{"StartTime_":"now"}`), false, `{"StartTime>":"now"}`)
	if r := run(t, direct, `{}`); !r.Error || !strings.Contains(r.Text(), "the arguments of calls do not match its schema") {
		t.Errorf("the result is %q", r.Text())
	}
	if _, err := direct.Touches(json.RawMessage(`{}`)); err == nil {
		t.Error("a person would be asked about a call that cannot be made")
	}
	want(t, run(t, all["mcp_invoke_it"], `{"tool":"calls","arguments":{"StartTime>":"now"}}`), false, "")
	if r := run(t, all["mcp_invoke_it"], `{"tool":"calls","arguments":{}}`); !r.Error || !strings.Contains(r.Text(), "do not match its schema") {
		t.Errorf("the result is %q", r.Text())
	}
}
