//go:build unix

package postgres_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/pgtest"
)

// program is raddle with its runs in a database.
type program struct {
	t     *testing.T
	home  *clienttest.Home
	store string // URL
}

// run runs a command, checks its exit code, and returns its output and messages. Neither may have the password.
func (p *program) run(code int, args ...string) (out, messages string) {
	p.t.Helper()
	c := p.home.Command(p.t, args...)
	c.Env = append(c.Env, "RADDLE_STORE="+p.store)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != code {
		p.t.Fatalf("raddle %q: %v, want exit code %d\n%s%s", args, err, code, &stdout, &stderr)
	}
	if all := stdout.String() + stderr.String(); strings.Contains(all, pgtest.Password) {
		p.t.Errorf("raddle %q prints the password:\n%s", args, all)
	}
	return stdout.String(), stderr.String()
}

func (p *program) expect(text string, words ...string) {
	p.t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			p.t.Errorf("%q is missing in:\n%s", w, text)
		}
	}
}

// Examples run on the command line as they do on a file, each command in another process.
func TestExtraCommandLine(t *testing.T) {
	url := pgtest.NewDatabase(t)
	p := &program{t, clienttest.NewHome(t), url}
	out, _ := p.run(0, "info")
	shown := strings.Replace(url, ":"+pgtest.Password, "", 1)
	p.expect(out, shown)
	out, _ = p.run(0, "run", "triage", "--answer", "page=yes", "--answer", "note=Look at the release.", "It is broken")
	p.expect(out, "Paged")
	_, messages := p.run(5, "run", "triage", "It is broken")
	p.expect(messages, "waits for an answer", "Card payments have failed")
	out, _ = p.run(0, "runs", "ls")
	p.expect(out, "waiting", "done")
	out, _ = p.run(0, "resume", "last", "--answer", "yes")
	p.expect(out, "Paged")
	out, _ = p.run(0, "doctor")
	p.expect(out, "✓", shown)
	out, _ = p.run(0, "config", "explain")
	p.expect(out, "127.0.0.1")
	out, _ = p.run(0, "runs", "show", "last")
	p.expect(out, "done")
	_, messages = p.run(8, "runs", "show", "unknown")
	p.expect(messages, "there is no such run in "+shown)
	p.run(0, "runs", "rm", "last")
	p.store = strings.Replace(url, "127.0.0.1:", "127.0.0.1:1", 1)
	_, messages = p.run(3, "run", "triage", "It is broken")
	p.expect(messages, "the store of runs cannot be opened")
}

// If the server is killed while a script works, and is back after six seconds, the run says that it waits, and continues.
func TestExtraCommandLineServerKilled(t *testing.T) {
	server := pgtest.Start(t)
	p := &program{t, clienttest.NewHome(t), server.NewDatabase(t)}
	fifo := filepath.Join(p.home.Dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p.home.AddAgent(t, "slow", map[string]string{
		"graph.yaml": "name: slow\nstart: first\nnodes:\n  first: {type: script, script: first.sh, next: work}\n  work: {type: script, script: work.sh, next: done}\n  done: {type: end, output: late}\n",
		"first.sh":   "echo first >>" + filepath.Join(p.home.Dir, "log") + "\necho '{}'\n",
		"work.sh":    "echo work >>" + filepath.Join(p.home.Dir, "log") + "\ncat " + fifo + "\necho '{}'\n",
	})
	// release waits until the script reads, calls f, and lets the script continue.
	release := func(f func()) <-chan error {
		done := make(chan error, 1)
		go func() {
			w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
			if err == nil {
				f()
				err = w.Close()
			}
			done <- err
		}()
		return done
	}
	back := make(chan struct{})
	released := release(func() {
		server.Kill(t)
		time.AfterFunc(6*time.Second, func() { defer close(back); server.Restart(t) })
	})
	out, messages := p.run(0, "run", "slow", "x")
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	<-back
	p.expect(out, "late")
	p.expect(messages, "the store is not available; raddle tries again", "the store is back")
	server.Kill(t)
	_, messages = p.run(3, "runs", "ls")
	p.expect(messages, "the server cannot be reached: check that it runs")
	if log, err := os.ReadFile(filepath.Join(p.home.Dir, "log")); err != nil || string(log) != "first\nwork\n" {
		t.Errorf("%v: the scripts that ran:\n%s", err, log)
	}
}

// raddle runs cancel stops the process of this machine that drives a run: there are no lock files, so the lease names it.
func TestExtraCancelDriver(t *testing.T) {
	p := &program{t, clienttest.NewHome(t), pgtest.NewDatabase(t)}
	p.home.AddAgent(t, "slow", map[string]string{
		"graph.yaml": "name: slow\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: finished}\n",
		"work.sh":    "touch \"$HOME/started\"\nsleep 60\necho '{}'\n",
	})
	c := p.home.Command(t, "run", "slow", "-q")
	c.Env = append(c.Env, "RADDLE_STORE="+p.store)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.home.Dir, "started")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the script does not start")
		}
	}
	out, _ := p.run(0, "runs", "ls")
	p.expect(out, "running")
	_, messages := p.run(0, "runs", "cancel", "last")
	p.expect(messages, "cancelled run")
	_ = c.Wait()
	out, _ = p.run(0, "runs", "ls")
	p.expect(out, "abandoned")
}
