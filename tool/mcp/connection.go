package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/internal/base/netplace"
	"raddle.dev/internal/base/proc"
)

const (
	rejected         = -32005          // the SDK's code for a request that did not reach the server
	closeTimeout     = 2 * time.Second // for a server on the network to read that the connection ends
	exitTimeout      = time.Second     // between the end of a child's output and its own
	discoveryTimeout = 4 * time.Second // for the answer to "server/discover"
	pingTimeout      = 5 * time.Second // for the answer of a server on the network to a ping
)

// A connection is a session with a server that runs.
type connection struct {
	session        *sdk.ClientSession
	process        *proc.Process   // of a server over stdio
	pipe           *pipe           // to the process
	boxed          *boxedChild     // of the process
	stderr         *stderrLog      // of the process; nil: there is none
	ended          context.Context // when it ends, the connection is closed
	end            context.CancelFunc
	cancelRequests context.CancelFunc // ends the requests of a server on the network

	silent atomic.Bool // the process has closed its output without ending
	stale  atomic.Bool // the server says that its list of tools has changed
	mu     sync.Mutex
	list   []*sdk.Tool // sorted by name
	calls  []*openCall // the oldest first
	opened int         // calls so far
}

// openConnection starts the server, initializes the session and lists the tools, within the start timeout.
func (s *server) openConnection(config Server) (*connection, error) {
	timeout := s.options.startTimeoutOf(s.config)
	c := &connection{}
	c.ended, c.end = context.WithCancel(s.life)
	// The context of a connection must outlive its start: it ends the stream of messages.
	startTimer := time.AfterFunc(timeout, c.end)
	transport, err := s.openTransport(c.ended, c, config)
	if err == nil {
		c.session, err = s.openSession(c, transport)
	}
	if err == nil {
		go func() {
			_ = c.session.Wait() // the users of the connection report why it ended
			c.end()
		}()
		err = s.refreshTools(c.ended, c)
	}
	inTime := startTimer.Stop()
	if err == nil && inTime {
		s.connections.Go(func() {
			<-c.ended.Done()
			c.close()
		})
		return c, nil
	}
	cause := c.describeEnd(err)
	if failed := c.boxed.describeFailure(); failed != nil {
		cause = failed.Error()
	}
	c.end()
	c.close()
	switch {
	case s.life.Err() != nil:
		return nil, errClosed
	case !inTime:
		return nil, fmt.Errorf("it was not ready within %v and was ended%s", timeout, c.stderr.quoteLast())
	}
	if address, invalid := url.Parse(config.URL); invalid == nil && c.process == nil {
		if why := netplace.DescribeFailure(err); why != "" {
			return nil, fmt.Errorf("%s %s", address.Host, why)
		}
	}
	return nil, fmt.Errorf("it could not be started: %s%s", cause, c.stderr.quoteLast())
}

// openSession makes the first requests to a server. One that refuses "initialize" after it has missed the time for
// "server/discover" speaks a new protocol and has started slowly: it gets a second session, and over stdio the same
// process, which may have worked for half a minute until it could answer.
func (s *server) openSession(c *connection, transport sdk.Transport) (*sdk.ClientSession, error) {
	d := &discoverer{limit: discoveryTimeout}
	client := s.newClient(c)
	client.AddSendingMiddleware(d.limitDiscovery)
	if child, local := transport.(*pipe); local {
		child.keeps = func() bool { return d.missed.Load() && !d.over.Load() }
		child.unsure = func() bool { return !d.over.Load() }
	}
	session, err := client.Connect(c.ended, transport, nil)
	d.over.Store(true)
	if err == nil || !d.missed.Load() || !isAnswer(err) {
		return session, err
	}
	return s.newClient(c).Connect(c.ended, transport, nil)
}

// newClient returns a client of the protocol with what raddle supports.
func (s *server) newClient(c *connection) *sdk.Client {
	capabilities := &sdk.ClientCapabilities{}
	if s.options.Workspace != "" {
		//lint:ignore SA1019 The protocol replaces roots, but most servers know nothing else yet.
		capabilities.RootsV2 = &sdk.RootCapabilities{}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "raddle", Version: moduleVersion()}, &sdk.ClientOptions{
		Capabilities:           capabilities,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { c.stale.Store(true) },
		ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return s.handleElicitation(ctx, c, r.Params)
		},
	})
	if s.options.Workspace != "" {
		root := url.URL{Scheme: "file", Path: filepath.ToSlash(s.options.Workspace)}
		//lint:ignore SA1019 As above.
		client.AddRoots(&sdk.Root{URI: root.String(), Name: filepath.Base(s.options.Workspace)})
	}
	return client
}

