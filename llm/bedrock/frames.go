package bedrock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// eventMedia is the content type of Bedrock's streams.
const eventMedia = "application/vnd.amazon.eventstream"

// What stands before the name of an event that reports a failure.
const (
	exceptionEvent = "exception "
	errorEvent     = "error "
)

// frames turns the frames of a stream into server-sent events: their names are the types of the frames, and their data
// the payloads. A frame that is cut off is no event, so that the reply is incomplete.
type frames struct {
	from  *bufio.Reader
	event []byte
	err   error // after event
}

func translateFrames(stream io.Reader) io.Reader { return &frames{from: bufio.NewReader(stream)} }

// Read implements io.Reader.
func (f *frames) Read(p []byte) (int, error) {
	for len(f.event) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.readFrame()
	}
	n := copy(p, f.event)
	f.event = f.event[n:]
	return n, nil
}

func (f *frames) readFrame() {
	message, err := eventstream.NewDecoder().Decode(f.from, nil)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		f.err = io.EOF
		return
	case err != nil:
		f.err = fmt.Errorf("the stream contains a broken frame: %w", err)
		return
	}
	data := message.Payload
	var name string
	switch headerText(message, ":message-type") {
	case "exception":
		name = exceptionEvent + headerText(message, ":exception-type")
	case "error":
		name = errorEvent + headerText(message, ":error-code")
		// a text can always be encoded
		data, _ = json.Marshal(map[string]string{"message": headerText(message, ":error-message")})
	default:
		name = headerText(message, ":event-type")
	}
	var line bytes.Buffer
	if json.Compact(&line, data) != nil {
		line.Reset()
		line.Write(bytes.ReplaceAll(data, []byte("\n"), nil)) // what it is says the decoder
	}
	f.event = fmt.Appendf(nil, "event: %s\ndata: %s\n\n", name, line.Bytes())
}

// headerText returns the text of a header, "" if there is none.
func headerText(m eventstream.Message, name string) string {
	if v := m.Headers.Get(name); v != nil {
		return v.String()
	}
	return ""
}
