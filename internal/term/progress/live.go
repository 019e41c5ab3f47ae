package progress

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

// patience is how long a node may take before the live lines show it.
const patience = 300 * time.Millisecond

// LiveLines keeps the live lines of a screen up to date: what is running, what it does, for
// how long, and the end of the text that a model is writing. It is safe for concurrent use.
type LiveLines struct {
	Mute bool // the text of the agent's own model is shown elsewhere; must not change after the first event

	t    *term.Screen
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	board  *statusBoard
	notice string // the last line; "": none
}

// NewLiveLines returns the live lines of a run of an agent. The caller must close them.
func NewLiveLines(t *term.Screen, a *flow.Agent) *LiveLines {
	l := &LiveLines{t: t, stop: make(chan struct{}), board: newStatusBoard(a.Name, a.Config != nil)}
	l.done.Go(func() {
		tick := time.NewTicker(term.RedrawInterval)
		defer tick.Stop()
		for {
			select {
			case <-l.stop:
				return
			case now := <-tick.C:
				t.SetLive(l.buildLines(now))
			}
		}
	})
	return l
}

// Close ends the updates. The last lines stay on the screen.
func (l *LiveLines) Close() {
	close(l.stop)
	l.done.Wait()
}

// HandleEvent takes an event of the run into account.
func (l *LiveLines) HandleEvent(ev graph.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch b := ev.Body.(type) {
	case graph.ValueEmitted:
		if _, text := b.Value.(agent.TextDelta); text && l.Mute && isReaderPath(ev.Path) {
			return
		}
	case graph.RunEnded:
		l.t.ClearLive()
	}
	l.board.handleEvent(ev)
}

// SetNotice shows a text below the rows, until the end.
func (l *LiveLines) SetNotice(text string) {
	l.mu.Lock()
	l.notice = text
	l.mu.Unlock()
	l.t.SetLive(l.buildLines(time.Now()))
}

// buildLines returns the current live lines.
func (l *LiveLines) buildLines(now time.Time) []string {
	cols, rows := l.t.Size()
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := renderBoard(l.board, now, cols-1, max(1, rows/2))
	if l.notice != "" {
		lines = append(lines, term.CutEnd(l.notice, cols-1))
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
		return []string{term.CutEnd(fmt.Sprintf("… %d running: %s", len(list), term.CleanLine(strings.Join(names, ", "))), cols)}
	}
	var left []string
	if len(list) > most {
		left = []string{term.CutEnd(fmt.Sprintf("  and %d more", len(list)-most+1), cols)}
		list = list[:most-1]
	}
	names, wide := make([]string, len(list)), 0
	for i, r := range list {
		names[i] = strings.Repeat("  ", min(depths[i], 4)) + r.title()
		wide = max(wide, term.TextWidth(names[i]))
	}
	const others = 12 // columns of the margins and the time
	wide = min(wide, max(cols/3, min(cols/2, cols-stateWidth(cols)-others), 8))
	lines := make([]string, 0, len(list)+1)
	for i, r := range list {
		lines = append(lines, r.formatListed(term.PadText(names[i], wide), now, cols))
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
		head += ", " + term.CleanLine(state)
	}
	head += " " + wording.FormatDuration(now.Sub(r.since))
	text := strings.Join(strings.Fields(r.text), " ")
	if text != "" {
		head += ": "
	}
	return term.FitLine(head+text, cols, len(head))
}

// formatListed returns the line of a row that is one of several.
func (r *boardRow) formatListed(name string, now time.Time, cols int) string {
	line := "  " + name + "  " + term.PadText(term.CleanLine(r.describeState(now)), stateWidth(cols))
	add := func(column string) {
		if term.TextWidth(line)+term.TextWidth(column) <= cols {
			line += column
		}
	}
	if !r.queued {
		add(fmt.Sprintf("  %6s", wording.FormatDuration(now.Sub(r.since))))
	}
	if r.tokens > 0 {
		add(fmt.Sprintf("  %6s tokens", wording.FormatTokens(r.tokens)))
	}
	text := strings.Join(strings.Fields(r.text), " ")
	if text == "" {
		return strings.TrimRight(term.CutEnd(line, cols), " ")
	}
	return term.FitLine(line+"  "+text, cols, len(line)+len("  "))
}
