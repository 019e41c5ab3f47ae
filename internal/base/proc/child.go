package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// lastRead bounds the wait for the end of the output once the whole group has been killed. Only a process that left the
// group can keep the output open for longer.
const lastRead = 100 * time.Millisecond

// A child is a started command. The order of calls is: start, waitExit concurrently with supervise, finish.
type child struct {
	cmd     *exec.Cmd
	group   group // of the child and what it starts
	started time.Time
	took    time.Duration
	tooMuch chan struct{} // closed when an output is longer than the command may print
	exited  chan struct{} // closed when the child has ended; on Linux it is a zombie until finish
	waitErr error         // why waiting failed; the state of the process says how it ended

	terminal *Terminal // lent to the child's group; nil: none
	stdin    *os.File  // the writing end, nil without input
	outputs  [2]output
	drained  chan struct{} // closed when both outputs have been read completely
}

// An output is the reading end of stdout or stderr and what was read from it.
type output struct {
	pipe *os.File
	kept Capture
	err  error // set before drained is closed
}

// startChild starts the command in its own process group and starts to move its input and output. The caller must lock
// the thread.
func startChild(c Command) (*child, error) {
	cmd, err := buildCommand(c)
	if err != nil {
		return nil, &StartError{Path: c.Path, Err: err}
	}
	ch := &child{cmd: cmd, tooMuch: make(chan struct{}), exited: make(chan struct{}), drained: make(chan struct{})}
	childEnds, err := ch.openPipes(c)
	if err == nil && c.Inside != nil {
		err = c.Inside(cmd)
	}
	if err == nil {
		ch.started = time.Now()
		err = ch.startProcess()
	}
	for _, f := range childEnds {
		f.Close()
	}
	if err != nil {
		ch.takeTerminal() // the child may have had it before its program could not be run
		ch.closePipes()
		return nil, &StartError{Path: c.Path, Err: err}
	}
	ch.copyStreams(c)
	return ch, nil
}

// buildCommand builds the command without its pipes.
func buildCommand(c Command) (*exec.Cmd, error) {
	if c.Path == "" {
		return nil, errors.New("no program is set")
	}
	if c.Dir != "" {
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, fmt.Errorf("working directory: %w", err) // the system would name the program in its error
		}
	}
	path, err := lookPath(c.Path, c.Env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, c.Args...)
	cmd.Args[0] = c.Path
	cmd.Dir = c.Dir
	cmd.Env = append([]string{}, c.Env...) // not nil, which would mean the environment of this process
	cmd.SysProcAttr = childAttributes()
	return cmd, nil
}

// openPipes creates the pipes and returns the ends that belong to the child, also if it fails. A child with a terminal
// needs none.
func (ch *child) openPipes(c Command) (childEnds []*os.File, err error) {
	if c.Terminal != nil {
		ch.lendTerminal(c.Terminal)
		return nil, nil
	}
	over := sync.OnceFunc(func() { close(ch.tooMuch) })
	for i := range ch.outputs {
		r, w, err := os.Pipe()
		if err != nil {
			return childEnds, err
		}
		ch.outputs[i] = output{pipe: r, kept: Capture{limit: c.limitOrDefault(), most: c.MaxOutput, over: over}}
		childEnds = append(childEnds, w)
	}
	ch.cmd.Stdout, ch.cmd.Stderr = childEnds[0], childEnds[1]
	if c.StdinFile != nil {
		ch.cmd.Stdin = c.StdinFile
	}
	if len(c.Stdin) == 0 {
		return childEnds, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return childEnds, err
	}
	ch.cmd.Stdin = r
	ch.stdin = w
	return append(childEnds, r), nil
}

// copyStreams starts the goroutines that feed the child and read from it.
func (ch *child) copyStreams(c Command) {
	if ch.stdin != nil {
		go func() {
			ch.stdin.Write(c.Stdin) // a child need not read its input
			ch.stdin.Close()
		}()
	}
	var readers sync.WaitGroup
	for i := range ch.outputs {
		o := &ch.outputs[i]
		if o.pipe == nil {
			continue
		}
		o.kept.watch = []io.Writer{c.Watch, c.WatchStderr}[i]
		readers.Go(func() { _, o.err = io.Copy(&o.kept, o.pipe) })
	}
	go func() {
		readers.Wait()
		close(ch.drained)
	}()
}

