package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// The times in which the body of a request must arrive. Large ones come over slow lines, too.
const (
	openBodyTime  = 10 * time.Second // of requests without a token
	bodyTime      = time.Minute
	largeBodyTime = 10 * time.Minute
)

// The sizes of the largest bodies of requests, in bytes.
const (
	maxBody     = 4 << 20
	maxOpenBody = 4 << 10 // of requests without a token
)

// The largest structure of a body in JSON. Values in memory need many times the bytes of their text, so that structure
// is counted before anything decodes it.
const (
	maxDepth = 500
	maxItems = 100_000
)

// startBody begins the time in which the body of a request must arrive. What reads it later, or discards what is left
// of it, waits no longer.
func startBody(w http.ResponseWriter, r *http.Request, within time.Duration) {
	if hasBody(r) {
		// not supported: a test without a connection
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(within))
	}
}

func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody && r.ContentLength != 0
}

// boundBody returns the size of the largest body that a request with a token may have, in bytes, and the time in which
// it must arrive.
func (g *Gateway) boundBody(r *http.Request) (limit int64, within time.Duration) {
	if r.Method != http.MethodPost {
		return maxBody, bodyTime
	}
	for path, large := range g.large {
		if large > maxBody && (r.URL.Path == path || strings.HasSuffix(path, "/") && strings.HasPrefix(r.URL.Path, path)) {
			return large, largeBodyTime
		}
	}
	return maxBody, bodyTime
}

// readBody reads the whole body of a request, so that no handler waits for it: limit is the size of the largest one, in
// bytes, and within is the time in which it must arrive. It refuses a body that is too large, comes too slowly or has
// too much structure, and reports whether the request may continue. Then the connection has no read deadline: a handler
// may write its answer for as long as it wants.
func (g *Gateway) readBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration) (ok bool) {
	if !hasBody(r) {
		return true
	}
	if r.ContentLength > limit {
		g.refuseBody(w, r, http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the body has %d bytes; the largest that this address takes has %d", r.ContentLength, limit))
		return false
	}
	startBody(w, r, within)
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	switch {
	case err == nil:
	case errors.As(err, new(*http.MaxBytesError)):
		g.refuseBody(w, r, http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the body is larger than %d bytes, the most that this address takes", limit))
		return false
	case errors.Is(err, os.ErrDeadlineExceeded):
		g.refuseBody(w, r, http.StatusRequestTimeout, "too-slow", fmt.Sprintf("the body did not arrive within %s", within))
		return false
	default:
		g.refuseBody(w, r, http.StatusBadRequest, "bad-request", "the body cannot be read to its end")
		return false
	}
	if depth, items := measureJSON(text); depth > maxDepth || items > maxItems {
		g.refuse(w, r, http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("the body may have at most %d levels and %d values", maxDepth, maxItems))
		return false
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	r.Body = io.NopCloser(bytes.NewReader(text))
	r.ContentLength = int64(len(text))
	r.TransferEncoding = nil
	return true
}

// refuseBody refuses a request whose body has not been read to its end. The connection ends, so that nothing waits for
// the rest.
func (g *Gateway) refuseBody(w http.ResponseWriter, r *http.Request, status int, code, detail string) {
	w.Header().Set("Connection", "close")
	g.refuse(w, r, status, code, detail)
}

// measureJSON returns how deep the lists and objects of a text in JSON are, and the number of their items. It decodes
// nothing: of another text the numbers mean nothing. It stops as soon as one of the limits is passed.
func measureJSON(text []byte) (depth, items int) {
	level := 0
	quoted := false
	for i := 0; i < len(text) && depth <= maxDepth && items <= maxItems; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			depth = max(depth, level)
			items++
		case c == '}' || c == ']':
			level--
		case c == ',':
			items++
		}
	}
	return depth, items
}
