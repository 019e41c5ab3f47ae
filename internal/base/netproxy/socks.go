package netproxy

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
)

// The numbers of SOCKS5 (RFC 1928, 1929).
const (
	socksVersion  = 5
	noPassword    = 0x00
	password      = 0x02
	noMethod      = 0xff
	loginVersion  = 1
	socksConnect  = 1
	addressIPv4   = 1
	addressName   = 3
	addressIPv6   = 4
	socksDone     = 0
	socksFailed   = 1
	socksRefused  = 2
	noHost        = 4
	noConnection  = 5
	noCommand     = 7
	noAddressType = 8
)

// A socksError is an error with the reply for it.
type socksError struct {
	reply byte
	err   error
}

// Error implements error.
func (e *socksError) Error() string { return e.err.Error() }

// serveSOCKS serves a connection whose first byte was that of SOCKS5.
func (s *service) serveSOCKS(c *conn) {
	r := bufio.NewReaderSize(c.Conn, 1<<10)
	if err := s.agreeOnMethod(r, c); err != nil {
		return
	}
	text, to, err := readSOCKSRequest(r)
	if err != nil {
		if bad, ok := errors.AsType[*socksError](err); ok {
			writeSOCKSReply(c, bad.reply)
			s.logInvalid("socks5", text, bad.err)
		}
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	a := s.beginAttempt("socks5", to, func() { _ = c.Close() })
	outer, err := s.connectProgram(s.ctx, a)
	if err != nil {
		writeSOCKSReply(c, socksReplyFor(err))
		s.finishAttempt(a, err)
		return
	}
	writeSOCKSReply(c, socksDone)
	s.finishAttempt(a, s.openTunnel(c, r, outer, a))
}

// agreeOnMethod reads which ways to log in a program offers, chooses one, and lets it log in.
func (s *service) agreeOnMethod(r *bufio.Reader, w io.Writer) error {
	methods, err := readCounted(r)
	if err != nil {
		return err
	}
	offered := func(method byte) bool {
		for _, m := range methods {
			if m == method {
				return true
			}
		}
		return false
	}
	if s.Secret == "" && offered(noPassword) {
		_, err := w.Write([]byte{socksVersion, noPassword})
		return err
	}
	if !offered(password) {
		_, _ = w.Write([]byte{socksVersion, noMethod})
		return errors.New("no way to log in")
	}
	if _, err := w.Write([]byte{socksVersion, password}); err != nil {
		return err
	}
	version, err := r.ReadByte()
	if err != nil || version != loginVersion {
		return errors.Join(err, errors.New("another version of the login"))
	}
	if _, err := readCounted(r); err != nil { // the name of the user
		return err
	}
	secret, err := readCounted(r)
	if err != nil {
		return err
	}
	if s.Secret != "" && !isSecret(string(secret), s.Secret) {
		_, _ = w.Write([]byte{loginVersion, socksFailed})
		return errors.New("another secret")
	}
	_, err = w.Write([]byte{loginVersion, socksDone})
	return err
}

// readCounted reads a byte, and as many bytes as it says.
func readCounted(r *bufio.Reader) ([]byte, error) {
	n, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err = io.ReadFull(r, b)
	return b, err
}

// readSOCKSRequest reads what a program wants. text is its destination as it wrote it.
func readSOCKSRequest(r *bufio.Reader) (text string, to Destination, err error) {
	var head [4]byte // version, command, reserved, type of the address
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", to, err
	}
	if head[0] != socksVersion {
		return "", to, errors.New("another version")
	}
	var host string
	switch head[3] {
	case addressIPv4, addressIPv6:
		b := make([]byte, map[byte]int{addressIPv4: 4, addressIPv6: 16}[head[3]])
		if _, err := io.ReadFull(r, b); err != nil {
			return "", to, err
		}
		at, _ := netip.AddrFromSlice(b)
		host = at.String()
	case addressName:
		b, err := readCounted(r)
		if err != nil {
			return "", to, err
		}
		host = string(b)
	default:
		return "", to, &socksError{noAddressType, fmt.Errorf("%d is not a type of an address", head[3])}
	}
	var port [2]byte
	if _, err := io.ReadFull(r, port[:]); err != nil {
		return "", to, err
	}
	number := int(binary.BigEndian.Uint16(port[:]))
	text = net.JoinHostPort(host, strconv.Itoa(number))
	if head[1] != socksConnect {
		return text, to, &socksError{noCommand, errors.New("programs may only connect, not wait for connections or send datagrams")}
	}
	to, err = parseTarget(text, 0)
	if err != nil {
		return text, to, &socksError{socksRefused, err}
	}
	return text, to, nil
}

// writeSOCKSReply answers a request. The address in it says nothing.
func writeSOCKSReply(w io.Writer, reply byte) {
	_, _ = w.Write([]byte{socksVersion, reply, 0, addressIPv4, 0, 0, 0, 0, 0, 0})
}

// socksReplyFor returns the reply for an error.
func socksReplyFor(err error) byte {
	var refused *refusedError
	var lookup *net.DNSError
	switch {
	case errors.As(err, &refused):
		return socksRefused
	case errors.As(err, &lookup), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return noHost
	case errors.Is(err, syscall.ECONNREFUSED):
		return noConnection
	}
	return socksFailed
}
