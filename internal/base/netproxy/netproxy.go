// Package netproxy is the way out of the box: a proxy through which the programs of a run reach the hosts that rules
// and answers allow, and no others.
//
// One listener speaks HTTP (CONNECT, and plain requests with the whole address) and SOCKS5 (CONNECT only); the first
// byte tells them apart. A program names a host and a port. The host is brought into one form ([ParseHost]) and judged
// before anything is resolved. Then the proxy itself looks the name up and connects to exactly an address that it has
// checked: no second lookup can lead elsewhere. An address of this machine or of a private network, and a port other
// than 80 and 443, need a ruling that names them.
//
// Each connection of a program is for one destination: a plain request is answered with "Connection: close", because
// the permission for one is none for the next. Refusals are answered in the protocol with the reason, in places where
// programs show it.
//
// What the proxy does not see: it looks into no stream. It only reads the name that a TLS handshake begins with, and
// ends a connection that was allowed for one host and greets another one that is not. Behind a host that serves several
// names and does not compare that name with the Host header inside, or through a tunnel without TLS, a program can
// still ask for another name at the same address.
package netproxy

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits of what a program may hold open.
const (
	greetTimeout   = 30 * time.Second // until a connection has said where it wants to
	dialTimeout    = 20 * time.Second // until a connection is there
	idleTimeout    = 15 * time.Minute // without a byte in either direction
	mostConns      = 512              // at the same time
	largestHeader  = 64 << 10         // of a request, in bytes
	acceptPause    = 50 * time.Millisecond
	mostAcceptions = 100 // that fail one after the other
)

// A Proxy connects programs to the hosts that its judge allows.
type Proxy struct {
	// Judge decides about a destination. It may ask a person; the context ends with Serve. Calls may come at the same
	// time.
	Judge func(ctx context.Context, to Destination) Ruling
	// Log gets each attempt when it has ended; nil: no one wants to know. Calls may come at the same time, none after
	// the end of Serve.
	Log func(Attempt)
	// Secret is what a program must send as password, with any name of a user; empty: none.
	Secret string

	lookup func(ctx context.Context, host string) ([]netip.Addr, error)        // nil: as the system does
	dial   func(ctx context.Context, address netip.AddrPort) (net.Conn, error) // nil: as the system does
}

// A service is what Serve works with.
type service struct {
	*Proxy
	ctx     context.Context
	mu      sync.Mutex // guards over and additions to running
	running sync.WaitGroup
	over    bool // running is waited for: nothing may be added
	places  chan struct{}
	web     chan net.Conn // connections that speak HTTP
}

// Serve accepts connections until the context ends, and then closes the listener and ends all connections. It returns
// nil when the context has ended, and an error when the listener fails.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &service{Proxy: p, ctx: ctx, places: make(chan struct{}, mostConns), web: make(chan net.Conn)}
	server := &http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: greetTimeout,
		MaxHeaderBytes:    largestHeader,
		ErrorLog:          log.New(io.Discard, "", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
		ConnState: func(c net.Conn, state http.ConnState) {
			switch own := c.(*conn); state {
			case http.StateClosed:
				own.end()
			case http.StateHijacked:
				own.hijacked = true
			}
		},
	}
	server.SetKeepAlivesEnabled(false)
	s.goRun(func() { _ = server.Serve(&queue{Listener: listener, service: s}) })
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	err := s.acceptConns(listener)
	stop()
	ended := ctx.Err() != nil
	cancel()
	_ = listener.Close()
	_ = server.Close()
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.running.Wait()
	if ended {
		return nil
	}
	return err
}

// errEnded is why nothing is begun after the end of a proxy.
var errEnded = errors.New("the proxy has ended")

// goRun runs f in a goroutine that the end of the proxy waits for. It reports false, and runs nothing, if the proxy has
// ended: the transport of a request that was given up may still be about to connect.
func (s *service) goRun(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false
	}
	s.running.Go(f)
	return true
}

// acceptConns takes connections until the listener is closed.
func (s *service) acceptConns(listener net.Listener) error {
	for failures := 0; ; {
		select {
		case s.places <- struct{}{}:
		case <-s.ctx.Done():
			return nil
		}
		c, err := listener.Accept()
		if err == nil {
			failures = 0
			s.startConn(c)
			continue
		}
		<-s.places
		if failures++; s.ctx.Err() != nil || errors.Is(err, net.ErrClosed) || failures == mostAcceptions {
			return err
		}
		select { // such as: too many open files
		case <-time.After(acceptPause):
		case <-s.ctx.Done():
		}
	}
}

// startConn serves a connection.
func (s *service) startConn(inner net.Conn) {
	s.running.Add(1)
	c := &conn{Conn: inner}
	stop := context.AfterFunc(s.ctx, func() { _ = inner.Close() })
	c.end = sync.OnceFunc(func() {
		stop()
		_ = inner.Close()
		<-s.places
		s.running.Done()
	})
	go s.greetProgram(c)
}

// greetProgram finds out which protocol a connection speaks.
func (s *service) greetProgram(c *conn) {
	_ = c.SetReadDeadline(time.Now().Add(greetTimeout))
	if _, err := io.ReadFull(c.Conn, c.first[:]); err != nil {
		c.end()
		return
	}
	if c.first[0] == socksVersion {
		defer c.end()
		s.serveSOCKS(c)
		return
	}
	c.unread = true
	select {
	case s.web <- c:
	case <-s.ctx.Done():
		c.end()
	}
}

// A conn is the connection of a program.
type conn struct {
	net.Conn
	end      func() // closes it; all its work is done
	first    [1]byte
	unread   bool // the first byte
	hijacked bool // from the server that speaks HTTP, which does not end it any more
}

// connKey is the key of the connection in the context of a request.
type connKey struct{}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	if !c.unread || len(b) == 0 {
		return c.Conn.Read(b)
	}
	c.unread = false
	return copy(b, c.first[:]), nil
}

// CloseWrite says that nothing more will be sent.
func (c *conn) CloseWrite() error { return closeWrite(c.Conn) }

// A queue is the listener of the server that speaks HTTP.
type queue struct {
	net.Listener
	*service
}

// Accept implements [net.Listener].
func (q *queue) Accept() (net.Conn, error) {
	select {
	case c := <-q.web:
		return c, nil
	case <-q.ctx.Done():
		return nil, net.ErrClosed
	}
}
