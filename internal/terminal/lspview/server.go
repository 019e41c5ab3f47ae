package lspview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"

	"github.com/sourcegraph/jsonrpc2"

	"raddle.dev/internal/base/yamlformat"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/language"
)

// Codes of errors that the protocol defines.
const (
	codeNotInitialized = -32002
	codeCancelled      = -32800
	codeFailed         = -32803
)

// errNoShutdown says that the editor ended the server without asking it to.
var errNoShutdown = errors.New("the editor went away without a shutdown")

// Serve speaks the Language Server Protocol until the editor ends it. The error says that it did so without a shutdown.
func Serve(ctx context.Context, p *app.Process, in io.Reader, out io.Writer) error {
	return newServer(p).serveEditor(ctx, in, out)
}

func newServer(p *app.Process) *server {
	return &server{p: p, work: language.New(p), wake: make(chan struct{}, 1), cancelled: map[jsonrpc2.ID]bool{}}
}

// serveEditor is Serve.
func (s *server) serveEditor(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	stream := jsonrpc2.NewBufferedStream(pipe{in, out}, frames{})
	conn := jsonrpc2.NewConn(ctx, stream, s, jsonrpc2.SetLogger(log.New(io.Discard, "", 0)))
	defer conn.Close()
	go func() {
		select {
		case <-conn.DisconnectNotify():
			s.pushMessage(&jsonrpc2.Request{Method: "exit", Notif: true})
		case <-ctx.Done():
		}
	}()
	return s.handleAll(ctx, conn)
}

// pipe is the two streams of the editor. Closing it does nothing: the process does that.
type pipe struct {
	io.Reader
	io.Writer
}

// Close does nothing.
func (pipe) Close() error { return nil }

// server answers one editor. The connection reads messages ahead into a queue, so that requests can be cancelled;
// one goroutine handles them in their order, and checks agents when there is no further message.
type server struct {
	p     *app.Process
	work  *language.Workspace
	state int // of the conversation with the editor

	mu        sync.Mutex
	queue     []*jsonrpc2.Request
	cancelled map[jsonrpc2.ID]bool
	wake      chan struct{}
}

// States of the conversation.
const (
	uninitialized = iota
	working
	shutDown
)

// Handle takes a message from the connection.
func (s *server) Handle(_ context.Context, _ *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Method == "$/cancelRequest" {
		var params struct {
			ID jsonrpc2.ID `json:"id"`
		}
		if r.Params != nil && json.Unmarshal(*r.Params, &params) == nil {
			s.mu.Lock()
			for _, waiting := range s.queue {
				if !waiting.Notif && waiting.ID == params.ID {
					s.cancelled[params.ID] = true
				}
			}
			s.mu.Unlock()
		}
		return
	}
	s.pushMessage(r)
}

func (s *server) pushMessage(r *jsonrpc2.Request) {
	s.mu.Lock()
	s.queue = append(s.queue, r)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// nextMessage returns the next message, or nil, and whether it was cancelled.
func (s *server) nextMessage() (r *jsonrpc2.Request, cancelled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return nil, false
	}
	r = s.queue[0]
	s.queue = s.queue[1:]
	cancelled = !r.Notif && s.cancelled[r.ID]
	delete(s.cancelled, r.ID)
	return r, cancelled
}

// handleAll handles messages until the editor ends the server.
func (s *server) handleAll(ctx context.Context, conn *jsonrpc2.Conn) error {
	for {
		r, cancelled := s.nextMessage()
		switch {
		case r == nil:
			for _, found := range s.work.CheckStale(ctx) {
				if err := conn.Notify(ctx, "textDocument/publishDiagnostics", s.cleanMessages(found)); err != nil && !errors.Is(err, jsonrpc2.ErrClosed) {
					return err
				}
			}
			select {
			case <-s.wake:
			case <-ctx.Done():
				return nil
			}
		case r.Method == "exit":
			if s.state != shutDown {
				return errNoShutdown
			}
			return nil
		case cancelled:
			_ = conn.ReplyWithError(ctx, r.ID, &jsonrpc2.Error{Code: codeCancelled, Message: "the editor has cancelled the request"})
		default:
			result, err := s.handleMessage(ctx, r)
			if r.Notif {
				continue
			}
			s.replyTo(ctx, conn, r.ID, result, err)
		}
	}
}

// cleanMessages returns diagnostics without secrets.
func (s *server) cleanMessages(p language.Published) language.Published {
	for i := range p.Diagnostics {
		p.Diagnostics[i].Message = string(s.p.Tools.SecretSet().Bytes([]byte(p.Diagnostics[i].Message)))
	}
	return p
}

// replyTo answers a request. An editor that has gone is no error: the queue says so.
func (s *server) replyTo(ctx context.Context, conn *jsonrpc2.Conn, id jsonrpc2.ID, result any, err error) {
	if err == nil {
		_ = conn.Reply(ctx, id, result)
		return
	}
	wrong, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok {
		wrong = &jsonrpc2.Error{Code: codeFailed, Message: string(s.p.Tools.SecretSet().Bytes([]byte(err.Error())))}
	}
	_ = conn.ReplyWithError(ctx, id, wrong)
}

