package mcp

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
)

const (
	sessionTimeout = time.Hour // of a client that sends no request, and waits for none
	maxRequest     = 4 << 20   // bytes of one message
)

// instructions are for the models of clients.
const instructions = `Each tool is an agent of raddle. A call starts a run and returns its result. A run that waits for a person returns the status "waiting" with ` +
	`its questions: ask your user, and pass the answer to ` + answerTool + `. Never answer a question about permission without asking your user.`

// NewHandler returns a handler for the streamable HTTP transport. Its caller checks who sends a request, and which host
// and origin the request names. log is the developer log; it may be nil.
func NewHandler(s *server.Service, log *slog.Logger) http.Handler {
	b := newBridge(s, log)
	stream := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return b.sdk }, &sdk.StreamableHTTPOptions{
		Logger: log,
		// a client that lost its connection gets the rest of a stream
		EventStore:                 sdk.NewMemoryEventStore(nil),
		SessionTimeout:             sessionTimeout,
		MaxRequestBodyBytes:        maxRequest,
		DisableLocalhostProtection: true, // the caller checks the host, which may be that of a proxy
		// Since the version 2026-07-28, closing a request is how a client cancels it.
		PropagateRequestCancellation: true,
	})
	return identifyCaller(stream)
}

// Serve speaks the protocol over two streams until the client closes one of them or ctx ends. log is the developer log;
// it may be nil.
func Serve(ctx context.Context, s *server.Service, in io.ReadCloser, out io.WriteCloser, log *slog.Logger) error {
	b := newBridge(s, log)
	b.syncTools()
	err := b.sdk.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
	if isHangUp(err) || ctx.Err() != nil {
		return nil
	}
	return err
}

// isHangUp reports whether err says that the client closed a stream: nothing to read any more, or no reader of what is
// written.
func isHangUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, syscall.EPIPE)
}

// newBridge returns a bridge with its server.
func newBridge(s *server.Service, log *slog.Logger) *bridge {
	b := &bridge{service: s, log: log, listed: map[string]listedTool{}}
	b.log = cmp.Or(b.log, slog.New(slog.DiscardHandler))
	b.sdk = sdk.NewServer(&sdk.Implementation{Name: "raddle", Title: "raddle", Version: app.ReadBuild().Version}, &sdk.ServerOptions{
		Instructions: instructions,
		Logger:       log,
		Capabilities: &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{ListChanged: true}},
	})
	b.sdk.AddTool(newAnswerTool(), b.callAnswer)
	b.sdk.AddReceivingMiddleware(b.refreshTools)
	return b
}
