package lspview

import (
	"context"
	"io"

	"raddle.dev/internal/process/app"
)

// Server is a server whose texts tests look at.
type Server = server

// NewServer returns a server of a process.
func NewServer(p *app.Process) *Server { return newServer(p) }

// Serve is [Serve].
func (s *server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveEditor(ctx, in, out)
}

// TextOf returns the text of an open document, between two messages.
func (s *server) TextOf(uri string) string { return s.work.FindDocument(uri).Text.String() }
