package progress

import (
	"fmt"
	"time"

	"raddle.dev/flow"
	"raddle.dev/internal/base/term"
)

// A BuildLine is the live line of the build of a knowledge base: how far it is,
// how fast, and how long it will take. Only one goroutine may call it.
type BuildLine struct {
	screen *term.Screen

	base  string    // empty if no base is being built
	since time.Time // time of the first progress
	asked time.Time // time of the first progress of calls of the extractor model
	known int       // documents that have not changed
}

// NewBuildLine returns the live line of the builds of a command.
func NewBuildLine(screen *term.Screen) *BuildLine { return &BuildLine{screen: screen} }

// ShowProgress shows the progress of a build. The terminal draws it at a readable rate.
func (l *BuildLine) ShowProgress(p flow.BuildProgress) {
	if p.Ended {
		*l = BuildLine{screen: l.screen}
		l.screen.ClearLive()
		return
	}
	now := time.Now()
	if l.base != p.Base {
		*l = BuildLine{screen: l.screen, base: p.Base, since: now}
	}
	if p.Known {
		l.known++
	}
	if p.ToAsk > 0 && l.asked.IsZero() {
		l.asked = now
	}
	cols, _ := l.screen.Size()
	l.screen.SetLive([]string{term.CutEnd(term.CleanLine(l.formatProgress(p, now.Sub(l.since))), cols-1)})
}

// formatProgress returns the text to show. Unchanged documents take no time that counts.
func (l *BuildLine) formatProgress(p flow.BuildProgress, took time.Duration) string {
	if p.ToAsk > 0 {
		return l.formatExtraction(p, took-l.asked.Sub(l.since))
	}
	text := fmt.Sprintf("… %s: %d of %d documents", l.base, p.Done, p.Total)
	if p.Embedded > 0 {
		text += fmt.Sprintf(", %d chunks embedded", p.Embedded)
	}
	work := p.Done - l.known
	if took < time.Second || work == 0 {
		return text
	}
	each := work
	if p.Embedded > 0 {
		each = p.Embedded
	}
	text += fmt.Sprintf(" (%.0f/s)", float64(each)/took.Seconds())
	left := time.Duration(float64(took) / float64(work) * float64(p.Total-p.Done))
	return text + ", " + left.Round(time.Second).String() + " left"
}

// formatExtraction returns the text to show when all documents are read and the extractor model is
// called for their parts.
func (l *BuildLine) formatExtraction(p flow.BuildProgress, took time.Duration) string {
	text := fmt.Sprintf("… %s: entities of %d of %d parts", l.base, p.Asked, p.ToAsk)
	if took < time.Second || p.Asked == 0 {
		return text
	}
	left := time.Duration(float64(took) / float64(p.Asked) * float64(p.ToAsk-p.Asked))
	return text + fmt.Sprintf(" (%.1f/s), %s left", float64(p.Asked)/took.Seconds(), left.Round(time.Second))
}
