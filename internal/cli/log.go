package cli

import (
	"context"
	"log/slog"
	"strings"

	"raddle.dev/internal/term"
)

// logHandler writes log records to standard error as plain lines.
func (sh *shell) logHandler() slog.Handler { return &logLines{sh: sh} }

// logLines is a handler for people: the level, the message, the attributes.
type logLines struct {
	sh    *shell
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
	h.sh.err.printLine(h.sh.err.paintText(dim, term.OneLine(line)))
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

func slogTo(sh *shell) *slog.Logger { return slog.New(sh.logHandler()) }
