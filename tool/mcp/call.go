package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/llm"
	"raddle.dev/tool"
)

// maxExtensions is how many times the time limit of a call may begin again because the
// server reports progress.
const maxExtensions = 24

// A request is a call of a tool of the server.
type request struct {
	tool.Call
	name      string          // of the tool, as the server knows it
	arguments json.RawMessage // its arguments
	repeats   bool            // it may be made again
}

// An openCall is a call that the server works on. While a person is asked, it outlives the
// function that began it.
type openCall struct {
	conn     *connection
	token    string // of its progress
	cancel   context.CancelFunc
	progress chan string   // progress as text; has room for one
	done     chan struct{} // closed when res and err are set
	res      *sdk.CallToolResult
	err      error

	asker asker
}

// callTool calls a tool. The error is that of ctx if it has ended, a *tool.Question for a
// person, or else a text for the model.
func (s *server) callTool(ctx context.Context, r request) (*sdk.CallToolResult, error) {
	res, err := s.callOnce(ctx, r)
	if errors.Is(err, sdk.ErrSessionMissing) {
		// The server was started again between two calls, and does not know the session.
		res, err = s.callOnce(ctx, r)
	}
	return res, err
}

func (s *server) callOnce(ctx context.Context, r request) (*sdk.CallToolResult, error) {
	o := s.takeAsking(r.Key)
	switch {
	case o != nil:
		o.asker.sendAnswers(r.Answers)
	case len(r.Answers) > 0 && !r.repeats && !r.Repeat:
		return nil, tool.ErrCutOff
	default:
		c, err := s.connect(ctx)
		if err != nil {
			return nil, s.wrapError(ctx, err)
		}
		o = c.startCall(r, llm.Traceparent(ctx))
	}
	limit := time.NewTimer(s.options.callTimeoutOf(s.config))
	defer limit.Stop()
	view := &progressView{show: func(text string) {
		if r.Progress != nil {
			r.Progress(s.redactText(text))
		}
	}}
	defer view.stop()
	for extensions := 0; ; {
		select {
		case <-o.done:
			select {
			case text := <-o.progress:
				view.addReport(text)
			default:
			}
			view.showLast()
			return s.finishCall(ctx, o)
		case <-view.due():
			view.showLast()
		case text := <-o.progress:
			view.addReport(text)
			if extensions++; extensions <= maxExtensions {
				limit.Reset(s.options.callTimeoutOf(s.config))
			}
		case q := <-o.asker.questions:
			s.keepAsking(r.Key, o)
			return nil, &q
		case <-ctx.Done():
			o.cancel()
			return nil, ctx.Err()
		case <-limit.C:
			o.cancel()
			s.recordHang(o.conn)
			return nil, fmt.Errorf("MCP server '%s' timed out after %v; the call was cancelled, and whether it took effect is not known",
				s.config.ID, s.options.callTimeoutOf(s.config))
		}
	}
}

// finishCall returns the outcome of a call.
func (s *server) finishCall(ctx context.Context, o *openCall) (*sdk.CallToolResult, error) {
	switch {
	case o.err == nil:
		s.recordSuccess()
		plainResult(o.res)
		return o.res, nil
	case isAnswer(o.err):
		s.recordSuccess()
		return nil, s.wrapError(ctx, o.err)
	case o.conn.isAlive(ctx, o.err):
		s.recordSuccess()
		return nil, fmt.Errorf("MCP server '%s': the tool has run, but its result cannot be read, and a repetition will not change that: %s",
			s.config.ID, s.redactText(o.err.Error()))
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	o.conn.end()
	if errors.Is(o.err, sdk.ErrSessionMissing) {
		return nil, fmt.Errorf("MCP server '%s': %w", s.config.ID, sdk.ErrSessionMissing)
	}
	return nil, fmt.Errorf("MCP server '%s' was lost during the call (%s%s); whether the call took effect is not known; "+
		"the server is started again for the next call", s.config.ID, s.redactText(o.conn.describeEnd(o.err)), o.conn.stderr.quoteLast())
}

func (s *server) wrapError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("MCP server '%s': %s", s.config.ID, s.redactText(err.Error()))
}

// openCallKey is the key of an *openCall in the context of its requests.
type openCallKey struct{}

// startCall begins a call. traceparent names the span of the caller; empty: there is none.
func (c *connection) startCall(r request, traceparent string) *openCall {
	o := &openCall{conn: c, progress: make(chan string, 1), done: make(chan struct{})}
	o.asker = newAsker(r.Answers, r.Key != "")
	c.mu.Lock()
	c.opened++
	o.token = fmt.Sprintf("call-%d", c.opened)
	c.calls = append(c.calls, o)
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(context.WithValue(c.ended, openCallKey{}, o))
	o.cancel = cancel
	params := &sdk.CallToolParams{Name: r.name, Arguments: r.arguments}
	params.SetProgressToken(o.token)
	if traceparent != "" {
		params.Meta["traceparent"] = traceparent
	}
	go func() {
		defer cancel()
		o.res, o.err = c.session.CallTool(ctx, params)
		c.removeCall(o)
		close(o.done)
	}()
	return o
}

func (c *connection) removeCall(o *openCall) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, other := range c.calls {
		if other == o {
			c.calls = append(c.calls[:i:i], c.calls[i+1:]...)
			return
		}
	}
}

// keepAsking keeps a call that waits for the answer of a person.
func (s *server) keepAsking(key string, o *openCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking == nil {
		s.asking = map[string]*openCall{}
	}
	s.asking[key] = o
}

// takeAsking returns the call with this key that waits for an answer, nil if there is none.
func (s *server) takeAsking(key string) *openCall {
	if key == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.asking[key]
	delete(s.asking, key)
	if o != nil && o.conn.isBroken() {
		return nil // whether it took effect is not known
	}
	return o
}
