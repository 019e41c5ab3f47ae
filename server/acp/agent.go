package acp

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/server"
)

// An OpenService opens the service for a working directory. The caller of Serve closes it.
type OpenService func(dir string) (*server.Service, error)

// Serve speaks the protocol over two streams until the editor closes its side or ctx ends. agent is the one that
// answers.
func Serve(ctx context.Context, open OpenService, agent string, in io.Reader, out io.Writer) error {
	e := &editor{open: open, agent: agent, services: map[string]*server.Service{}, sessions: map[sdk.SessionId]*session{}, ready: make(chan struct{})}
	e.conn = sdk.NewAgentSideConnection(e, out, in)
	e.conn.SetLogger(slog.New(slog.DiscardHandler)) // stderr is the editor's log
	close(e.ready)
	select {
	case <-e.conn.Done():
	case <-ctx.Done():
	}
	return nil
}

// An editor is the connection with one editor. It implements the interface of the SDK for agents.
type editor struct {
	open  OpenService
	agent string
	ready chan struct{} // closed when conn is set
	conn  *sdk.AgentSideConnection

	mu       sync.Mutex                 // guards the fields below
	services map[string]*server.Service // by working directory
	sessions map[sdk.SessionId]*session
}

// A session is a conversation that the editor has opened.
type session struct {
	id      sdk.SessionId
	name    string // of the session of the agent
	service *server.Service
	graph   bool // the agent is a graph: each prompt is a run of its own

	turn sync.Mutex // one prompt at a time

	mu      sync.Mutex // guards the fields below
	waiting string     // the run whose question the next prompt answers; "": none
	cancel  context.CancelCauseFunc
}

var (
	errCancelled = errors.New("the editor cancelled the prompt")
	errGone      = errors.New("the editor has gone")
)

// Initialize says what the agent can do.
func (e *editor) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "raddle", Version: app.ReadBuild().Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:         true,
			PromptCapabilities:  sdk.PromptCapabilities{EmbeddedContext: true, Image: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{}, Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{}},
		},
	}, nil
}

// Authenticate is never needed: the editor runs as the user.
func (e *editor) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

// NewSession opens a conversation in a directory. Nothing is recorded before its first prompt.
func (e *editor) NewSession(_ context.Context, req sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	s, err := e.addSession(req.Cwd, "acp-"+strings.ToLower(rand.Text()[:12]))
	if err != nil {
		return sdk.NewSessionResponse{}, newRequestError(e.findService(req.Cwd), err)
	}
	return sdk.NewSessionResponse{SessionId: s.id}, nil
}

