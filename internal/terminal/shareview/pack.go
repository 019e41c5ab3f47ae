package shareview

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// A pack has many JSON values, each different one once: the answers of an API about the moments of a run repeat most of
// what they say. A value is a scalar as it is, a list as 0 and the places of its items, or an object as 1 and the places
// of its keys and members in turn. Parts are before what they are parts of.
type pack struct {
	values []json.RawMessage
	places map[string]int // by text
}

func newPack() *pack { return &pack{places: map[string]int{}} }

// addText adds one JSON text, and returns the place of its value.
func (p *pack) addText(text []byte) (int, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	at, err := p.addValue(d)
	if err != nil {
		return 0, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return 0, errors.New("there is more than one JSON value")
	}
	return at, nil
}

// addValue adds the next value of a text.
func (p *pack) addValue(d *json.Decoder) (int, error) {
	token, err := d.Token()
	if err != nil {
		return 0, err
	}
	var parts strings.Builder
	switch token {
	case json.Delim('['):
		parts.WriteString("[0")
	case json.Delim('{'):
		parts.WriteString("[1")
	default:
		text, err := json.Marshal(token)
		return p.keepValue(string(text)), err
	}
	for d.More() { // of an object, keys are values too
		at, err := p.addValue(d)
		if err != nil {
			return 0, err
		}
		parts.WriteByte(',')
		parts.WriteString(strconv.Itoa(at))
	}
	if _, err := d.Token(); err != nil {
		return 0, err
	}
	parts.WriteByte(']')
	return p.keepValue(parts.String()), nil
}

// keepValue returns the place of a value.
func (p *pack) keepValue(text string) int {
	at, ok := p.places[text]
	if !ok {
		at = len(p.values)
		p.places[text] = at
		p.values = append(p.values, json.RawMessage(text))
	}
	return at
}
