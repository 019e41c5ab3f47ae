package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph/journal"
)

// A Scope is what a caller may do.
type Scope string

// The scopes.
const (
	ScopeRead   Scope = "read"   // see agents, runs and questions
	ScopeStart  Scope = "start"  // start, pause, resume and cancel runs
	ScopeAnswer Scope = "answer" // answer questions
	ScopeAdmin  Scope = "admin"  // change and delete what is recorded
)

// Scopes are all scopes.
var Scopes = []Scope{ScopeRead, ScopeStart, ScopeAnswer, ScopeAdmin}

// A Caller is the sender of a request.
type Caller struct {
	Name string // of its token
	// User is the person for whom its runs work; "": not known, as with the first token, which belongs to the user of
	// this machine.
	User        string
	Scopes      []Scope
	TraceParent string // the span that the request belongs to, as the header traceparent names it; "": none
	// TakeStart counts the start of a run, and returns a [*QuotaError] if the caller may start none now; nil: nothing
	// bounds the starts.
	TakeStart func() error
	// NoteGrant notes that the caller has allowed something; nil: nothing keeps that.
	NoteGrant func(g Grant)
}

// callerKey is the key of the caller in a context.
type callerKey struct{}

// WithCaller returns a context for the work on a request of a caller. What it changes in a run is recorded with the
// caller's name.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(journal.WithAuthor(ctx, c.Name), callerKey{}, c)
}

// CallerOf returns the caller whose request a context belongs to. ok is false if there is none: this process itself
// works.
func CallerOf(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(callerKey{}).(Caller)
	return c, ok
}

// RequireScope returns a [*ScopeError] if the caller of a context may not do what a scope means. If the service serves
// a network, a context without a caller may do nothing.
func (s *Service) RequireScope(ctx context.Context, scope Scope) error {
	c, ok := CallerOf(ctx)
	if !ok && !s.options.Network || slices.Contains(c.Scopes, scope) {
		return nil
	}
	return &ScopeError{Caller: c.Name, Scope: scope}
}

// RequireScopes is [Service.RequireScope] for everything that an operation needs. An operation that does several things
// asks for all scopes before the first one.
func RequireScopes(ctx context.Context, s *Service, scopes ...Scope) error {
	for _, scope := range scopes {
		if err := s.RequireScope(ctx, scope); err != nil {
			return err
		}
	}
	return nil
}

// ScopeError reports a caller that may not do what it requests.
type ScopeError struct {
	Caller string // name of its token
	Scope  Scope  // what it lacks
}

// Error names the token and the scope that it lacks.
func (e *ScopeError) Error() string {
	return fmt.Sprintf("the token %q does not have the scope %q", e.Caller, e.Scope)
}

// ParseScopes reads names of scopes that are separated by commas.
func ParseScopes(text string) (list []Scope, err error) {
	for name := range strings.SplitSeq(text, ",") {
		scope := Scope(strings.TrimSpace(name))
		if !slices.Contains(Scopes, scope) {
			return nil, fmt.Errorf("unknown scope %q: the scopes are read, start, answer and admin", scope)
		}
		if !slices.Contains(list, scope) {
			list = append(list, scope)
		}
	}
	return list, nil
}
