//go:build unix

package cli_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// serveDesk serves an MCP server over streamable HTTP whose tool look asks for a color. A
// server of an older protocol asks while the call waits, one of the newest asks in its answer.
func serveDesk(t *testing.T, old bool) string {
	t.Helper()
	form := &sdk.ElicitParams{Message: "Which color?", RequestedSchema: map[string]any{"type": "object", "required": []string{"color"},
		"properties": map[string]any{"color": map[string]any{"type": "string", "enum": []string{"red", "blue"}}}}}
	server := sdk.NewServer(&sdk.Implementation{Name: "desk", Version: "1"}, nil)
	tool := &sdk.Tool{Name: "look", InputSchema: map[string]any{"type": "object"}, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}
	server.AddTool(tool, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var res *sdk.ElicitResult
		switch {
		case old:
			var err error
			if res, err = r.Session.Elicit(ctx, form); err != nil {
				return nil, err
			}
		case r.Params.InputResponses == nil:
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"which": form}}, nil
		default:
			res, _ = r.Params.InputResponses["which"].(*sdk.ElicitResult)
		}
		if res == nil {
			return nil, errors.New("there is no answer")
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(res.Action, " ", res.Content["color"])}}}, nil
	})
	if old {
		server.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
				if method == "server/discover" {
					return nil, errors.New("unknown")
				}
				return next(ctx, method, r)
			}
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)}
	go func() { _ = web.Serve(l) }()      // it ends with an error when it is closed
	t.Cleanup(func() { _ = web.Close() }) // does not wait for a call whose question has no answer
	return "http://" + l.Addr().String()
}

// A tool of a server on the network asks: the person at the terminal answers; without one the run
// waits, and resume continues it, with an answer on the command line or at a terminal.
func TestElicitationOverHTTP(t *testing.T) {
	for name, old := range map[string]bool{"the newest protocol": false, "an older protocol": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorkplace(t, `
-- shop/config.yaml --
name: Shop
model: script:t.yaml
mcp_servers: [desk]
-- shop/t.yaml --
- tool_calls: [{name: mcp__desk__look, args: {}}]
- text: "It is {{outcome.1}}."
`)
			w.write("shop/mcp.json", fmt.Sprintf(`{"mcpServers": {"desk": {"type": "http", "url": %q}}}`, serveDesk(t, old)))
			s := w.screen(nil, "run", "./shop", "look")
			s.await("MCP server desk asks: Which color?")
			s.answer(down, enter)
			s.ends(0, "It is accept blue.")

			park := func() string {
				t.Helper()
				parked := w.run("run", "./shop", "look")
				m := resumeHint.FindStringSubmatch(parked.err)
				if parked.code != 5 || m == nil {
					t.Fatalf("exit code %d\n%s", parked.code, parked.err)
				}
				return m[1]
			}
			if r := w.run("resume", "-q", park(), "--answer", "red"); r.code != 0 || r.out != "It is accept red.\n" {
				t.Errorf("exit code %d, output %q\n%s", r.code, r.out, r.err)
			}
			s = w.screen(nil, "resume", park())
			s.await("MCP server desk asks: Which color?")
			s.answer(enter)
			s.ends(0, "It is accept red.")
		})
	}
}
