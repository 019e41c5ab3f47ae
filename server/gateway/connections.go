package gateway

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// The numbers of connections, if the operating system allows as many open files. Runs need files too: connections take
// at most half of them, and those whose sender is not known an eighth.
const (
	maxConnections = 4096
	maxStrangers   = 512
)

// writeTime is the time in which a reader must take the next writePiece bytes of an answer. One that does not is gone:
// it would keep the answer in memory, and a place among the connections.
const (
	writeTime  = 30 * time.Second
	writePiece = 64 << 10
)

// A connectionSet bounds the connections of a server. If there are too many, those make room first that have waited
// longest without showing a token, and then those that have waited longest for their next request: however many of them
// a program opens, a new one is answered. It is safe for concurrent use.
type connectionSet struct {
	all       int // the largest number of connections
	strangers int // the largest number of those that have not shown a token

	mu      sync.Mutex
	open    map[*connection]struct{}
	unknown list.List // of *connection that have not shown a token, oldest first
	idle    list.List // of those that have and wait for their next request, the one that has waited longest first
}

// newConnectionSet returns a set for a process that may open so many files; 0: it is not known.
func newConnectionSet(files uint64) *connectionSet {
	files = cmp.Or(files, 8*maxConnections)
	return &connectionSet{all: int(min(maxConnections, files/2)), strangers: int(min(maxStrangers, files/8)), open: map[*connection]struct{}{}}
}

// A connection is one of the set. The set guards its fields.
type connection struct {
	net.Conn
	set   *connectionSet
	place *list.Element // among those that have not shown a token; nil: it has shown one, or is closed
	rest  *list.Element // among those that have and wait; nil: it does not wait
}

// Write writes in pieces, and gives the reader the time for each.
func (c *connection) Write(b []byte) (n int, err error) {
	for {
		if err := c.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
			return n, err
		}
		wrote, err := c.Conn.Write(b[n:min(len(b), n+writePiece)])
		if n += wrote; err != nil || n == len(b) {
			return n, err
		}
	}
}

// Close closes the connection, and makes its place free.
func (c *connection) Close() error {
	c.set.forget(c)
	return c.Conn.Close()
}

// add returns a connection of the set. Others that wait without a token make room for it; nil: there is none.
func (s *connectionSet) add(plain net.Conn) *connection {
	s.mu.Lock()
	c := &connection{Conn: plain, set: s}
	var closed []*connection
	for s.unknown.Len() >= s.strangers || len(s.open) >= s.all {
		oldest := cmp.Or(s.unknown.Front(), s.idle.Front())
		if oldest == nil {
			break
		}
		old := oldest.Value.(*connection)
		s.remove(old)
		closed = append(closed, old)
	}
	full := len(s.open) >= s.all
	if !full {
		s.open[c] = struct{}{}
		c.place = s.unknown.PushBack(c)
	}
	s.mu.Unlock()
	for _, old := range closed {
		_ = old.Conn.Close()
	}
	if full {
		return nil
	}
	return c
}

// remove forgets a connection. The caller must hold mu.
func (s *connectionSet) remove(c *connection) {
	delete(s.open, c)
	s.trust(c)
	s.wake(c)
}

// wake takes a connection from those that wait for their next request. The caller must hold mu.
func (s *connectionSet) wake(c *connection) {
	if c.rest != nil {
		s.idle.Remove(c.rest)
		c.rest = nil
	}
}

// noteState notes what a connection does: it has the type of the field ConnState of a server.
func (s *connectionSet) noteState(plain net.Conn, state http.ConnState) {
	c, ok := ownConnection(plain)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake(c)
	if _, open := s.open[c]; open && state == http.StateIdle && c.place == nil {
		c.rest = s.idle.PushBack(c)
	}
}

// trust takes a connection from those that have not shown a token. The caller must hold mu.
func (s *connectionSet) trust(c *connection) {
	if c.place != nil {
		s.unknown.Remove(c.place)
		c.place = nil
	}
}

func (s *connectionSet) forget(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(c)
}

// A boundListener accepts the connections for which its set has a place, and closes others.
type boundListener struct {
	net.Listener
	set *connectionSet
}

// Accept returns the next connection that has a place.
func (l boundListener) Accept() (net.Conn, error) {
	for {
		plain, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.set.add(plain); c != nil {
			return c, nil
		}
		_ = plain.Close()
	}
}

// connectionKey is the key of the connection of a request in its context.
type connectionKey struct{}

// ownConnection returns the connection of a set below one that a server has accepted.
func ownConnection(c net.Conn) (own *connection, ok bool) {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	own, ok = c.(*connection)
	return own, ok
}

// noteConnection returns a context for the requests of a connection: it has the type of the field ConnContext of a
// server.
func noteConnection(ctx context.Context, c net.Conn) context.Context {
	if own, ok := ownConnection(c); ok {
		return context.WithValue(ctx, connectionKey{}, own)
	}
	return ctx
}

// trustConnection notes that the sender of a request has shown a token.
func trustConnection(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*connection); ok {
		c.set.mu.Lock()
		defer c.set.mu.Unlock()
		c.set.trust(c)
	}
}
