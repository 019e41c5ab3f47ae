package llm

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// phrases are the texts by which the graph file format knows a passing failure.
var phrases = []string{"timed out", "rate limit", "429", "Connection reset", "Connection refused", "produced no output"}

func TestErrorText(t *testing.T) {
	for _, c := range []struct {
		err       Error
		want      string
		transient bool
	}{
		{Error{Class: RateLimited, Status: 429, Host: "h", Message: "slow down"}, "rate limit (429): h: slow down", true},
		{Error{Class: RateLimited, Message: "slow down"}, "rate limit: slow down", true},
		{Error{Class: Timeout, Host: "h", Message: "m"}, "request timed out: h: m", true},
		{Error{Class: Network, Code: CodeRefused, Host: "h:1", Message: "m"}, "Connection refused: h:1: m", true},
		{Error{Class: Network, Code: CodeReset, Host: "h:1", Message: "m"}, "Connection reset: h:1: m", true},
		{Error{Class: Network, Code: CodeUnreachable, Host: "h", Message: "no such host"}, "network error: h: no such host", false},
		{Error{Class: Auth, Status: 401, Host: "h", Message: "m"}, "authentication failed (401): h: m", false},
		{Error{Class: Overloaded, Status: 503, Host: "h", Message: "m"}, "provider overloaded (503): h: m", false},
		{Error{Class: Overloaded, Status: 529, Host: "h", Message: "m"}, "provider overloaded (529): h: m", false},
		{Error{Class: Server, Status: 500, Host: "h", Message: "m"}, "server error (500): h: m", false},
		{Error{Class: BadRequest, Status: 400, Host: "h", Message: "m"}, "bad request (400): h: m", false},
		{Error{Class: ContextLength, Status: 400, Host: "h", Message: "m"}, "context too long (400): h: m", false},
		{Error{Class: Limit, Host: "h", Message: "m"}, "reply beyond the limit: h: m", false},
		{Error{Class: Server}, "server error", false},
		{Error{}, "model error", false},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("text is %q, want %q", got, c.want)
		}
		if got := c.err.IsTransient(); got != c.transient {
			t.Errorf("%q: Transient() = %v", c.want, got)
		}
		text := false
		for _, p := range phrases {
			text = text || strings.Contains(c.err.Error(), p)
		}
		if text != c.transient {
			t.Errorf("%q: transient by text is %v, by class %v", c.want, text, c.transient)
		}
	}
}

func TestErrorUnwrap(t *testing.T) {
	err := fmt.Errorf("node: %w", &Error{Class: Network, Err: syscall.ECONNREFUSED})
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("%v hides its cause", err)
	}
}

func TestStatusClass(t *testing.T) {
	for status, want := range map[int]Class{
		400: BadRequest, 401: Auth, 402: BadRequest, 403: Auth, 404: BadRequest, 408: Timeout, 413: BadRequest, 422: BadRequest,
		429: RateLimited, 500: Server, 502: Server, 503: Overloaded, 504: Timeout, 529: Overloaded, 599: Server,
	} {
		if got := StatusClass(status); got != want {
			t.Errorf("StatusClass(%d) = %q, want %q", status, got, want)
		}
	}
}
