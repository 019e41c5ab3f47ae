package llm

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A Class groups failures by what a caller can do about them.
type Class string

// These are the classes of failures.
const (
	Auth          Class = "auth"           // no key, a wrong one, or one without the permission: fix the configuration
	RateLimited   Class = "rate_limited"   // too many requests or tokens, or the quota is used up: wait
	Overloaded    Class = "overloaded"     // the provider has no capacity: wait
	ContextLength Class = "context_length" // the conversation does not fit in the model's context: shorten it
	BadRequest    Class = "bad_request"    // the provider rejects this request: repeating it does not help
	Network       Class = "network"        // no connection, or it broke
	Timeout       Class = "timeout"        // the server sent nothing for too long
	Server        Class = "server"         // the provider failed, or violated its own protocol
	Limit         Class = "limit"          // the reply is too large or too slow: raise the limit, or ask for less
)

// These are values of Error.Code for the class Network, when there is no answer
// of a provider.
const (
	CodeRefused     = "refused"     // no server listens at the address
	CodeReset       = "reset"       // the connection broke, or the stream ended before the reply did
	CodeUnreachable = "unreachable" // no route, no such host, or no trust in its certificate
)

// An Error is a failure of a provider or of the connection to it. It is never
// used for the end of the caller's own context.
type Error struct {
	Class      Class
	Status     int           // of HTTP; 0: the failure has no status
	Code       string        // the provider's machine-readable code, or a Code constant
	Host       string        // of the endpoint
	Message    string        // the provider's message, and what to do if that is known
	RetryAfter time.Duration // how long the provider asks to wait; 0: it did not say
	Err        error         // the cause, such as a syscall.Errno; may be nil
}

// Error returns "phrase (status): host: message". The phrase depends only on
// the class (for Network also on the code) and does not change between
// versions: rules that recognize temporary failures by their text rely on "rate
// limit", "Connection reset", "Connection refused" and "request timed out". The
// phrases of the other classes never contain one of these.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.describeClass())
	if e.Status != 0 {
		b.WriteString(" (" + strconv.Itoa(e.Status) + ")")
	}
	for _, s := range []string{e.Host, e.Message} {
		if s != "" {
			b.WriteString(": " + s)
		}
	}
	return b.String()
}

func (e *Error) describeClass() string {
	switch e.Class {
	case Auth:
		return "authentication failed"
	case RateLimited:
		return "rate limit"
	case Overloaded:
		return "provider overloaded"
	case ContextLength:
		return "context too long"
	case BadRequest:
		return "bad request"
	case Timeout:
		return "request timed out"
	case Server:
		return "server error"
	case Limit:
		return "reply beyond the limit"
	case Network:
		switch e.Code {
		case CodeRefused:
			return "Connection refused"
		case CodeReset:
			return "Connection reset"
		}
		return "network error"
	}
	return "model error"
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsTransient reports whether the same request is likely to succeed if it is sent
// again: after a rate limit, a timeout, and a connection that was refused or
// broke. A failing or overloaded server is not transient in this sense.
func (e *Error) IsTransient() bool {
	switch e.Class {
	case RateLimited, Timeout:
		return true
	case Network:
		return e.Code == CodeRefused || e.Code == CodeReset
	}
	return false
}

// StatusClass returns the class of an HTTP status of 400 or more, as far as the
// status alone determines it. Use it as the default in a Model for another
// provider.
func StatusClass(status int) Class {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Auth
	case http.StatusTooManyRequests:
		return RateLimited
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return Timeout
	case http.StatusServiceUnavailable, 529: // 529 is not a registered status; it means overloaded
		return Overloaded
	}
	if status >= 500 {
		return Server
	}
	return BadRequest
}
