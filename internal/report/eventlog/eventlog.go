// Package eventlog writes the events of runs to the developer log.
package eventlog

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/wording"
)

// A Log writes the events of a run to the developer log: at debug level what
// happens, at trace level also the text of models as it comes, and the full state after every step
// of the agent that was started. A child graph logs its states itself, if its file allows that.
type Log struct {
	log    *slog.Logger
	clean  func([]byte) []byte
	states bool // the file of the agent that was started does not switch them off
}

// New returns the log of the events of a run of an agent, or nil if log is nil or
// takes none.
func New(log *slog.Logger, clean func([]byte) []byte, a *flow.Agent) *Log {
	if log == nil || !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return &Log{log: log, clean: clean, states: a.Config != nil || a.File.Settings.LogStateSnapshots}
}

// longestEventData is how many bytes of an event's data the log has above trace level.
const longestEventData = 1000

// WriteEvent writes one event.
func (l *Log) WriteEvent(ev graph.Event) {
	trace := l.log.Enabled(context.Background(), flow.LevelTrace)
	level := slog.LevelDebug
	if b, ok := ev.Body.(graph.ValueEmitted); ok {
		switch b.Value.(type) {
		case agent.TextDelta, agent.ReasoningDelta, agent.ToolProgress, agent.ToolOutput:
			level = flow.LevelTrace
		}
	}
	if level == flow.LevelTrace && !trace {
		return
	}
	var wire struct {
		Kind string          `json:"kind"`
		Data json.RawMessage `json:"data"`
	}
	text, err := json.Marshal(ev)
	if err == nil {
		err = json.Unmarshal(text, &wire)
	}
	if err != nil { // a node sent a value that JSON cannot represent
		l.log.Warn("an event cannot be written", "node", ev.Node, "error", err)
		return
	}
	data := string(l.clean(wire.Data)) // before a cut, which may leave half of a secret
	if !trace {
		data = wording.CutText(data, longestEventData, "…")
	}
	l.log.LogAttrs(context.Background(), level, wire.Kind, append(describePlace(ev), slog.String("data", data))...)
	if b, ok := ev.Body.(graph.StepCommitted); ok && trace && l.states && ev.Path == "" {
		l.log.LogAttrs(context.Background(), flow.LevelTrace, "state after the step",
			append(describePlace(ev), slog.String("nodes", strings.Join(b.Nodes, ",")), slog.String("state", encodeState(b.State)))...)
	}
}

// describePlace returns the attributes that say where an event happened.
func describePlace(ev graph.Event) []slog.Attr {
	list := []slog.Attr{slog.String("run", ev.Run)}
	if ev.Path != "" {
		list = append(list, slog.String("path", ev.Path))
	}
	list = append(list, slog.Int("step", ev.Step))
	if ev.Task != "" {
		list = append(list, slog.String("task", ev.Task), slog.String("node", ev.Node))
	}
	return list
}

// encodeState returns a state as one JSON object, sorted by key.
func encodeState(s graph.State) string {
	values := map[string]json.RawMessage{}
	for _, name := range s.Keys() {
		v, _ := s.Value(name)
		text, err := jsonvalue.Append(nil, v)
		if err != nil { // a value that only the agent's own nodes know
			text, err = json.Marshal(v)
		}
		if err != nil {
			text, _ = json.Marshal(err.Error())
		}
		values[name] = text
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(values) // every value is JSON
	return strings.TrimSuffix(b.String(), "\n")
}
