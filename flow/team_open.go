package flow

import (
	"context"
	"errors"
	"maps"

	"raddle.dev/flow/spec"
)

// lateBases records the agents that opened knowledge bases after the run
// started: spawned agents, and those below them. All agents that are loaded
// together share it.
type lateBases struct {
	turn chan struct{} // has one place: its holder may open bases, because two agents may store the same base
	done map[*Agent]bool
}

// prepareSpawn opens the knowledge bases of a spawned agent in this process, and
// builds missing ones without questions.
func (a *Agent) prepareSpawn(ctx context.Context) error {
	if len(a.knowledgeBases()) == 0 && len(a.children) == 0 {
		return nil
	}
	o := a.late
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	now := maps.Clone(o.done)
	err := a.prepareBases(ctx, now)
	if err == nil && a.Config != nil && a.bases[ownBase] == nil {
		err = spec.Failf("its documents have no knowledge base, and raddle does not ask how to build one for a spawned agent. Set `embedding_model` (`keyword` needs no model: it searches by words alone), or build it with `raddle rag build`.")
	}
	if err == nil {
		o.done = now
		return nil
	}
	for opened := range now {
		if !o.done[opened] {
			err = errors.Join(err, errors.Join(closeOwnBases(opened)...))
		}
	}
	return err
}
