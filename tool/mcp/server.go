package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"raddle.dev/internal/redact"
)

// A server is one entry and its connection, which all callers share.
type server struct {
	config  Server
	options *Options
	web     *http.Transport
	life    context.Context // ends with Servers.Close

	mu       sync.Mutex
	secrets  *redact.Set
	current  *attempt // the connection, or the way to it; nil: neither
	lastErr  error    // of the last start that failed
	failures int      // starts that failed and connections that broke, since a call worked
	hangs    int      // calls in a row that timed out
	closed   bool
	asking   map[string]*openCall // by their keys: calls that wait for a person

	connections sync.WaitGroup // those that are not closed yet
}

// An attempt is a start, running or over.
type attempt struct {
	done chan struct{} // closed when conn or err is set
	conn *connection
	err  error
}

// errClosed is the end of all.
var errClosed = errors.New("the MCP servers have been closed")

// connect returns the connection, which it makes if there is none. The start is
// shared with others, so it continues when ctx ends.
func (s *server) connect(ctx context.Context) (*connection, error) {
	a, err := s.currentAttempt()
	if err != nil {
		return nil, err
	}
	select {
	case <-a.done:
		return a.conn, a.err
	default:
	}
	if s.options.Waiting != nil {
		defer s.options.Waiting(ctx, s.config.ID)()
	}
	select {
	case <-a.done:
		return a.conn, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// currentAttempt returns the attempt that counts, and begins one if there is none.
func (s *server) currentAttempt() (*attempt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.current != nil && !s.current.isOver() {
		return s.current, nil
	}
	if s.current != nil { // it failed, or its connection broke
		s.failures++
		s.lastErr, s.current = s.current.err, nil
	}
	if s.failures > max(0, s.options.Restarts) {
		reason := ""
		if s.lastErr != nil {
			reason = "; the last one: " + s.lastErr.Error()
		}
		return nil, fmt.Errorf("it is not started again: %d starts in a row came to nothing%s", s.failures, reason)
	}
	a := &attempt{done: make(chan struct{})}
	s.current = a
	go s.startAttempt(a, restartDelay(s.failures))
	return a, nil
}

// isOver reports whether nothing can come of the attempt any more.
func (a *attempt) isOver() bool {
	select {
	case <-a.done:
		return a.err != nil || a.conn.isBroken()
	default:
		return false
	}
}

// restartDelay is the time before a start that follows so many failures: the first
// restart is at once.
func restartDelay(failures int) time.Duration {
	if failures < 2 {
		return 0
	}
	return min(250*time.Millisecond<<min(failures-1, 10), 30*time.Second)
}

// startAttempt makes the connection.
func (s *server) startAttempt(a *attempt, pause time.Duration) {
	defer close(a.done)
	select {
	case <-time.After(pause):
	case <-s.life.Done():
		a.err = errClosed
		return
	}
	config, err := s.resolveConfig()
	if err == nil {
		a.conn, err = s.openConnection(config)
	}
	if err != nil {
		a.err = errors.New(s.redactText(err.Error()))
		s.options.Log.Warn("MCP server did not start", "server", s.config.ID, "error", a.err)
		return
	}
	s.options.Log.Debug("MCP server started", "server", s.config.ID, "tools", len(a.conn.currentTools()))
}

// resolveConfig fills in the references of the entry.
func (s *server) resolveConfig() (Server, error) {
	if s.config.problem != nil {
		return Server{}, s.config.problem
	}
	config, secrets, err := expandServer(s.config, s.options.Lookup)
	s.mu.Lock()
	s.secrets = redact.New(secrets...)
	s.mu.Unlock()
	return config, err
}

// redactText takes terminal escapes, NUL characters and the known secrets out of a text.
func (s *server) redactText(text string) string {
	text = plainText(text)
	s.mu.Lock()
	own := s.secrets
	s.mu.Unlock()
	return s.options.Redact(own.Text(text))
}

// recordSuccess notes a call that was answered.
func (s *server) recordSuccess() {
	s.mu.Lock()
	s.failures, s.hangs = 0, 0
	s.mu.Unlock()
}

// recordHang notes a call that was not answered in time. A server that lets two in a
// row hang is ended, so that the next call gets a fresh one.
func (s *server) recordHang(c *connection) {
	s.mu.Lock()
	s.hangs++
	drop := s.hangs >= 2
	if drop {
		s.hangs = 0
	}
	s.mu.Unlock()
	if drop {
		c.end()
	}
}

// close waits for the end of all connections, also of one that is just being
// made. Life is over, which ends them.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	a := s.current
	s.mu.Unlock()
	if a != nil {
		<-a.done
	}
	s.connections.Wait()
}
