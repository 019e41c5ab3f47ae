package value

import (
	"encoding/json"
	"fmt"
)

// DecodeAnswer decodes the JSON of an answer; a panic in a decoder is an error.
func DecodeAnswer[A any](raw []byte) (a A, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the decoder of %T: %v", a, p)
		}
	}()
	if err = json.Unmarshal(raw, &a); err != nil {
		err = fmt.Errorf("the answer %s does not fit %T: %w", raw, a, err)
	}
	return a, err
}
