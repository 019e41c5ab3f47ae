package mcp

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// recordHTTPRequest records the request that a POST sends, so that the inbox knows its answer. It returns the body.
func (r *requester) recordHTTPRequest(req *http.Request) ([]byte, error) {
	if req.Method != http.MethodPost || req.Body == nil {
		return nil, nil
	}
	text, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(text))
	if m, err := jsonrpc.DecodeMessage(text); err == nil {
		r.inbox.recordRequest(m)
	}
	return text, nil
}

// filterBody returns the body of an answer without anything that is not a message.
func (r *requester) filterBody(resp *http.Response) io.Reader {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // without one it is neither
	switch {
	case resp.StatusCode != http.StatusOK:
	case kind == "application/json":
		return &messageBody{lines: newLineReader(resp.Body, maxLine), inbox: r.inbox}
	case kind == "text/event-stream":
		return &eventBody{lines: newLineReader(resp.Body, maxLine), inbox: r.inbox}
	}
	return resp.Body
}

// A messageBody reads a body that is one message, over any number of lines.
type messageBody struct {
	lines *lineReader
	inbox *inbox
	text  *bytes.Reader // nil: nothing is read yet
}

// Read implements io.Reader.
func (b *messageBody) Read(p []byte) (int, error) {
	if b.text == nil {
		text, err := b.readMessage()
		if err != nil {
			return 0, err
		}
		b.text = bytes.NewReader(text)
	}
	return b.text.Read(p)
}

func (b *messageBody) readMessage() ([]byte, error) {
	var all []byte
	for {
		b.lines.before = all
		line, err := b.lines.nextLine()
		if long := (*longLineError)(nil); errors.As(err, &long) {
			return encodeFirst(b.inbox.tooLong(long), all)
		}
		if all = append(all, line...); len(all) > maxLine {
			long := &longLineError{size: len(all), start: quoteStart(all)}
			long.scan.scanBytes(all)
			long.findID()
			return encodeFirst(b.inbox.tooLong(long), nil)
		}
		if err == io.EOF {
			return encodeFirst(b.inbox.parseMessages(all), all)
		}
		if err != nil {
			return nil, err
		}
	}
}

// encodeFirst returns the first of some messages as JSON, or the text if there is none.
func encodeFirst(list []jsonrpc.Message, text []byte) ([]byte, error) {
	if len(list) == 0 {
		return text, nil
	}
	return jsonrpc.EncodeMessage(list[0])
}

// An eventBody reads a stream of events whose data are messages.
type eventBody struct {
	lines *lineReader
	inbox *inbox
	ready bytes.Buffer // what can be read
	other bool         // the current event is not a message
	data  []byte       // of the current event
	end   error
}

// Read implements io.Reader.
func (b *eventBody) Read(p []byte) (int, error) {
	for b.ready.Len() == 0 {
		if b.end != nil {
			return 0, b.end
		}
		b.lines.before = b.data
		line, err := b.lines.nextLine()
		if long := (*longLineError)(nil); errors.As(err, &long) {
			b.data = nil
			b.writeMessages(b.inbox.tooLong(long))
			continue
		}
		if line = bytes.TrimRight(line, "\r\n"); err == nil || len(line) > 0 {
			b.addLine(line)
		}
		if b.end = err; err != nil {
			b.finishEvent()
		}
	}
	return b.ready.Read(p)
}

// addLine adds a line of the stream.
func (b *eventBody) addLine(line []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case len(line) == 0:
		b.finishEvent()
		b.ready.WriteByte('\n')
	case string(name) == "data" && !b.other:
		if len(b.data) > 0 {
			b.data = append(b.data, '\n')
		}
		if b.data = append(b.data, value...); len(b.data) > maxLine {
			b.inbox.reject(b.data[:maxStderr])
			b.data = nil
		}
	default:
		if string(name) == "event" {
			b.other = string(value) != "message"
		}
		b.ready.Write(line)
		b.ready.WriteByte('\n')
	}
}

// finishEvent ends the current event.
func (b *eventBody) finishEvent() {
	if len(b.data) > 0 {
		b.writeMessages(b.inbox.parseMessages(b.data))
	}
	b.data = nil
	b.other = false
}

// writeMessages makes messages readable, each as an event.
func (b *eventBody) writeMessages(list []jsonrpc.Message) {
	for _, m := range list {
		text, err := jsonrpc.EncodeMessage(m)
		if err != nil {
			continue // what was decoded can be encoded
		}
		b.ready.WriteString("data: ")
		b.ready.Write(text)
		b.ready.WriteString("\n\n")
	}
}
