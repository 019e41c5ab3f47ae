package narrate

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/report/updates"
)

// Log writes the log records of a run that its nodes do not write themselves: the start, the end, and how long each node
// took. Pass it all events of [LogTopics], of one drive or of several drives of one run. It is not safe for concurrent
// use.
type Log struct {
	agent   *flow.Agent
	log     *slog.Logger
	started bool // the start was recorded
	watch   updates.Stopwatch
	nodes   map[string]*nodeTime
}

// nodeTime is how often a node was visited, and for how long.
type nodeTime struct {
	id         string
	visits     int
	total, max time.Duration
}

// LogTopics are the events that a Log needs.
const LogTopics = graph.TopicRun | graph.TopicTask

// NewLog returns the log of a run of the agent, or of the part of the run that this process drives.
func NewLog(log *slog.Logger, a *flow.Agent) *Log {
	return &Log{agent: a, log: log, nodes: map[string]*nodeTime{}}
}

// Event records one event, if it is relevant for the log.
func (l *Log) Event(e graph.Event) {
	if e.Path != "" {
		return
	}
	l.watch.HandleEvent(e)
	switch b := e.Body.(type) {
	case graph.RunStarted:
		if !l.started {
			l.logStart()
		}
		l.started = true
	case graph.TaskDone:
		if !b.Recorded && !b.Waiting {
			l.addDuration(e.Node, b.Took)
		}
	case graph.RunEnded:
		switch {
		case b.Result.Err != nil:
			l.logText(slog.LevelError, "execution failed: %v", l.agent.Explain(b.Result.Err))
		case b.Result.Status == graph.Done:
			l.logEnd()
		}
	}
}

func (l *Log) addDuration(id string, d time.Duration) {
	n := l.nodes[id]
	if n == nil {
		n = &nodeTime{id: id}
		l.nodes[id] = n
	}
	n.visits++
	n.total += d
	n.max = max(n.max, d)
}

func (l *Log) logStart() {
	for _, f := range l.agent.Findings {
		if f.Severity == strictyaml.SeverityWarning {
			l.logText(slog.LevelWarn, "%s", f.Text())
		}
	}
	if l.agent.Config == nil {
		l.logText(slog.LevelInfo, "start at '%s' (%d nodes)", l.agent.File.Start, len(l.agent.File.Nodes))
	}
}

func (l *Log) logEnd() {
	var list []*nodeTime
	for _, id := range slices.Sorted(maps.Keys(l.nodes)) {
		list = append(list, l.nodes[id])
		if l.agent.Config != nil {
			continue
		}
		if n := l.agent.File.Node(id); n != nil && n.Type.Routing == spec.RouteEnd {
			l.logText(slog.LevelInfo, "end '%s' (elapsed %s)", id, formatElapsed(l.watch.Took))
		}
	}
	l.logText(slog.LevelInfo, "performance summary (slowest first):")
	slices.SortStableFunc(list, func(a, b *nodeTime) int { return cmp.Compare(b.total, a.total) })
	for _, n := range list {
		l.logText(slog.LevelInfo, "  %s: %d visit(s), total %dms, avg %dms, max %dms", n.id, n.visits,
			n.total.Milliseconds(), n.total.Milliseconds()/int64(n.visits), n.max.Milliseconds())
	}
}

func (l *Log) logText(level slog.Level, format string, args ...any) {
	f := frame{agent: l.agent, talks: l.agent.Config != nil}
	l.log.Log(context.Background(), level, fmt.Sprintf("[%s:%s] ", f.kindName(), f.agentName())+fmt.Sprintf(format, args...))
}
