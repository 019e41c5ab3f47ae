package dataset

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/jsonvalue"
)

// A jsonTree reads JSON as the tree of a YAML file, so that one reader reads both, with the place of each value.
type jsonTree struct {
	text    []byte
	decoder *json.Decoder
	line    int // of the byte at offset, from 1
	column  int // in characters, from 1
	offset  int
}

// newJSONTree returns a reader of a text whose first line has a number.
func newJSONTree(text []byte, line int) *jsonTree {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return &jsonTree{
		text:    text,
		decoder: decoder,
		line:    line,
		column:  1,
	}
}

// A jsonFault says what is wrong with a JSON text, and where.
type jsonFault struct {
	at      *yaml.Node
	message string
}

// readAll returns the tree of the whole text, or what is wrong with it.
func (t *jsonTree) readAll() (*yaml.Node, *jsonFault) {
	root, fault := t.readValue(0)
	if fault != nil {
		return nil, fault
	}
	t.skipSpace()
	if t.offset < len(t.text) {
		return nil, t.fault("there is more text after the end of the JSON value")
	}
	return root, nil
}

// skipSpace moves to the next byte that begins or ends a value.
func (t *jsonTree) skipSpace() {
	t.moveTo(int(t.decoder.InputOffset()))
	next := t.offset
	for next < len(t.text) && bytes.IndexByte([]byte(" \t\r\n,:"), t.text[next]) >= 0 {
		next++
	}
	t.moveTo(next)
}

// moveTo counts the lines and columns up to an offset.
func (t *jsonTree) moveTo(offset int) {
	for t.offset < offset && t.offset < len(t.text) {
		r, size := utf8.DecodeRune(t.text[t.offset:])
		t.offset += size
		t.column++
		if r == '\n' {
			t.line++
			t.column = 1
		}
	}
}

func (t *jsonTree) newNode(kind yaml.Kind, tag, value string) *yaml.Node {
	return &yaml.Node{
		Kind:   kind,
		Tag:    tag,
		Value:  value,
		Line:   t.line,
		Column: t.column,
	}
}

func (t *jsonTree) fault(message string) *jsonFault {
	return &jsonFault{at: t.newNode(yaml.ScalarNode, "", ""), message: message}
}

// readValue reads the next value.
func (t *jsonTree) readValue(depth int) (*yaml.Node, *jsonFault) {
	t.skipSpace()
	at := t.newNode(yaml.ScalarNode, "", "")
	token, err := t.decoder.Token()
	if err != nil {
		return nil, t.wrapError(err)
	}
	if depth > jsonvalue.MaxDepth {
		return nil, t.fault("the value has too many levels")
	}
	switch v := token.(type) {
	case json.Delim:
		if v == '[' {
			at.Kind = yaml.SequenceNode
			at.Tag = "!!seq"
		} else {
			at.Kind = yaml.MappingNode
			at.Tag = "!!map"
		}
		return at, t.readMembers(at, depth)
	case string:
		at.Tag = "!!str"
		at.Value = v
		at.Style = yaml.DoubleQuotedStyle
	case json.Number:
		at.Value = v.String()
	case bool:
		at.Value = "false"
		if v {
			at.Value = "true"
		}
	default:
		at.Value = "null"
	}
	return at, nil
}

// readMembers reads what is in a list or an object, and its end.
func (t *jsonTree) readMembers(of *yaml.Node, depth int) *jsonFault {
	names := map[string]bool{}
	for t.decoder.More() {
		child, fault := t.readValue(depth + 1)
		if fault != nil {
			return fault
		}
		of.Content = append(of.Content, child)
		if of.Kind != yaml.MappingNode {
			continue
		}
		if names[child.Value] {
			return &jsonFault{at: child, message: "the member " + jsonvalue.Compact(child.Value) + " is there twice"}
		}
		names[child.Value] = true
		value, fault := t.readValue(depth + 1)
		if fault != nil {
			return fault
		}
		of.Content = append(of.Content, value)
	}
	if _, err := t.decoder.Token(); err != nil {
		return t.wrapError(err)
	}
	return nil
}

// wrapError returns an error of the decoder with its place.
func (t *jsonTree) wrapError(err error) *jsonFault {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		t.moveTo(len(bytes.TrimRight(t.text, " \t\r\n")))
		return t.fault("the JSON value has no end")
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		t.moveTo(int(syntax.Offset) - 1)
	}
	return t.fault("this is not JSON: " + err.Error())
}
