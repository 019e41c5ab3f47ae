package cli

import (
	"errors"
	"os"

	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
)

// lendTerminal lends the terminal to a script of the run that is being driven. The
// error says why there is none.
func (env *environment) lendTerminal() (*app.Terminal, error) {
	stop := env.stopping.Load()
	switch {
	case !term.IsTerminal(env.in):
		return nil, errors.New("the standard input of raddle is not a terminal")
	case !env.err.IsTerminal():
		return nil, errors.New("the standard error of raddle is not a terminal")
	case stop == nil || !env.keys.IsForeground():
		return nil, errors.New("raddle runs in the background")
	}
	env.err.SuspendLive()
	takeBack := env.keys.LendTerminal(true)
	restore := env.keys.SaveMode()
	env.lent.Store(true)
	t := &app.Terminal{Return: func(interrupted bool) {
		restore()
		takeBack()
		if interrupted {
			env.err.PrintLine("") // behind ^C
			stop.interrupt()
		}
		env.lent.Store(false)
		env.err.ResumeLive()
	}}
	t.In, t.Out = env.in, env.err.File()
	t.Suspended = func() {
		again := env.keys.SaveMode()
		restore()
		env.keys.Suspend()
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
