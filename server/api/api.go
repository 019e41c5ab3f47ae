// Package api offers a service to programs as an HTTP API with JSON: /api/v1/... The document that describes it,
// OpenAPI 3.1, is made from the Go types of its requests and answers, and is served at /api/openapi.json.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
)

// prefix is in front of the path of every operation.
const prefix = "/api/v1"

// maxBody is the size of the largest body of a request, in bytes.
const maxBody = 4 << 20

// These are the times in which a body must arrive. A start may have files, over a slow line.
const (
	bodyTimeout  = time.Minute
	startTimeout = 10 * time.Minute
)

// A handler answers the requests of the API.
type handler struct {
	service *server.Service // nil: only the document is made, or a Reader asks
	process *app.Process
	api     huma.API
	kept    *keptRun // of a Reader; nil: each request reads its run
}

// NewHandler returns the API of a service. It checks the scopes of the caller that is in the context of a request, and
// no token.
func NewHandler(s *server.Service) http.Handler {
	mux := http.NewServeMux()
	newAPI(mux, s)
	document, err := OpenAPI()
	mux.HandleFunc("GET /api/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(document)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := int64(maxBody)
		if r.Method == http.MethodPost && r.URL.Path == StartPath {
			limit = MaxStartBody
		}
		r.Body = http.MaxBytesReader(w, r.Body, limit)
		if _, pattern := mux.Handler(r); pattern == "" {
			writeUnknown(mux, w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// writeUnknown answers a request for which there is no operation.
func writeUnknown(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	p := newProblem(http.StatusNotFound, "not-found", "there is nothing at "+r.URL.Path)
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); pattern != "" && r.Method != method {
			p = newProblem(http.StatusMethodNotAllowed, "wrong-method", r.URL.Path+" does not take "+r.Method)
			w.Header().Add("Allow", method)
		}
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// OpenAPI returns the document that describes the API.
func OpenAPI() ([]byte, error) {
	h := newAPI(http.NewServeMux(), nil)
	document := h.api.OpenAPI()
	for path, item := range document.Paths { // that of files takes slashes, which the document cannot say
		delete(document.Paths, path)
		document.Paths[strings.ReplaceAll(path, "...", "")] = item
	}
	return json.MarshalIndent(document, "", "  ")
}

// newAPI adds all operations to a multiplexer.
func newAPI(mux *http.ServeMux, s *server.Service) *handler {
	h := &handler{service: s}
	if s != nil {
		h.process = s.Process()
	}
	h.openAPI(mux)
	h.api.UseMiddleware(h.checkScope, h.checkNoBody)
	h.addRuns()
	h.addTravel()
	h.addTimeline()
	h.addCatalogue()
	toolHandler{h}.addTools()
	sessionHandler{h}.addSessions()
	return h
}

// openAPI makes an API without operations.
func (h *handler) openAPI(mux *http.ServeMux) {
	config := huma.DefaultConfig("raddle", "1")
	config.Components.Schemas = huma.NewMapRegistry("#/components/schemas/", newNamer())
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer", Description: "a token of the server; its scopes say what it may do"}}
	config.Info.Description = "Runs agents, answers their questions and reads what they did."
	config.OpenAPIPath = ""
	config.DocsPath = ""
	config.SchemasPath = ""
	config.CreateHooks = nil
	config.RejectUnknownQueryParameters = true
	h.api = humago.New(mux, config)
}

// newNamer returns a function that names the types of the document. A name that exists already gets its package in
// front.
func newNamer() func(t reflect.Type, hint string) string {
	types := map[string]reflect.Type{}
	return func(t reflect.Type, hint string) string {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		name := huma.DefaultSchemaNamer(t, hint)
		if known := types[name]; known != nil && known != t {
			parts := strings.Split(t.PkgPath(), "/")
			name = huma.DefaultSchemaNamer(t, "")
			last := parts[len(parts)-1]
			name = strings.ToUpper(last[:min(1, len(last))]) + last[min(1, len(last)):] + name
		}
		types[name] = t
		return name
	}
}

// An operation is what add needs to know of an operation.
type operation struct {
	method, path string
	id           string
	summary      string
	scope        server.Scope
	status       int // of an answer; 0: 200
}

// add adds an operation, and makes a problem of its errors.
func add[I, O any](h *handler, o operation, do func(ctx context.Context, in *I) (*O, error)) {
	op := h.describe(o)
	huma.Register(h.api, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := do(ctx, in)
		if err != nil {
			return nil, h.problemOf(err)
		}
		return out, nil
	})
}

// describe returns an operation in the form of the library.
func (h *handler) describe(o operation) huma.Operation {
	return huma.Operation{
		OperationID: o.id, Method: o.method, Path: prefix + o.path, Summary: o.summary, DefaultStatus: o.status, MaxBodyBytes: maxBody, BodyReadTimeout: bodyTimeout,
		Security: []map[string][]string{{"token": {string(o.scope)}}},
		Errors:   []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict},
	}
}

// checkScope refuses requests of callers that do not have the scope of the operation.
func (h *handler) checkScope(ctx huma.Context, next func(huma.Context)) {
	for _, need := range ctx.Operation().Security {
		for _, scope := range need["token"] {
			if err := h.service.RequireScope(ctx.Context(), server.Scope(scope)); err != nil {
				p := h.problemOf(err)
				_ = huma.WriteErr(h.api, ctx, p.Status, p.Detail, p)
				return
			}
		}
	}
	next(ctx)
}

// checkNoBody refuses a body where the operation takes none: what it says, such as an answer, would be passed over. An
// empty object says nothing.
func (h *handler) checkNoBody(ctx huma.Context, next func(huma.Context)) {
	if ctx.Operation().RequestBody != nil || ctx.BodyReader() == nil {
		next(ctx)
		return
	}
	const most = 64 // bytes that can be an empty object
	text, err := io.ReadAll(io.LimitReader(ctx.BodyReader(), most))
	text = bytes.TrimSpace(text)
	if err != nil || len(text) > 0 && string(text) != "{}" {
		p := newProblem(http.StatusBadRequest, "invalid-request", ctx.Operation().OperationID+" takes no body, and nothing was done")
		p.Next = "leave the body out; answers go to POST " + prefix + "/runs/{id}/answers"
		_ = huma.WriteErr(h.api, ctx, p.Status, p.Detail, p)
		return
	}
	next(ctx)
}

// A body is an answer with a JSON object.
type body[T any] struct{ Body T }

// nothing is the answer of operations that return nothing.
type nothing struct{}
