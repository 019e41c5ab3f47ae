package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// errPipe is in every error of a pipe whose process does not read or write any more.
var errPipe = errors.New("the pipe is broken")

// A pipe is the connection to a child process that writes one message on each line. What
// the child prints besides is passed to reject. An answer that cannot be read fails
// the request that it belongs to, and not the connection. A pipe is safe for concurrent
// use; reads must follow one another.
type pipe struct {
	*inbox
	process io.ReadWriteCloser

	incoming chan jsonrpc.Message // closed after the child's last message
	outgoing chan outgoingLine
	closed   chan struct{}
	closing  sync.Once
}

// An outgoingLine is a line for the child.
type outgoingLine struct {
	line    []byte
	written chan<- error // has room for the result
}

// Connect implements sdk.Transport. It is called once.
func (p *pipe) Connect(context.Context) (sdk.Connection, error) {
	p.incoming, p.outgoing = make(chan jsonrpc.Message), make(chan outgoingLine)
	p.closed = make(chan struct{})
	go p.readAll()
	go p.writeAll()
	return p, nil
}

// SessionID implements sdk.Connection.
func (p *pipe) SessionID() string { return "" }

// Read returns the next message of the child. It implements sdk.Connection.
func (p *pipe) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m, ok := <-p.incoming:
		if ok {
			return m, nil
		}
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

// readAll reads lines until the child's output ends or the pipe is closed.
func (p *pipe) readAll() {
	defer close(p.incoming)
	lines := newLineReader(p.process, maxLine)
	for {
		line, err := lines.nextLine()
		var messages []jsonrpc.Message
		if long := (*longLineError)(nil); errors.As(err, &long) {
			messages, err = p.tooLong(long), nil
		} else {
			messages = p.parseMessages(line)
		}
		for _, m := range messages {
			select {
			case p.incoming <- m:
			case <-p.closed:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Close ends the child. It implements sdk.Connection.
func (p *pipe) Close() error {
	p.closing.Do(func() { close(p.closed) })
	return p.process.Close()
}
