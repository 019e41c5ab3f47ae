package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// Commands that cannot work say why and what to do, with the exit codes of raddle, and need no server for that.
func TestRefusals(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(home, "none.toml"))
	t.Chdir(home)
	for _, c := range []struct {
		args, store string
		code        int
		want        []string
	}{
		{args: "run", code: 2, want: []string{"the agent is missing"}},
		{args: "run ./nope --address 127.0.0.1:1", code: 1, want: []string{"the server of Temporal at 127.0.0.1:1 cannot be reached"}},
		{args: "run ./nope --mode root", code: 2, want: []string{"there is no such mode", "plan, ask, edits"}},
		{args: "resume", code: 2, want: []string{"the id of one run"}},
		{args: "resume nope", code: 8, want: []string{`unknown run "nope"`, "raddle runs ls"}},
		{args: "cancel nope", code: 8, want: []string{`unknown run "nope"`}},
		{args: "ls --output yaml", code: 2, want: []string{"there is no such format", "text, json"}},
		{args: "ls more", code: 2, want: []string{"takes no argument"}},
		{args: "worker --max-drives 0", code: 2, want: []string{"it must be at least 1"}},
		{args: "worker --queue ,", code: 2, want: []string{"the name of a queue is missing"}},
		{args: "worker --rate 0", code: 2, want: []string{"it must be a number above 0", "--rate gpu=0.5"}},
		{args: "worker --rate NaN", code: 2, want: []string{"it must be a number above 0"}},
		{args: "worker --queue a,b --rate c=1", code: 2, want: []string{"does not drive the runs of that queue", "add --queue c"}},
		{args: "worker", store: "memory:", code: 3, want: []string{"workers cannot see its runs", "postgres://"}},
		{args: "worker --nope", code: 2, want: []string{"unknown flag: --nope"}},
	} {
		t.Run(c.args+c.store, func(t *testing.T) {
			t.Setenv("RADDLE_STORE", c.store)
			var out, failed bytes.Buffer
			e := &environment{out: &out, err: &failed}
			root := newRootCommand(e)
			root.SetArgs(strings.Fields(c.args))
			err := root.ExecuteContext(context.Background())
			if e.process != nil {
				defer func() { _ = e.process.Close() }()
			}
			if err == nil {
				t.Fatalf("it worked: %s", out.String())
			}
			if code := e.report(err); code != c.code {
				t.Errorf("the exit code is %d, want %d", code, c.code)
			}
			for _, text := range c.want {
				if !strings.Contains(failed.String(), text) {
					t.Errorf("missing %q in:\n%s", text, failed.String())
				}
			}
		})
	}
}

// A rate without a queue is that of all queues that have none of their own.
func TestRates(t *testing.T) {
	o := workerOptions{queues: []string{"a", "b"}, rates: []string{"5", "b=0.5"}}
	if rates, err := o.readRates(); err != nil || rates["a"] != 5 || rates["b"] != 0.5 {
		t.Errorf("%v, %v", rates, err)
	}
	o.rates = []string{"b=2"}
	if rates, err := o.readRates(); err != nil || rates["a"] != 0 || rates["b"] != 2 {
		t.Errorf("%v, %v", rates, err)
	}
}
