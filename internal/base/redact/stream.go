package redact

import "strings"

// A Stream removes secrets from a text that arrives in pieces. It holds back what
// may be the beginning of a secret. It is not safe for concurrent use.
type Stream struct {
	text func(string) string
	hold func(string) int
	held strings.Builder
}

// NewStream returns a Stream that uses a redactor of whole texts. hold returns the
// number of bytes at the end of a text that may belong to an incomplete secret; if
// it is nil, everything is held back until the end.
func NewStream(text func(string) string, hold func(string) int) *Stream {
	return &Stream{text: text, hold: hold}
}

// Push adds a piece and returns the text that is certain to be free of secrets.
func (s *Stream) Push(piece string) string {
	s.held.WriteString(piece)
	if s.hold == nil {
		return ""
	}
	text := s.held.String()
	free := len(text) - s.hold(text)
	if free == 0 {
		return ""
	}
	s.held.Reset()
	s.held.WriteString(text[free:])
	return s.text(text[:free])
}

// End returns the rest, without secrets.
func (s *Stream) End() string {
	text := s.held.String()
	s.held.Reset()
	if text == "" {
		return ""
	}
	return s.text(text)
}
