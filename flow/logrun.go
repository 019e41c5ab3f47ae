package flow

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
)

// RunLog writes the log records of a run that its nodes do not write
// themselves: the start, the end and the duration of each node. Pass it all
// events of [LogTopics]. It is not safe for concurrent use.
type RunLog struct {
	agent   *Agent
	log     *slog.Logger
	started bool // the start was recorded
	watch   stopwatch
	nodes   map[string]*nodeTime
}

type nodeTime struct {
	id         string
	visits     int
	total, max time.Duration
}

// stopwatch adds up the time of drives. Between drives a run waits.
type stopwatch struct {
	startedAt time.Time
	took      time.Duration
}

func (s *stopwatch) observeEvent(e graph.Event) {
	if e.Path != "" {
		return
	}
	switch e.Body.(type) {
	case graph.RunStarted:
		s.startedAt = e.Time
	case graph.RunEnded:
		s.took += e.Time.Sub(s.startedAt)
	}
}

// LogTopics are the events that a RunLog needs.
const LogTopics = graph.TopicRun | graph.TopicTask

// LogRun returns the log of a run of the agent, or of the part of the run that
// this process drives.
func LogRun(log *slog.Logger, a *Agent) *RunLog {
	return &RunLog{agent: a, log: log, nodes: map[string]*nodeTime{}}
}

// Event records one event, if it is relevant for the log.
func (l *RunLog) Event(e graph.Event) {
	if e.Path != "" {
		return
	}
	l.watch.observeEvent(e)
	switch b := e.Body.(type) {
	case graph.RunStarted:
		if l.started {
			return
		}
		l.started = true
		for _, f := range l.agent.Findings {
			if f.Severity == strictyaml.SeverityWarning {
				l.logText(slog.LevelWarn, f.Text())
			}
		}
		if l.agent.Config == nil {
			l.logText(slog.LevelInfo, fmt.Sprintf("start at '%s' (%d nodes)", l.agent.File.Start, len(l.agent.File.Nodes)))
		}
	case graph.TaskDone:
		if !b.Recorded && !b.Waiting {
			l.addDuration(e.Node, b.Took)
		}
	case graph.RunEnded:
		l.logEnd(e, b.Result)
	}
}

func (l *RunLog) addDuration(id string, d time.Duration) {
	n := l.nodes[id]
	if n == nil {
		n = &nodeTime{id: id}
		l.nodes[id] = n
	}
	n.visits++
	n.total += d
	n.max = max(n.max, d)
}

func (l *RunLog) logEnd(e graph.Event, r graph.Result) {
	if r.Err != nil {
		l.logText(slog.LevelError, "execution failed: "+l.agent.Explain(r.Err).Error())
		return
	}
	if r.Status != graph.Done {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(l.nodes)) {
		if l.agent.Config != nil {
			break
		}
		if n := l.agent.File.Node(id); n != nil && n.Type.Routing == spec.RouteEnd {
			l.logText(slog.LevelInfo, fmt.Sprintf("end '%s' (elapsed %.2fs)", id, l.watch.took.Seconds()))
		}
	}
	l.logText(slog.LevelInfo, "performance summary (slowest first):")
	list := make([]*nodeTime, 0, len(l.nodes))
	for _, id := range slices.Sorted(maps.Keys(l.nodes)) {
		list = append(list, l.nodes[id])
	}
	slices.SortStableFunc(list, func(a, b *nodeTime) int { return cmp.Compare(b.total, a.total) })
	for _, n := range list {
		l.logText(slog.LevelInfo, fmt.Sprintf("  %s: %d visit(s), total %dms, avg %dms, max %dms", n.id, n.visits,
			n.total.Milliseconds(), n.total.Milliseconds()/int64(n.visits), n.max.Milliseconds()))
	}
}

func (l *RunLog) logText(level slog.Level, text string) {
	kind := "graph"
	name := ""
	if l.agent.Config != nil {
		kind = "agent"
		name = l.agent.Name
	} else {
		name = l.agent.File.Name
	}
	l.log.Log(context.Background(), level, "["+kind+":"+name+"] "+text)
}
