package netplace

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"syscall"
)

// DescribeFailure says why no connection to an address was made, as the end of a sentence that begins with the address;
// "" if err is none of the common reasons.
func DescribeFailure(err error) string {
	var (
		name *net.DNSError
		cert *tls.CertificateVerificationError
		wire tls.RecordHeaderError
		late net.Error
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refuses connections: does the server run there?"
	case errors.As(err, &name) && name.IsNotFound:
		return "is unknown: there is no host with this name"
	case errors.As(err, &name):
		return "cannot be looked up: " + name.Err
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "cannot be reached from this network"
	case errors.As(err, &cert):
		return "shows a certificate that is not trusted: " + cert.Err.Error()
	case errors.As(err, &wire):
		return "does not speak https: is the address one of http?"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return "does not answer in time"
	}
	return ""
}
