package cli

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
)

// redraw is the time between two redraws of the changing line.
const redraw = 200 * time.Millisecond

// patience is how long a node may take before the changing line tells of it.
const patience = 300 * time.Millisecond

// live keeps the changing line below the narration: which nodes are at work, for
// how long, and the end of what a model is just saying.
type live struct {
	t    *terminal
	mute bool // what the agent's own model says is shown elsewhere
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	tasks []liveTask // in the order of their start
	text  string
}

type liveTask struct {
	id    string
	node  string
	since time.Time
}

func newLive(t *terminal) *live {
	l := &live{t: t, stop: make(chan struct{})}
	l.done.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case now := <-tick.C:
				t.set(l.line(now))
			}
		}
	})
	return l
}

func (l *live) close() {
	close(l.stop)
	l.done.Wait()
}

func (l *live) event(ev graph.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := ev.Path + ev.Task
	switch b := ev.Body.(type) {
	case graph.TaskStarted:
		l.tasks = append(l.tasks, liveTask{id, ev.Path + ev.Node, ev.Time})
	case graph.TaskDone:
		for i := range l.tasks {
			if l.tasks[i].id == id {
				l.tasks = append(l.tasks[:i], l.tasks[i+1:]...)
				break
			}
		}
		l.text = ""
	case graph.RunEnded:
		l.tasks, l.text = nil, ""
		l.t.still()
	case graph.Emitted:
		switch v := b.Value.(type) {
		case flow.Delta:
			l.say(v.Text)
		case agent.TextDelta:
			if !l.mute || ev.Path != "" {
				l.say(v.Text)
			}
		case flow.ModelDone, agent.Replied:
			l.text = ""
		}
	}
}

// say takes in a piece of what a model says.
func (l *live) say(text string) {
	l.text += text
	if len(l.text) > 4096 {
		l.text = l.text[len(l.text)-2048:]
	}
}

// line is what the changing line shows now.
func (l *live) line(now time.Time) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, t := range l.tasks {
		if took := now.Sub(t.since); took >= patience {
			parts = append(parts, fmt.Sprintf("%s %ds", t.node, int(took.Seconds())))
		}
	}
	if parts == nil {
		return ""
	}
	line := "… " + strings.Join(parts, ", ")
	if text := strings.Join(strings.Fields(l.text), " "); text != "" {
		line += ": " + text
	}
	return fit(line, l.t.width()-1, len("… "+strings.Join(parts, ", ")+": "))
}

// fit shortens a line to a width by taking text out after its first keep bytes.
func fit(line string, width, keep int) string {
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	head := len([]rune(line[:min(keep, len(line))]))
	if head+2 >= width {
		return string(runes[:max(width, 0)])
	}
	return string(runes[:head]) + "…" + string(runes[len(runes)-(width-head-1):])
}
