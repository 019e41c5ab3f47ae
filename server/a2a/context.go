package a2a

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/a2aproject/a2a-go/v2/a2a"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/storage/config"
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

// contextNotes keep the contexts that clients gave to runs of graphs, which have no sessions. Nothing else about a task
// is kept outside its run.
type contextNotes struct{ dir string }

func openContexts(s *server.Service) contextNotes {
	return contextNotes{dir: filepath.Join(s.Process().Dirs.State, "serve", "a2a")}
}

// save notes the context of a run.
func (n contextNotes) save(run, context string) error {
	if err := config.WritePrivate(filepath.Join(n.dir, run), []byte(context)); err != nil {
		return fmt.Errorf("note the context of a task: %w", err)
	}
	return nil
}

// contextOf returns the context of a run: its session, what the client called it, or a context of its own.
func (n contextNotes) contextOf(run, session string) string {
	if name, ok := strings.CutPrefix(session, sessionPrefix); ok && plainContext().MatchString(name) {
		return name
	}
	if session != "" {
		return otherSession + session
	}
	if b, err := os.ReadFile(filepath.Join(n.dir, run)); err == nil && len(b) > 0 {
		return string(b)
	}
	return run
}
