package modeltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
)

// errRefusedBefore is the error of a request whose body the server has refused already.
var errRefusedBefore = errors.New("the server has refused the same request already")

// mostHeard is how many bytes of replies are kept.
const mostHeard = 1 << 20

// A tap keeps what goes to the server and comes from it. It is safe for concurrent use.
type tap struct {
	mu      sync.Mutex
	sent    []byte          // the body of the last request of the conversation
	heard   bytes.Buffer    // the beginning of all replies
	refused map[string]bool // bodies that are not sent
}

// Watch returns a connection whose conversations the tap keeps.
func (t *tap) Watch(next http.RoundTripper) http.RoundTripper { return &tapped{t, next} }

// A tapped connection is one with a tap.
type tapped struct {
	tap  *tap
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (c *tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return c.next.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	if len(listMessages(body)) == 0 {
		return c.next.RoundTrip(again) // it asks about the model, not the model
	}
	if !c.tap.keepRequest(body) {
		return nil, errRefusedBefore
	}
	response, err := c.next.RoundTrip(again)
	if err == nil {
		response.Body = &heardBody{response.Body, c.tap}
	}
	return response, err
}

// keepRequest reports whether the server has not refused the body yet.
func (t *tap) keepRequest(body []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = body
	return !t.refused[string(body)]
}

// A heardBody is the body of a response whose beginning the tap keeps.
type heardBody struct {
	io.ReadCloser
	tap *tap
}

// Read implements [io.Reader].
func (b *heardBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.tap.mu.Lock()
	defer b.tap.mu.Unlock()
	b.tap.heard.Write(p[:max(0, min(n, mostHeard-b.tap.heard.Len()))])
	return n, err
}

// lastRequest returns the body of the last request.
func (t *tap) lastRequest() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sent
}

// hasHeard reports whether a reply has had a member of JSON with one of these names.
func (t *tap) hasHeard(names ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range names {
		for rest := t.heard.Bytes(); ; {
			_, after, found := bytes.Cut(rest, []byte(`"`+name+`"`))
			if !found {
				break
			}
			rest = bytes.TrimLeft(after, " ")
			value, isMember := bytes.CutPrefix(rest, []byte(":"))
			if isMember && !bytes.HasPrefix(bytes.TrimLeft(value, " "), []byte("null")) {
				return true
			}
		}
	}
	return false
}

// blockLast makes the tap not send the last body again.
func (t *tap) blockLast() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.refused == nil {
		t.refused = map[string]bool{}
	}
	t.refused[string(t.sent)] = true
}

// messageLists are the members with the conversation, in the wires that raddle has.
var messageLists = []string{"messages", "input", "contents"}

// listMessages returns the conversation of a request.
func listMessages(body []byte) []any {
	var members map[string]any
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	for _, name := range messageLists {
		if list, ok := members[name].([]any); ok {
			return list
		}
	}
	return nil
}
