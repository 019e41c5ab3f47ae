package wire

import (
	"encoding/json"
	"strconv"
	"strings"
)

// A Word is a short text in an event that is not essential for the reply, such
// as an id. It accepts any JSON value: a number becomes its digits, and every
// other value that is not a text becomes "".
type Word string

// UnmarshalJSON implements json.Unmarshaler.
func (w *Word) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*w = Word(text)
	} else if _, err := strconv.ParseFloat(string(data), 64); err == nil {
		*w = Word(data)
	}
	return nil
}

// A Count is a number of tokens or an index in an event. It accepts any JSON
// value: servers write whole numbers as 7.0 or "7", and a value that is not a
// number counts as zero.
type Count int

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(data []byte) error {
	if n, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64); err == nil && n >= 0 && n < 1<<53 {
		*c = Count(n)
	}
	return nil
}
