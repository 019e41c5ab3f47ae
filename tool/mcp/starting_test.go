//go:build unix

package mcp

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A slow server does not delay a run: what a model can call of it waits by itself.
func TestSlowServerIsOfferedBeforeItIsThere(t *testing.T) {
	s := open(t, entry(t, "good", "silent", "dies"), Options{StartTimeout: 30 * time.Second, Restarts: -1})
	begun := time.Now()
	ready, failed := s.StartServers(t.Context(), []string{"good", "silent", "dies", "nobody"}, 3*time.Second)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if fmt.Sprint(ready) != "[good]" {
		t.Errorf("ready: %v", ready)
	}
	var names []string
	for _, err := range failed {
		if e, ok := errors.AsType[*ServerError](err); ok {
			names = append(names, e.Server)
		}
	}
	if fmt.Sprint(names) != "[dies nobody]" {
		t.Errorf("failed: %v", failed)
	}
	begun = time.Now()
	if ready, failed = s.StartServers(t.Context(), []string{"silent"}, 3*time.Second); len(ready)+len(failed) > 0 || time.Since(begun) > 2*time.Second {
		t.Errorf("the second time: %v, %v after %v", ready, failed, time.Since(begun))
	}
	names = nil
	for _, v := range s.ListStarting("silent") {
		names = append(names, v.Name)
	}
	if fmt.Sprint(names) != "[mcp_invoke_silent mcp_search_silent mcp_describe_silent]" {
		t.Errorf("the functions are %v", names)
	}
}

func TestTimesOfAnEntry(t *testing.T) {
	f, err := Parse("mcp.json", []byte(`{"mcpServers":{"a":{"command":"x","start_timeout":"90s","timeout":"2m"},"b":{"command":"x","timeout":30000},"c":{"command":"x","timeout":"soon"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if a := f.Servers[0]; a.StartTimeout != 90*time.Second || a.CallTimeout != 2*time.Minute {
		t.Errorf("the times are %v and %v", a.StartTimeout, a.CallTimeout)
	}
	if b := f.Servers[1]; b.CallTimeout != 0 || b.problem != nil {
		t.Errorf("a number means %v, %v", b.CallTimeout, b.problem)
	}
	if c := f.Servers[2]; c.problem == nil || len(f.Problems) != 1 {
		t.Errorf("the problems are %v", f.Problems)
	}
	s := open(t, entry(t, "silent"), Options{Restarts: -1})
	s.list[0].config.StartTimeout = 50 * time.Millisecond
	_, failed := s.Tools(t.Context(), []string{"silent"})
	if len(failed) != 1 || failed[0].Error() != "MCP server 'silent': it was not ready within 50ms and was ended" {
		t.Errorf("the error is %v", failed)
	}
}
