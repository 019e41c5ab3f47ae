//go:build linux && (amd64 || arm64)

package builtin_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/base/box"
	"raddle.dev/tool"
	"raddle.dev/tool/builtin"
)

// The change of a command in the box belongs to the first call that looks after its end, as it was made: later changes of the file are no part of it.
func TestJobInTheBoxReportsItsChanges(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	b, err := box.New(box.Spec{Workspace: h.Workspace, Private: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	h.Box = func() (*box.Box, error) { return b, nil }
	file := filepath.Join(h.Workspace, "a.txt")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	call := func(name string, args object) tool.Result {
		t.Helper()
		r, err := lookup(t, h, name).Run(t.Context(), tool.Call{Args: raw(t, args), Permit: &tool.Permit{Unasked: true, Boxed: true}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := call("command_start", object{"command": "echo two >> a.txt; echo up; read -r x; exit 3", "input": true, "until": "up"}); len(r.Changes) != 0 || !strings.Contains(r.Text(), "It runs in a box") {
		t.Errorf("start: %+v", r)
	}
	if r := call("command_output", object{"job": "job-1"}); strings.Contains(r.Text(), "box") {
		t.Errorf("the same words again: %+v", r)
	}
	call("command_input", object{"job": "job-1", "end": true, "wait": 0})
	var list []builtin.JobState
	for len(list) == 0 || list[0].Running {
		list = h.Jobs.List("")
	}
	if text, _ := os.ReadFile(file); string(text) != "one\ntwo\n" {
		t.Errorf("after the end a.txt is %q", text)
	}
	if err := os.WriteFile(file, []byte("three\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call("command_output", object{"job": "job-1"})
	if len(r.Changes) != 1 || r.Changes[0].Before.Text != "one\n" || r.Changes[0].After.Text != "one\ntwo\n" || !strings.Contains(r.Text(), "exited with code 3") || !strings.Contains(r.Text(), "outside_box") {
		t.Errorf("the end: %+v", r)
	}
	if r := call("command_output", object{"job": "job-1"}); len(r.Changes) != 0 || strings.Contains(r.Text(), "box") {
		t.Errorf("the same changes again: %+v", r)
	}
}

// A command whose box cannot be made does not run, and leaves no handle.
func TestJobWithoutItsBox(t *testing.T) {
	t.Parallel()
	h := jobs(t)
	h.Box = func() (*box.Box, error) { return nil, box.ErrNone }
	_, err := lookup(t, h, "command_start").Run(t.Context(), tool.Call{Args: raw(t, object{"command": "touch ran"}), Permit: &tool.Permit{Boxed: true}})
	if _, stat := os.Stat(filepath.Join(h.Workspace, "ran")); err == nil || stat == nil || len(h.Jobs.List("")) != 0 {
		t.Errorf("%v, %v, %v", err, stat, h.Jobs.List(""))
	}
}
