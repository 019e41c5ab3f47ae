package builtin

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/box"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool"
)

// A job is one background command.
type job struct {
	record jobRecord // ID, Command, Key, Owner and Started do not change
	file   string    // of the record; "": there is none
	redact func(string) string
	past   bool          // it belongs to another process, and record has all that is known
	begun  chan struct{} // closed when the child runs
	done   chan struct{} // closed when it has ended
	cancel context.CancelCauseFunc
	stdin  *os.File // the writing end; nil: it has no input

	boxed *boxedRun // the box of the command; nil: it runs in none

	saving sync.Mutex // held while the record is written

	mu      sync.Mutex
	end     string        // how it has ended; empty: it runs
	fresh   *proc.Capture // what it has printed since the last look
	carried int64         // bytes of fresh that the last look has returned too: the beginning of a line
	all     *proc.Capture
	waiting []*waiter
	show    func(text string) // shows what it prints to a person; nil: no call waits
	timer   *time.Timer       // writes the record; nil: nothing new is to be recorded
	inputs  map[string]bool   // the keys of calls that have written to it
	told    bool              // the model has read that it runs in a box
	left    jobRemains        // what no call has reported yet
}

// A jobRemains is what a command in the box has left behind.
type jobRemains struct {
	report  boxReport
	changes []tool.FileChange
}

// saveInterval is the time between what a command prints and its record.
const saveInterval = time.Second

// longestCarried is how much of a line that is not complete a look repeats after the one that has returned it, in
// bytes.
const longestCarried = 4 << 10

