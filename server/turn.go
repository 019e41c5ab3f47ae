package server

import (
	"context"
	"slices"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
)

// EndFailedTurn cancels the last turn of a session if it has failed or was stopped, so that the session can continue
// with another one: a caller that sees only conversations cannot resume it. A turn that works, waits, is paused or has
// crashed stays.
func EndFailedTurn(ctx context.Context, s *Service, agent, session string) error {
	st, err := s.ReadState(ctx, runs.NameSession(agent, session))
	if failure.IsUnavailable(err) {
		return err
	}
	if err != nil {
		return nil // there is no such session yet; a start says what else is wrong
	}
	kept := []string{runs.Running, runs.Crashed, runs.Queued, graph.Waiting.String(), graph.Paused.String()}
	if st.Final || slices.Contains(kept, st.Status) {
		return nil
	}
	return s.CancelRun(ctx, st.Run)
}