// params are those of all requests that the server answers.
type params struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
	Position       language.Position `json:"position"`
	ContentChanges []language.Change `json:"contentChanges"`
	NewName        string            `json:"newName"`
	Context        struct {
		IncludeDeclaration bool                  `json:"includeDeclaration"`
		Diagnostics        []language.Diagnostic `json:"diagnostics"`
	} `json:"context"`
	Changes []struct {
		URI string `json:"uri"`
	} `json:"changes"`
}

// handleMessage does what a message asks. A panic is an error of its request: the editor keeps its server.
func (s *server) handleMessage(ctx context.Context, r *jsonrpc2.Request) (result any, err error) {
	defer func() {
		if v := recover(); v != nil {
			result, err = nil, fmt.Errorf("%s: %v: please report this", r.Method, v)
		}
	}()
	switch {
	case r.Method == "initialize" && s.state == uninitialized:
		s.state = working
		return initializeResult(), nil
	case s.state == uninitialized:
		return nil, &jsonrpc2.Error{Code: codeNotInitialized, Message: "initialize comes first"}
	case s.state == shutDown || r.Method == "initialize":
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidRequest, Message: "not now: " + r.Method}
	case r.Method == "shutdown":
		s.state = shutDown
		return nil, nil
	}
	var p params
	if r.Params != nil {
		if err := json.Unmarshal(*r.Params, &p); err != nil {
			return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeInvalidParams, Message: err.Error()}
		}
	}
	if s.syncDocument(r.Method, &p) {
		return nil, nil
	}
	return s.answerRequest(ctx, r.Method, &p)
}

// syncDocument does what a notification about documents says, and reports whether it is one.
func (s *server) syncDocument(method string, p *params) bool {
	doc := p.TextDocument
	switch method {
	case "textDocument/didOpen":
		s.work.OpenDocument(doc.URI, doc.Version, doc.Text)
	case "textDocument/didChange":
		s.work.ChangeDocument(doc.URI, doc.Version, p.ContentChanges)
	case "textDocument/didClose":
		s.work.CloseDocument(doc.URI)
	case "textDocument/didSave":
		s.work.TouchFile(doc.URI)
	case "workspace/didChangeWatchedFiles":
		for _, c := range p.Changes {
			s.work.TouchFile(c.URI)
		}
	default:
		return false
	}
	return true
}

// answerRequest answers a request about a document. One that is not open has no answer, and neither has a text that is being
// typed: then the result is empty.
func (s *server) answerRequest(ctx context.Context, method string, p *params) (any, error) {
	d := s.work.FindDocument(p.TextDocument.URI)
	if d == nil {
		switch method {
		case "textDocument/completion", "textDocument/hover", "textDocument/definition", "textDocument/references", "textDocument/documentSymbol",
			"textDocument/prepareRename", "textDocument/rename", "textDocument/codeAction", "textDocument/formatting":
			return nil, nil
		}
		return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "there is no " + method}
	}
	switch method {
	case "textDocument/completion":
		return map[string]any{"isIncomplete": false, "items": append([]language.Completion{}, s.work.ListCompletions(d, p.Position)...)}, nil
	case "textDocument/hover":
		if h := s.work.DescribePlace(d, p.Position); h != nil {
			return h, nil
		}
		return nil, nil
	case "textDocument/definition":
		return s.work.FindDefinitions(d, p.Position), nil
	case "textDocument/references":
		return s.work.FindReferences(d, p.Position, p.Context.IncludeDeclaration), nil
	case "textDocument/documentSymbol":
		return s.work.ListSymbols(d), nil
	case "textDocument/prepareRename":
		r, name, err := s.work.CanRename(d, p.Position)
		if err != nil {
			return nil, err
		}
		return map[string]any{"range": r, "placeholder": name}, nil
	case "textDocument/rename":
		edit, err := s.work.RenameName(ctx, d, p.Position, p.NewName)
		if err != nil {
			return nil, err
		}
		return edit, nil
	case "textDocument/codeAction":
		return s.work.ListActions(d, p.Context.Diagnostics), nil
	case "textDocument/formatting":
		return formatDocument(d)
	}
	return nil, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "there is no " + method}
}

// formatDocument returns the edits of raddle fmt: the lines that differ.
func formatDocument(d *language.Document) ([]language.TextEdit, error) {
	formatted, err := yamlformat.Format([]byte(d.Text.String()))
	if err != nil {
		return nil, err
	}
	return language.EditLines(d.Text, string(formatted)), nil
}

// initializeResult says what the server can do.
func initializeResult() any {
	return map[string]any{
		"serverInfo": map[string]any{"name": "raddle", "version": app.Version()},
		"capabilities": map[string]any{
			"positionEncoding":           "utf-16", // the only one that every editor has
			"textDocumentSync":           map[string]any{"openClose": true, "change": 2, "save": map[string]any{}},
			"completionProvider":         map[string]any{"triggerCharacters": []string{"{", " ", ":", "/"}},
			"hoverProvider":              true,
			"definitionProvider":         true,
			"referencesProvider":         true,
			"documentSymbolProvider":     true,
			"renameProvider":             map[string]any{"prepareProvider": true},
			"codeActionProvider":         map[string]any{"codeActionKinds": []string{"quickfix"}},
			"documentFormattingProvider": true,
		},
	}
}
