package netproxy

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// An Attempt says how a program tried to connect to a destination, and what happened. Its texts are short and
// printable.
type Attempt struct {
	Time     time.Time
	Protocol string // connect, http or socks5
	Host     string // as it was judged; as the program wrote it, if it is not valid
	Port     int    // 0: the destination is not valid
	Allowed  bool
	Reason   string         // of the ruling
	Address  netip.AddrPort // that was connected to; not valid: none
	Up, Down int64          // bytes sent to the destination and received from it
	Duration time.Duration
	Ended    string // why it ended, if not because both sides had sent all
}

// An openAttempt is an Attempt that has not ended.
type openAttempt struct {
	to       Destination
	up, down atomic.Int64
	idle     *time.Timer

	mu     sync.Mutex
	record Attempt
	ended  error // why it was ended from here
	closer func()
}

// errIdle says why a connection was ended.
var errIdle = errors.New("nothing was sent or received for " + idleTimeout.String())

// beginAttempt makes an openAttempt. closer ends its connections.
func (s *service) beginAttempt(protocol string, to Destination, closer func()) *openAttempt {
	a := &openAttempt{to: to, closer: closer, record: Attempt{Time: time.Now(), Protocol: protocol, Host: to.Host, Port: to.Port}}
	a.idle = time.AfterFunc(idleTimeout, func() { a.endConns(errIdle) })
	a.idle.Stop() // until it is connected: a person may be asked
	return a
}

// endConns ends the connections of an attempt.
func (a *openAttempt) endConns(why error) {
	a.mu.Lock()
	if a.ended == nil {
		a.ended = why
	}
	a.mu.Unlock()
	a.closer()
}

func (a *openAttempt) setReason(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Allowed = true
	a.record.Reason = reason
}

func (a *openAttempt) setAddress(at netip.AddrPort) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record.Address = at
	a.idle.Reset(idleTimeout)
}

// finishAttempt logs an attempt that has ended.
func (s *service) finishAttempt(a *openAttempt, err error) {
	a.idle.Stop()
	a.mu.Lock()
	r := a.record
	stopped := a.ended != nil
	if stopped {
		err = a.ended
	}
	a.mu.Unlock()
	if s.Log == nil {
		return
	}
	r.Up, r.Down, r.Duration = a.up.Load(), a.down.Load(), time.Since(r.Time)
	refused, isRefusal := errors.AsType[*refusedError](err)
	switch {
	case isRefusal:
		r.Allowed, r.Reason, r.Ended = false, cleanText(refused.reason), "refused"
	case !stopped && s.ctx.Err() != nil:
		r.Ended = "the proxy ended"
	case errors.Is(err, context.Canceled):
		r.Ended = "the program closed the connection"
	case err != nil:
		r.Ended = cleanText(err.Error())
	}
	s.Log(r)
}

// logInvalid logs a destination that cannot be judged.
func (s *service) logInvalid(protocol, text string, why error) {
	a := s.beginAttempt(protocol, Destination{Host: cleanText(text)}, func() {})
	s.finishAttempt(a, &refusedError{to: text, reason: why.Error()})
}

// An outerConn is a connection to a destination, whose bytes are counted.
type outerConn struct {
	net.Conn
	attempt *openAttempt
}

// Read implements [net.Conn].
func (c *outerConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.attempt.down.Add(int64(n))
	c.attempt.idle.Reset(idleTimeout)
	return n, err
}

// Write implements [net.Conn]. It counts what it is about to send: an answer may have arrived, and the attempt be
// logged, before the operating system returns to it.
func (c *outerConn) Write(b []byte) (int, error) {
	c.attempt.up.Add(int64(len(b)))
	n, err := c.Conn.Write(b)
	c.attempt.up.Add(int64(n - len(b)))
	c.attempt.idle.Reset(idleTimeout)
	return n, err
}

// CloseWrite says that nothing more will be sent.
func (c *outerConn) CloseWrite() error { return closeWrite(c.Conn) }
