package netproxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// pipeConns copies between two connections until both directions have ended: the end of one direction is passed on as
// such, an error ends both. It returns the first error. fromA is what is read of a; it may hold more than a does. Both
// are closed.
func pipeConns(a net.Conn, fromA io.Reader, b net.Conn) error {
	var first error
	var once sync.Once
	end := func() {
		_ = a.Close()
		_ = b.Close()
	}
	move := func(to net.Conn, from io.Reader) {
		if _, err := io.Copy(to, from); err != nil {
			once.Do(func() { first = err })
			end()
			return
		}
		_ = closeWrite(to) // if it fails, the other direction ends as well
	}
	var back sync.WaitGroup
	back.Go(func() { move(a, b) })
	move(b, fromA)
	back.Wait()
	end()
	if errors.Is(first, net.ErrClosed) {
		return nil
	}
	return first
}

// closeWrite says to the other end of a connection that nothing more will be sent, or ends the connection if it has no
// such way.
func closeWrite(c net.Conn) error {
	half, ok := c.(interface{ CloseWrite() error })
	if !ok {
		return c.Close()
	}
	return half.CloseWrite()
}

// openTunnel connects a program that was let through with its destination. from is what is read of the program.
func (s *service) openTunnel(program net.Conn, from io.Reader, outer net.Conn, a *openAttempt) error {
	_, err := netip.ParseAddr(a.to.Host)
	if isName := err != nil; isName {
		from = &greeting{service: s, attempt: a, program: program, from: bufio.NewReaderSize(from, 4<<10)}
	}
	return pipeConns(program, from, outer)
}

// A greeting reads what a program sends through a tunnel. Before it passes on the first bytes, it looks whether they
// begin a TLS handshake, and whether that is for a host that is allowed: servers of many hosts go by the name in the
// handshake, whatever the name of the connection.
type greeting struct {
	*service
	attempt *openAttempt
	program net.Conn
	from    *bufio.Reader
	read    io.Reader // what was looked at, and then the rest
}

// Read implements [io.Reader].
func (g *greeting) Read(b []byte) (int, error) {
	if g.read == nil {
		if err := g.inspectHello(); err != nil {
			return 0, err
		}
	}
	return g.read.Read(b)
}

const (
	tlsHandshake = 0x16 // the first byte of a record that begins a handshake
	helloTimeout = greetTimeout
)

// inspectHello reads the first bytes. A handshake that cannot be read is refused: it could hide a name.
func (g *greeting) inspectHello() error {
	g.read = g.from
	if first, err := g.from.Peek(1); err != nil || first[0] != tlsHandshake {
		return nil // the reader will say what is wrong
	}
	var seen bytes.Buffer
	_ = g.program.SetReadDeadline(time.Now().Add(helloTimeout))
	name, err := readServerName(io.TeeReader(g.from, &seen))
	_ = g.program.SetReadDeadline(time.Time{})
	g.read = io.MultiReader(&seen, g.from)
	if err == nil && name != "" {
		err = g.checkName(name)
	}
	if err != nil {
		// alert, TLS 1.2, 2 bytes: fatal, access_denied
		_, _ = g.program.Write([]byte{0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 49})
		var refused *refusedError
		if !errors.As(err, &refused) {
			err = &refusedError{to: g.attempt.to.String(), reason: fmt.Sprintf("the TLS handshake cannot be read (%v), so that it is not known which host it is for", err)}
		}
		g.attempt.endConns(err)
	}
	return err
}

// checkName returns an error if a handshake may not be for a host.
func (g *greeting) checkName(name string) error {
	host, err := ParseHost(name)
	if err != nil {
		return err
	}
	if host == g.attempt.to.Host {
		return nil
	}
	_, err = g.judgeDestination(g.ctx, newDestination(host, g.attempt.to.Port))
	if refused, ok := errors.AsType[*refusedError](err); ok {
		refused.reason = fmt.Sprintf("the connection is for %s, but its TLS handshake is for this host: %s", g.attempt.to.Host, refused.reason)
	}
	return err
}

// errSeen ends a handshake whose first message was read.
var errSeen = errors.New("seen")

// readServerName reads the first message of a TLS handshake, and returns the name of the server in it; "" if there is
// none.
func readServerName(r io.Reader) (name string, err error) {
	seen := false
	server := tls.Server(readOnlyConn{ReadCloser: io.NopCloser(r), Writer: io.Discard}, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		name = hello.ServerName
		seen = true
		return nil, errSeen
	}})
	if err := server.HandshakeContext(context.Background()); !seen {
		return "", err
	}
	return name, nil
}

// A readOnlyConn is a connection to which nothing is written.
type readOnlyConn struct {
	io.ReadCloser
	io.Writer
	noConn
}

// A noConn has the methods of a connection that are not called.
type noConn struct{ net.Conn }

// SetWriteDeadline implements [net.Conn].
func (noConn) SetWriteDeadline(time.Time) error { return nil }
