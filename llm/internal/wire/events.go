package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
)

// maxEvent limits one line of an event stream; an image is sent in one line.
const maxEvent = 64 << 20

// An Event is one server-sent event with data.
type Event struct {
	Name string // of the "event" field
	Data []byte // the "data" lines, joined by a newline; valid until the next event
	Cut  bool   // the stream ended inside the event
}

// ReadEvents returns the server-sent events of r, without those that have no data.
// An event that is cut off by the end of the stream is returned too, with Cut
// set, because some servers omit the last empty line.
func (c *Client) ReadEvents(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 16<<10), maxEvent)
		var (
			name string
			data []byte
			seen bool
		)
		for lines.Scan() {
			line := lines.Bytes()
			if len(line) == 0 {
				if seen && !yield(Event{Name: name, Data: data}, nil) {
					return
				}
				name = ""
				data = data[:0]
				seen = false
				continue
			}
			field, value, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("\ufeff")), []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(field) {
			case "event":
				name = string(value)
			case "data":
				if seen {
					data = append(data, '\n')
				}
				data = append(data, value...)
				seen = true
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Event{}, c.MalformedError("an event of the stream is too long", err))
		case err != nil:
			yield(Event{}, err)
		case seen:
			yield(Event{Name: name, Data: data, Cut: true}, nil)
		}
	}
}

// Decode reads the JSON of an event into v. If the event reports a failure,
// Decode returns that failure.
func (c *Client) Decode(ev Event, v any) error {
	if err := c.EventError(ev.Data); err != nil {
		return err
	}
	err := json.Unmarshal(ev.Data, v)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &syntax):
		return c.MalformedError("the stream contains an event of an unknown form", err)
	case ev.Cut:
		return c.EndedEarly()
	}
	return c.MalformedError("the stream contains an event that is not JSON", err)
}

// parseArgs returns the arguments of a tool call. Valid JSON is kept unchanged.
// Any other text becomes a JSON string, so that the model can be informed what
// it wrote. An empty text means no arguments, unless a token limit cut the
// arguments off: then it becomes an empty JSON string, as llm.ToolCall documents.
func parseArgs(text string, cut bool) json.RawMessage {
	if strings.TrimSpace(text) == "" && !cut {
		return json.RawMessage("{}")
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	quoted, _ := json.Marshal(text) // a text can always be encoded
	return quoted
}

// ObjectArgs returns arguments in a form that a request may contain: anything
// that is not a valid JSON object is replaced by an empty object.
func ObjectArgs(args json.RawMessage) json.RawMessage {
	if text := bytes.TrimSpace(args); len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return json.RawMessage("{}")
	}
	return args
}
