package prompting

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
	"unicode/utf8"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/attach"
)

// FirstByte is how long a command waits for the first byte of a pipe: a supervisor may leave it open without ever
// writing to it.
const FirstByte = time.Second

// largestInput is the size in bytes of the largest text on standard input.
const largestInput = 16 << 20

// Input is the standard input of a command. It is read at most once, however often it is asked for, and nothing else
// may read it. It is safe for concurrent use.
type Input struct {
	reader io.Reader     // nil: there is none to read
	wait   time.Duration // for the first byte; 0: as long as it takes

	mu    sync.Mutex
	began chan firstRead // nil: nothing was read yet
	done  bool
	file  attach.File
	has   bool
	err   error
}

// firstRead is what the first read of a pipe returned.
type firstRead struct {
	bytes []byte
	err   error
}

// NewInput returns the input from a file: all of a regular file, and what comes through a pipe if its first byte comes
// within wait. A terminal, and a device such as /dev/null, have none.
func NewInput(f *os.File, wait time.Duration) *Input {
	info, err := f.Stat()
	switch {
	case err != nil || term.IsTerminal(f):
		return &Input{}
	case info.Mode().IsRegular():
		return &Input{reader: f}
	case info.Mode()&fs.ModeDevice != 0 || info.IsDir():
		return &Input{}
	}
	return &Input{reader: f, wait: wait}
}

// ReadSoon returns what standard input has, unless it is silent for the time that a pipe has. ok is false if it has
// nothing. The error says why it cannot be a part of a prompt.
func (in *Input) ReadSoon() (f attach.File, ok bool, err error) { return in.readWithin(in.wait) }

// ReadAll is ReadSoon for a command line that asks for standard input: it waits as long as it takes.
func (in *Input) ReadAll() (f attach.File, ok bool, err error) { return in.readWithin(0) }

// readWithin waits for the first byte as long as wait says, 0 for ever, and then reads everything. What was silent can be
// read again.
func (in *Input) readWithin(wait time.Duration) (attach.File, bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.reader == nil || in.done {
		return in.file, in.has, in.err
	}
	if in.began == nil {
		in.began = make(chan firstRead, 1)
		go func(began chan<- firstRead) {
			b := make([]byte, 1)
			n, err := in.reader.Read(b)
			began <- firstRead{b[:n], err}
		}(in.began)
	}
	var silent <-chan time.Time
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		silent = timer.C
	}
	select {
	case <-silent:
		return attach.File{}, false, nil // the goroutine waits until the process ends
	case first := <-in.began:
		in.done = true
		in.file, in.has, in.err = readRest(first, in.reader)
		return in.file, in.has, in.err
	}
}

// readRest reads what follows the first byte.
func readRest(first firstRead, r io.Reader) (f attach.File, ok bool, err error) {
	if first.err != nil && first.err != io.EOF {
		return f, false, nil // it is closed, or cannot be read: there is no input
	}
	content := first.bytes
	if first.err == nil {
		rest, err := io.ReadAll(io.LimitReader(r, largestInput))
		if err != nil {
			return f, false, failure.NewUsage("", "standard input: %v", err)
		}
		content = append(content, rest...)
	}
	if len(bytes.TrimRight(content, "\r\n")) == 0 {
		return f, false, nil
	}
	if len(content) > largestInput {
		return f, false, failure.NewUsage("make it smaller, or let the agent read a part of it", "standard input is larger than %s", wording.FormatBytes(largestInput))
	}
	f, err = attach.New(attach.StandardInput, content)
	return f, err == nil, err
}

// ReadText reads a text to its end, without its last line break, for an argument "-".
func ReadText(r io.Reader) (string, error) {
	b, err := io.ReadAll(r)
	switch {
	case err != nil:
		return "", &failure.Error{Kind: failure.Usage, Err: fmt.Errorf("standard input: %w", err)}
	case !utf8.Valid(b):
		return "", failure.NewUsage("", "standard input is not UTF-8 text")
	}
	return string(bytes.TrimRight(b, "\r\n")), nil
}
