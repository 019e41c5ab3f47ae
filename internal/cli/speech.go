package cli

import (
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// speech shows the text of an agent's model while the model writes it, on a terminal.
type speech struct {
	sh   *shell
	said strings.Builder // of the current reply, or the last one
	over bool            // that reply is complete
}

// speech returns how a run's result is shown before its end: nil for results that go to
// a program, and for graphs, whose result is not the text of a model.
func (d *drive) speech() *speech {
	if d.still || d.format != formatText || !d.sh.out.IsTerminal() || d.run.Agent.Config == nil {
		return nil
	}
	return &speech{sh: d.sh}
}

// leadPath is the path of the agent that the user talks to, if it can spawn others.
const leadPath = leadOf + "/"

// voice reports whether text at a path of an agent's run is addressed to the
// user. Conversations below the run's own are not.
func voice(path string) bool { return path == "" || path == leadPath }

// event handles an event.
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

// restart forgets the text of the current reply: the model will send it again.
func (s *speech) restart() {
	s.sh.err.endLine(s.sh.out)
	if !s.over {
		s.said.Reset()
	}
}

// whole reports whether a result has been shown completely.
func (s *speech) whole(result string) bool {
	return s != nil && s.over && s.said.String() == result
}
