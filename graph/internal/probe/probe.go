// Package probe lets a test see the effects that drives make.
package probe

import "context"

// A Watcher sees the effects of a drive. It is safe for concurrent use.
type Watcher interface {
	// BeginEffect is called before the function of an effect, with that function's context. What it returns is called
	// when the function has returned.
	BeginEffect(ctx context.Context) (end func())
}

type watcherKey struct{}

// WithWatcher returns a context for a drive whose effects w sees.
func WithWatcher(ctx context.Context, w Watcher) context.Context {
	return context.WithValue(ctx, watcherKey{}, w)
}

// BeginEffect tells the watcher of ctx, if there is one, that an effect begins. The caller calls end when its function
// has returned.
func BeginEffect(ctx context.Context) (end func()) {
	if w, ok := ctx.Value(watcherKey{}).(Watcher); ok {
		return w.BeginEffect(ctx)
	}
	return func() {}
}
