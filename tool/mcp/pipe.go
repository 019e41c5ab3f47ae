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

	"raddle.dev/internal/proc"
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
	late    *atomic.Bool // true while another session follows

	incoming chan jsonrpc.Message // closed after the child's last message
	outgoing chan outgoingLine
	closed   chan struct{}
	closing  sync.Once
	opening  sync.Once
}

// An outgoingLine is a line for the child.
type outgoingLine struct {
	line    []byte
	written chan<- error // has room for the result
}

// Connect implements sdk.Transport. A second connection continues with what the child writes after the first one was closed.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) {
	p.opening.Do(func() {
		p.incoming, p.outgoing = make(chan jsonrpc.Message), make(chan outgoingLine)
		p.closed = make(chan struct{})
		go p.readAll()
		go p.writeAll()
	})
	return &pipeSession{pipe: p, left: make(chan struct{})}, nil
}

// A pipeSession is one connection over a pipe.
type pipeSession struct {
	*pipe
	left    chan struct{} // closed with the session
	leaving sync.Once
}

// SessionID implements sdk.Connection.
func (p *pipeSession) SessionID() string { return "" }

// Read returns the next message of the child. It implements sdk.Connection.
func (p *pipeSession) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-p.incoming:
		if ok {
			return m, nil
		}
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	case <-p.left:
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	case <-p.closed:
		return nil, fmt.Errorf("%w: %w", errPipe, io.EOF)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends the session, and the child unless another session follows. It implements sdk.Connection.
func (p *pipeSession) Close() error {
	p.leaving.Do(func() { close(p.left) })
	if p.late.Load() {
		return nil
	}
	p.closing.Do(func() { close(p.closed) })
	return p.process.Close()
}

// Write sends a message to the child. When ctx ends, Write returns, and a message of
// which a part is written is written to its end. It implements sdk.Connection.
func (p *pipe) Write(ctx context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
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
			messages, err = p.tooLong(long), nil
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
