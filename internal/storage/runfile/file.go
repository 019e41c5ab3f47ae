package runfile

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/storage/runs"
)

// Format names the format of the file. A file of another format is refused.
const Format = "raddle-run-1"

// formatPrefix is what the names of all versions of the format have in common.
const formatPrefix = "raddle-run-"

// File is an exported run.
type File struct {
	Header
	Agents  []AgentFile
	Threads []Thread // the threads that the run was forked from, oldest first, then its own
}

// Header is the first line of the file.
type Header struct {
	Format   string    `json:"format"`
	Run      runs.Info `json:"run"`
	Thread   string    `json:"thread"`  // that holds the run
	Version  string    `json:"version"` // of raddle
	Exported time.Time `json:"exported"`
}

// AgentFile is a file of the run's agent, or of an agent below it, as it was when the run was exported.
type AgentFile struct {
	Agent   string `json:"agent"` // name of the agent's directory
	Path    string `json:"path"`  // in that directory, with slashes
	Changed bool   `json:"changed,omitempty"`
	Text    string `json:"text"`
}

// Thread is a journal, or its beginning. Its records are numbered without gaps.
type Thread struct {
	Name    string
	Records []journal.Record
}

// Limits of what is read. They are far above what runs need.
const (
	maxLine     = 256 << 20
	maxBytes    = 1 << 30
	maxRecords  = 2_000_000
	maxPruned   = 1_000_000 // records that are missing before the first ones of the threads, together
	maxThreads  = 100
	maxFiles    = 1000
	longestName = 200
)

// A fileLine is one line of the file: exactly one member is set.
type fileLine struct {
	File   *AgentFile  `json:"file,omitempty"`
	Thread *threadLine `json:"thread,omitempty"`
	Record *recordLine `json:"record,omitempty"`
	End    *endLine    `json:"end,omitempty"`
}

// threadLine begins a thread; its records follow.
type threadLine struct {
	Name    string `json:"name"`
	Records int    `json:"records"`
}

// recordLine is a record. Kind, Time, Path, What and Next are for readers of the file; what counts is in the members
// after them.
type recordLine struct {
	Seq  int64     `json:"seq"`
	Kind string    `json:"kind"`
	Time time.Time `json:"time"`
	Path string    `json:"path,omitempty"`
	What string    `json:"what,omitempty"`
	Next []string  `json:"next,omitempty"`

	Number journal.Kind `json:"n"`             // of the kind
	Micros int64        `json:"at"`            // Unix microseconds
	Head   []byte       `json:"head"`          // in base64
	Data   []byte       `json:"data,omitzero"` // in base64
	Text   string       `json:"text,omitzero"` // the data, if it is a text
	Sum    string       `json:"sum"`           // checksum of the engine, in hexadecimal digits
}

// endLine is the last line.
type endLine struct {
	Lines  int    `json:"lines"`  // before this one
	SHA256 string `json:"sha256"` // of their bytes, with the line breaks
}

// Write writes the file.
func (f *File) Write(to io.Writer) error {
	w := &writer{out: bufio.NewWriter(to), sum: sha256.New()}
	w.writeLine(f.Header)
	for i := range f.Agents {
		w.writeLine(fileLine{File: &f.Agents[i]})
	}
	for _, t := range f.Threads {
		w.writeLine(fileLine{Thread: &threadLine{t.Name, len(t.Records)}})
		for _, r := range t.Records {
			l, err := newRecordLine(r)
			if err != nil {
				return fmt.Errorf("thread %s: %w", t.Name, err)
			}
			w.writeLine(fileLine{Record: l})
		}
	}
	w.writeLine(fileLine{End: &endLine{w.lines, hex.EncodeToString(w.sum.Sum(nil))}})
	if w.err != nil {
		return w.err
	}
	return w.out.Flush()
}

// A writer writes lines and computes their checksum.
type writer struct {
	out   *bufio.Writer
	sum   hash.Hash
	lines int
	err   error
}