// runCommand records the command and starts it. It returns when the child runs.
func (j *job) runCommand(ctx context.Context, c proc.Command, input bool) error {
	mark := "RADDLE_JOB=" + rand.Text()
	j.fresh, j.all, j.inputs = proc.NewCapture(c.Limit), proc.NewCapture(c.Limit), map[string]bool{}
	if err := j.saveRecord(); err != nil {
		return fmt.Errorf("the start of the command cannot be recorded: %w", err)
	}
	if input {
		r, w, err := os.Pipe()
		if err != nil {
			return j.removeTraces(err)
		}
		defer r.Close()
		c.StdinFile = r
		j.stdin = w
	}
	c.Env = append(slices.Clone(c.Env), mark)
	c.Mark = mark
	c.Limit = 1
	c.MaxOutput = jobOutput
	c.Watch = j
	c.WatchStderr = j
	c.Started = func(h proc.Handle) error {
		j.mu.Lock()
		j.record.Child = h
		j.mu.Unlock()
		defer close(j.begun)
		return j.saveRecord()
	}
	stay, err := j.enterBox(ctx, &c)
	if err != nil {
		return j.removeTraces(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background()) // the command outlives the call
	j.cancel = cancel
	failed := make(chan error, 1)
	go func() {
		_, err := proc.Run(ctx, c)
		err = j.leaveBox(stay, err)
		if start, ok := errors.AsType[*proc.StartError](err); ok {
			failed <- start
		}
		j.recordEnd(err, context.Cause(ctx))
	}()
	select {
	case <-j.begun:
		return nil
	case <-j.done:
	}
	select {
	case err := <-failed:
		return j.removeTraces(err)
	default:
		return nil
	}
}

// enterBox prepares the box of the command, if it runs in one, and changes c to what runs there.
func (j *job) enterBox(ctx context.Context, c *proc.Command) (*box.Stay, error) {
	if j.boxed == nil {
		return nil, nil
	}
	place, err := j.boxed.openPlace()
	if err != nil {
		return nil, err
	}
	stay, err := place.LivingAlone().EnterBox(ctx, *c)
	if err != nil {
		return nil, err
	}
	*c = stay.Command
	return stay, nil
}

// leaveBox moves what the command wrote into the workspace after it has ended with an error, if it ran in a box. It
// returns the error that counts.
func (j *job) leaveBox(stay *box.Stay, ended error) error {
	if stay == nil {
		return ended
	}
	if failed := stay.DescribeFailure(); failed != nil {
		ended = failed
	}
	outcome, err := stay.LeaveBox(j.boxed.keepImage)
	j.boxed.outcome = outcome
	ended = errors.Join(ended, err)
	left := jobRemains{j.boxed.describeBox(ended != nil), j.boxed.addChanges(tool.Result{}).Changes}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left = left
	return ended
}

// removeTraces removes what was prepared for a command that could not be started.
func (j *job) removeTraces(err error) error {
	if j.stdin != nil {
		j.stdin.Close()
	}
	if j.file != "" {
		err = errors.Join(err, os.Remove(j.file))
	}
	return err
}

// recordEnd records how the command has ended.
func (j *job) recordEnd(err, cause error) {
	var (
		exit *proc.ExitError
		late *proc.TimeoutError
		long *proc.OutputError
	)
	end := "exited with code 0"
	switch {
	case cause != nil && err != nil:
		end = cause.Error()
	case errors.As(err, &exit) && exit.Signal != "":
		end = "was ended by " + exit.Signal
	case errors.As(err, &exit):
		end = fmt.Sprintf("exited with code %d", exit.Code)
	case errors.As(err, &late):
		end = fmt.Sprintf("was ended at its limit of %gs", late.After.Seconds())
	case errors.As(err, &long):
		end = fmt.Sprintf("was ended because it printed more than %s", formatBytes(long.After))
	case err != nil:
		end = err.Error()
	}
	if j.stdin != nil {
		j.stdin.Close()
	}
	j.cancel(nil)
	j.mu.Lock()
	j.end = end
	if j.timer != nil {
		j.timer.Stop()
	}
	j.mu.Unlock()
	_ = j.saveRecord() // without it, a later process takes it for one that ended with raddle
	close(j.done)
}

// Write takes what the command prints, of both outputs.
func (j *job) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.fresh.Write(p)
	j.all.Write(p)
	for _, w := range j.waiting {
		w.searchPiece(p)
	}
	if j.show != nil {
		j.show(string(p))
	}
	if j.file != "" && j.timer == nil {
		j.timer = time.AfterFunc(saveInterval, func() {
			j.mu.Lock()
			j.timer = nil
			j.mu.Unlock()
			_ = j.saveRecord() // the next one has this output, too
		})
	}
	return len(p), nil
}

// saveRecord writes the record.
func (j *job) saveRecord() error {
	if j.file == "" {
		return nil
	}
	j.saving.Lock()
	defer j.saving.Unlock()
	j.mu.Lock()
	r := j.record
	r.End = j.end
	output := j.all.KeptBytes()
	j.mu.Unlock()
	r.Command, r.Output = j.redact(r.Command), j.redact(cleanOutput(output))
	return writeRecord(j.file, r)
}

// cleanOutput returns what a program has printed as a text.
func cleanOutput(output []byte) string {
	return strings.ToValidUTF8(string(proc.StripEscapes(output)), "\uFFFD")
}

