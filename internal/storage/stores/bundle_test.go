//go:build unix

package stores_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/internal/testkit/redistest"
)

// A run that parks on one machine, which alone has the agent, is continued to its end on another one, also after the agent has
// changed; a machine with the changed agent uses the files of the start, too. The program does it all, over real servers.
func TestExtraBundles(t *testing.T) {
	for name, start := range map[string]func() string{
		"postgres": func() string { return pgtest.NewDatabase(t) },
		"redis":    func() string { return redistest.Start(t, "--appendonly", "yes").URL },
	} {
		t.Run(name, func(t *testing.T) {
			url := start()
			a, b := newComputer(t, url), newComputer(t, url)
			agents := filepath.Join(".config", "raddle", "agents")
			if err := os.RemoveAll(filepath.Join(b.Dir, agents)); err != nil {
				t.Fatal(err)
			}
			large := strings.Repeat("0123456789abcdef", 1<<16) // more than one record without compression, and a side table
			a.AddAgent(t, "triage", map[string]string{"data/large.txt": large, "data/noise.bin": noise(3 << 20), ".env": "X=1"})
			ids := []string{a.park(), a.park(), a.park()}

			away := a.Dir + ".away"
			if err := os.Rename(a.Dir, away); err != nil {
				t.Fatal(err)
			}
			if out := b.run(0, "resume", ids[0], "--answer", "yes", "--answer", "by phone"); !strings.Contains(out, "Paged team-ledger (yes)") || !strings.Contains(out, "continues with the files of agent 'triage'") || !strings.Contains(out, "its working directory is not on this machine") {
				t.Errorf("the other machine prints\n%s", out)
			}
			if err := os.Rename(away, a.Dir); err != nil {
				t.Fatal(err)
			}
			graph := filepath.Join(a.Dir, agents, "triage", "graph.yaml")
			text, err := os.ReadFile(graph)
			if err != nil {
				t.Fatal(err)
			}
			a.AddAgent(t, "triage", map[string]string{"graph.yaml": strings.ReplaceAll(string(text), "Paged ", "CHANGED ")})
			for i, m := range []*computer{b, a} {
				if out := m.run(0, "resume", ids[i+1], "--answer", "yes", "--answer", "by phone"); !strings.Contains(out, "Paged team-ledger (yes)") {
					t.Errorf("after the change, machine %d prints\n%s", i, out)
				}
			}
			if out := a.run(0, "run", "triage", "--answer", "yes", "--answer", "by phone"); !strings.Contains(out, "CHANGED team-ledger (yes)") {
				t.Errorf("a new run prints\n%s", out)
			}

			var sizes struct{ Threads, Bundles int }
			if err := json.Unmarshal([]byte(a.run(0, "store", "stats", "--output", "json", "-q")), &sizes); err != nil || sizes.Threads != 4 || sizes.Bundles != 2 {
				t.Errorf("store stats: %+v, %v", sizes, err)
			}
			if out := b.run(0, "store", "check"); !strings.Contains(out, "0 faults") {
				t.Errorf("store check prints\n%s", out)
			}
			if out := b.run(0, "runs", "ls"); strings.Contains(out, "agent:") {
				t.Errorf("runs ls prints\n%s", out)
			}
			file := "sqlite:" + filepath.Join(t.TempDir(), "copy.db")
			b.run(0, "store", "copy", url, file)
			if out := b.run(0, "store", "check", file); !strings.Contains(out, "0 faults") {
				t.Errorf("store check of the copy prints\n%s", out)
			}
			if out := a.run(0, "agents", "publish", "triage"); !strings.Contains(out, "the store has them already") {
				t.Errorf("agents publish prints\n%s", out)
			}
		})
	}
}

// A computer is a home directory with a store that others use, too.
type computer struct {
	*clienttest.Home
	t   *testing.T
	url string
}

func newComputer(t *testing.T, url string) *computer {
	return &computer{clienttest.NewHome(t), t, url}
}

// run runs a command, and returns what it prints.
func (c *computer) run(want int, args ...string) string {
	c.t.Helper()
	cmd := c.Command(c.t, args...)
	cmd.Env = append(cmd.Env, "RADDLE_STORE="+c.url)
	out, err := cmd.CombinedOutput()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		c.t.Fatal(err)
	}
	if code != want {
		c.t.Fatalf("raddle %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out)
	}
	return string(out)
}

// park starts a run of triage, which stops at a question, and returns its id.
func (c *computer) park() string {
	c.t.Helper()
	const parked = 5
	_, rest, _ := strings.Cut(c.run(parked, "run", "triage"), "next: raddle resume ")
	id, _, _ := strings.Cut(rest, " ")
	return id
}

// noise returns bytes that cannot be compressed.
func noise(n int) string {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(b)
	return string(b)
}
