package api

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// A Problem is the answer to a request that failed, as RFC 9457 describes it.
type Problem struct {
	Title  string       `json:"title" doc:"the words of the status"`
	Status int          `json:"status" doc:"the HTTP status"`
	Code   string       `json:"code" doc:"what is wrong, as one stable word for programs"`
	Detail string       `json:"detail" doc:"what is wrong, for people"`
	Next   string       `json:"next,omitempty" doc:"what to do about it"`
	Errors []Detail     `json:"errors,omitempty" doc:"each value that is not valid"`
	Answer *runs.Answer `json:"answer,omitempty" doc:"of already-answered: what was answered, by whom, and when"`

	retryAfter string // when to send the request again, in seconds; "": nothing is said
}

// A Detail is what is wrong with one value of a request.
type Detail struct {
	Location string `json:"location,omitempty" doc:"where the value is, such as body.answers[0].id"`
	Detail   string `json:"detail"`
}

func (p *Problem) Error() string { return p.Detail }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of problems.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders returns the headers of the answer.
func (p *Problem) GetHeaders() http.Header {
	after := p.retryAfter
	if p.Status == http.StatusServiceUnavailable {
		after = server.RetryAfter
	}
	if after == "" {
		return nil
	}
	return http.Header{"Retry-After": {after}}
}

func newProblem(status int, code, detail string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Detail: detail}
}

func init() { huma.NewError = makeProblem }

// requestCodes are the codes of problems with the request itself, by their status.
var requestCodes = map[int]string{
	http.StatusBadRequest:            "bad-request",
	http.StatusUnprocessableEntity:   "invalid-request",
	http.StatusRequestEntityTooLarge: "too-large",
	http.StatusRequestTimeout:        "too-slow",
	http.StatusUnsupportedMediaType:  "wrong-media-type",
	http.StatusNotAcceptable:         "not-acceptable",
}

// makeProblem makes a problem of what the library has found in a request.
func makeProblem(status int, detail string, errs ...error) huma.StatusError {
	if len(errs) == 1 {
		if p, ok := errors.AsType[*Problem](errs[0]); ok {
			return p
		}
	}
	code := cmp.Or(requestCodes[status], "internal")
	p := newProblem(status, code, detail)
	for _, err := range errs {
		if d, ok := err.(huma.ErrorDetailer); ok {
			found := d.ErrorDetail()
			p.Errors = append(p.Errors, Detail{found.Location, found.Message})
		} else if err != nil {
			p.Errors = append(p.Errors, Detail{Detail: err.Error()})
		}
	}
	return p
}

// is reports whether an error is or wraps one of a type.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// problemOf makes a problem of an error. The known secrets are taken out of its text.
func (h *handler) problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	status, code := classifyError(err)
	if h.service != nil && h.service.IsDraining() {
		status = http.StatusServiceUnavailable
		code = "draining"
	}
	secrets := h.process.Tools.SecretSet()
	p := newProblem(status, code, server.HidePaths(secrets.Text(err.Error()), h.service))
	if failed, ok := errors.AsType[*failure.Error](err); ok {
		p.Next = server.HidePaths(secrets.Text(failed.Next), h.service)
	}
	if used, ok := errors.AsType[*server.QuotaError](err); ok {
		p.Status, p.Title, p.Code, p.retryAfter = http.StatusTooManyRequests, http.StatusText(http.StatusTooManyRequests), used.Code, used.FormatSeconds()
	}
	if answered, ok := errors.AsType[*runs.AnsweredError](err); ok {
		p.Answer = &answered.Answer
	}
	return p
}

// classifyError returns the HTTP status and the code of an error.
func classifyError(err error) (status int, code string) {
	failed, _ := errors.AsType[*failure.Error](err)
	switch {
	case is[*server.ScopeError](err):
		return http.StatusForbidden, "missing-scope"
	case is[*server.DiskLowError](err):
		return http.StatusServiceUnavailable, "disk-low"
	case failure.IsUnavailable(err):
		return http.StatusServiceUnavailable, "store-unavailable"
	case is[*runs.UnknownError](err):
		return http.StatusNotFound, "unknown-run"
	case is[*server.KeyReusedError](err):
		return http.StatusUnprocessableEntity, "key-reused"
	case is[*server.PositionError](err):
		return http.StatusBadRequest, "wrong-position"
	case is[*runs.AnsweredError](err):
		return http.StatusConflict, "already-answered"
	case is[*graph.AnswerError](err):
		return http.StatusUnprocessableEntity, "wrong-answer"
	case is[*runs.EndedError](err):
		return http.StatusConflict, "run-ended"
	case is[*runs.BusyError](err), is[*graph.BusyError](err):
		return http.StatusConflict, "run-busy"
	case is[*journal.DamagedError](err):
		return http.StatusInternalServerError, "run-damaged"
	case is[*flow.VariablesError](err):
		return http.StatusUnprocessableEntity, "missing-variables"
	case is[*flow.LoadError](err), is[*spec.ValidationError](err), is[*app.StrictError](err), is[*flow.MissingModelError](err):
		return http.StatusUnprocessableEntity, "invalid-agent"
	case failed != nil && failed.Kind == failure.Usage:
		return http.StatusBadRequest, "usage"
	case failed != nil && failed.Kind == failure.Invalid:
		return http.StatusUnprocessableEntity, "invalid-agent"
	case failed != nil:
		return http.StatusConflict, "stale"
	}
	return http.StatusInternalServerError, "internal"
}