func (j *job) hasEnded() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// describeState returns whether the command runs, or how it has ended.
func (j *job) describeState() string {
	if j.past {
		return j.record.End
	}
	if !j.hasEnded() {
		return fmt.Sprintf("running for %v", time.Since(j.record.Started).Round(time.Second))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.end
}

func (j *job) describeJob() JobState {
	output := j.record.Output
	if !j.past {
		j.mu.Lock()
		output = cleanOutput(j.all.KeptBytes())
		j.mu.Unlock()
	}
	output = strings.TrimSpace(output)
	return JobState{
		ID:      j.record.ID,
		Command: j.record.Command,
		State:   j.describeState(),
		Running: !j.hasEnded(),
		Printed: output[strings.LastIndexAny(output, "\n\r")+1:],
	}
}

// takeOutput returns what the command has printed since the last look. A line that was not complete is returned again,
// with its rest: so no character and no secret is divided. Of a command of another process it returns all that is
// known.
func (j *job) takeOutput() string {
	if j.past {
		return j.record.Output
	}
	ended := j.hasEnded()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.fresh.CountBytes() == j.carried {
		return ""
	}
	output := j.fresh.KeptBytes()
	j.fresh = j.fresh.MakeEmpty()
	j.carried = 0
	if rest := output[bytes.LastIndexByte(output, '\n')+1:]; !ended && len(rest) <= longestCarried {
		j.fresh.Write(rest)
		j.carried = int64(len(rest))
	}
	return cleanOutput(output)
}

// stopJob ends the command because of a cause, and returns when it has ended.
func (j *job) stopJob(cause error) {
	if j.past {
		return
	}
	j.cancel(cause)
	<-j.done
}

// waitUntil waits until the command has ended or has printed a text, at most for a time, and reports whether the text
// was printed. Meanwhile it shows what the command prints.
func (j *job) waitUntil(ctx context.Context, limit time.Duration, text string, show func(string)) (found bool, err error) {
	if j.past {
		return false, nil
	}
	w := &waiter{text: []byte(text), found: make(chan struct{})}
	j.mu.Lock()
	if text != "" {
		w.searchPiece(j.fresh.KeptBytes())
		j.waiting = append(j.waiting, w)
	}
	if j.show = show; show != nil && j.fresh.CountBytes() > j.carried {
		show(string(j.fresh.KeptBytes())) // printed before this call waited
	}
	j.mu.Unlock()
	defer func() {
		j.mu.Lock()
		j.waiting = slices.DeleteFunc(j.waiting, func(other *waiter) bool { return other == w })
		j.show = nil
		j.mu.Unlock()
	}()
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case <-w.found:
		return true, nil
	case <-j.done:
	case <-over.C:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	select {
	case <-w.found:
		return true, nil
	default:
		return false, nil
	}
}

// inputTime is how long a call waits for a command that does not read its input.
const inputTime = 5 * time.Second

// writeInput writes to the command's input, unless the call with the key has done so. The error is for the model.
func (j *job) writeInput(ctx context.Context, key, text string, end bool) error {
	switch {
	case j.hasEnded():
		return fmt.Errorf("%s reads nothing any more: it %s", j.record.ID, j.describeState())
	case j.stdin == nil:
		return fmt.Errorf("%s has no input: start it with input: true", j.record.ID)
	}
	j.mu.Lock()
	repeated := key != "" && j.inputs[key]
	j.inputs[key] = true
	j.mu.Unlock()
	if repeated {
		return nil
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := io.WriteString(j.stdin, text)
		if end {
			err = errors.Join(err, j.stdin.Close())
		}
		wrote <- err
	}()
	late := time.NewTimer(inputTime)
	defer late.Stop()
	select {
	case err := <-wrote:
		if err != nil {
			return fmt.Errorf("%s has closed its input", j.record.ID)
		}
		return nil
	case <-late.C:
		return fmt.Errorf("%s has not read all of the text yet. It gets the rest when it reads: do not send it again", j.record.ID)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A waiter looks for a text in what a command prints.
type waiter struct {
	text  []byte
	last  []byte // the end of what was printed, shorter than text
	found chan struct{}
}

// searchPiece looks for the text in the next piece.
func (w *waiter) searchPiece(p []byte) {
	all := append(w.last, p...)
	select {
	case <-w.found:
		return
	default:
	}
	if bytes.Contains(all, w.text) {
		close(w.found)
		return
	}
	w.last = slices.Clone(all[max(0, len(all)-len(w.text)+1):])
}

// formatBytes returns a number of bytes that is a whole number of KiB, MiB or GiB in that unit.
func formatBytes(n int64) string {
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if size := int64(1) << (30 - 10*i); n >= size && n%size == 0 {
			return fmt.Sprintf("%d %s", n/size, unit)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
