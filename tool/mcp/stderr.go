package mcp

import (
	"bytes"
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
	last []string // the last lines, clean
}

// Write implements io.Writer. It never fails.
func (l *stderrLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok && len(l.rest) < maxStderr {
			return len(p), nil
		}
		if !ok {
			line, rest = l.rest, nil
		}
		l.recordLine(line)
		l.rest = append([]byte(nil), rest...)
	}
}

// recordLine logs a line and adds it to the last ones. The caller must hold mu.
func (l *stderrLog) recordLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	text := l.server.logLine(line)
	l.server.options.Log.Debug("MCP server", "server", l.server.config.ID, "stderr", text)
	if len(text) > quotedBytes {
		text = strings.ToValidUTF8(text[:quotedBytes], "") + " ..."
	}
	l.last = append(l.last, text)
	if len(l.last) > quotedLines {
		l.last = append([]string(nil), l.last[len(l.last)-quotedLines:]...)
	}
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
	return "; its last lines on stderr: " + strings.Join(l.last, " | ")
}