func (w *writer) writeLine(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil && w.err == nil {
		w.err = err
	}
	w.lines++
	_, _ = w.sum.Write(b.Bytes()) // a hash never fails
	if _, err := w.out.Write(b.Bytes()); err != nil && w.err == nil {
		w.err = err
	}
}

func newRecordLine(r journal.Record) (*recordLine, error) {
	e, err := history.DecodeEntry(r)
	if err != nil {
		return nil, err
	}
	l := &recordLine{Seq: r.Seq, Kind: r.Kind.String(), Time: e.Time.UTC(), Path: e.Path, What: e.What, Next: e.Next,
		Number: r.Kind, Micros: r.Time, Head: r.Head, Sum: fmt.Sprintf("%016x", r.Sum)}
	if l.Head == nil {
		l.Head = []byte{}
	}
	if isReadable(r.Data) {
		l.Text = string(r.Data)
	} else {
		l.Data = r.Data
	}
	return l, nil
}

// isReadable reports whether data is text that JSON keeps as it is.
func isReadable(data []byte) bool {
	return utf8.Valid(data) && !strings.ContainsFunc(string(data), func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' })
}

// A FormatError says that a file is not an exported run, or a damaged one.
type FormatError struct {
	Line int // 0: the whole file
	Err  error
}

// Error implements error.
func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return fmt.Sprintf("line %d: %v", e.Line, e.Err)
}

// Unwrap returns the cause.
func (e *FormatError) Unwrap() error { return e.Err }

// Read reads a file and checks it: its format, its checksum, those of its records, and that each journal can be folded.
// The error is a [*FormatError] if the content is wrong.
func Read(from io.Reader) (*File, error) {
	r := &reader{in: bufio.NewReaderSize(io.LimitReader(from, maxBytes+1), 1<<16), sum: sha256.New()}
	f, err := r.readFile()
	if err != nil {
		return nil, err
	}
	if err := f.check(); err != nil {
		return nil, &FormatError{Err: err}
	}
	return f, nil
}

// A reader reads lines and computes their checksum.
type reader struct {
	in      *bufio.Reader
	sum     hash.Hash
	lines   int
	bytes   int64
	records int // of the last thread, as the file says
	total   int
	pruned  int64
}

// fail returns an error about the line that was read last.
func (r *reader) fail(format string, args ...any) error {
	return &FormatError{r.lines, fmt.Errorf(format, args...)}
}

