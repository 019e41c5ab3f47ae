package server

import (
	"cmp"
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/attach"
)

// StartRequest says what to run. Only Agent is required.
type StartRequest struct {
	Agent     string            `json:"agent"` // name in the catalogue, or a path if the service allows paths
	Prompt    string            `json:"prompt"`
	Variables map[string]string `json:"variables,omitempty"`
	// Session is the conversation of an agent that is not a graph; "": as the agent says.
	Session  string         `json:"session,omitempty"`
	Model    string         `json:"model,omitempty"` // replaces every model
	Headless bool           `json:"headless,omitempty"`
	Answers  []graph.Answer `json:"answers,omitempty"` // to questions that the run will ask
	// Files are attached to the prompt; their names are never opened.
	Files []attach.File `json:"files,omitempty"`
	Key   string        `json:"-"` // idempotency key: the same key gives the same run; "": none
	Via   string        `json:"-"` // what starts it: the name of a protocol, or "trigger NAME"; "": the API

	ID     string            `json:"-"` // of the run, which must not exist; "": a new one
	State  *jsonvalue.Object `json:"-"` // first values of the state of a graph; nil: those of its file
	Budget *agent.Limits     `json:"-"` // of the run, in addition to what its agent says; nil: none

	Deadline time.Duration `json:"-"` // after which it is ended, also while it waits; 0: never
}

// StartRun starts a run and returns its id when its start is recorded: the run is then driven, or waits for a place. It
// continues if ctx ends. A request with the key of an earlier one returns the run of that.
func (s *Service) StartRun(ctx context.Context, req StartRequest) (run string, err error) {
	if err := s.RequireScope(ctx, ScopeStart); err != nil {
		return "", err
	}
	if s.IsDraining() {
		return "", errDraining
	}
	if err := s.checkName(req.Agent); err != nil {
		return "", err
	}
	if err := checkSession(req.Session); err != nil {
		return "", err
	}
	if err := s.process.Models.CheckRequested(req.Model); err != nil {
		return "", err
	}
	if req.Key == "" {
		return s.startNew(ctx, req, func(*app.Run) error { return nil })
	}
	type outcome struct {
		run string
		err error
	}
	done := make(chan outcome, 1)
	s.mu.Lock()
	if s.draining {
		s.mu.Unlock()
		return "", errDraining
	}
	s.ended.Go(func() { // a caller that leaves must not free the key before it is known which run it means
		run, err := startKeyed(context.WithoutCancel(ctx), s, req)
		done <- outcome{run, err}
	})
	s.mu.Unlock()
	select {
	case o := <-done:
		return o.run, o.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// checkName returns an error for a path, unless the service allows paths.
func (s *Service) checkName(agent string) error {
	if app.IsPath(agent) && !s.options.AllowPaths {
		return failure.NewUsage("name an agent of the catalogue; raddle serve --allow-paths allows paths", "%q is a path", agent)
	}
	return nil
}

// startNew starts a run if there is room for one. saveKey is called before anything is recorded.
func (s *Service) startNew(ctx context.Context, req StartRequest, saveKey func(*app.Run) error) (string, error) {
	if err := CheckRoom(ctx, s); err != nil {
		return "", err
	}
	if err := takeStart(ctx); err != nil {
		return "", err
	}
	caller, _ := CallerOf(ctx)
	for _, f := range req.Files {
		if err := checkAttachment(f); err != nil {
			return "", err
		}
	}
	if len(req.Prompt) > maxPrompt {
		return "", failure.NewUsage("send a part of it, or let the agent read it", "the prompt has %d bytes, and may have %d", len(req.Prompt), maxPrompt)
	}
	start := app.Request{
		User: caller.User, TraceParent: caller.TraceParent, Agent: req.Agent, Prompt: req.Prompt, Variables: req.Variables, Session: req.Session, Model: req.Model, Headless: req.Headless,
		ID: req.ID, State: req.State, Budget: req.Budget, Deadline: req.Deadline, Via: cmp.Or(req.Via, "api"), By: cmp.Or(caller.User, caller.Name),
	}
	if err := start.Attach(req.Files, func(name string) string { return name }); err != nil {
		return "", err
	}
	run, err := s.process.StartRun(start)
	if err != nil {
		return "", err
	}
	if run.Agent.Config != nil && strings.TrimSpace(start.Prompt) == "" {
		run.Close()
		return "", failure.NewUsage("say what it shall do: prompt", "agent '%s' needs a prompt: it is a model, which has nothing to answer without one", run.Agent.Name)
	}
	if err := saveKey(run); err != nil {
		run.Close()
		return "", err
	}
	if _, err := s.launchRun(ctx, launch{run: run, ahead: req.Answers}); err != nil {
		return "", err
	}
	return run.ID, nil
}

// maxPrompt is the size of the largest prompt without its files, in bytes.
const maxPrompt = 4 << 20

// maxFileName is the length of the longest name of a file, in bytes.
const maxFileName = 255

// checkAttachment returns an error for a file that cannot be a part of a prompt.
func checkAttachment(f attach.File) error {
	switch {
	case f.Name == "" || len(f.Name) > maxFileName || !utf8.ValidString(f.Name) || strings.ContainsFunc(f.Name, unicode.IsControl):
		return failure.NewUsage("", "%q cannot be the name of a file: it must have 1 to %d bytes, without control characters", f.Name, maxFileName)
	case !utf8.ValidString(f.Text):
		return failure.NewUsage("only text can be put into a prompt", "file %s is not UTF-8 text", f.Name)
	}
	return nil
}
