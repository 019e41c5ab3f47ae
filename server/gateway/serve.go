package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"raddle.dev/server"
)

// The limits of connections.
const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	closeTimeout  = 5 * time.Second // for answers that are being written
)

// UseService sets the service whose runs the server offers. It must be called before Serve.
func (g *Gateway) UseService(s *server.Service) { g.service = s }

// Close stops listening. It is needed only if Serve is not called.
func (g *Gateway) Close() error { return g.listener.Close() }

// Serve answers requests until ctx ends. Then it pauses every run after its current step, for at most the grace of the
// settings or until drainCtx ends, closes the service and all connections, and returns.
func (g *Gateway) Serve(ctx, drainCtx context.Context) error {
	web := g.newServer()
	failed := make(chan error, 1)
	go func() { failed <- g.accept(web, g.listener) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	graceful, cancel := context.WithTimeout(drainCtx, g.settings.Grace)
	defer cancel()
	g.removeOpener()
	err = errors.Join(err, g.service.Close(graceful)) // ends the streams of events, too
	last, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if web.Shutdown(last) != nil {
		_ = web.Close() // clients that do not read are cut off
	}
	return err
}

// newServer returns the server of HTTP for the connections of the gateway.
func (g *Gateway) newServer() *http.Server {
	return &http.Server{Handler: g, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: noteConnection, ConnState: g.network.noteState}
}

func (g *Gateway) accept(web *http.Server, l net.Listener) error {
	l = boundListener{l, g.network}
	if g.settings.TLSCert != "" {
		return web.ServeTLS(l, g.settings.TLSCert, g.settings.TLSKey)
	}
	return web.Serve(l)
}