// addSession makes a session that prompts can name.
func (e *editor) addSession(cwd, name string) (*session, error) {
	if !filepath.IsAbs(cwd) {
		return nil, failure.NewUsage("", "the directory %q of a session must be absolute", cwd)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	service := e.services[cwd]
	if service == nil {
		var err error
		if service, err = e.open(cwd); err != nil {
			return nil, err
		}
		e.services[cwd] = service
	}
	info, err := service.ReadAgent(e.agent)
	if err != nil {
		return nil, err
	}
	s := &session{id: sdk.SessionId(name), name: name, service: service, graph: info.IsGraph()}
	if old := e.sessions[s.id]; old != nil && old.service == service {
		return old, nil
	}
	e.sessions[s.id] = s
	return s, nil
}

// findService returns the service of a directory, or nil.
func (e *editor) findService(cwd string) *server.Service {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.services[cwd]
}

// findSession returns a session that was opened.
func (e *editor) findSession(id sdk.SessionId) (*session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.sessions[id]
	if s == nil {
		return nil, sdk.NewInvalidParams(map[string]any{"error": fmt.Sprintf("there is no session %q: open it with session/new or session/load", id)})
	}
	return s, nil
}

// LoadSession opens an earlier conversation, and sends what was said in it.
func (e *editor) LoadSession(ctx context.Context, req sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	if err := e.reopenSession(ctx, req.Cwd, string(req.SessionId), true); err != nil {
		return sdk.LoadSessionResponse{}, newRequestError(e.findService(req.Cwd), err)
	}
	return sdk.LoadSessionResponse{}, nil
}

// ResumeSession opens an earlier conversation.
func (e *editor) ResumeSession(ctx context.Context, req sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	if err := e.reopenSession(ctx, req.Cwd, string(req.SessionId), false); err != nil {
		return sdk.ResumeSessionResponse{}, newRequestError(e.findService(req.Cwd), err)
	}
	return sdk.ResumeSessionResponse{}, nil
}

// reopenSession opens a session that has turns. If replay is true, it sends them.
func (e *editor) reopenSession(ctx context.Context, cwd, name string, replay bool) error {
	s, err := e.addSession(cwd, name)
	if err != nil {
		return err
	}
	if s.graph {
		return failure.NewUsage("", "%s is a graph: its runs are not a conversation", e.agent)
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	c, err := conversation.Open(ctx, s.service.Process(), e.agent, name)
	if err != nil {
		return err
	}
	defer c.Close()
	turns, err := c.Turns(ctx)
	if err == nil && len(turns) == 0 {
		err = failure.NewUsage("", "%s has no session %q", e.agent, name)
	}
	if err != nil {
		return err
	}
	if replay {
		if err := e.replayTurns(ctx, s, turns); err != nil {
			return err
		}
	}
	run, status, err := c.OpenTurn(ctx)
	if err != nil {
		return err
	}
	if status == graph.Waiting {
		s.waiting = run
	}
	return nil
}

// ListSessions returns the conversations with the agent.
func (e *editor) ListSessions(ctx context.Context, req sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	res := sdk.ListSessionsResponse{Sessions: []sdk.SessionInfo{}}
	e.mu.Lock()
	var any *server.Service
	for _, any = range e.services {
		break // all have the same store
	}
	e.mu.Unlock()
	dir := ""
	if req.Cwd != nil {
		dir = *req.Cwd
	}
	if any == nil {
		cwd := cmp.Or(dir, string(filepath.Separator))
		s, err := e.addSession(cwd, "acp-list")
		if err != nil {
			return res, newRequestError(e.findService(cwd), err)
		}
		any = s.service
	}
	list, err := conversation.List(ctx, any.Process(), dir)
	if err != nil {
		return res, newRequestError(any, err)
	}
	for _, c := range list {
		if c.Agent == e.agent {
			res.Sessions = append(res.Sessions, sdk.SessionInfo{
				SessionId: sdk.SessionId(c.Name), Cwd: c.Workspace, Title: sdk.Ptr(c.Title), UpdatedAt: sdk.Ptr(c.Updated.UTC().Format(time.RFC3339)),
			})
		}
	}
	return res, nil
}

// CloseSession cancels what works in a session and forgets it. The conversation stays.
func (e *editor) CloseSession(_ context.Context, req sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	s, err := e.findSession(req.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	s.cancelTurn(errCancelled)
	e.mu.Lock()
	delete(e.sessions, req.SessionId)
	e.mu.Unlock()
	return sdk.CloseSessionResponse{}, nil
}

// Cancel ends the prompt that works in a session.
func (e *editor) Cancel(_ context.Context, req sdk.CancelNotification) error {
	if s, err := e.findSession(req.SessionId); err == nil {
		s.cancelTurn(errCancelled)
	}
	return nil
}

func (s *session) cancelTurn(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(cause)
	}
}

// SetSessionMode reports that there are no modes.
func (e *editor) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetMode)
}

// SetSessionConfigOption reports that there are no options.
func (e *editor) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// newRequestError returns an error that the editor can show. s is the service whose error it is; nil: there is none
// yet.
func newRequestError(s *server.Service, err error) error {
	if _, ok := errors.AsType[*sdk.RequestError](err); ok {
		return err
	}
	text := err.Error()
	if f, ok := errors.AsType[*failure.Error](err); ok && f.Next != "" {
		text += "\n" + f.Next
	}
	return &sdk.RequestError{Code: -32603, Message: server.HidePaths(text, s)}
}