// A discoverer limits the time of the first request, "server/discover", which servers
// of older protocols do not know and may not answer. They get "initialize" then.
type discoverer struct {
	limit  time.Duration
	missed atomic.Bool // the server has not answered within the limit
	over   atomic.Bool // the first session is there, or has failed
}

// limitDiscovery is a middleware for the requests of a client.
func (d *discoverer) limitDiscovery(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		if method != "server/discover" {
			return next(ctx, method, r)
		}
		limited, cancel := context.WithTimeout(ctx, d.limit)
		defer cancel()
		result, err := next(limited, method, r)
		d.missed.Store(err != nil && limited.Err() != nil)
		return result, err
	}
}

// moduleVersion returns the version of this module in the program that uses it.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func (c *connection) isBroken() bool { return c.ended.Err() != nil }

// describeEnd returns how the server ended. err is the error that showed it.
func (c *connection) describeEnd(err error) string {
	closedPipe := err == nil || isPipeEnd(err)
	switch {
	case c.silent.Load():
		return "it has closed its output, and was ended"
	case c.process != nil && closedPipe:
		select {
		case <-c.process.Done():
			if end := c.process.Err(); end != nil {
				return end.Error()
			}
			return "it ended by itself"
		case <-time.After(exitTimeout):
		}
	}
	if closedPipe {
		return "the connection was closed"
	}
	return err.Error()
}

// isPipeEnd reports whether an error says only that the connection has ended.
func isPipeEnd(err error) bool {
	return errors.Is(err, errPipe) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, context.Canceled)
}

// isAlive reports whether the connection works although a call ended with err. It sends a
// ping to a server on the network.
func (c *connection) isAlive(ctx context.Context, err error) bool {
	if c.isBroken() || isPipeEnd(err) || errors.Is(err, sdk.ErrSessionMissing) {
		return false
	}
	if c.process != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	err = c.session.Ping(ctx, nil)
	return err == nil || isAnswer(err)
}

// close ends the session and the process, and returns when both have ended. It must be called
// only once.
func (c *connection) close() {
	if c.pipe != nil {
		_ = c.pipe.Close() // it has no errors
	}
	c.boxed.leaveBox()
	if c.session != nil {
		// The session notifies a server on the network, which may not answer.
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			_ = c.session.Close()
		}()
		select {
		case <-closed:
		case <-time.After(closeTimeout):
		}
	}
	if c.cancelRequests != nil {
		c.cancelRequests()
	}
}

// currentTools returns the list that was read last.
func (c *connection) currentTools() []*sdk.Tool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.list
}

// connectWithTools returns the connection of the server, its tools up to date.
func (s *server) connectWithTools(ctx context.Context) (*connection, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	if !c.stale.Load() {
		return c, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.options.startTimeoutOf(s.config))
	defer cancel()
	if err := s.refreshTools(limited, c); err != nil {
		return nil, errors.New(s.redactText("its tools could not be listed: " + err.Error()))
	}
	return c, nil
}

// refreshTools reads all pages of the list. What a tool may do only gets graver.
func (s *server) refreshTools(ctx context.Context, c *connection) error {
	c.stale.Store(false)
	list, err := readPages(func(t *sdk.Tool) string { return t.Name }, func(cursor string) ([]*sdk.Tool, string, error) {
		res, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		return res.Tools, res.NextCursor, nil
	})
	if err != nil {
		c.stale.Store(true)
		return fmt.Errorf("listing its tools: %w", err)
	}
	slices.SortStableFunc(list, func(a, b *sdk.Tool) int { return strings.Compare(a.Name, b.Name) })
	list = s.options.Seen.merge(s.seenID(), list)
	c.mu.Lock()
	c.list = list
	c.mu.Unlock()
	return nil
}

// isAnswer reports whether an error is an answer of the server, not the loss of the connection.
func isAnswer(err error) bool {
	var wire *jsonrpc.Error
	return errors.As(err, &wire) && wire.Code != rejected && !errors.Is(err, sdk.ErrConnectionClosed)
}
