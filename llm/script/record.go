package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/redact"
	"raddle.dev/llm"
)

// A Recorder is a model that passes requests to another model and adds every
// reply, and every failure of the provider, to a transcript. Replies are
// matched by the digest of their request, so that parallel calls are replayed
// correctly.
//
// A transcript contains the replies and the beginnings of the prompts. It never
// contains data of the connection, such as keys and headers. It does contain
// what a person or a tool has written in the conversation, unless it is one of
// the Secrets.
//
// A Recorder is safe for concurrent use. Several Recorders, also in several
// processes, can write to one file.
type Recorder struct {
	Model   llm.Model // answers; required
	Path    string    // of the transcript; the file is created if it does not exist; required
	Secrets []string  // values that are replaced in the file

	mu      sync.Mutex
	known   sync.Once // sets secrets
	secrets *redact.Set
}

var _ llm.Model = (*Recorder)(nil)

// Stream implements llm.Model. A reply is in the file before its last delta is
// delivered. If it cannot be written, the stream ends with that error. The end
// of ctx is not recorded.
func (r *Recorder) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range r.Model.Stream(ctx, req) {
			var failure *llm.Error
			switch {
			case errors.As(err, &failure):
				if werr := r.addEntry(req, llm.Reply{}, failure); werr != nil {
					err = errors.Join(err, werr)
				}
			case err == nil && d.Done != nil:
				err = r.addEntry(req, *d.Done, nil)
			}
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// header is the beginning of a new file.
const header = "# Recorded by raddle. A reply with a request key answers exactly that request;\n" +
	"# without the key, it answers by its other conditions.\n"

// addEntry appends an entry to the file. It replaces the file as a whole, so a
// concurrent reader sees either the old or the new version.
func (r *Recorder) addEntry(req llm.Request, reply llm.Reply, failure *llm.Error) error {
	text, err := renderEntry(r.newEntry(req, reply, failure))
	if err != nil {
		return fmt.Errorf("script: record %s: %w", r.Path, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.appendToFile(text); err != nil {
		return fmt.Errorf("script: record %s: %w", r.Path, err)
	}
	return nil
}

func (r *Recorder) appendToFile(text []byte) error {
	path := r.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	unlock, err := lock(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer unlock()
	old, mode, err := readTranscript(path)
	if err != nil {
		return err
	}
	data, err := appendEntry(old, text)
	if err != nil {
		return err
	}
	return writeFile(path, data, mode)
}

func readTranscript(path string) ([]byte, fs.FileMode, error) {
	const private = 0o600 // only the owner may read a conversation
	data, err := plainfile.Read(path, MaxFile)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && len(bytes.TrimSpace(data)) == 0) {
		return []byte(header), private, nil
	}
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	return data, info.Mode().Perm(), nil
}

// appendEntry adds an entry to the text of a transcript. It fails if the result is not
// a transcript with exactly one more entry.
func appendEntry(old, text []byte) ([]byte, error) {
	data := old
	if !bytes.HasSuffix(data, []byte("\n")) {
		data = append(data[:len(data):len(data)], '\n')
	}
	data = append(data[:len(data):len(data)], text...)
	before, faults := loadEntries("", old)
	if len(faults) > 0 && !bytes.Equal(old, []byte(header)) {
		return nil, fmt.Errorf("the file is not a transcript and was not changed: line %d: %s", faults[0].Pos.Line, faults[0].Message)
	}
	after, faults := loadEntries("", data)
	if len(faults) > 0 || len(after) != len(before)+1 {
		return nil, errors.New("raddle cannot add a reply to a list in this form; start its lines with - in the first column")
	}
	return data, nil
}

// writeFile replaces path atomically.
func writeFile(path string, data []byte, mode fs.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(), os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return f.Close()
}

// newEntry returns the entry for a request and its reply or failure, without
// secrets.
func (r *Recorder) newEntry(req llm.Request, reply llm.Reply, failure *llm.Error) (*entry, []llm.Part) {
	e := &entry{turn: turnNumber(req), digest: requestDigest(req), usage: reply.Usage}
	// The first line of the prompt helps readers, and matches if someone
	// removes the digest.
	for line := range strings.Lines(userText(req)) {
		line = strings.TrimSpace(line)
		if short := []rune(line); len(short) > 60 {
			line = strings.TrimSpace(string(short[:60]))
		}
		if line != "" && r.redactText(line) == line {
			e.match = []string{line}
			break
		}
	}
	if failure != nil {
		f := *failure
		f.Message = r.redactText(f.Message)
		f.Host = ""
		f.Err = nil
		f.RetryAfter = f.RetryAfter.Truncate(time.Millisecond)
		e.err = &f
		return e, nil
	}
	if reply.Stop != llm.StopEnd && reply.Stop != llm.StopTools {
		e.stop = reply.Stop
	}
	var others []llm.Part
	for _, p := range reply.Message.Parts {
		switch p := p.(type) {
		case llm.Text:
			e.text += r.redactText(p.Text)
		case llm.Reasoning:
			e.reasoning += r.redactText(p.Text)
		case llm.ToolCall:
			e.calls = append(e.calls, llm.ToolCall{ID: p.ID, Name: p.Name, Args: r.cleanArgs(p.Args)})
		default:
			others = append(others, p)
		}
	}
	return e, others
}

// cleanArgs removes secrets from the arguments of a call. Arguments that are
// not JSON are returned as they are, because the transcript rejects them.
func (r *Recorder) cleanArgs(args json.RawMessage) json.RawMessage {
	if !json.Valid(args) {
		return json.RawMessage(r.redactText(string(args)))
	}
	return redact.RedactJSON(args, r.redactText)
}

// redactText removes secrets from a text.
func (r *Recorder) redactText(s string) string {
	r.known.Do(func() { r.secrets = redact.New(r.Secrets...) })
	return r.secrets.Text(s)
}
