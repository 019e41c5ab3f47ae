package progress

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
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
	look   Look
	notice string // the last line; "": none
}

// NewLiveLines returns the live lines of a run of an agent. The caller must close them.
func NewLiveLines(t *term.Screen, look Look, a *flow.Agent) *LiveLines {
	l := &LiveLines{t: t, look: look, stop: make(chan struct{}), board: newStatusBoard(a.Name, a.Config != nil)}
	l.board.wide = nameWidth(a)
	l.board.names.dot = look.dot
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
	if _, ok := ev.Body.(graph.RunEnded); ok {
		l.t.ClearLive()
	}
	l.board.mute = l.Mute
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
	lines := renderBoard(l.board, now, cols-1, max(1, rows/2), l.look)
	if l.notice != "" {
		lines = append(lines, term.CutEnd(l.notice, cols-1))
	}
	return lines
}

// renderBoard shows a board in a number of lines of a width: a line for each row, and below it the end of what its call
// writes.
func renderBoard(b *statusBoard, now time.Time, cols, most int, l Look) []string {
	list, depths := b.visibleRows(now)
	switch {
	case len(list) == 0:
		return nil
	case len(list) > 1 && most == 1:
		var names []string
		for _, r := range list {
			names = append(names, r.name)
		}
		return []string{term.CutEnd(fmt.Sprintf("%s %d running: %s", l.frame(now), len(list), term.CleanLine(strings.Join(names, ", "))), cols)}
	}
	var left []string
	if len(list) > most {
		left = []string{term.CutEnd(fmt.Sprintf("%s and %d more", l.blank(), len(list)-most+1), cols)}
		list = list[:most-1]
	}
	names := make([]string, len(list))
	states := make([]string, len(list))
	wide := b.wide
	stateWide := 0
	counts := false
	for i, r := range list {
		counts = counts || r.tokens > 0
		names[i] = strings.Repeat("  ", min(depths[i], 4)) + r.title()
		wide = max(wide, term.TextWidth(names[i]))
		states[i] = term.CleanLine(r.describeState(now, l))
		if r.text != "" {
			stateWide = max(stateWide, term.TextWidth(states[i]))
		}
	}
	wide = min(wide, max(cols/2, 8))
	var lines []string
	room := most - len(list) - len(left)
	for i, r := range list {
		mark := l.blank()
		if i == 0 {
			mark = l.frame(now)
		}
		if r.text != "" {
			states[i] = term.PadText(states[i], min(stateWide, max(cols/3, 8)))
		}
		lines = append(lines, r.formatRow(mark+" "+term.PadText(names[i], wide), states[i], counts, now, cols, l))
		for _, line := range r.lastOutput(min(room, outputTail)) {
			lines = append(lines, l.cutRight("    "+line, cols))
			room--
		}
	}
	return append(lines, left...)
}

// blank returns blanks that are as wide as the mark of what runs.
func (l Look) blank() string { return strings.Repeat(" ", term.TextWidth(l.spinner[0])) }

// formatRow returns the line of a row: its name, for how long it runs, what it does, and the end of what its model
// writes. counts reserves columns for tokens.
func (r *boardRow) formatRow(name, state string, counts bool, now time.Time, cols int, l Look) string {
	line := name
	add := func(column string) {
		if column != "" && term.TextWidth(line)+2+term.TextWidth(column) <= cols {
			line += "  " + column
		}
	}
	took := formatSince(now.Sub(r.since))
	tokens := ""
	if r.queued {
		took = ""
	}
	if r.tokens > 0 {
		tokens = wording.FormatTokens(r.tokens) + " tokens"
	}
	if cols >= 40 {
		add(fmt.Sprintf("%-5s", took))
	}
	if counts && cols >= 70 {
		add(fmt.Sprintf("%-11s", tokens))
	}
	if r.items != nil {
		if bar := l.bar(r.items); term.TextWidth(line+state+bar)+4 <= cols {
			state += "  " + bar
		}
	}
	if room := cols - term.TextWidth(line) - 2; room > 3 {
		line += "  " + l.cutRight(state, room)
	}
	text := strings.Join(strings.Fields(term.CleanLine(r.text)), " ")
	if room := cols - term.TextWidth(line) - 2 - term.TextWidth(l.open+l.close); text != "" && room > 6 {
		if term.TextWidth(text) > room {
			text = l.more + term.CutStart(text, room-term.TextWidth(l.more))
		}
		line += "  " + l.open + text + l.close
	}
	return strings.TrimRight(term.CutEnd(line, cols), " ")
}

// bar returns a bar that shows how many items of a map are done.
func (l Look) bar(n *itemCounts) string {
	const wide = 12
	total := max(n.total, n.done+n.failed+n.running)
	if total == 0 {
		return ""
	}
	done := (n.done + n.failed) * wide / total
	return l.half + strings.Repeat(l.full, done) + strings.Repeat(l.empty, wide-done) + l.half
}

// lastOutput returns the last lines of what a call of the row has written.
func (r *boardRow) lastOutput(most int) []string {
	for _, c := range slices.Backward(r.calls) {
		if lines := textLines(c.output); len(lines) > 0 && most > 0 {
			return lines[max(0, len(lines)-most):]
		}
	}
	return nil
}
