package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"raddle.dev/internal/base/redact"
)

// A server is one entry and its connection, which all callers share.
type server struct {
	config  Server
	options *Options
	web     *http.Transport
	life    context.Context // ends with Servers.Close

	mu       sync.Mutex
	secrets  *redact.Set
	current  *attempt // the start that counts; nil: there is none
	lastErr  error    // of the last start that failed
	failures int      // starts that failed and connections that broke, since a call worked
	hangs    int      // calls in a row that timed out
	closed   bool
	asking   map[string]*openCall // by their keys: calls that wait for a person

	connections sync.WaitGroup // those that are not closed yet
}

// An attempt is a start that is in progress, has failed, or has led to a connection.
type attempt struct {
	begun time.Time
	done  chan struct{} // closed when conn or err is set
	conn  *connection
	err   error
}

// errClosed is the error of starts and calls after Servers.Close.
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

// currentAttempt returns the start that counts, and begins one if there is none.
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
		s.lastErr = s.current.err
		s.current = nil
	}
	if s.failures > max(0, s.options.Restarts) {
		reason := ""
		if s.lastErr != nil {
			reason = "; the last one: " + s.lastErr.Error()
		}
		return nil, fmt.Errorf("it is not started again: %d starts in a row failed%s", s.failures, reason)
	}
	a := &attempt{begun: time.Now(), done: make(chan struct{})}
	s.current = a
	go s.startAttempt(a, restartDelay(s.failures))
	return a, nil
}

// isOver reports whether the attempt has failed, or its connection has broken.
func (a *attempt) isOver() bool {
	select {
	case <-a.done:
		return a.err != nil || a.conn.isBroken()
	default:
		return false
	}
}

// restartDelay returns the time before a start that follows a number of failures. The first
// restart is immediate.
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

// redactText removes terminal escapes, NUL characters and the known secrets from a text.
func (s *server) redactText(text string) string {
	text = plainText(text)
	s.mu.Lock()
	own := s.secrets
	s.mu.Unlock()
	return s.options.Redact(own.Text(text))
}

// startTimeoutOf returns the time until the server must have answered and listed its tools.
func (o *Options) startTimeoutOf(c Server) time.Duration {
	return cmp.Or(c.StartTimeout, o.StartTimeout)
}

// callTimeoutOf returns the time of one call.
func (o *Options) callTimeoutOf(c Server) time.Duration {
	return cmp.Or(c.CallTimeout, o.CallTimeout)
}

// recordSuccess records that a call was answered.
func (s *server) recordSuccess() {
	s.mu.Lock()
	s.failures = 0
	s.hangs = 0
	s.mu.Unlock()
}

// recordHang records that a call was not answered in time. After two in a row it ends the
// server, so that the next call starts a new one.
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

// close waits until all connections have ended, also one that is just being made. The
// caller has cancelled life, which ends them.
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
