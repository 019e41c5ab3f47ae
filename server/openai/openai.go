// Package openai serves agents in the form of OpenAI's chat completions: an agent is a model, and a run is a
// completion.
//
//	GET  /v1/models             the agents of the catalogue
//	GET  /v1/models/{model}     one of them
//	POST /v1/chat/completions   starts a run, or answers a question of one
//
// The header X-Raddle-Run of an answer names the run. If the run waits for a person, the message of the assistant asks.
// A request with that header answers with its last message. Questions about permission cannot be answered over this
// protocol: the message then says where.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// The headers that the protocol does not have.
const (
	HeaderRun     = "X-Raddle-Run"     // the run of a completion; in a request: the run to answer
	HeaderSession = "X-Raddle-Session" // the conversation to continue
)

// NewHandler returns the handler of the protocol. It checks no token.
func NewHandler(s *server.Service) http.Handler {
	h := &handler{service: s}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", h.listModels)
	mux.HandleFunc("GET /v1/models/{model}", h.readModel)
	mux.HandleFunc("POST /v1/chat/completions", h.complete)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &apiError{status: http.StatusNotFound, Type: typeRequest, Code: "unknown_url",
			Message: r.Method + " " + r.URL.Path + " is not served here; there are GET /v1/models and POST /v1/chat/completions"})
	})
	return mux
}

type handler struct {
	service *server.Service
}

// A model is an agent as the protocol lists it.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"` // when the definition of the agent was changed; 0: it is not known
	OwnedBy string `json:"owned_by"`
}

func newModel(a *server.AgentInfo) model {
	m := model{ID: a.Name, Object: "model", OwnedBy: "raddle"}
	if changed := a.ReadChangeTime(); !changed.IsZero() {
		m.Created = changed.Unix()
	}
	return m
}

// WriteRefusal writes an error of the server around the handler, such as a missing token, in the form of the protocol.
func WriteRefusal(w http.ResponseWriter, status int, code, detail string) {
	e := &apiError{status: status, Type: typeRequest, Code: code, Message: detail}
	switch status {
	case http.StatusUnauthorized:
		e.Code = "invalid_api_key"
	case http.StatusForbidden:
		e.Type = typePermission
	case http.StatusTooManyRequests:
		e.Type = typeRate
	}
	writeError(w, e)
}

// listModels writes the agents that can be loaded.
func (h *handler) listModels(w http.ResponseWriter, r *http.Request) {
	if err := h.service.RequireScope(r.Context(), server.ScopeRead); err != nil {
		writeError(w, explainError(err))
		return
	}
	list := struct {
		Object string  `json:"object"`
		Data   []model `json:"data"`
	}{Object: "list", Data: []model{}}
	for _, a := range h.service.ListAgents() {
		if a.Error == "" {
			list.Data = append(list.Data, newModel(&a))
		}
	}
	writeJSON(w, http.StatusOK, list)
}

func (h *handler) readModel(w http.ResponseWriter, r *http.Request) {
	if err := h.service.RequireScope(r.Context(), server.ScopeRead); err != nil {
		writeError(w, explainError(err))
		return
	}
	info, err := h.findAgent(r.PathValue("model"))
	if err != nil {
		writeError(w, err)
		return
	}
	writeJSON(w, http.StatusOK, newModel(info))
}

// findAgent returns the agent that a request names as its model.
func (h *handler) findAgent(name string) (*server.AgentInfo, *apiError) {
	info, err := h.service.ReadAgent(name)
	if err == nil {
		return info, nil
	}
	e := h.explainError(err)
	e.Param = "model"
	if f := (*failure.Error)(nil); errors.As(err, &f) && f.Kind == failure.Usage {
		e.status = http.StatusNotFound
		e.Code = "model_not_found"
	} else {
		e.status = http.StatusInternalServerError
		e.Type = typeServer
		e.Code = "invalid_agent"
		e.final = true
	}
	return nil, e
}

// An apiError is an error in the form of the protocol.
type apiError struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   string `json:"-"`
	Code    string `json:"code"`

	status     int
	retryAfter string // when clients may send the request again, in seconds; "": nothing is said
	final      bool   // clients must not send the request again by themselves
}

// The types of errors.
const (
	typeRequest    = "invalid_request_error"
	typePermission = "permission_error"
	typeServer     = "server_error"
	typeRate       = "rate_limit_error"
)

func (e *apiError) Error() string { return e.Message }

// MarshalJSON writes the error with a param that is null if there is none.
func (e *apiError) MarshalJSON() ([]byte, error) {
	type fields apiError
	wire := struct {
		*fields
		Param *string `json:"param"`
	}{fields: (*fields)(e)}
	if e.Param != "" {
		wire.Param = &e.Param
	}
	return json.Marshal(wire)
}

