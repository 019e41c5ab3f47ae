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
	before []byte    // of the same message, in lines before the next one
	scan   idScanner // what was found in lines of the same message that are not kept
}

func newLineReader(r io.Reader, limit int) *lineReader {
	return &lineReader{source: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

// A longLineError is a line above the limit, which has been read to its end and not kept.
type longLineError struct {
	size  int
	start []byte    // the first bytes of the line
	scan  idScanner // of the message so far

	isReply bool            // it has an id and no method
	id      json.RawMessage // nil: the line has none
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
	long := &longLineError{size: len(line), scan: r.scan, start: quoteStart(line)}
	long.scan.scanBytes(r.before)
	long.scan.scanBytes(line)
	line = nil
	for more {
		piece, err := r.source.ReadSlice('\n')
		long.scan.scanBytes(piece)
		long.size += len(piece)
		more = err == bufio.ErrBufferFull
	}
	long.findID()
	return long
}

// quoteStart returns a copy of the first bytes of a text.
func quoteStart(text []byte) []byte { return append([]byte(nil), text[:min(len(text), maxStderr)]...) }

// findID takes the id from what was scanned.
func (e *longLineError) findID() {
	if json.Valid(e.scan.id) {
		e.id = e.scan.id
		e.isReply = !e.scan.method
	}
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

// isOpen reports whether the object may continue on another line.
func (s *idScanner) isOpen() bool { return s.depth > 0 && !s.quoted }

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
