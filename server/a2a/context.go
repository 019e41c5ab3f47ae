package a2a

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/server"
)

// sessionPrefix begins the names of the sessions that clients have started. Others have the prefix otherSession as a
// context.
const (
	sessionPrefix = "a2a-"
	otherSession  = "session:"
)

// plainContext matches the contexts that are also good names of sessions.
var plainContext = pattern.CompileLater(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// sessionOf returns the session of an agent that a context is.
func sessionOf(context string) (string, error) {
	if name, ok := strings.CutPrefix(context, otherSession); ok && plainContext().MatchString(name) {
		return name, nil
	}
	if !plainContext().MatchString(context) {
		return "", a2a.NewError(a2a.ErrInvalidParams, fmt.Sprintf("the contextId %q must have 1 to 64 letters, digits, - and _", context))
	}
	return sessionPrefix + context, nil
}

// contextLife is how long the context of a task is kept.
const contextLife = 400 * 24 * time.Hour

// contextNotes keep the contexts that clients gave to runs of graphs, which have no sessions. Nothing else about a task
// is kept outside its run.
type contextNotes struct{ table entries.Table[string] }

func openContexts(s *server.Service) contextNotes {
	return contextNotes{entries.NewTable[string](s.SharedStore(), "a2a")}
}

// saveContext notes the context of a run.
func (n contextNotes) saveContext(ctx context.Context, run, name string) error {
	if err := n.table.PutValue(ctx, run, name, contextLife); err != nil {
		return fmt.Errorf("note the context of a task: %w", err)
	}
	return nil
}

// findContext returns the context of a run: its session, what the client called it, or a context of its own.
func (n contextNotes) findContext(ctx context.Context, run, session string) (string, error) {
	if name, ok := strings.CutPrefix(session, sessionPrefix); ok && plainContext().MatchString(name) {
		return name, nil
	}
	if session != "" {
		return otherSession + session, nil
	}
	name, ok, err := n.table.ReadValue(ctx, run)
	if err != nil {
		return "", fmt.Errorf("read the context of a task: %w", err)
	}
	if !ok {
		return run, nil
	}
	return name, nil
}
