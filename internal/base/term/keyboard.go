package term

import (
	"os"
	"sync"

	xterm "golang.org/x/term"
)

// A Keyboard keeps what a person types during a run off the screen and out of the next question. While it is held, the
// terminal neither echoes keys nor waits for the end of a line; Ctrl-C, Ctrl-Z and Ctrl-\ send their signals as always.
// The terminal gets its own mode back when the keyboard is released, and before the process stops (Ctrl-Z). A process
// in the background leaves the terminal alone, until it is in the foreground. Nothing restores the mode after SIGKILL;
// bash and zsh do that themselves. It is safe for concurrent use. If its stream is not a terminal, its methods do
// nothing.
type Keyboard struct {
	in       *os.File
	screen   *Screen
	terminal bool

	mu     sync.Mutex
	held   bool
	lent   bool
	saved  *xterm.State // the terminal's own mode; nil if the terminal is in that mode
	stop   func()       // stops the handling of signals
	keys   *Keys        // nil unless keys are captured
	reader *keyReader   // nil while no keys are read
}

// NewKeyboard returns the keyboard of a screen, which is not held. While a stopped process (Ctrl-Z) does not own the
// terminal, the screen shows no live lines.
func NewKeyboard(in *os.File, screen *Screen) *Keyboard {
	return &Keyboard{in: in, terminal: IsTerminal(in), screen: screen}
}

// CaptureInput turns echo and line buffering off until Release. The caller handles SIGINT, SIGTERM and SIGHUP, and
// calls Release before the process ends.
func (k *Keyboard) CaptureInput() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.terminal || k.held {
		return
	}
	k.held = true
	k.stop = k.handleSignals()
	k.applyMode()
}

// Release gives the terminal its own mode back. It undoes CaptureInput.
func (k *Keyboard) Release() {
	k.mu.Lock()
	stop := k.stop
	k.stopReader()
	k.held = false
	k.stop = nil
	k.keys = nil
	k.restoreMode()
	k.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// LendTerminal gives the terminal to a question until takeBack is called. Until then no keys are captured. It is in its
// own mode if cooked is true, otherwise unchanged, for a program that sets a mode itself.
func (k *Keyboard) LendTerminal(cooked bool) (takeBack func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lent = true
	reads := k.reader != nil
	if reads {
		k.stopReader()
		k.screen.SuspendLive()
	}
	if cooked {
		k.restoreMode()
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.lent = false
		k.applyMode()
		if reads {
			k.startReader()
			k.screen.ResumeLive()
		}
	}
}

// SaveMode notes the mode of the terminal for a program that gets the terminal. restore sets it again: the program may
// have changed it, and may have been killed.
func (k *Keyboard) SaveMode() (restore func()) {
	saved, err := xterm.GetState(int(k.in.Fd()))
	if err != nil {
		return func() {}
	}
	return func() { _ = xterm.Restore(int(k.in.Fd()), saved) }
}

// IsForeground reports whether this process may read the keyboard: the terminal belongs to the job in the foreground.
func (k *Keyboard) IsForeground() bool { return isForeground(k.in) }

// DiscardInput removes what was typed and not yet read.
func (k *Keyboard) DiscardInput() {
	if k.terminal && isForeground(k.in) {
		discardInput(k.in)
	}
}

// applyMode turns echo and line buffering off if the keyboard is held. The caller must hold mu.
func (k *Keyboard) applyMode() {
	if !k.held || k.lent || !isForeground(k.in) {
		return
	}
	if k.saved == nil {
		saved, err := xterm.GetState(int(k.in.Fd()))
		if err != nil {
			return
		}
		k.saved = saved
	}
	if k.keys != nil {
		readRawKeys(k.in)
		return
	}
	disableEcho(k.in)
}

// restoreMode gives the terminal its own mode back. The caller must hold mu.
func (k *Keyboard) restoreMode() {
	if k.saved != nil && isForeground(k.in) {
		_ = xterm.Restore(int(k.in.Fd()), k.saved)
	}
	k.saved = nil
}
