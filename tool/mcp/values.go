package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A valueReader reads the output of a child: each line by itself, and all lines of
// a JSON value together.
type valueReader struct {
	lines *lineReader
	ahead []byte // a line that has been read and is not used yet; nil: none
	err   error  // what follows ahead
}

// nextText returns the next line, or the lines of a JSON value that begins with
// the next line. It never returns both a text and an error. A text above the
// limit is a *longLineError.
func (r *valueReader) nextText() ([]byte, error) {
	line, err := r.peekLine()
	if long := (*longLineError)(nil); errors.As(err, &long) {
		r.err = nil
		return nil, r.skipValue(long)
	}
	if err != nil {
		return nil, err
	}
	r.ahead = nil
	if !startsValue(line) || json.Valid(line) {
		return line, nil
	}
	v := &openValue{reader: r, text: line, rest: bytes.TrimPrefix(line, []byte("\uFEFF"))}
	var syntax *json.SyntaxError
	err = json.NewDecoder(v).Decode(new(json.RawMessage))
	switch {
	case v.long != nil:
		return nil, r.skipValue(v.long)
	case errors.As(err, &syntax) && v.last > 0: // the newest line does not belong to the value
		r.ahead = v.text[v.last:]
		return v.text[:v.last:v.last], nil
	}
	return v.text, nil
}

// peekLine returns the next line without using it, or the error in its place.
func (r *valueReader) peekLine() ([]byte, error) {
	if r.ahead != nil {
		return r.ahead, nil
	}
	if r.err != nil {
		return nil, r.err
	}
	line, err := r.lines.nextLine()
	r.err = err
	if len(line) == 0 && err != nil {
		return nil, err
	}
	r.ahead = line
	return line, nil
}

// skipValue reads the other lines of a value above the limit without keeping them,
// and finds the id that it belongs to.
func (r *valueReader) skipValue(long *longLineError) *longLineError {
	for startsValue(long.start) && long.scan.isOpen() {
		r.lines.scan = long.scan
		line, err := r.peekLine()
		r.lines.scan = idScanner{}
		if more := (*longLineError)(nil); errors.As(err, &more) {
			long.scan = more.scan
			long.size = long.size + more.size
			r.err = nil
			continue
		}
		if err != nil || isMessage(line) {
			break
		}
		long.scan.scanBytes(line)
		long.size = long.size + len(line)
		r.ahead = nil
	}
	long.findID()
	return long
}

// startsValue reports whether a text begins like a JSON object or list.
func startsValue(text []byte) bool {
	text = bytes.TrimLeft(bytes.TrimPrefix(text, []byte("\uFEFF")), " \t\r\n")
	return len(text) > 0 && (text[0] == '{' || text[0] == '[')
}

// isMessage reports whether a line by itself is a whole message, which cannot be
// part of another one.
func isMessage(line []byte) bool {
	var fields map[string]json.RawMessage
	if !startsValue(line) || json.Unmarshal(line, &fields) != nil {
		return false
	}
	return fields["jsonrpc"] != nil || fields["id"] != nil && (fields["result"] != nil || fields["error"] != nil)
}

// An openValue gives a decoder the lines of a value, one at each Read, until a line
// is a message by itself or the text is above the limit.
type openValue struct {
	reader *valueReader
	text   []byte         // all lines so far
	last   int            // where the newest line begins
	rest   []byte         // of the newest line: what the decoder has not got yet
	long   *longLineError // nil: the text is not above the limit
}

// Read implements io.Reader.
func (v *openValue) Read(p []byte) (int, error) {
	if len(v.rest) == 0 {
		v.reader.lines.before = v.text
		line, err := v.reader.peekLine()
		v.reader.lines.before = nil
		if errors.As(err, &v.long) { // it has scanned the text, too
			v.reader.err = nil
			v.long.size, v.long.start = v.long.size+len(v.text), quoteStart(v.text)
		} else if len(v.text)+len(line) > v.reader.lines.limit {
			v.long = &longLineError{size: len(v.text), start: quoteStart(v.text)}
			v.long.scan.scanBytes(v.text)
		}
		if v.long != nil || err != nil || isMessage(line) {
			return 0, io.EOF
		}
		v.reader.ahead = nil
		v.last = len(v.text)
		v.text = append(v.text, line...)
		v.rest = line
	}
	n := copy(p, v.rest)
	v.rest = v.rest[n:]
	return n, nil
}
