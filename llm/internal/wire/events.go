package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"raddle.dev/llm"
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
				name, data, seen = "", data[:0], false
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
				data, seen = append(data, value...), true
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

func syntaxError(data []byte) error {
	var v any
	return json.Unmarshal(data, &v)
}

// ParseArgs returns the complete arguments of a tool call. An empty text means
// no arguments; valid JSON is kept unchanged; any other text becomes a JSON
// string, so that the model can be informed what it wrote. Only arguments that
// a token limit cut off are an error.
func (c *Client) ParseArgs(name, text string, stop llm.StopReason) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" && stop != llm.StopLength {
		return json.RawMessage("{}"), nil
	}
	if json.Valid([]byte(text)) {
		return json.RawMessage(text), nil
	}
	if stop == llm.StopLength {
		return nil, c.MalformedError("a token limit cut off the arguments of the tool call "+name, syntaxError([]byte(text)))
	}
	return json.Marshal(text)
}

// ObjectArgs returns arguments in a form that a request may contain: anything
// that is not a valid JSON object is replaced by an empty object.
func ObjectArgs(args json.RawMessage) json.RawMessage {
	if text := bytes.TrimSpace(args); len(text) == 0 || text[0] != '{' || !json.Valid(text) {
		return json.RawMessage("{}")
	}
	return args
}
