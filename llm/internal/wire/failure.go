package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"time"

	"raddle.dev/llm"
)

// ClassifyError converts the error of a call to the error for the caller. If ctx has
// ended for a reason of the caller's, that error has the error of ctx in its
// chain; otherwise it is an *llm.Error. An *llm.Error in the chain of err is
// returned itself.
func (c *Client) ClassifyError(ctx context.Context, err error) error {
	if stopped := StopError(ctx); stopped != nil {
		return stopped
	}
	switch context.Cause(ctx) {
	case errSilent:
		return c.timeoutError()
	case errLong:
		return c.limitError(fmt.Sprintf("the reply was not complete after %v", c.total), "stream_timeout")
	}
	var known *llm.Error
	if errors.As(err, &known) {
		return known
	}
	if e := c.networkError(err); e != nil {
		return e
	}
	return &llm.Error{Class: llm.Server, Host: c.base.Hostname(), Message: c.cleanText(err.Error()), Err: err}
}

// brokenStreamError is ClassifyError for an error in the middle of a body, where every error
// that is not a timeout means that the connection broke.
func (c *Client) brokenStreamError(ctx context.Context, err error) error {
	err = c.ClassifyError(ctx, err)
	var known *llm.Error
	if !errors.As(err, &known) || known.Class == llm.Timeout || known.Class == llm.Limit {
		return err
	}
	return c.resetError("the connection broke in the middle of the reply", known.Err)
}

// StopError returns nil unless ctx has ended for a reason of the caller's. The
// error satisfies errors.Is with ctx.Err() and with the cause of ctx.
func StopError(ctx context.Context) error {
	err := ctx.Err()
	cause := context.Cause(ctx)
	if deadline, ok := ctx.Deadline(); err == nil && ok && !time.Now().Before(deadline) {
		// A dialer with the same deadline can report it before the context does.
		err = context.DeadlineExceeded
		cause = context.DeadlineExceeded
	}
	switch {
	case err == nil || cause == errSilent || cause == errLong:
		return nil
	case cause == err:
		return fmt.Errorf("model call stopped: %w", err)
	}
	return fmt.Errorf("model call stopped: %w (%w)", err, cause)
}

// IsFailure reports whether err is a failure of the provider or of the
// connection to it, and not the end of the caller's context.
func IsFailure(err error) bool {
	var e *llm.Error
	return errors.As(err, &e)
}

// EndedEarly returns the failure of a stream that ends without its terminal
// marker.
func (c *Client) EndedEarly() error {
	return c.resetError("stream ended early, before the reply was complete", io.ErrUnexpectedEOF)
}

// MalformedError returns the failure of a stream that violates the provider's
// protocol.
func (c *Client) MalformedError(what string, err error) error {
	return &llm.Error{
		Class:   llm.Server,
		Host:    c.base.Hostname(),
		Err:     err,
		Message: c.cleanText(fmt.Sprintf("%s: %v", what, err)),
	}
}

// RefusedError returns the failure of a request that the provider answered with a
// reason instead of a reply.
func (c *Client) RefusedError(class llm.Class, code, why string) error {
	return &llm.Error{Class: class, Code: code, Host: c.base.Hostname(), Message: c.cleanText(why)}
}

// UnsupportedError returns the failure of a request that the provider's API cannot
// represent.
func (c *Client) UnsupportedError(what string) error {
	return &llm.Error{Class: llm.BadRequest, Host: c.base.Hostname(), Message: what}
}

func (c *Client) timeoutError() error {
	return &llm.Error{
		Class:   llm.Timeout,
		Host:    c.base.Host,
		Message: fmt.Sprintf("the server sent nothing for %v", c.read),
	}
}

// limitError returns the failure of a reply that exceeds a limit of the client.
// setting names the setting that raises the limit.
func (c *Client) limitError(what, setting string) error {
	return &llm.Error{
		Class:   llm.Limit,
		Host:    c.base.Hostname(),
		Message: what + ", which is the limit (" + setting + ")",
	}
}

func (c *Client) resetError(what string, err error) error {
	return &llm.Error{Class: llm.Network, Code: llm.CodeReset, Host: c.base.Host, Message: what, Err: err}
}

// networkError classifies an error that occurs before there is a response. It
// returns nil if err is not a network error. Only errors that are transient in
// any case contain the port, because its digits must not be mistaken for a
// status.
func (c *Client) networkError(err error) error {
	var (
		timeout interface{ Timeout() bool }
		errno   syscall.Errno
		op      *net.OpError
		dns     *net.DNSError
		post    *url.Error
	)
	host := c.base.Hostname()
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &llm.Error{
			Class:   llm.Network,
			Code:    llm.CodeRefused,
			Host:    c.base.Host,
			Err:     syscall.ECONNREFUSED,
			Message: "cannot connect. Is the server running, and is the address right?",
		}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &llm.Error{Class: llm.Timeout, Host: c.base.Host, Message: "no connection within the time limit"}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return c.resetError("the server closed the connection without an answer", err)
	case errors.As(err, &dns):
		return &llm.Error{
			Class:   llm.Network,
			Code:    llm.CodeUnreachable,
			Host:    host,
			Message: "cannot look up the host: " + dns.Err,
			Err:     err,
		}
	case errors.As(err, &errno):
		err = errno
	case errors.As(err, &op):
		err = op.Err
	case errors.As(err, &post): // the certificate is not trusted, or the server does not speak HTTP
		err = post.Err
	default:
		return nil
	}
	return &llm.Error{
		Class:   llm.Network,
		Code:    llm.CodeUnreachable,
		Host:    host,
		Message: c.cleanText("no connection: " + err.Error()),
		Err:     err,
	}
}
