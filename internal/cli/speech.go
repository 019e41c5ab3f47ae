package cli

import (
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// speech shows what an agent's model says while it says it, on a terminal.
type speech struct {
	sh   *shell
	said strings.Builder // of the reply under way, or the last one
	over bool            // that reply is complete
}

// speech is how a run's result is shown before its end: nil for results that go to
// a program, and for graphs, whose result is not what a model says.
func (d *drive) speech() *speech {
	if d.still || d.format != formatText || !d.sh.out.IsTerminal() || d.run.Agent.Config == nil {
		return nil
	}
	return &speech{sh: d.sh}
}

// leadPath is where the agent that is talked to speaks, where it has others to spawn.
const leadPath = leadOf + "/"

// voice tells whether what is said at a path of an agent's run is said to the
// reader. Conversations below the run's own are not.
func voice(path string) bool { return path == "" || path == leadPath }

// event takes an event in.
func (s *speech) event(ev graph.Event) {
	if !voice(ev.Path) {
		return
	}
	switch b := ev.Body.(type) {
	case graph.Emitted:
		switch v := b.Value.(type) {
		case agent.TextDelta:
			if s.over {
				s.said.Reset()
				s.over = false
			}
			s.said.WriteString(v.Text)
			s.sh.err.pass(s.sh.out, plainText(v.Text))
		case agent.Replied:
			s.sh.err.endLine(s.sh.out)
			if s.over { // it has no text
				s.said.Reset()
			}
			s.over = true
		case agent.Retrying:
			s.restart()
		}
	case graph.TaskRetry, graph.RunEnded:
		s.restart()
	}
}

// restart forgets what was said of the reply under way: it will be said again.
func (s *speech) restart() {
	s.sh.err.endLine(s.sh.out)
	if !s.over {
		s.said.Reset()
	}
}

// whole tells whether a result has been shown in full.
func (s *speech) whole(result string) bool {
	return s != nil && s.over && s.said.String() == result
}
