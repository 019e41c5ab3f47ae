package wire

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"raddle.dev/llm"
)

// maxErrorBody is how much of a body is read for its error message.
const maxErrorBody = 64 << 10

// A body is a response body that fails when the server sends nothing for too
// long. Its errors are classified.
type body struct {
	client *Client
	ctx    context.Context // of the exchange
	end    func()          // releases the exchange
	timer  *time.Timer
	rc     io.ReadCloser
}

// Read waits for the server for at most the read timeout. The time between two
// reads does not count.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.client.read)
	n, err := b.rc.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF {
		err = b.client.brokenStreamError(b.ctx, err)
	}
	return n, err
}

// Close ends the exchange.
func (b *body) Close() error {
	b.timer.Stop()
	err := b.rc.Close()
	b.end()
	return err
}

// expectEvents returns nil if resp is a success and an event stream, and
// otherwise the failure that it describes.
func (c *Client) expectEvents(resp *http.Response) error {
	if resp.StatusCode >= 300 || resp.StatusCode < 200 {
		return c.responseError(resp)
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if c.media != "" && kind == c.media {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{c.translate(resp.Body), resp.Body}
		return nil
	}
	switch kind {
	case "text/event-stream":
		return nil
	case "application/x-ndjson":
		resp.Body = struct {
			io.Reader
			io.Closer
		}{&lineEvents{lines: bufio.NewReader(resp.Body)}, resp.Body}
		return nil
	}
	// Some servers send events with another content type, or without one.
	r := bufio.NewReader(resp.Body)
	start, err := skipSpace(r)
	switch {
	case err == io.EOF:
		return &llm.Error{
			Class:   llm.Server,
			Host:    c.base.Hostname(),
			Message: "the endpoint answered with an empty body",
		}
	case err != nil:
		return err
	}
	for _, field := range []string{"data:", "event", "retry", "id:", ":"} {
		if strings.HasPrefix(start, field) {
			resp.Body = struct {
				io.Reader
				io.Closer
			}{r, resp.Body}
			return nil
		}
	}
	data, err := io.ReadAll(io.LimitReader(r, maxErrorBody))
	if err != nil {
		return err
	}
	return c.notEvents(data, kind)
}

// skipSpace discards white space and returns the first bytes after it without
// consuming them.
func skipSpace(r *bufio.Reader) (string, error) {
	for {
		b, err := r.ReadByte()
		if err != nil {
			return "", err
		}
		if b > ' ' {
			break
		}
	}
	if err := r.UnreadByte(); err != nil {
		return "", err
	}
	start, err := r.Peek(len("data:"))
	if err == io.EOF {
		err = nil
	}
	return string(start), err
}

// lineEvents turns lines of JSON into server-sent events. The last line of a stream that breaks off stays an event that
// is cut.
type lineEvents struct {
	lines *bufio.Reader
	event []byte
	err   error // after event
}

// Read implements io.Reader.
func (l *lineEvents) Read(p []byte) (int, error) {
	for len(l.event) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		l.readLine()
	}
	n := copy(p, l.event)
	l.event = l.event[n:]
	return n, nil
}

func (l *lineEvents) readLine() {
	var line []byte
	for {
		var piece []byte
		piece, l.err = l.lines.ReadSlice('\n')
		line = append(line, piece...)
		if l.err != bufio.ErrBufferFull {
			break
		}
		if len(line) > maxEvent {
			l.err = bufio.ErrTooLong
			return
		}
	}
	text := bytes.TrimSpace(line)
	if len(text) == 0 {
		return
	}
	l.event = append([]byte("data: "), text...)
	if l.err == nil {
		l.event = append(l.event, "\n\n"...)
	}
}
