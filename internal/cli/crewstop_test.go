//go:build unix

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

var four = []string{"a", "b", "c", "d"}

// messaged is four running agents, each of which receives a message while it works, and
// reports how often it has received it.
func messaged(r request) said {
	if r.agent == "boss" {
		switch r.round {
		case 1:
			var s said
			for _, id := range r.ids() {
				s.calls = append(s.calls, wish{"agent__send_message", map[string]any{"id": id, "message": "hello"}})
			}
			return s
		case 2:
			return fanOut(four...)(request{agent: "boss", round: 1, results: r.results})
		}
		return fanOut(four...)(r)
	}
	switch r.round {
	case 0:
		return said{calls: []wish{{"hold", map[string]any{"at": r.prompt}}}}
	case 1:
		return said{calls: []wish{{"agent__check_inbox", map[string]any{}}}}
	case 2: // and once more, for what may arrive twice
		return said{calls: []wish{{"agent__check_inbox", map[string]any{}}}}
	}
	if n := strings.Count(strings.Join(r.results, " "), "hello"); n != 1 {
		return said{text: fmt.Sprintf("%s has heard it %d times", r.prompt, n)}
	}
	return said{text: "did " + r.prompt}
}

// begun counts how often the tool of each agent has started.
func (m *crewModel) begun() map[string]int {
	n := map[string]int{}
	for line := range strings.Lines(m.read("log")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "begun "); ok {
			n[name]++
		}
	}
	return n
}

// deserted requires that no process waits at a gate any more.
func (g gate) deserted() {
	g.w.t.Helper()
	f, err := os.OpenFile(g.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err == nil {
		_ = f.Close()
	}
	if !errors.Is(err, syscall.ENXIO) {
		g.w.t.Errorf("somebody waits at %s (%v)", filepath.Base(g.path), err)
	}
}

func (m *crewModel) gates() map[string]gate {
	gates := map[string]gate{}
	for _, name := range four {
		gates[name] = m.gate("gate-" + name)
	}
	return gates
}

// requests requires a number of requests for each reply of an agent.
func (m *crewModel) requests(want int, agents ...string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, n := range m.asked {
		for _, a := range agents {
			if strings.HasPrefix(name, a+"/") && n != want {
				m.t.Errorf("the model was asked %d times for %s, want %d", n, name, want)
			}
		}
	}
}

const allFour = "all of them: a b c d\n"

// The first signal lets the tools of all agents finish. Nothing runs twice.
func TestCrewDrains(t *testing.T) {
	needBash(t)
	w := serveCrew(t, messaged)
	gates := w.gates()
	cmd, c := w.begin("run", "boss", "go")
	pass := map[string]func(){}
	for _, name := range four {
		pass[name] = gates[name].arrive()
	}
	c.await(t, "tool call: agent__collect") // all have received a message
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Stopping after this step.")
	for _, name := range four {
		pass[name]()
	}
	if got := wait(t, cmd); got != 130 {
		t.Fatalf("exit code %d\n%s", got, c)
	}
	r := w.run("resume", "-q", w.runs()[0].Run)
	if r.code != 0 || r.out != allFour {
		t.Errorf("resumed: exit code %d, %q\n%s", r.code, r.out, r.err)
	}
	for _, name := range four {
		if w.begun()[name] != 1 {
			t.Errorf("the tools have begun: %v", w.begun())
		}
	}
	w.requests(1, "boss/go", "explore/a", "explore/b", "explore/c", "explore/d")
}

// The second signal interrupts all of them, and no process of theirs is left. Each
// continues inside its own loop.
func TestCrewIsCutShort(t *testing.T) {
	needBash(t)
	w := serveCrew(t, messaged)
	gates := w.gates()
	cmd, c := w.begin("run", "boss", "go")
	pass := map[string]func(){}
	for _, name := range four {
		pass[name] = gates[name].arrive()
	}
	c.await(t, "tool call: agent__collect") // all have received a message
	pass["a"]()
	c.await(t, "completed in")
	w.send(cmd, syscall.SIGINT)
	c.await(t, "Ctrl-C again")
	w.send(cmd, syscall.SIGINT)
	if got := wait(t, cmd); got != 130 {
		t.Fatalf("exit code %d\n%s", got, c)
	}
	for _, name := range four[1:] {
		pass[name]()
		gates[name].deserted()
	}
	w.goOn(gates)
}

// A killed process leaves no process behind once its run is resumed: the agents that
// have finished do not run again, the others continue inside their own loops, and their
// messages arrive once.
func TestCrewIsKilled(t *testing.T) {
	needBash(t)
	w := serveCrew(t, messaged)
	gates := w.gates()
	cmd, c := w.begin("run", "boss", "go")
	pass := map[string]func(){}
	for _, name := range four {
		pass[name] = gates[name].arrive()
	}
	c.await(t, "tool call: agent__collect") // all have received a message
	pass["a"]()
	c.await(t, "completed in")
	w.send(cmd, syscall.SIGKILL)
	wait(t, cmd)
	for _, name := range four[1:] {
		pass[name]()
	}
	w.goOn(gates)
}

// goOn resumes a run of four agents, the first of which has finished.
func (m *crewModel) goOn(gates map[string]gate) {
	m.t.Helper()
	run := m.runs()[0].Run
	before := m.begun()
	cmd, c := m.begin("resume", run)
	for _, name := range four[1:] {
		gates[name].arrive()()
	}
	if got := wait(m.t, cmd); got != 0 {
		m.t.Fatalf("resumed: exit code %d\n%s", got, c)
	}
	if r := m.run("resume", run); r.out != allFour {
		m.t.Errorf("the run's output is %q\n%s", r.out, c)
	}
	after := m.begun()
	for i, name := range four {
		if want := map[bool]int{true: 0, false: 1}[i == 0]; after[name]-before[name] != want || before[name] != 1 {
			m.t.Errorf("the tool of %s has begun %d times, and %d times after the stop", name, before[name], after[name]-before[name])
		}
	}
	m.requests(1, "boss/go", "explore/a", "explore/b", "explore/c", "explore/d")
	for _, want := range []string{"(" + "agent_explore_", ") continues", "completed in"} {
		if !strings.Contains(c.String(), want) {
			m.t.Errorf("standard error lacks %q:\n%s", want, c)
		}
	}
	if n := strings.Count(c.String(), "continues"); n != len(four)-1 {
		m.t.Errorf("%d agents go on\n%s", n, c)
	}
}
