package mcp

import (
	"context"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/server"
)

// identifyCaller passes the caller of a request on to the SDK.
func identifyCaller(next http.Handler) http.Handler { return next }

// withCaller returns the context of a call with the caller of its request.
func withCaller(ctx context.Context, _ *sdk.CallToolRequest) context.Context { return ctx }

// callerName returns the name of the caller's token, or "".
func callerName(context.Context) string { return "" }

// mayAnswer reports whether the caller may answer questions.
func mayAnswer(context.Context, *server.Service) bool { return true }
