package chat

import (
	"strings"
	"sync"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
)

// details is what a turn has shown in part: the reasoning, and the results of tools. The zero value is empty. It is
// safe for concurrent use.
type details struct {
	mu    sync.Mutex
	parts []detail
	size  int
}

// A detail is the reasoning before a reply, or a call.
type detail struct{ id, title, text string }

// maxDetails is how much is kept, in bytes, and maxDetail how much of one result.
const (
	maxDetails = 1 << 20
	maxDetail  = 64 << 10
)

// reset forgets everything.
func (d *details) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = nil
	d.size = 0
}

func (d *details) addReasoning(text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := len(d.parts); n == 0 || d.parts[n-1].title != reasoningTitle {
		d.parts = append(d.parts, detail{title: reasoningTitle})
	}
	d.addText(len(d.parts)-1, text)
}

const reasoningTitle = "reasoning"

func (d *details) addCall(id, name, args string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parts = append(d.parts, detail{id: id, title: name + " " + args})
}

func (d *details) addResult(id, name, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := len(d.parts) - 1; i >= 0; i-- {
		if d.parts[i].id == id && d.parts[i].text == "" {
			d.addText(i, text)
			return
		}
	}
	d.parts = append(d.parts, detail{id: id, title: name})
	d.addText(len(d.parts)-1, text)
}

// addText adds a text to a part, as far as there is room. The caller must hold mu.
func (d *details) addText(at int, text string) {
	if room := min(maxDetail-len(d.parts[at].text), maxDetails-d.size); len(text) > room {
		text = wording.CutText(text, max(room, 0), "…")
	}
	d.parts[at].text += text
	d.size += len(text)
}

// format returns the details for a terminal; "" if there are none.
func (d *details) format(paint func(term.Style, string) string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	for _, p := range d.parts {
		b.WriteString("\n" + paint(term.Bold, term.CleanLine(wording.CutText(p.title, 500, "…"))) + "\n")
		for line := range strings.Lines(strings.TrimRight(term.CleanText(p.text), "\n")) {
			b.WriteString(paint(term.Dim, "  "+strings.TrimRight(line, "\n")) + "\n")
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
