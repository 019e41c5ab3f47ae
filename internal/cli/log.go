package cli

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/config"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

// logVariable is the variable that sets the level of the developer log where no flag does.
const logVariable = "RADDLE_LOG"

// logLevelNames are the levels of the developer log, from most to fewest records.
// logLevels has their values.
var (
	logLevelNames = []string{"trace", "debug", "info", "warn", "error"}
	logLevels     = []slog.Level{flow.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
)

// openDevLog opens the developer log if --log-level or the variable asks for it. given
// reports whether the flag was set.
func (env *environment) openDevLog(given bool) error {
	from, name := "--log-level", env.logLevel
	if !given {
		if from, name = logVariable, os.Getenv(logVariable); name == "" {
			return nil
		}
	}
	at := slices.Index(logLevelNames, name)
	if at < 0 {
		next := "use one of " + joinWords(logLevelNames)
		if near := wording.FindNearest(name, logLevelNames); near != "" {
			next = "did you mean " + near + "? The levels are " + joinWords(logLevelNames)
		}
		return badUsage(next, "%s: there is no level %q", from, name)
	}
	env.devLog = slog.New(slog.NewTextHandler(env.err, &slog.HandlerOptions{Level: logLevels[at], ReplaceAttr: env.cleanAttr}))
	return nil
}

// cleanAttr names the level of a record, and removes secrets from texts before the handler
// quotes them.
func (env *environment) cleanAttr(groups []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case slog.Level:
		if len(groups) == 0 && a.Key == slog.LevelKey {
			return slog.String(a.Key, nameLevel(v))
		}
	case string:
		return slog.String(a.Key, string(env.redactBytes([]byte(v))))
	case error:
		return slog.String(a.Key, string(env.redactBytes([]byte(v.Error()))))
	}
	return a
}

func nameLevel(l slog.Level) string {
	if l == flow.LevelTrace {
		return "TRACE"
	}
	return l.String()
}

// logDirs records where the process finds its files. log may be nil.
func logDirs(log *slog.Logger, d config.Dirs) {
	if log != nil {
		log.Debug("raddle started", "version", app.Version(), "config", d.Config, "functions", d.Functions, "state", d.State, "cache", d.Cache, "work", d.Work)
	}
}

// runLogger returns the logger of a run: the developer log if there is one, else the lines that -v
// prints, else nil.
func (env *environment) runLogger() *slog.Logger {
	switch {
	case env.devLog != nil:
		return env.devLog
	case env.verbose && !env.showsBlocks():
		return slog.New(&logLines{env: env})
	}
	return nil
}

// logLines is a handler for people, which writes to standard error: the level, the message, the attributes.
type logLines struct {
	env   *environment
	attrs string
}

func (h *logLines) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug
}

func (h *logLines) Handle(_ context.Context, r slog.Record) error {
	line := strings.ToLower(r.Level.String()) + ": " + r.Message + h.attrs
	r.Attrs(func(a slog.Attr) bool {
		line += " " + a.String()
		return true
	})
	h.env.err.PrintLine(h.env.err.Paint(term.Dim, term.OneLine(line)))
	return nil
}

func (h *logLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	for _, a := range attrs {
		next.attrs += " " + a.String()
	}
	return &next
}

func (h *logLines) WithGroup(string) slog.Handler { return h }

// eventLog writes the events of a run to the developer log: at debug level what
// happens, at trace level also the text of models as it comes, and the full state after every step
// of the agent that was started. A child graph logs its states itself, if its file allows that.
type eventLog struct {
	log    *slog.Logger
	clean  term.RedactFunc
	states bool // the file of the agent that was started does not switch them off
}

// newEventLog returns the log of the events of a run of an agent, or nil if log is nil or
// takes none.
func newEventLog(log *slog.Logger, clean term.RedactFunc, a *flow.Agent) *eventLog {
	if log == nil || !log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	return &eventLog{log: log, clean: clean, states: a.Config != nil || a.File.Settings.LogStateSnapshots}
}

// longestEventData is how many bytes of an event's data the log has above trace level.
const longestEventData = 1000

// logEvent writes one event.
func (l *eventLog) logEvent(ev graph.Event) {
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

// plainText returns text from models, tools and files without characters that a terminal obeys.
func plainText(s string) string { return term.CleanText(s) }
