package server

import (
	"context"
	"errors"
	"time"

	"raddle.dev/internal/storage/runs"
)

// retentionInterval is the time between two removals of old runs.
const retentionInterval = time.Hour

// keepRetention removes old runs now and every hour until ctx ends.
func keepRetention(ctx context.Context, s *Service) {
	ticker := time.NewTicker(retentionInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		removeOldRuns(ctx, s)
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// removeOldRuns removes the runs that are older than the configuration keeps them.
func removeOldRuns(ctx context.Context, s *Service) {
	keep := s.process.Config.Retention
	ids, err := s.process.Runs.ListEndedRuns(ctx, keep.Done, keep.Failed)
	for _, id := range ids {
		if ctx.Err() != nil {
			return
		}
		if s.isActive(id) {
			continue
		}
		if _, other := s.process.Runs.RemoveRun(ctx, id); other != nil {
			err = other // a process may drive it again
			continue
		}
		s.log.Info("an old run was removed", "run", id)
	}
	if keep.Done > 0 || keep.Failed > 0 {
		n, other := runs.RemoveUnusedBundles(ctx, s.process.Runs)
		if n > 0 {
			s.log.Info("bundles of agents that no run needs were removed", "bundles", n)
		}
		err = errors.Join(err, other)
	}
	if err != nil && ctx.Err() == nil {
		s.log.Warn("old runs cannot be removed", "error", err)
	}
}

// completeIndex writes what lists show of runs that an earlier version has recorded.
func completeIndex(ctx context.Context, s *Service) {
	err := s.process.Runs.Reindex(ctx, func(left int) { s.log.Info("the index of the store is being written", "left", left) })
	if err != nil && ctx.Err() == nil {
		s.log.Warn("the index of the store is not complete: lists read more than they need", "error", err)
	}
}
