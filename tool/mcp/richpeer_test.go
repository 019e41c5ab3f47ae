//go:build unix

package mcp

//lint:file-ignore SA1019 The protocol replaces roots, but most servers know nothing else yet.

import (
	"context"
	"errors"
	"os"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// addRich gives a server what not every server has: resources, prompts, reports of
// progress, questions.
func addRich(server *sdk.Server) {
	server.AddResource(&sdk.Resource{URI: "note:1", Name: "first", MIMEType: "text/plain"}, readNote)
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "note:{n}", Name: "notes"}, readNote)
	server.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: "Greet " + r.Params.Arguments["who"]}}}}, nil
	})
	tool := func(name string, a *sdk.ToolAnnotations, run func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: anything, Annotations: a}, run)
	}
	tool("roots", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"roots": &sdk.ListRootsParams{}}}, nil
		}
		res, ok := r.Params.InputResponses["roots"].(*sdk.ListRootsResult)
		if !ok || len(res.Roots) != 1 {
			return text("there are no roots"), nil
		}
		return text("%s %s", res.Roots[0].Name, res.Roots[0].URI), nil
	})
	tool("slow", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 20 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 20}); err != nil {
				return nil, err
			}
			time.Sleep(250 * time.Millisecond)
		}
		return text("done"), nil
	})
	tool("quick", nil, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 4 {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i), Total: 3}); err != nil {
				return nil, err
			}
		}
		return text("done"), nil
	})
	for name, a := range map[string]*sdk.ToolAnnotations{"order": nil, "look": {ReadOnlyHint: true}} {
		tool(name, a, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r.Params.InputResponses == nil {
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"which": &sdk.ElicitParams{Message: "Which one?", RequestedSchema: map[string]any{
					"type": "object", "required": []string{"color", "count"}, "properties": map[string]any{
						"color": map[string]any{"type": "string", "enum": []string{"red", "blue"}}, "count": map[string]any{"type": "integer"},
						"gift": map[string]any{"type": "boolean"}, "note": map[string]any{"type": "string", "title": "A note"},
					}}}}}, nil
			}
			res, ok := r.Params.InputResponses["which"].(*sdk.ElicitResult)
			if !ok {
				return text("there is no answer"), nil
			}
			return text("%s %v, pid %d", res.Action, res.Content, os.Getpid()), nil
		})
	}
}

func readNote(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "text of " + r.Params.URI}, {URI: r.Params.URI, Blob: []byte("abc")}}}, nil
}

// refuseDiscovery makes a server one of the protocols before 2026-07-28.
func refuseDiscovery(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method == "server/discover" {
			return nil, errors.New("unknown")
		}
		return next(ctx, method, r)
	}
}
