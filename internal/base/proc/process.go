package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync"
	"time"
)

// A Process is a child that the caller talks to while it runs: Write writes to its stdin, Read reads from its stdout.
// It has its own group and dies like any other child of this package, but has no time limit. Read, Write and Close may
// be called concurrently.
type Process struct {
	path  string
	grace time.Duration
	child *child

	stdin, stdout *os.File
	closing       sync.Once
	ended         chan struct{} // closed when the child has been reaped and err is set
	err           error

	reaping sync.Mutex
	reaped  bool // from here on another process may have the child's id
}

// Start starts the command and returns while it runs. One goroutine copies the stderr of the child to the writer. Start
// ignores Stdin, Timeout and Limit of c; Grace is the time between the steps of [Process.Close]; zero: [DefaultGrace].
//
// The caller must Close the Process, also after the child has ended by itself. A child that could not be started is a
// [*StartError].
func Start(c Command, stderr io.Writer) (*Process, error) {
	p := &Process{path: c.Path, grace: c.graceOrDefault(), ended: make(chan struct{})}
	started := make(chan error)
	go p.runChild(c, stderr, started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// runChild waits for the child on a thread that is locked for it, as in [Run].
func (p *Process) runChild(c Command, stderr io.Writer, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	errs, err := p.startCommand(c)
	if err == nil && c.Started != nil {
		if err = c.Started(identifyChild(p.child.cmd.Process.Pid, c.Mark)); err != nil {
			err = fmt.Errorf("%s: its start could not be recorded: %w", c.Path, err)
			p.child.killChild()
			p.child.waitExit()
			err = errors.Join(err, p.child.reapProcess())
			p.stdin.Close()
			p.stdout.Close()
			errs.Close()
		}
	}
	started <- err
	if err != nil {
		return
	}
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		io.Copy(stderr, errs) // if stderr fails, the rest is dropped, so that the child is not blocked
		io.Copy(io.Discard, errs)
	}()
	p.child.waitExit()
	p.reapChild()
	errs.SetReadDeadline(time.Now().Add(lastRead))
	<-copied
	errs.Close()
	close(p.ended)
}

// startCommand starts the child and returns the reading end of its stderr.
func (p *Process) startCommand(c Command) (errs *os.File, err error) {
	cmd, err := buildCommand(c)
	if err != nil {
		return nil, &StartError{Path: c.Path, Err: err}
	}
	var files []*os.File // pairs of a reading and a writing end
	for range 3 {
		r, w, e := os.Pipe()
		if err = e; err != nil {
			break
		}
		files = append(files, r, w)
	}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
		p.child = &child{cmd: cmd, exited: make(chan struct{}), started: time.Now()}
		if c.Inside != nil {
			err = c.Inside(cmd)
		}
	}
	if err == nil {
		err = p.child.startProcess()
	}
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		return nil, &StartError{Path: c.Path, Err: err}
	}
	for _, childEnd := range []int{0, 3, 5} {
		files[childEnd].Close()
	}
	p.stdin, p.stdout = files[1], files[2]
	return files[4], nil
}

// reapChild kills the remaining processes of the group and reaps the child.
func (p *Process) reapChild() {
	p.reaping.Lock()
	p.child.killChild()
	err := p.child.reapProcess()
	p.reaped = true
	p.reaping.Unlock()
	// Only a process that left the group can keep the output open now.
	p.stdout.SetReadDeadline(time.Now().Add(p.grace))
	switch state := p.child.cmd.ProcessState; {
	case state == nil:
		p.err = fmt.Errorf("%s: cannot wait for its end: %w", p.path, errors.Join(p.child.waitErr, err))
	case !state.Success():
		p.err = &ExitError{Path: p.path, Code: state.ExitCode(), Signal: signalName(state)}
	}
}

// Read reads from the stdout of the child. After the child has ended, it returns the rest, then io.EOF.
func (p *Process) Read(b []byte) (int, error) { return p.stdout.Read(b) }

// Write writes to the stdin of the child. It blocks while the child does not read; Close unblocks it.
func (p *Process) Write(b []byte) (int, error) { return p.stdin.Write(b) }

// Close ends the child and returns when it has been reaped and its group has been sent SIGKILL. It first closes the
// stdin of the child; after the grace it sends SIGTERM to the group, and SIGKILL after the grace again. Another Close
// waits for the same end.
func (p *Process) Close() error {
	p.closing.Do(func() {
		p.stdin.Close()
		for _, step := range []func(){p.child.terminateChild, p.child.killChild} {
			if p.waitEnded(p.grace) {
				break
			}
			p.reaping.Lock()
			if !p.reaped {
				step()
			}
			p.reaping.Unlock()
		}
		<-p.ended
		p.stdout.Close()
	})
	return nil
}

// waitEnded reports whether the child ends within the time.
func (p *Process) waitEnded(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.ended:
		return true
	case <-t.C:
		return false
	}
}

// Done returns a channel that is closed when the child has ended and been reaped.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Err returns how the child ended once Done is closed: nil after exit code zero, otherwise an [*ExitError] without its
// stderr.
func (p *Process) Err() error {
	select {
	case <-p.ended:
		return p.err
	default:
		return nil
	}
}
