package mcp

import (
	"context"
	"sync"
	"time"

	"raddle.dev/tool"
)

// StartServers starts the named servers that do not run, all at the same time, and waits for each at most patience from
// the beginning of its start. It returns the ids of those whose tools are there, in the order of the names, and a
// *ServerError for each that cannot be used. The others are still starting.
func (s *Servers) StartServers(ctx context.Context, ids []string, patience time.Duration) (ready []string, failed []error) {
	over := make([]bool, len(ids))
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		v := s.findServer(id)
		if v == nil {
			errs[i] = &ServerError{Server: id, Err: s.unknownServer(id)}
			continue
		}
		all.Go(func() {
			if over[i], errs[i] = v.startWithin(ctx, patience); errs[i] != nil {
				errs[i] = &ServerError{Server: id, Err: errs[i]}
			}
		})
	}
	all.Wait()
	for i, id := range ids {
		switch {
		case errs[i] != nil:
			failed = append(failed, errs[i])
		case over[i]:
			ready = append(ready, id)
		}
	}
	return ready, failed
}

// startWithin returns false and no error for a start that is not over.
func (s *server) startWithin(ctx context.Context, patience time.Duration) (over bool, err error) {
	a, err := s.currentAttempt()
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithDeadline(ctx, a.begun.Add(patience))
	defer cancel()
	if _, err = s.connect(limited); err != nil && limited.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// ListStarting returns the functions for a server that is still starting: their calls wait for it.
func (s *Servers) ListStarting(id string) []tool.Tool {
	v := s.findServer(id)
	if v == nil {
		return nil
	}
	return v.commonTools("\n\nThe server is still starting: a call waits for it.", tool.Undeclared)
}
