package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// drainTime is how long a run that was asked to stop may take for the current
// step before it is interrupted.
const drainTime = 10 * time.Second

// foreground is the run that this terminal drives, as far as signals and scripts must know it. The zero value drives
// none.
type foreground struct {
	working      atomic.Bool                // nodes may be running, which a signal would have to wait for
	watching     atomic.Pointer[runWatcher] // nil: no run is being driven
	stopping     atomic.Pointer[stopper]    // of the run that is being driven
	terminalLent atomic.Bool                // a script has the terminal
}

// A stopper turns signals into the two ways to stop a run: after the current
// step, and at once.
type stopper struct {
	ctx    context.Context // ends when running work is to be interrupted
	asking context.Context // ends with the first signal, so that no question stays on the screen
	pause  chan struct{}   // closed by the first signal

	console     *console.Console
	foreground  *foreground
	cut         context.CancelCauseFunc
	mute        context.CancelFunc
	quit        func(code int)  // ends the process
	interrupted <-chan struct{} // closed when the turn of a conversation is interrupted; nil elsewhere
	signal      chan os.Signal
	stop        chan struct{}
	done        sync.WaitGroup

	mu    sync.Mutex
	first os.Signal // nil: none has come
}

// makeStopper returns a stopper that listens for nothing yet.
func makeStopper(con *console.Console, fg *foreground) *stopper {
	s := &stopper{
		console:    con,
		foreground: fg,
		pause:      make(chan struct{}),
		signal:     make(chan os.Signal, 4),
		stop:       make(chan struct{}),
		quit:       os.Exit,
	}
	s.ctx, s.cut = context.WithCancelCause(context.Background())
	s.asking, s.mute = context.WithCancel(s.ctx)
	return s
}

// newStopper starts to listen for signals, until close is called.
func newStopper(con *console.Console, fg *foreground) *stopper {
	s := makeStopper(con, fg)
	signal.Notify(s.signal, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	s.done.Go(s.handleSignals)
	return s
}

// newTurnStopper returns what stops the turn of a conversation: closing interrupt ends its questions, and closing
// cancel stops the run so that it can be continued. It listens for no signals.
func newTurnStopper(con *console.Console, fg *foreground, interrupt, cancel <-chan struct{}) *stopper {
	s := makeStopper(con, fg)
	s.interrupted = interrupt
	s.done.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			case <-interrupt:
				s.mute()
				interrupt = nil
			case <-cancel:
				s.drainStep(os.Interrupt)
				s.cancelWork()
				cancel = nil
			case <-s.signal: // Ctrl-C where a script has the terminal
				s.cancelWork()
			}
		}
	})
	return s
}

func (s *stopper) handleSignals() {
	var late <-chan time.Time
	count := 0
	for {
		select {
		case <-s.stop:
			return
		case <-late:
			s.showText("The step takes too long. Stopping now.")
			s.cancelWork()
		case got := <-s.signal:
			count++
			if count == 1 {
				s.drainStep(got)
			}
			switch {
			case count == 1 && got != os.Interrupt:
				timer := time.NewTimer(drainTime)
				defer timer.Stop()
				late = timer.C
			case count == 2:
				s.showText("Stopping now. " + repeatHint(got, "to quit at once"))
				s.cancelWork()
			case count > 2:
				s.console.Keyboard.Release()
				s.console.Screen.ClearLive()
				s.quit(ending.SignalCode(got))
			}
		}
	}
}

// drainStep lets the current step finish. Ctrl-C interrupts a reply at once if nothing else is running: an agent calls
// its model again. Every signal ends a wait for a provider.
func (s *stopper) drainStep(got os.Signal) {
	s.mu.Lock()
	s.first = got
	s.mu.Unlock()
	asking := s.asking.Err() == nil && s.foreground.working.Load()
	close(s.pause)
	s.mute()
	switch w := s.foreground.watching.Load(); {
	case s.foreground.terminalLent.Load():
		s.cancelWork() // it waits for a person
	case !asking:
	case w != nil && (w.activity.OnlyWaits() || got == os.Interrupt && w.run.Agent.Config != nil && w.activity.OnlyReplies()):
		s.cancelWork()
	default:
		s.showText("Stopping after this step. " + repeatHint(got, "to stop now"))
	}
}

// repeatHint says what another signal does: only Ctrl-C can be pressed.
func repeatHint(got os.Signal, effect string) string {
	if got != os.Interrupt {
		return ""
	}
	return "Press Ctrl-C again " + effect + "."
}

// showText shows a text: below the live lines if there are any, otherwise as a line.
func (s *stopper) showText(text string) {
	text = strings.TrimSpace(text)
	if w := s.foreground.watching.Load(); w != nil && w.live != nil {
		w.live.SetNotice(text)
		return
	}
	s.console.Screen.PrintLine("raddle: " + text)
}

// cancelWork interrupts running work.
func (s *stopper) cancelWork() { s.cut(fmt.Errorf("interrupted")) }

// firstSignal returns the first signal, or nil.
func (s *stopper) firstSignal() os.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first
}

func (s *stopper) isStopped() bool {
	select {
	case <-s.interrupted:
		return true
	default:
		return s.firstSignal() != nil
	}
}

func (s *stopper) close() {
	signal.Stop(s.signal)
	close(s.stop)
	s.done.Wait()
	s.cut(nil)
}

// lendTerminal lends the terminal to a script of the run that is being driven. The
// error says why there is none.
func lendTerminal(con *console.Console, fg *foreground) (*toolbox.Terminal, error) {
	stop := fg.stopping.Load()
	switch {
	case !term.IsTerminal(con.In):
		return nil, errors.New("the standard input of raddle is not a terminal")
	case !con.Screen.IsTerminal():
		return nil, errors.New("the standard error of raddle is not a terminal")
	case stop == nil || !con.Keyboard.IsForeground():
		return nil, errors.New("raddle runs in the background")
	}
	con.Screen.SuspendLive()
	takeBack := con.Keyboard.LendTerminal(true)
	restore := con.Keyboard.SaveMode()
	fg.terminalLent.Store(true)
	t := &toolbox.Terminal{Return: func(interrupted bool) {
		restore()
		takeBack()
		if interrupted {
			con.Screen.PrintLine("") // behind ^C
			stop.interrupt()
		}
		fg.terminalLent.Store(false)
		con.Screen.ResumeLive()
	}}
	t.In, t.Out = con.In, con.Screen.File()
	t.Suspended = func() {
		again := con.Keyboard.SaveMode()
		restore()
		con.Keyboard.Suspend()
		again()
	}
	return t, nil
}

// interrupt does what Ctrl-C does where it went to a script alone, and returns when
// the work is being cut short.
func (s *stopper) interrupt() {
	s.signal <- os.Interrupt
	<-s.ctx.Done()
}
