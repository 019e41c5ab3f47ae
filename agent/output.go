package agent

import (
	"encoding/json"
	"fmt"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/wording"
)

// OutputError says that a reply does not match its schema.
type OutputError struct {
	Text string // of the reply
	Err  error
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("the reply is not the JSON that was asked for: %v", e.Err)
}

// Unwrap returns the error of the decoder.
func (e *OutputError) Unwrap() error { return e.Err }

// Output decodes the newest reply into a T, for agents whose Request has a
// Schema. It removes a code fence around the JSON. Fields that T does not have
// are errors. It fails with an *OutputError.
func Output[T any](s graph.State) (v T, err error) {
	text := LastResponse(s)
	dec := json.NewDecoder(strings.NewReader(wording.StripFence(text)))
	dec.DisallowUnknownFields()
	if err = dec.Decode(&v); err == nil && dec.More() {
		err = fmt.Errorf("more text follows the JSON, at byte %d", dec.InputOffset())
	}
	if err != nil {
		return v, &OutputError{Text: text, Err: err}
	}
	return v, nil
}
