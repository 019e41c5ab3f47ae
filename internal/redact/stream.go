package redact

import "strings"

// A Stream takes secrets out of a text that arrives in pieces. It holds back what
// may be the beginning of a secret. It is not safe for concurrent use.
type Stream struct {
	text func(string) string
	hold func(string) int
	held strings.Builder
}

// NewStream returns a Stream over a redactor of whole texts. hold returns how
// many bytes at the end of a text may belong to a secret that is not complete; if
// it is nil, everything is held back until the end.
func NewStream(text func(string) string, hold func(string) int) *Stream {
	return &Stream{text: text, hold: hold}
}

// Push adds a piece and returns the text that is free of secrets by now.
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

// End returns what is left, without secrets.
func (s *Stream) End() string {
	text := s.held.String()
	s.held.Reset()
	if text == "" {
		return ""
	}
	return s.text(text)
}
