package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/base/proc"
)

// errPipe is in every error of a pipe whose process does not read or write any more.
var errPipe = errors.New("the pipe is broken")

// A pipe is the connection to a child process that writes one message on each line, or over
// several lines. Everything else that the child prints is passed to reject. An answer that cannot be read fails
// the request that it belongs to, and not the connection. A pipe is safe for concurrent
// use; only one goroutine may read at a time.
type pipe struct {
	*inbox
	process *proc.Process
	silent  *atomic.Bool // becomes true if the child closes its output and does not end

	incoming chan jsonrpc.Message // closed after the child's last message
	outgoing chan outgoingLine
	opening  sync.Once
	closed   chan struct{}
	closing  sync.Once

	// keeps reports whether the child stays when a session over the pipe ends, so that the next one gets it; nil: it
	// does not.
	keeps func() bool
	// unsure reports whether the child may still be starting, so that it has not read the first request yet; nil: it is
	// not. No request is canceled then: the child would answer the canceled one late, when another session waits for
	// the answer to a request with the same id.
	unsure func() bool
}

// An outgoingLine is a line for the child.
type outgoingLine struct {
	line    []byte
	written chan<- error // has room for the result
}

// newPipe returns the pipe to a child. Its owner must Close it.
func newPipe(process *proc.Process, silent *atomic.Bool, in *inbox) *pipe {
	return &pipe{process: process, silent: silent, inbox: in, incoming: make(chan jsonrpc.Message), outgoing: make(chan outgoingLine), closed: make(chan struct{})}
}

// Connect implements sdk.Transport. Each call is for a new session, after the one before has ended.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) {
	p.opening.Do(func() {
		go p.readAll()
		go p.writeAll()
	})
	return &pipeSession{pipe: p, left: make(chan struct{})}, nil
}

// A pipeSession is the connection of one session over a pipe.
type pipeSession struct {
	*pipe
	left    chan struct{} // closed when the session has ended
	leaving sync.Once
}

// SessionID implements sdk.Connection.
func (s *pipeSession) SessionID() string { return "" }

// Close ends the session, and the child unless the pipe keeps it. It implements sdk.Connection.
func (s *pipeSession) Close() error {
	s.leaving.Do(func() { close(s.left) })
	if s.keeps != nil && s.keeps() {
		return nil
	}
	return s.pipe.Close()
}

// Read returns the next message of the child. It implements sdk.Connection.
func (s *pipeSession) Read(ctx context.Context) (jsonrpc.Message, error) {
	p := s.pipe
	select {
	case <-s.left: // what comes now is for the next session
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	default:
	}
	select {
	case m, ok := <-p.incoming:
		if ok {
			return m, nil
		}
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	case <-s.left:
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	case <-p.closed:
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write sends a message to the child. When ctx ends, Write returns, and a message of
// which a part is written is written to its end. It implements sdk.Connection.
func (p *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	if p.unsure != nil && isCancellation(m) && p.unsure() {
		return nil
	}
	p.recordRequest(m)
	written := make(chan error, 1)
	select {
	case p.outgoing <- outgoingLine{append(line, '\n'), written}:
	case <-p.closed:
		return errPipe
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-written:
		return err
	case <-p.closed:
		return errPipe
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isCancellation reports whether a message takes a request back.
func isCancellation(m jsonrpc.Message) bool {
	r, ok := m.(*jsonrpc.Request)
	return ok && r.Method == "notifications/cancelled"
}

// writeAll writes lines until the pipe is closed.
func (p *pipe) writeAll() {
	for {
		select {
		case o := <-p.outgoing:
			_, err := p.process.Write(o.line)
			if err != nil {
				err = fmt.Errorf("%w: %w", errPipe, err)
			}
			o.written <- err
		case <-p.closed:
			return
		}
	}
}

// readAll reads messages until the child's output ends or the pipe is closed. It reports the end of
// the output when the reason is known: the child has ended, or it has not within a short time.
func (p *pipe) readAll() {
	defer close(p.incoming)
	if !p.readMessages() {
		return
	}
	select {
	case <-p.process.Done():
	case <-p.closed:
	case <-time.After(exitTimeout):
		p.silent.Store(true)
	}
}

// readMessages reads messages, and reports whether the output has ended.
func (p *pipe) readMessages() bool {
	values := &valueReader{lines: newLineReader(p.process, maxLine)}
	for {
		text, err := values.nextText()
		var messages []jsonrpc.Message
		if long := (*longLineError)(nil); errors.As(err, &long) {
			messages = p.tooLong(long)
			err = nil
		} else if err == nil {
			messages = p.parseMessages(text)
		}
		for _, m := range messages {
			select {
			case p.incoming <- m:
			case <-p.closed:
				return false
			}
		}
		if err != nil {
			return true
		}
	}
}

// Close ends the child and every session.
func (p *pipe) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.process.Close()
}