// waitExit blocks until the child has ended. If the system can report the end without reaping, the child's id, and with
// it the id of the group, stays reserved until finish.
func (ch *child) waitExit() {
	ch.waitErr = ch.waitProcess()
	ch.took = time.Since(ch.started)
	close(ch.exited)
}

// superviseExit ends the child when ctx ends or its time is over, and returns when finish may be called: nil if the
// child ended by itself.
func (ch *child) superviseExit(ctx context.Context, c Command) error {
	err := ch.waitFirst(ctx, c)
	grace := time.NewTimer(c.graceOrDefault())
	defer grace.Stop()
	cancelled := ctx.Done()
	if err != nil {
		cancelled = nil
		ch.terminateChild()
		select {
		case <-ch.exited:
		case <-grace.C:
			ch.killChild()
			return err
		}
	}
	select {
	case <-ch.drained:
	case <-grace.C:
	case <-cancelled:
	}
	return err
}

// waitFirst waits for the first of four events: the end of the child, of its time, of the output that it may print, or
// of ctx. If several occur, the end of the child counts.
func (ch *child) waitFirst(ctx context.Context, c Command) error {
	var over <-chan time.Time
	if c.Timeout > 0 {
		t := time.NewTimer(c.Timeout)
		defer t.Stop()
		over = t.C
	}
	var err error
	select {
	case <-ch.exited:
	case <-ctx.Done():
		err = newStoppedError(ctx, c.Path)
	case <-over:
		err = &TimeoutError{Path: c.Path, After: c.Timeout}
	case <-ch.tooMuch:
		err = &OutputError{Path: c.Path, After: c.MaxOutput}
	}
	select {
	case <-ch.exited:
		return nil
	default:
		return err
	}
}

// reapAndReport kills the remaining processes of the group, reaps the child and returns the result. The child must have
// ended.
func (ch *child) reapAndReport(c Command, err error) (Result, error) {
	ch.killChild()
	reapErr := ch.reapProcess()
	readErr := ch.drainOutputs()
	stdout := &ch.outputs[0].kept
	stderr := &ch.outputs[1].kept
	res := Result{
		Stdout: stdout.KeptBytes(), StdoutDropped: stdout.CountDropped(),
		Stderr: stderr.KeptBytes(), StderrDropped: stderr.CountDropped(),
		ExitCode: -1, Duration: ch.took,
	}
	state := ch.cmd.ProcessState
	if state != nil {
		res.ExitCode, res.Signal = state.ExitCode(), signalName(state)
	}
	switch {
	case err != nil:
		return res, err
	case state == nil:
		return res, fmt.Errorf("%s: cannot wait for its end: %w", c.Path, errors.Join(ch.waitErr, reapErr))
	case !state.Success():
		return res, &ExitError{Path: c.Path, Code: res.ExitCode, Signal: res.Signal, Stderr: lastLine(res.Stderr)}
	case readErr != nil:
		return res, fmt.Errorf("%s: cannot read its output: %w", c.Path, readErr)
	}
	return res, nil
}

// drainOutputs waits for the end of the outputs, at most lastRead, and closes the pipes.
func (ch *child) drainOutputs() error {
	for i := range ch.outputs {
		if pipe := ch.outputs[i].pipe; pipe != nil {
			pipe.SetReadDeadline(time.Now().Add(lastRead))
		}
	}
	<-ch.drained
	ch.closePipes()
	for i := range ch.outputs {
		if err := ch.outputs[i].err; err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
	return nil
}

// closePipes closes the ends of this process. Closing the input twice is harmless, and unblocks its writer.
func (ch *child) closePipes() {
	for _, f := range []*os.File{ch.stdin, ch.outputs[0].pipe, ch.outputs[1].pipe} {
		if f != nil {
			f.Close()
		}
	}
}
