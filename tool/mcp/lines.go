package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// A lineReader reads lines that are no longer than a limit.
type lineReader struct {
	source *bufio.Reader
	limit  int
	before []byte // of the same message, in lines before the next one
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{source: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// A longLineError is a line above the limit, which has been read to its end and not kept.
type longLineError struct {
	size    int
	isReply bool            // it has an id and no method
	id      json.RawMessage // nil: the line has none
	start   []byte          // the first bytes of the line
}

func (e *longLineError) Error() string { return fmt.Sprintf("a line of %d bytes", e.size) }

// nextLine returns the next line. With the last one, which may be empty, comes the error
// that ended the reading. A line above the limit is a *longLineError.
func (r *lineReader) nextLine() ([]byte, error) {
	var line []byte
	for {
		piece, err := r.source.ReadSlice('\n')
		line = append(line, piece...)
		if len(line) > r.limit {
			return nil, r.skipLine(line, err == bufio.ErrBufferFull)
		}
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}

// skipLine reads the rest of a line, and finds the id that it belongs to.
func (r *lineReader) skipLine(line []byte, more bool) *longLineError {
	var scan idScanner
	scan.scanBytes(r.before)
	scan.scanBytes(line)
	long := &longLineError{size: len(line), start: append([]byte(nil), line[:min(len(line), maxStderr)]...)}
	line = nil
	for more {
		piece, err := r.source.ReadSlice('\n')
		scan.scanBytes(piece)
		long.size += len(piece)
		more = err == bufio.ErrBufferFull
	}
	if json.Valid(scan.id) {
		long.id, long.isReply = scan.id, !scan.method
	}
	return long
}

// longestID is the number of bytes of an id that are kept.
const longestID = 256

// An idScanner finds the fields "id" and "method" of a JSON object of any size, which is
// written to it in pieces.
type idScanner struct {
	id     []byte // the value of "id", as it is written
	method bool   // the object has a "method"

	depth           int
	quoted, escaped bool
	inValue         bool // behind a colon of the object itself
	key, value      []byte
}

func (s *idScanner) scanBytes(piece []byte) {
	for _, b := range piece {
		s.scanByte(b)
	}
}

func (s *idScanner) scanByte(b byte) {
	switch {
	case s.quoted:
		if s.quoted = s.escaped || b != '"'; s.depth == 1 {
			s.appendByte(b)
		}
		s.escaped = !s.escaped && b == '\\'
		return
	case b == '"':
		s.quoted = true
	case b == '{' || b == '[':
		s.depth++
		return
	case b == '}' || b == ']':
		if s.depth == 1 {
			s.endField()
		}
		s.depth--
		return
	case s.depth == 1 && b == ':':
		s.inValue = true
		return
	case s.depth == 1 && b == ',':
		s.endField()
		return
	case b == ' ' || b == '\t' || b == '\r' || b == '\n':
		return
	}
	if s.depth == 1 {
		s.appendByte(b)
	}
}

// appendByte adds a byte to the key or the value that is being read.
func (s *idScanner) appendByte(b byte) {
	to := &s.key
	if s.inValue {
		to = &s.value
	}
	if len(*to) < longestID {
		*to = append(*to, b)
	}
}

func (s *idScanner) endField() {
	switch string(s.key) {
	case `"id"`:
		s.id = append([]byte(nil), s.value...)
	case `"method"`:
		s.method = true
	}
	s.inValue, s.key, s.value = false, s.key[:0], s.value[:0]
}
