package agent

import (
	"strings"
	"sync"
	"time"
)

// printedInterval is the shortest time between two events about what a call prints.
const printedInterval = 150 * time.Millisecond

// printedLines collects what a call prints into events: whole lines, a few times a second. It is safe for concurrent
// use.
type printedLines struct {
	emit func(text string)

	mu     sync.Mutex
	rest   string // the last line, which may not be complete
	ready  string // complete lines
	timer  *time.Timer
	closed bool
}

// These are the limits of what is collected, in bytes.
const (
	longestPrinted = 4 << 10 // of a line; a longer one is divided
	maxPrinted     = 8 << 10 // between two events; of more, the end is kept
)

// add takes a piece of what the call prints. A return ends a line as well: programs show progress that way.
func (p *printedLines) add(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest += text
	end := strings.LastIndexAny(p.rest, "\n\r") + 1
	if end == 0 && len(p.rest) > longestPrinted {
		end = len(p.rest)
	}
	p.ready += p.rest[:end]
	p.rest = p.rest[end:]
	if over := len(p.ready) - maxPrinted; over > 0 {
		p.ready = p.ready[over:]
		p.ready = p.ready[strings.IndexByte(p.ready, '\n')+1:]
	}
	if p.ready != "" && p.timer == nil && !p.closed {
		p.timer = time.AfterFunc(printedInterval, p.flush)
	}
}

func (p *printedLines) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer = nil; !p.closed && p.ready != "" {
		p.emit(p.ready)
		p.ready = ""
	}
}

// close ends the events: the result of the call has everything.
func (p *printedLines) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.timer != nil {
		p.timer.Stop()
	}
}
