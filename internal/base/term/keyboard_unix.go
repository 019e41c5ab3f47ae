//go:build unix

package term

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// isForeground reports whether this process may change the mode of the terminal: the system would stop a background
// process that tried.
func isForeground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return true // it is not the controlling terminal, and only that one has the rule
	}
	own, err := unix.Getpgid(0)
	return err == nil && group == own
}

// handleSignals handles the signals that stop and continue the process from the keyboard.
func (k *Keyboard) handleSignals() (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTSTP, syscall.SIGCONT)
	end := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		for {
			select {
			case <-end:
				return
			case got := <-signals:
				switch got {
				case syscall.SIGTSTP:
					k.stopProcess(signals)
				case syscall.SIGCONT:
					k.withLock(k.applyMode)
				}
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(end)
		done.Wait()
	}
}

// stopProcess stops the process as Ctrl-Z does, and returns when it continues.
func (k *Keyboard) stopProcess(signals chan os.Signal) {
	if !CanSuspend() {
		return
	}
	k.screen.SuspendLive()
	k.withLock(k.restoreMode)
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // SIGTSTP keeps its handler until the process ends
	for got := range signals {
		if got == syscall.SIGCONT {
			break
		}
	}
	k.withLock(k.applyMode)
	k.screen.ResumeLive()
}

// Suspend stops the process as Ctrl-Z does, and returns when it continues in the foreground. In the background it stops
// again. It does nothing if no shell can continue the process.
func (k *Keyboard) Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	for CanSuspend() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		<-continued
		if isForeground(k.in) {
			return
		}
	}
}

// CanSuspend reports whether there is a shell with job control that can continue this process after a stop: such a
// shell runs each job in a process group of its own, which is not the group of the session's first process.
func CanSuspend() bool {
	group, err := unix.Getpgid(0)
	session, sessionErr := unix.Getsid(0)
	return err == nil && sessionErr == nil && group != session
}

func (k *Keyboard) withLock(do func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	do()
}

// NotifyQuit sends SIGQUIT, which the keyboard has a key for, to a channel.
func NotifyQuit(c chan<- os.Signal) { signal.Notify(c, syscall.SIGQUIT) }
