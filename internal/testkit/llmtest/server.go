package llmtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A Turn is what the model answers.
type Turn struct {
	Thought string // with a signature if the vendor has one
	Text    string
	Calls   []Call
	Cut     bool // a token limit ends the turn, so that the arguments of the last call may be incomplete
}

// A Call is a tool call of a turn.
type Call struct{ ID, Name, Args string }

// A Vendor is a personality: what one provider, or one server that is compatible with one, accepts and answers, such as
// [OpenAI] or [Anthropic].
type Vendor struct {
	Name string
	// Check returns an error that says why the vendor would refuse the body of a request.
	Check func(body []byte) error
	// admit returns the status and the reason with which the vendor refuses a request for its path or its headers, 0
	// for a request that it takes. nil takes all.
	admit func(r *http.Request) (status int, reason string)
	// checkRequest judges a request as a whole, instead of Check. nil: the body alone decides.
	checkRequest func(r *http.Request, body []byte) (status int, reason string)
	// serve answers requests that are no calls of the model, and reports whether it has. nil: there are none.
	serve  func(w http.ResponseWriter, r *http.Request, body []byte) bool
	stream func(Turn) string
	// media is the content type of a stream; "" means text/event-stream.
	media  string
	refuse func(message string) string
	// lacks returns an error for what the vendor takes and its models cannot do. nil: there is nothing.
	lacks func(body []byte) error
	// refusal adds to the headers of a refused request. nil: there is nothing to add.
	refusal func(header http.Header, status int, reason string)
}

// WithLacks returns the vendor with models that cannot do what its models of today cannot do, such as to look at
// pictures. Without it, a vendor refuses only requests that are not in its form.
func (v Vendor) WithLacks() Vendor {
	check := v.Check
	lacks := v.lacks
	if lacks != nil {
		v.Check = func(body []byte) error {
			if err := lacks(body); err != nil {
				return err
			}
			return check(body)
		}
	}
	return v
}

// judge returns the status and the reason with which the vendor refuses a request, 0 if it takes it.
func (v Vendor) judge(r *http.Request, body []byte) (status int, reason string) {
	if v.admit != nil {
		if status, reason = v.admit(r); status != 0 {
			return status, reason
		}
	}
	if v.checkRequest != nil {
		if status, reason = v.checkRequest(r, body); status != 0 {
			return status, reason
		}
	} else if err := v.Check(body); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	if err := v.checkSchemas(body); err != nil {
		return http.StatusBadRequest, err.Error()
	}
	return 0, ""
}

// reject refuses a request.
func (v Vendor) reject(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	if v.refusal != nil {
		v.refusal(w.Header(), status, reason)
	}
	w.WriteHeader(status)
	io.WriteString(w, v.refuse(reason))
}

// reply streams a turn.
func (v Vendor) reply(w http.ResponseWriter, turn Turn) {
	w.Header().Set("Content-Type", cmp.Or(v.media, "text/event-stream"))
	io.WriteString(w, v.stream(turn))
}

// A Server answers each request with the next turn.
type Server struct {
	URL string

	mu     sync.Mutex
	turns  []Turn
	bodies [][]byte
}

// StartServer starts a server that runs until the test ends. A request that the
// vendor would refuse fails the test and is refused, and so is a request after the last turn.
func StartServer(t testing.TB, v Vendor, turns ...Turn) *Server {
	t.Helper()
	s := &Server{turns: turns}
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("reading a request of %s: %v", v.Name, err)
			return
		}
		if v.serve != nil && v.serve(w, r, body) {
			return
		}
		status, reason := v.judge(r, body)
		turn, ok := s.nextTurn(body)
		if status == 0 && !ok {
			status = http.StatusBadRequest
			reason = "there is no turn left"
		}
		if status != 0 {
			t.Errorf("%s refuses the request to %s: %d, %s\n%s", v.Name, r.URL.Path, status, reason, body)
			v.reject(w, status, reason)
			return
		}
		v.reply(w, turn)
	}))
	t.Cleanup(inner.Close)
	s.URL = inner.URL
	return s
}

// NewHandler returns a handler that answers each request with the turn that answer returns for its body. A status of
// 400 or more refuses the request, and the text of the turn is the reason. A request that the vendor would refuse is
// always refused.
func (v Vendor) NewHandler(answer func(body []byte) (turn Turn, status int)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		if v.serve != nil && v.serve(w, r, body) {
			return
		}
		if status, reason := v.judge(r, body); status != 0 {
			v.reject(w, status, reason)
			return
		}
		turn, status := answer(body)
		if status >= http.StatusBadRequest {
			v.reject(w, status, turn.Text)
			return
		}
		v.reply(w, turn)
	})
}

func (s *Server) nextTurn(body []byte) (Turn, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = append(s.bodies, body)
	if len(s.turns) == 0 {
		return Turn{}, false
	}
	turn := s.turns[0]
	s.turns = s.turns[1:]
	return turn, true
}

// RequestBodies returns the requests so far.
func (s *Server) RequestBodies() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.bodies...)
}

// splitHalf cuts a text in two.
func splitHalf(text string) [2]string {
	r := []rune(text)
	return [2]string{string(r[:len(r)/2]), string(r[len(r)/2:])}
}

func quoteJSON(v any) string {
	data, _ := json.Marshal(v) // texts and maps of texts
	return string(data)
}

// isJSONObject reports whether a text is a JSON object.
func isJSONObject(text []byte) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal(text, &m) == nil && m != nil
}

// isPlainName reports whether a name or an id consists of 1 to most letters, digits, underscores and dashes.
func isPlainName(name string, most int) bool {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-' {
			return false
		}
	}
	return name != "" && len(name) <= most
}

// A vendorError is the reason of a vendor's server in its own words.
type vendorError string

// Error returns the reason.
func (r vendorError) Error() string { return string(r) }

// vendorErrorf returns a vendorError with values in its words.
func vendorErrorf(format string, args ...any) error { return vendorError(fmt.Sprintf(format, args...)) }
