package cli_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// One tool of a server with a schema that no provider takes is left out with one warning, and the other tools of the server work in every step.
func TestOneBadSchemaOfAServer(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	answer := func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "it is here"}}}, nil
	}
	object := func(more map[string]any) map[string]any {
		schema := map[string]any{"type": "object"}
		for key, value := range more {
			schema[key] = value
		}
		return schema
	}
	reads := &sdk.ToolAnnotations{ReadOnlyHint: true}
	server.AddTool(&sdk.Tool{Name: "bad", Annotations: reads, InputSchema: object(map[string]any{"oneOf": []any{map[string]any{"type": "string"}}})}, answer)
	server.AddTool(&sdk.Tool{Name: "look", Annotations: reads, InputSchema: object(map[string]any{"anyOf": []any{map[string]any{"properties": map[string]any{"at": map[string]any{"type": "array"}}}}})}, answer)
	w := newWorkplace(t, `
-- shop/config.yaml --
name: Shop
model: script:t.yaml
mcp_servers: [desk]
-- shop/t.yaml --
- tool_calls: [{name: mcp__desk__look, args: {at: [1]}}]
- tool_calls: [{name: mcp__desk__look, args: {at: [2]}}]
- tool_calls: [{name: mcp_invoke_desk, args: {tool: bad, arguments: {a: 1}}}]
- text: Found.
`)
	w.write("shop/mcp.json", fmt.Sprintf(`{"mcpServers": {"desk": {"type": "http", "url": %q}}}`, serveTools(t, server)))
	r := w.run("run", "./shop", "look", "--output", "stream-json")
	if r.code != 0 || strings.Count(r.out, `"type":"tool_done"`) != 3 || strings.Count(r.out, `it is here`) < 3 {
		t.Fatalf("%+v", r)
	}
	if n := strings.Count(r.err, `MCP server 'desk': its tool bad is not offered under its own name, because its schema has no alternative in oneOf`); n != 1 {
		t.Errorf("%d warnings:\n%s", n, r.err)
	}
}

// serveTools serves a server of MCP over HTTP until the test ends, and returns its address.
func serveTools(t *testing.T, server *sdk.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)}
	go func() { _ = web.Serve(l) }()      // it ends with an error when it is closed
	t.Cleanup(func() { _ = web.Close() }) // does not wait for a call whose question has no answer
	return "http://" + l.Addr().String()
}