// readLine returns the next line with its line break; nil at the end.
func (r *reader) readLine() ([]byte, error) {
	var text []byte
	for {
		part, err := r.in.ReadSlice('\n')
		text = append(text, part...)
		if r.bytes += int64(len(part)); r.bytes > maxBytes || len(text) > maxLine {
			r.lines++
			return nil, r.fail("the file is too large: at most %d MiB are read, and %d MiB of a line", maxBytes>>20, maxLine>>20)
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(text) > 0:
			r.lines++
			return text, nil
		case errors.Is(err, io.EOF):
			return nil, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

var errCutOff = errors.New("the file is cut off: its last line is missing")

func (r *reader) readFile() (*File, error) {
	f := &File{}
	text, err := r.readLine()
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &f.Header); err != nil || f.Format == "" {
		return nil, &FormatError{max(1, r.lines), errors.New("this is not an exported run: raddle runs export writes them")}
	}
	if f.Format != Format {
		if strings.HasPrefix(f.Format, formatPrefix) {
			return nil, r.fail("the format %q is not known: the file was written by another version of raddle (%.40s)", f.Format, f.Version)
		}
		return nil, r.fail("the format is %.40q, and not %q", f.Format, Format)
	}
	for {
		_, _ = r.sum.Write(text) // a hash never fails
		if text, err = r.readLine(); err != nil {
			return nil, err
		}
		if text == nil {
			return nil, &FormatError{Err: errCutOff}
		}
		var l fileLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, r.fail("it is not valid: %v", err)
		}
		if l.End != nil {
			return f, r.checkEnd(l.End, f)
		}
		if err := r.addLine(f, &l); err != nil {
			return nil, err
		}
	}
}

// addLine adds a line to the file.
func (r *reader) addLine(f *File, l *fileLine) error {
	switch {
	case l.File != nil:
		if f.Agents = append(f.Agents, *l.File); len(f.Agents) > maxFiles {
			return r.fail("there are more than %d files of agents", maxFiles)
		}
	case l.Thread != nil:
		if err := f.checkLastThread(r); err != nil {
			return err
		}
		r.records = l.Thread.Records
		if f.Threads = append(f.Threads, Thread{Name: l.Thread.Name}); len(f.Threads) > maxThreads {
			return r.fail("there are more than %d threads", maxThreads)
		}
	case l.Record != nil && len(f.Threads) > 0:
		t := &f.Threads[len(f.Threads)-1]
		rec, err := l.Record.decode()
		if err != nil {
			return r.fail("record %d: %v", l.Record.Seq, err)
		}
		if n := len(t.Records); n > 0 && rec.Seq != t.Records[n-1].Seq+1 || n == 0 && rec.Seq < 1 {
			return r.fail("record %d is out of order", rec.Seq)
		}
		if len(t.Records) == 0 {
			r.pruned += rec.Seq - 1
		}
		if r.total++; r.total > maxRecords || r.pruned < 0 || r.pruned > maxPruned {
			return r.fail("there are more than %d records, or more than %d were pruned", maxRecords, maxPruned)
		}
		t.Records = append(t.Records, rec)
	default:
		return r.fail("it is none of the lines of an exported run")
	}
	return nil
}

// checkLastThread checks that the thread that was read last is complete.
func (f *File) checkLastThread(r *reader) error {
	if n := len(f.Threads); n > 0 && len(f.Threads[n-1].Records) != r.records {
		return r.fail("thread %.80q has %d records instead of %d", f.Threads[n-1].Name, len(f.Threads[n-1].Records), r.records)
	}
	return nil
}

func (r *reader) checkEnd(end *endLine, f *File) error {
	if err := f.checkLastThread(r); err != nil {
		return err
	}
	if sum := hex.EncodeToString(r.sum.Sum(nil)); end.SHA256 != sum || end.Lines != r.lines-1 {
		return r.fail("the file was changed: its checksum does not match")
	}
	if more, err := r.readLine(); err != nil || more != nil {
		return r.fail("there is something after the last line")
	}
	return nil
}

func (l *recordLine) decode() (r journal.Record, err error) {
	r = journal.Record{Seq: l.Seq, Kind: l.Number, Time: l.Micros, Head: l.Head, Data: l.Data}
	if l.Text != "" {
		if len(l.Data) > 0 {
			return r, errors.New("it has two kinds of data")
		}
		r.Data = []byte(l.Text)
	}
	sum, err := hex.DecodeString(l.Sum)
	if err != nil || len(sum) != 8 {
		return r, errors.New("its checksum is not valid")
	}
	for _, b := range sum {
		r.Sum = r.Sum<<8 | uint64(b)
	}
	if r.Sum == 0 {
		return r, errors.New("it has no checksum")
	}
	return r, nil
}

// Save writes the file to a path, which only this user may read. What was there is replaced when the file is complete.
func (f *File) Save(path string) error {
	out, err := os.CreateTemp(filepath.Dir(path), ".raddle-export-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	if err := errors.Join(f.Write(out), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// Load reads the file at a path.
func Load(path string) (*File, error) {
	in, err := plainfile.OpenArgument(path)
	if err != nil {
		return nil, failure.NewUsage("name a file that raddle runs export has written", "%v", err)
	}
	defer in.Close()
	f, err := Read(in)
	if err != nil {
		return nil, failure.NewInvalid("export the run again: raddle runs export RUN -o FILE", "%s cannot be read: %v", path, err)
	}
	return f, nil
}
