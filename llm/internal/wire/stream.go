package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"sync/atomic"

	"raddle.dev/llm"
)

// errLeft informs a call that the reader of its stream has left the loop.
var errLeft = errors.New("wire: the reader has left")

// Stream returns the sequence of a Model. call sends the request, passes deltas
// to emit, and returns the reply. It must return the errors of emit
// immediately, and must release its resources.
func (c *Client) Stream(ctx context.Context, call func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error)) iter.Seq2[llm.Delta, error] {
	var used atomic.Bool
	return func(yield func(llm.Delta, error) bool) {
		if used.Swap(true) {
			yield(llm.Delta{}, errors.New("llm: a stream can be used only once; call Stream again"))
			return
		}
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		reply, err := call(inner, func(d llm.Delta) error {
			if !yield(d, nil) {
				return errLeft
			}
			return nil
		})
		switch {
		case errors.Is(err, errLeft):
		case err != nil:
			yield(llm.Delta{}, c.ClassifyError(ctx, err))
		default:
			yield(llm.Delta{Done: &reply}, nil)
		}
	}
}

// A Decoder reads the events of one reply.
type Decoder interface {
	// Event reads the next event. It returns true if the stream is complete.
	Event(ev Event) (done bool, err error)
	// Complete reports whether everything that the reply needs has arrived.
	// After that, a broken stream is not an error.
	Complete() bool
}

// Exchange sends body as JSON to address and passes the events of the answer to
// d. header is added to the headers of every request.
func (c *Client) Exchange(ctx context.Context, address string, header map[string]string, body any, d Decoder) error {
	stream, err := c.postJSON(ctx, address, header, body)
	if err != nil {
		return err
	}
	defer stream.Close()
	for ev, err := range c.ReadEvents(stream) {
		if d.Complete() && IsFailure(err) {
			return nil
		}
		if err != nil {
			return err
		}
		if done, err := d.Event(ev); done || err != nil {
			return err
		}
	}
	if !d.Complete() {
		return c.EndedEarly()
	}
	return nil
}

// postJSON sends body as JSON to address and returns the body of the answer once it
// is known to be an event stream. The caller must close it.
func (c *Client) postJSON(ctx context.Context, address string, header map[string]string, body any) (io.ReadCloser, error) {
	data, err := encodeBody(body, c.members)
	if err != nil {
		return nil, c.UnsupportedError(c.cleanText("the request cannot be written as JSON; is every schema valid JSON? " + err.Error()))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, c.UnsupportedError(c.cleanText("the address cannot be used: " + err.Error()))
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "User-Agent": {"raddle"}}
	if parent := llm.Traceparent(ctx); parent != "" {
		req.Header.Set("traceparent", parent)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}
