// Package proc runs a child process in its own process group, with a time limit and capped output, and always reaps it.
// The process that drives a run may die at any moment; a later process then finds what the child left behind by its
// [Handle].
//
//	res, err := proc.Run(ctx, proc.Command{
//		Path:    "bash",
//		Args:    []string{"triage.sh"},
//		Env:     []string{"PATH=" + os.Getenv("PATH")},
//		Timeout: 30 * time.Second,
//	})
//
// The package promises, in this order of strength:
//
//   - When [Run] returns, the child has been reaped and every process left in its group has been killed.
//   - On Linux the same holds for processes that have left the group, where the command has a [Command.Mark] and they have kept it.
//   - Run returns. A process that left the group and keeps the output open delays it by [Command.Grace] at most.
//   - On Linux the child is killed when this process dies, even by SIGKILL. What the child had started itself is not killed then: [EndHandle]
//     reaches it only while the child is there, running or not yet reaped.
//   - On Windows the child and all processes that it starts are in a job object: they cannot leave it, and the system ends them when Run returns
//     and when this process ends in any way.
//   - On systems other than Linux, macOS and Windows a [Handle] cannot be verified, EndHandle does nothing, and only the child itself is ended.
package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"
)

const (
	// DefaultGrace is the time between SIGTERM and SIGKILL if [Command.Grace] is zero.
	DefaultGrace = 2 * time.Second
	// DefaultLimit is the number of bytes kept of each output if [Command.Limit] is zero.
	DefaultLimit = 16 << 20
)

// A Command says what to run. Only Path is required.
type Command struct {
	// Path is the program. A name without a separator is looked up in the PATH of Env, or in that of this process where
	// Env has none; a relative path is relative to Dir.
	Path string
	// Args are the arguments after the program's name.
	Args []string
	// Dir is the working directory; empty: that of this process.
	Dir string
	// Env is the complete environment, as "NAME=value". Nothing is inherited, so a secret reaches the child only if it
	// is put here.
	Env []string
	// Stdin is what the child reads; empty: nothing.
	Stdin []byte
	// StdinFile, if set, is what the child reads in place of Stdin, such as one end of a pipe. Only [Run] uses it, and
	// leaves it open.
	StdinFile *os.File
	// Terminal, if set, is lent to the child in place of Stdin and of the two outputs that are kept. Only [Run] can
	// lend it.
	Terminal *Terminal
	// Timeout ends the child after this time; zero: no limit.
	Timeout time.Duration
	// Grace is how long the group may take to end after SIGTERM before SIGKILL follows, and how long the output may
	// stay open after the child has ended by itself; zero: [DefaultGrace].
	Grace time.Duration
	// Limit is the number of bytes kept of each of the two outputs: of a longer one, its beginning and its end are
	// kept; zero: [DefaultLimit].
	Limit int
	// MaxOutput ends the child when one of its two outputs is longer than this number of bytes; zero: no limit.
	MaxOutput int64
	// Mark, if set, is one "NAME=value" of Env that no other command has. On Linux, every process that still has it in
	// its environment when the command has ended is killed as well, even if it has left the group.
	Mark string
	// Watch, if set, receives everything that the child writes to stdout, as it is written. It must not block, and its
	// errors are ignored.
	Watch io.Writer
	// WatchStderr is like Watch, for stderr. It may be the same writer if that is safe for concurrent use.
	WatchStderr io.Writer
	// Inside, if set, changes how the child is started, such as in a sandbox. It is called with the complete command
	// before the child starts; an error is that of the start.
	Inside func(*exec.Cmd) error
	// Started, if set, is called once with the child's identity, before Run waits for anything. The child is running by
	// then. An error kills the group, and Run returns it.
	Started func(Handle) error
}

// A Result is what is known about a child that has ended.
type Result struct {
	// Stdout and Stderr are what was kept of the outputs. If bytes were left out, a line in the middle says how many.
	Stdout, Stderr []byte
	// StdoutDropped and StderrDropped count the bytes that were left out; zero: the output is complete.
	StdoutDropped, StderrDropped int64
	// ExitCode is -1 for a child that was ended by a signal.
	ExitCode int
	// Signal is the name of the signal that ended the child, such as "SIGKILL"; empty if the child exited.
	Signal string
	// Duration is the time from the start of the child to its end, without the wait for its output.
	Duration time.Duration
}

// Run starts the command, waits for its end and collects what it wrote.
//
// A child that could not be started is a [*StartError], one that did not exit with code zero an [*ExitError], one that
// ran longer than its Timeout a [*TimeoutError], one that printed more than its MaxOutput an [*OutputError]. If ctx
// ends first, the error wraps ctx.Err() and the cause. In the last three cases the group is sent SIGTERM, and SIGKILL
// after the grace. Except for a child that was never started, the Result is filled in together with any error.
//
// When the child has ended and the output is closed, Run kills the remaining processes of the group: a process that is
// to outlive the command must leave the group and close its output (setsid and redirections).
func Run(ctx context.Context, c Command) (Result, error) {
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, newStoppedError(ctx, c.Path)
	}
	// Linux kills the child when the thread that started it ends, and another goroutine may end a thread. This thread
	// is therefore locked until the child is reaped; it waits for the child anyway.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	ch, err := startChild(c)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	defer ch.takeTerminal()
	if c.Mark != "" {
		defer func() { endMarkedSince(c.Mark, ch.cmd.Process.Pid, ch.took) }()
	}
	if c.Started != nil {
		err = c.Started(identifyChild(ch.cmd.Process.Pid, c.Mark))
	}
	if err != nil {
		ch.killChild()
		ch.waitExit()
		return ch.reapAndReport(c, fmt.Errorf("%s: its start could not be recorded: %w", c.Path, err))
	}
	verdict := make(chan error, 1)
	go func() { verdict <- ch.superviseExit(ctx, c) }()
	ch.waitExit()
	return ch.reapAndReport(c, <-verdict)
}

func (c Command) graceOrDefault() time.Duration {
	if c.Grace > 0 {
		return c.Grace
	}
	return DefaultGrace
}

func (c Command) limitOrDefault() int {
	if c.Limit > 0 {
		return c.Limit
	}
	return DefaultLimit
}
