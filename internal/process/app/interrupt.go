package app

import (
	"context"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// withInterrupt returns the context of a drive that Driver.Interrupt ends. The caller must call release.
func (r *Run) withInterrupt(ctx context.Context, d *Driver) (run context.Context, release func()) {
	if r.Agent.Config != nil {
		return agent.WithInterrupt(ctx, d.Interrupt), func() {}
	}
	if d.Interrupt == nil {
		return ctx, func() {}
	}
	if d.Pause == nil {
		d.Pause = d.Interrupt
		d.Interrupt = nil
		d.grace = time.Nanosecond
		return ctx, func() {}
	}
	run, cancel := context.WithCancel(ctx)
	stop := d.Interrupt
	d.Interrupt = nil
	go func() {
		select {
		case <-stop:
			cancel()
		case <-run.Done():
		}
	}()
	return run, cancel
}

// isInterrupted reports whether the current turn is to end.
func (d *Driver) isInterrupted() bool {
	select {
	case <-d.Interrupt:
		return true
	default:
		return false
	}
}

// ask calls Ask with a context that ends with an interruption, too.
func (d *Driver) ask(ctx context.Context, open []graph.Question) ([]graph.Answer, bool, error) {
	run, release := agent.Interruptible(ctx)
	defer release()
	return d.Ask(run, open)
}

// prepareAgent prepares the agent for a drive. An interruption ends that, too.
func (r *Run) prepareAgent(ctx context.Context) error {
	run, release := agent.Interruptible(ctx)
	defer release()
	return r.Agent.Prepare(run)
}
