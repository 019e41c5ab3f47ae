package cli

import (
	"context"
	"log/slog"
	"strings"

	"raddle.dev/internal/term"
)

// logLines is a handler for people, which writes to standard error: the level, the message, the attributes.
type logLines struct {
	env   *environment
	attrs string
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
	h.env.err.PrintLine(h.env.err.Paint(term.Dim, term.OneLine(line)))
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

// runLogger returns the logger of a run: the developer log if there is one, else the lines that -v
// prints, else nil.
func (env *environment) runLogger() *slog.Logger {
	switch {
	case env.devLog != nil:
		return env.devLog
	case env.verbose:
		return slog.New(&logLines{env: env})
	}
	return nil
}