// newBadRequest returns the error of a request that cannot be served as it is.
func newBadRequest(code, param, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, Type: typeRequest, Code: code, Param: param, Message: message}
}

// newConflict returns the error of a request that does not fit to what its run does.
func newConflict(code, message string) *apiError {
	return &apiError{status: http.StatusConflict, Type: typeRequest, Code: code, Message: message, final: true}
}

// explainError returns the error of the protocol for an error of the service.
func explainError(err error) *apiError {
	var known *apiError
	var fail *failure.Error
	var used *server.QuotaError
	e := &apiError{Message: err.Error()}
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &used):
		e.status, e.Type, e.Code, e.retryAfter = http.StatusTooManyRequests, typeRate, strings.ReplaceAll(used.Code, "-", "_"), used.FormatSeconds()
	case errors.As(err, new(*server.ScopeError)):
		e.status = http.StatusForbidden
		e.Type = typePermission
		e.Code = "missing_scope"
	case errors.As(err, new(*server.DiskLowError)):
		e.status = http.StatusServiceUnavailable
		e.Type = typeServer
		e.Code = "disk_low"
	case failure.IsUnavailable(err):
		e.status = http.StatusServiceUnavailable
		e.Type = typeServer
		e.Code = "store_unavailable"
		e.final = true // what was sent may be recorded
	case errors.As(err, new(*http.MaxBytesError)):
		e.status = http.StatusRequestEntityTooLarge
		e.Type = typeRequest
		e.Code = "request_too_large"
	case errors.As(err, new(*server.KeyReusedError)):
		e.status = http.StatusConflict
		e.Type = typeRequest
		e.Code = "idempotency_key_reused"
		e.final = true
	case errors.As(err, new(*server.ProtocolAnswerError)):
		e.status = http.StatusConflict
		e.Type = typeRequest
		e.Code = "permission_required"
		e.final = true
	case errors.As(err, new(*graph.AnswerError)):
		e.status = http.StatusBadRequest
		e.Type = typeRequest
		e.Code = "invalid_answer"
		e.Param = "messages"
	case errors.As(err, new(*flow.VariablesError)):
		e.status = http.StatusBadRequest
		e.Type = typeRequest
		e.Code = "missing_variables"
		e.Param = "raddle.variables"
	case errors.As(err, new(*runs.BusyError)):
		e.status = http.StatusConflict
		e.Type = typeRequest
		e.Code = "run_busy"
		e.final = true
	case errors.As(err, &fail):
		e.status = http.StatusBadRequest
		e.Type = typeRequest
		e.Code = string(fail.Kind)
		switch fail.Kind {
		case failure.Stale:
			e.status = http.StatusConflict
		case failure.Invalid:
			e.status = http.StatusInternalServerError
			e.Type = typeServer
			e.final = true
		}
		if fail.Next != "" {
			e.Message += "; " + fail.Next
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e.status = http.StatusServiceUnavailable
		e.Type = typeServer
		e.Code = "stopped"
	default:
		e.status = http.StatusInternalServerError
		e.Type = typeServer
		e.Code = "internal"
		e.final = true
	}
	return e
}

// explainError returns the error of the protocol for an error of the service, which may be about to end.
func (h *handler) explainError(err error) *apiError {
	e := explainError(err)
	e.Message = server.HidePaths(e.Message, h.service)
	if fail := (*failure.Error)(nil); h.service.IsDraining() && errors.As(err, &fail) && fail.Kind == failure.Stale {
		e.status = http.StatusServiceUnavailable
		e.Type = typeServer
		e.Code = "draining"
	}
	return e
}

// errorBody is the body of an answer that is an error.
type errorBody struct {
	Error *apiError `json:"error"`
}

func writeError(w http.ResponseWriter, e *apiError) {
	if e.status == http.StatusServiceUnavailable {
		e.retryAfter = server.RetryAfter
	}
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	if e.final {
		w.Header().Set("X-Should-Retry", "false") // OpenAI's libraries repeat a request otherwise, and a run with it
	}
	writeJSON(w, e.status, errorBody{e})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status = http.StatusInternalServerError
		text = []byte(`{"error":{"message":"the answer cannot be written as JSON","type":"server_error","param":null,"code":"internal"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// usage counts tokens.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	PromptDetails    struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func newUsage(u llm.Usage) *usage {
	out := &usage{PromptTokens: u.Input, CompletionTokens: u.Output, TotalTokens: u.Input + u.Output}
	out.PromptDetails.CachedTokens = u.Cached
	out.CompletionDetails.ReasoningTokens = u.Reasoning
	return out
}
