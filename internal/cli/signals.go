package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// drainTime is how long a run that was asked to stop may take for the current
// step before it is interrupted.
const drainTime = 10 * time.Second

// A stopper turns signals into the two ways to stop a run: after the current
// step, and at once.
type stopper struct {
	ctx    context.Context // ends when running work is to be interrupted
	asking context.Context // ends with the first signal, so that no question stays on the screen
	pause  chan struct{}   // closed by the first signal

	sh     *shell
	cut    context.CancelCauseFunc
	mute   context.CancelFunc
	quit   func(code int) // ends the process
	signal chan os.Signal
	stop   chan struct{}
	done   sync.WaitGroup

	mu    sync.Mutex
	first os.Signal // nil: none has come
}

// newStopper starts to listen for signals, until close is called.
func (sh *shell) newStopper() *stopper {
	s := &stopper{sh: sh, pause: make(chan struct{}), signal: make(chan os.Signal, 4), stop: make(chan struct{}), quit: os.Exit}
	s.ctx, s.cut = context.WithCancelCause(context.Background())
	s.asking, s.mute = context.WithCancel(s.ctx)
	signal.Notify(s.signal, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	s.done.Go(s.listen)
	return s
}

func (s *stopper) listen() {
	var late <-chan time.Time
	count := 0
	for {
		select {
		case <-s.stop:
			return
		case <-late:
			s.say("The step takes too long. Stopping now.")
			s.cancel()
		case got := <-s.signal:
			count++
			if count == 1 {
				s.drain(got)
			}
			switch {
			case count == 1 && got != os.Interrupt:
				timer := time.NewTimer(drainTime)
				defer timer.Stop()
				late = timer.C
			case count == 2:
				s.say("Stopping now. " + again(got, "to quit at once"))
				s.cancel()
			case count > 2:
				s.sh.keys.Release()
				s.sh.err.still()
				s.quit(signalCode(got))
			}
		}
	}
}

// drain lets the current step finish. Ctrl-C interrupts a reply at once if nothing else is running: an agent calls its model again. Every signal ends a wait for a provider.
func (s *stopper) drain(got os.Signal) {
	s.mu.Lock()
	s.first = got
	s.mu.Unlock()
	asking := s.asking.Err() == nil && s.sh.busy()
	close(s.pause)
	s.mute()
	switch w := s.sh.watching.Load(); {
	case s.sh.lent.Load():
		s.cancel() // it waits for a person
	case !asking:
	case w != nil && (w.onlyWaits() || got == os.Interrupt && w.onlyReplies()):
		s.cancel()
	default:
		s.say("Stopping after this step. " + again(got, "to stop now"))
	}
}

// again says what another signal does: only Ctrl-C can be pressed.
func again(got os.Signal, effect string) string {
	if got != os.Interrupt {
		return ""
	}
	return "Press Ctrl-C again " + effect + "."
}

// say shows a text: below the live lines if there are any, otherwise as a line.
func (s *stopper) say(text string) {
	text = strings.TrimSpace(text)
	if w := s.sh.watching.Load(); w != nil && w.live != nil {
		w.live.setNotice(text)
		return
	}
	s.sh.err.line("raddle: " + text)
}

// cancel interrupts running work.
func (s *stopper) cancel() { s.cut(fmt.Errorf("interrupted")) }

// got returns the first signal, or nil.
func (s *stopper) got() os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *stopper) stopped() bool { return s.got() != nil }

func (s *stopper) close() {
	signal.Stop(s.signal)
	close(s.stop)
	s.done.Wait()
	s.cut(nil)
}
