package mcp

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// progressPause is the least time between two reports of progress that a person sees.
const progressPause = 2 * time.Second

// A progressView shows reports of the progress of a call: the first one at once, then
// the newest one after each pause, and always the last one. It is used by one goroutine.
type progressView struct {
	show  func(text string)
	text  string      // the newest report, if it has not been shown; empty: there is none
	pause *time.Timer // since a report was shown; nil: none was, or the pause is over
}

// addReport stores the newest report, and shows it unless there is a pause.
func (v *progressView) addReport(text string) {
	v.text = text
	if v.pause == nil {
		v.showLast()
	}
}

// showLast shows the newest report if it has not been shown, and begins a pause. If
// there is nothing to show, the pause is over.
func (v *progressView) showLast() {
	v.stop()
	v.pause = nil
	if v.text == "" {
		return
	}
	v.show(v.text)
	v.text = ""
	v.pause = time.NewTimer(progressPause)
}

// due returns a channel that says when the pause is over; nil: there is no pause.
func (v *progressView) due() <-chan time.Time {
	if v.pause == nil {
		return nil
	}
	return v.pause.C
}

// stop ends the pause.
func (v *progressView) stop() {
	if v.pause != nil {
		v.pause.Stop()
	}
}

// reportProgress passes a report of the server to the call that it is about.
func (c *connection) reportProgress(p *sdk.ProgressNotificationParams) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.calls {
		if o.token != p.ProgressToken {
			continue
		}
		select {
		case <-o.progress: // only the newest counts
		default:
		}
		o.progress <- progressText(p)
	}
}

// progressText returns a report as text for people.
func progressText(p *sdk.ProgressNotificationParams) string {
	const longest = 200
	text := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		text += fmt.Sprintf(" of %g", p.Total)
	}
	text = cmp.Or(p.Message, text)
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + " ..."
	}
	return text
}
