package cli

import (
	"errors"
	"os"

	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
)

// lendTerminal lends the terminal to a script of the run that is being driven. The
// error says why there is none.
func (sh *shell) lendTerminal() (*app.Terminal, error) {
	stop := sh.stopping.Load()
	switch {
	case !term.IsTerminal(sh.in):
		return nil, errors.New("the standard input of raddle is not a terminal")
	case !sh.err.IsTerminal():
		return nil, errors.New("the standard error of raddle is not a terminal")
	case stop == nil || !sh.keys.IsForeground():
		return nil, errors.New("raddle runs in the background")
	}
	sh.err.suspendStatus()
	takeBack := sh.keys.LendTerminal(true)
	restore := sh.keys.SaveMode()
	sh.lent.Store(true)
	t := &app.Terminal{Return: func(interrupted bool) {
		restore()
		takeBack()
		if interrupted {
			sh.err.printLine("") // behind ^C
			stop.interrupt()
		}
		sh.lent.Store(false)
		sh.err.resumeStatus()
	}}
	t.In, t.Out = sh.in, sh.err.File()
	t.Suspended = func() {
		again := sh.keys.SaveMode()
		restore()
		sh.keys.Suspend()
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
