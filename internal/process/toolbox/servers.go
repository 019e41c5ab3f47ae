package toolbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"raddle.dev/tool"
	"raddle.dev/tool/mcp"
)

// serverTools lists the functions of an agent's servers.
type serverTools struct {
	home map[string]*mcp.Servers

	mu       sync.Mutex
	reported map[string]bool // failures that were reported
	failed   map[string]bool // ids of servers that have never worked: they are not tried again
	worked   map[string]bool // ids of servers that have worked
}

func (s *serverTools) listTools(ctx context.Context, ids []string) (tools []tool.Tool, failed []error) {
	ids = s.usableServers(ids)
	answers := askFiles(s, ids, func(f *mcp.Servers, own []string) ([]tool.Tool, []error) { return f.Tools(ctx, own) })
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]bool{}
	for _, id := range ids {
		left[id] = true
	}
	for _, a := range answers {
		tools = append(tools, a.found...)
		failed = append(failed, s.reportNew(ctx, a.failed, left)...)
	}
	for id := range left {
		s.worked[id] = true
	}
	return tools, failed
}

// An answer is what the servers of one file answer.
type answer[T any] struct {
	found  []T
	failed []error
}

// askFiles asks the servers of each file at the same time.
func askFiles[T any](s *serverTools, ids []string, ask func(f *mcp.Servers, own []string) ([]T, []error)) []answer[T] {
	var files []*mcp.Servers
	for _, id := range ids {
		if f := s.home[id]; !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	answers := make([]answer[T], len(files))
	var all sync.WaitGroup
	for i, f := range files {
		var own []string
		for _, id := range ids {
			if s.home[id] == f {
				own = append(own, id)
			}
		}
		all.Go(func() { answers[i].found, answers[i].failed = ask(f, own) })
	}
	all.Wait()
	return answers
}

// reportNew records errors and returns those that were not returned before. It removes servers that cannot be used from
// left. The caller must hold mu.
func (s *serverTools) reportNew(ctx context.Context, errs []error, left map[string]bool) (fresh []error) {
	for _, err := range errs {
		if e, ok := errors.AsType[*mcp.ServerError](err); ok && ctx.Err() == nil {
			s.failed[e.Server] = !s.worked[e.Server]
			delete(left, e.Server)
		}
		if !s.reported[err.Error()] {
			s.reported[err.Error()] = true
			fresh = append(fresh, err)
		}
	}
	return fresh
}

// startPatience is how long a run waits for a server before the model is asked without its tools.
const startPatience = 10 * time.Second

// startServers starts servers: see [flow.Toolset].
func (s *serverTools) startServers(ctx context.Context, ids []string) (settled map[string]bool, failed []error) {
	settled = map[string]bool{}
	usable := s.usableServers(ids)
	for _, id := range ids {
		if !slices.Contains(usable, id) {
			settled[id] = false
		}
	}
	answers := askFiles(s, usable, func(f *mcp.Servers, own []string) ([]string, []error) { return f.StartServers(ctx, own, startPatience) })
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range answers {
		for _, id := range a.found {
			settled[id] = true
			s.worked[id] = true
		}
		for _, err := range a.failed {
			if e, ok := errors.AsType[*mcp.ServerError](err); ok {
				settled[e.Server] = false
			}
		}
		failed = append(failed, s.reportNew(ctx, a.failed, map[string]bool{})...)
	}
	for _, id := range usable {
		if _, over := settled[id]; over || ctx.Err() != nil {
			continue
		}
		err := &mcp.ServerError{
			Server: id,
			Err:    fmt.Errorf("it is still starting after %v: the model is asked without its tools, and gets them when they are there", startPatience),
		}
		if !s.reported[err.Error()] {
			s.reported[err.Error()] = true
			failed = append(failed, err)
		}
	}
	return settled, failed
}

// startingTools returns what a model can call of a server that is still starting.
func (s *serverTools) startingTools(id string) []tool.Tool {
	if f := s.home[id]; f != nil {
		return f.ListStarting(id)
	}
	return nil
}

// usableServers leaves out servers that could not be started: a conversation asks for its tools
// in every step, and should not wait for the same failure again.
func (s *serverTools) usableServers(ids []string) (list []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if !s.failed[id] {
			list = append(list, id)
		}
	}
	return list
}
