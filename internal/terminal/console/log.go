package console

import (
	"context"
	"log/slog"
	"strings"

	"raddle.dev/internal/base/term"
)

// NewLog returns a log for people, with a dimmed line on Screen for each record from the level debug on.
func (c *Console) NewLog() *slog.Logger { return slog.New(&logLines{screen: c.Screen}) }

// logLines is a handler for people, which writes to standard error: the level, the message, the attributes.
type logLines struct {
	screen *term.Screen
	attrs  string
}

func (h *logLines) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug
}

func (h *logLines) Handle(_ context.Context, r slog.Record) error {
	line := strings.ToLower(r.Level.String()) + ": " + r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	h.screen.PrintLine(h.screen.Paint(term.Dim, term.OneLine(line)))
	return nil
}

func (h *logLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	for _, a := range attrs {
		next.attrs += " " + a.String()
	}
	return &next
}

func (h *logLines) WithGroup(string) slog.Handler { return h }
