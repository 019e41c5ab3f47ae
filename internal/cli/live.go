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

// patience is how long a node may take before the live lines show it.
const patience = 300 * time.Millisecond

// liveLines keeps the live lines below the narration: what is running, what it does, for
// how long, and the end of the text that a model is writing.
type liveLines struct {
	t    *terminal
	mute bool // the text of the agent's own model is shown elsewhere
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	board  *statusBoard
	notice string // the last line; "": none
}

func newLiveLines(t *terminal, a *flow.Agent) *liveLines {
	l := &liveLines{t: t, stop: make(chan struct{}), board: newStatusBoard(a.Name, a.Config != nil)}
	l.done.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case now := <-tick.C:
				t.setStatus(l.buildLines(now))
			}
		}
	})
	return l
}

func (l *liveLines) close() {
	close(l.stop)
	l.done.Wait()
}

func (l *liveLines) handleEvent(ev graph.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		if _, text := b.Value.(agent.TextDelta); text && l.mute && isReaderPath(ev.Path) {
			return
		}
	case graph.RunEnded:
		l.t.clearStatus()
	}
	l.board.handleEvent(ev)
}

// setNotice shows a text below the rows, until the end.
func (l *liveLines) setNotice(text string) {
	l.mu.Lock()
	l.notice = text
	l.mu.Unlock()
	l.t.setStatus(l.buildLines(time.Now()))
}

// buildLines returns the current live lines.
func (l *liveLines) buildLines(now time.Time) []string {
	cols, rows := l.t.Size()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := renderBoard(l.board, now, cols-1, max(1, rows/2))
	if l.notice != "" {
		lines = append(lines, truncateEnd(l.notice, cols-1))
	}
	return lines
}

// renderBoard shows a board in a number of lines of a width.
func renderBoard(b *statusBoard, now time.Time, cols, most int) []string {
	list, depths := b.visibleRows(now)
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1:
		return []string{list[0].formatSingle(now, cols)}
	case most == 1:
		var names []string
		for _, r := range list {
			names = append(names, r.name)
		}
		return []string{truncateEnd(fmt.Sprintf("… %d running: %s", len(list), oneLine(strings.Join(names, ", "))), cols)}
	}
	var left []string
	if len(list) > most {
		left = []string{truncateEnd(fmt.Sprintf("  and %d more", len(list)-most+1), cols)}
		list = list[:most-1]
	}
	names, wide := make([]string, len(list)), 0
	for i, r := range list {
		names[i] = strings.Repeat("  ", min(depths[i], 4)) + r.title()
		wide = max(wide, textWidth(names[i]))
	}
	const others = 12 // columns of the margins and the time
	wide = min(wide, max(cols/3, min(cols/2, cols-stateWidth(cols)-others), 8))
	lines := make([]string, 0, len(list)+1)
	for i, r := range list {
		lines = append(lines, r.formatListed(padText(names[i], wide), now, cols))
	}
	lines[0] = "… " + lines[0][len("  "):]
	return append(lines, left...)
}

// stateWidth returns the width of a row's state in a line with the given width.
func stateWidth(cols int) int { return min(28, max(cols/3, 8)) }

// formatSingle returns the line of a row that is the only one.
func (r *boardRow) formatSingle(now time.Time, cols int) string {
	head := "… " + r.title()
	if state := r.describeState(now); (r.talks || r.again.After(now)) && state != "" {
		head += ", " + oneLine(state)
	}
	head += " " + formatDuration(now.Sub(r.since))
	text := strings.Join(strings.Fields(r.text), " ")
	if text != "" {
		head += ": "
	}
	return fitLine(head+text, cols, len(head))
}

// formatListed returns the line of a row that is one of several.
func (r *boardRow) formatListed(name string, now time.Time, cols int) string {
	line := "  " + name + "  " + padText(oneLine(r.describeState(now)), stateWidth(cols))
	add := func(column string) {
		if textWidth(line)+textWidth(column) <= cols {
			line += column
		}
	}
	if !r.queued {
		add(fmt.Sprintf("  %6s", formatDuration(now.Sub(r.since))))
	}
	if r.tokens > 0 {
		add(fmt.Sprintf("  %6s tokens", formatTokens(r.tokens)))
	}
	text := strings.Join(strings.Fields(r.text), " ")
	if text == "" {
		return strings.TrimRight(truncateEnd(line, cols), " ")
	}
	return fitLine(line+"  "+text, cols, len(line)+len("  "))
}
