package mcp

import (
	"context"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/server"
)

// identifyCaller passes the caller of a request on to the SDK, which keeps sessions of different callers apart.
func identifyCaller(next http.Handler) http.Handler {
	verify := func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		c, _ := server.CallerOf(ctx)
		return &auth.TokenInfo{UserID: c.Name, Expiration: time.Now().Add(time.Hour), Extra: map[string]any{callerKey: c}}, nil
	}
	passed := auth.RequireBearerToken(verify, nil)(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := server.CallerOf(r.Context()); !ok {
			next.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer checked") // a browser has a cookie instead
		passed.ServeHTTP(w, r)
	})
}

// callerKey is the key of the caller in auth.TokenInfo.
const callerKey = "raddle.caller"

// withCaller returns the context of a call with the caller of its HTTP request: the SDK works in the context of the
// session.
func withCaller(ctx context.Context, req *sdk.CallToolRequest) context.Context {
	if req.Extra != nil && req.Extra.TokenInfo != nil {
		if c, ok := req.Extra.TokenInfo.Extra[callerKey].(server.Caller); ok {
			return server.WithCaller(ctx, c)
		}
	}
	return ctx
}

// mayAnswer reports whether the caller may answer questions.
func mayAnswer(ctx context.Context, s *server.Service) bool {
	return s.RequireScope(ctx, server.ScopeAnswer) == nil
}
