package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
)

// What an error quotes of a child's stderr.
const (
	quotedLines = 5
	quotedBytes = 300 // of each line
)

// A stderrLog writes the lines of a child's stderr to the log, and keeps the last ones.
type stderrLog struct {
	server *server

	mu   sync.Mutex
	rest []byte   // of a line without an end
	last []string // the last lines, as the child wrote them
}

// Write implements io.Writer. It never fails.
func (l *stderrLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rest := p; ; {
		line, after, ok := bytes.Cut(rest, []byte("\n"))
		l.rest = append(l.rest, line...)
		if !ok && len(l.rest) < maxStderr {
			return len(p), nil
		}
		l.recordLine(l.rest)
		l.rest, rest = l.rest[:0], after
		if !ok {
			return len(p), nil
		}
	}
}

// recordLine logs a line and adds it to the last ones. The caller must hold mu.
func (l *stderrLog) recordLine(line []byte) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return
	}
	if log := l.server.options.Log; log.Enabled(context.Background(), slog.LevelDebug) {
		log.Debug("MCP server", "server", l.server.config.ID, "stderr", l.server.logLine(line))
	}
	if len(l.last) == quotedLines {
		l.last = append(l.last[:0], l.last[1:]...)
	}
	l.last = append(l.last, string(line))
}

// quoteLast returns the last lines as the end of a message, empty if there are none. A nil
// log has none.
func (l *stderrLog) quoteLast() string {
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recordLine(l.rest)
	l.rest = nil
	if len(l.last) == 0 {
		return ""
	}
	var clean []string
	for _, line := range l.last {
		text := l.server.logLine([]byte(line))
		if len(text) > quotedBytes {
			text = strings.ToValidUTF8(text[:quotedBytes], "") + " ..."
		}
		clean = append(clean, text)
	}
	return "; its last lines on stderr: " + strings.Join(clean, " | ")
}
