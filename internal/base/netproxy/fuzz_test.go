package netproxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// A sentConn is a connection of a program that has sent all. What it gets is forgotten.
type sentConn struct {
	net.Conn // nil: what is not below is not called
	text     *bytes.Reader
}

func (c *sentConn) Read(b []byte) (int, error)       { return c.text.Read(b) }
func (c *sentConn) Write(b []byte) (int, error)      { return len(b), nil }
func (c *sentConn) Close() error                     { return nil }
func (c *sentConn) CloseWrite() error                { return nil }
func (c *sentConn) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *sentConn) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (c *sentConn) SetDeadline(time.Time) error      { return nil }
func (c *sentConn) SetReadDeadline(time.Time) error  { return nil }
func (c *sentConn) SetWriteDeadline(time.Time) error { return nil }

// FuzzServe sends bytes to a proxy. It never panics, ends, and connects only to what was allowed.
func FuzzServe(f *testing.F) {
	for _, text := range []string{
		"", "\x05", "\x05\x00", "\x05\x01\x00\x05\x01\x00\x01\xc0\x00\x02\x01\x01\xbbhello", "\x05\x02\x00\x02\x05\x01\x00\x03\x0cgood.example\x01\xbb\x16\x03\x01\x00\x05",
		"\x05\x01\x02\x01\x01a\x01b\x05\x01\x00\x04" + strings.Repeat("\xff", 16) + "\x01\xbb", "\x05\xff" + strings.Repeat("\x00", 255) + "\x05\x01\x00\x03\xff", "\x04\x01\x00\x50\x01\x02\x03\x04\x00",
		"CONNECT good.example:443 HTTP/1.1\r\nHost: x\r\n\r\n\x16\x03\x01\x00\x02\x01\x00", "CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "GET http://good.example/ HTTP/1.1\r\nHost: bad.example\r\n\r\n",
		"POST http://good.example/a?b=%zz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", "GET http://good.example HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x00\x05hello", "CONNECT \x00:1 HTTP/1.1\r\n\r\n", "GET http://a:b@good.example/ HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		allowed := map[string]bool{"good.example": true, "192.0.2.1": true}
		p := &Proxy{
			Judge: func(_ context.Context, to Destination) Ruling {
				if again, err := ParseHost(to.Host); err != nil || again != to.Host || to.Port < 1 || to.Port > 65535 {
					t.Errorf("the judge decides about %+v, %v", to, err)
				}
				return Ruling{Allowed: allowed[to.Host]}
			},
			Log: func(a Attempt) {
				if a.Allowed && !allowed[a.Host] || cleanText(a.Host) != a.Host || cleanText(a.Reason) != a.Reason || cleanText(a.Ended) != a.Ended {
					t.Errorf("the log has %+v", a)
				}
			},
			lookup: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
			},
			dial: func(_ context.Context, at netip.AddrPort) (net.Conn, error) {
				if at.Addr().String() != "192.0.2.1" || at.Port() != 80 && at.Port() != 443 {
					t.Errorf("the proxy connects to %s", at)
				}
				return &sentConn{text: bytes.NewReader([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))}, nil
			},
		}
		ended := make(chan struct{})
		listener := &oneConn{conns: make(chan net.Conn, 1)}
		listener.conns <- &endingConn{sentConn: sentConn{text: bytes.NewReader(text)}, ended: ended}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Serve(ctx, listener) }()
		<-ended
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// An endingConn says when it is closed.
type endingConn struct {
	sentConn
	ended  chan struct{}
	closed bool
}

func (c *endingConn) Close() error {
	if !c.closed {
		c.closed = true
		close(c.ended)
	}
	return nil
}

// FuzzReadServerName reads handshakes.
func FuzzReadServerName(f *testing.F) {
	var hello bytes.Buffer
	_ = tls.Client(&recordingConn{to: &hello}, &tls.Config{ServerName: "name.example"}).Handshake()
	if name, err := readServerName(bytes.NewReader(hello.Bytes())); name != "name.example" {
		f.Fatalf("%q, %v", name, err)
	}
	f.Add(hello.Bytes())
	f.Add(hello.Bytes()[:50])
	f.Add([]byte("\x16\x03\x01\x00\x02\x01\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if name, err := readServerName(bytes.NewReader(text)); err != nil && name != "" {
			t.Errorf("%q with the error %v", name, err)
		}
	})
}

// A recordingConn keeps what is written to it, and has nothing to read.
type recordingConn struct {
	sentConn
	to *bytes.Buffer
}

func (c *recordingConn) Write(b []byte) (int, error) { return c.to.Write(b) }
func (c *recordingConn) Read([]byte) (int, error)    { return 0, net.ErrClosed }
