package script

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/llm"
)

// A Transcript is a model that replays a file. It is safe for concurrent use.
// It remembers which replies were used, so open one for every run.
type Transcript struct {
	// Position, if set before the first request, says which of the replies
	// without a condition a request gets, counted from 0. It is called only for
	// requests that match no condition, and the replies that it selects do not
	// count as used. If its second result is false, the order of requests
	// decides.
	Position func(ctx context.Context, r llm.Request) (int, bool)

	file    string
	entries []*entry

	mu   sync.Mutex
	used []bool
}

var _ llm.Model = (*Transcript)(nil)

// MaxFile is the size in bytes of the largest transcript that is read.
const MaxFile = 16 << 20

// Open reads the transcript at path, a regular file of at most [MaxFile] bytes. If the file is not a valid transcript,
// the error is a *LoadError that lists every error with its position.
func Open(path string) (*Transcript, error) {
	data, err := plainfile.Read(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	return Parse(path, data)
}

// OpenBeneath is [Open] for a transcript that must lie beneath a directory, also after following links.
func OpenBeneath(dir, path string) (*Transcript, error) {
	data, err := plainfile.ReadBeneath(dir, path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a transcript from memory. name is the name of the file in errors
// and in the IDs of replies.
func Parse(name string, data []byte) (*Transcript, error) {
	entries, findings := loadEntries(name, data)
	if len(findings) > 0 {
		return nil, &LoadError{Findings: findings}
	}
	return &Transcript{file: name, entries: entries, used: make([]bool, len(entries))}, nil
}

// Skip marks replies as used that an earlier process has received, given the ID
// of each reply (llm.Reply.ID). If this transcript has no reply with one of the
// IDs, Skip fails and marks nothing.
func (t *Transcript) Skip(ids ...string) error {
	numbers := make([]int, len(ids))
	for i, id := range ids {
		number, ok := strings.CutPrefix(id, t.replyID(0))
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 1 || n > len(t.entries) {
			return fmt.Errorf("script: %s has no reply %q; it has %d, from %s1 on: has the file changed?", t.file, id, len(t.entries), t.replyID(0))
		}
		numbers[i] = n
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range numbers {
		t.used[n-1] = true
	}
	return nil
}

// replyID returns the ID of reply n, counted from 1; for 0 it returns the common
// prefix of all IDs.
func (t *Transcript) replyID(n int) string {
	prefix := filepath.Base(t.file) + "#"
	if n == 0 {
		return prefix
	}
	return prefix + strconv.Itoa(n)
}

// UnusedReplies describes the replies that no request has used, in the order of the
// file. Tests use it to check that an example used all of its replies. Replies
// that Position selects never count as used.
func (t *Transcript) UnusedReplies() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []string
	for i, e := range t.entries {
		if !t.used[i] {
			list = append(list, e.describe())
		}
	}
	return list
}

// Stream implements llm.Model. The text is delivered word by word, at once or
// after the delay of the reply.
func (t *Transcript) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	var used atomic.Bool
	return func(yield func(llm.Delta, error) bool) {
		if used.Swap(true) {
			yield(llm.Delta{}, errors.New("llm: a stream can be used only once; call Stream again"))
			return
		}
		if err := ctx.Err(); err != nil {
			yield(llm.Delta{}, stopError(ctx))
			return
		}
		n, err := t.takeReply(ctx, r)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		e, err := t.entries[n].fillValues(r)
		if err != nil {
			yield(llm.Delta{}, fmt.Errorf("script: %s: %w", t.file, err))
			return
		}
		if err := sleepContext(ctx, e.delay); err != nil {
			yield(llm.Delta{}, err)
			return
		}
		if e.err != nil {
			yield(llm.Delta{}, e.err)
			return
		}
		reply := llm.Reply{
			ID:      t.replyID(n + 1),
			Message: e.buildMessage(r),
			Usage:   e.usage,
			Stop:    e.stopReason(),
			Model:   "script:" + filepath.Base(t.file),
		}
		for _, d := range splitDeltas(reply) {
			if !yield(d, nil) {
				return
			}
		}
	}
}

// takeReply chooses the reply for r, marks it as used and returns its index.
func (t *Transcript) takeReply(ctx context.Context, r llm.Request) (int, error) {
	text := matchText(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	var ordered []int
	for i, e := range t.entries {
		switch {
		case e.isUnconditional():
			ordered = append(ordered, i)
		case (!t.used[i] || e.repeat) && e.matchesRequest(r, text):
			t.used[i] = true
			return i, nil
		}
	}
	if t.Position != nil {
		if p, ok := t.Position(ctx, r); ok {
			if p >= 0 && p < len(ordered) {
				return ordered[p], nil
			}
			if last := len(ordered) - 1; p > last && last >= 0 && t.entries[ordered[last]].repeat {
				return ordered[last], nil
			}
			return 0, t.unmatchedError(r)
		}
	}
	for _, i := range ordered {
		if !t.used[i] || t.entries[i].repeat {
			t.used[i] = true
			return i, nil
		}
	}
	return 0, t.unmatchedError(r)
}

func (t *Transcript) unmatchedError(r llm.Request) error {
	e := &UnmatchedError{File: t.file, Prompt: userText(r), Turn: turnNumber(r), Replies: len(t.entries)}
	for i, entry := range t.entries {
		if !t.used[i] {
			e.Unused = append(e.Unused, entry.describe())
		}
	}
	return e
}

// An UnmatchedError says that no reply of the transcript matches a request.
type UnmatchedError struct {
	File    string
	Prompt  string   // the text of the user's messages
	Turn    int      // of the request in its conversation
	Replies int      // number of replies in the transcript
	Unused  []string // those of them that no request has used
}

// Error returns one line with the beginning of the prompt and of the list of
// unused replies.
func (e *UnmatchedError) Error() string {
	const most = 8
	head := fmt.Sprintf("script: %s: no reply for the request %q (turn %d): ", e.File, truncateLine(e.Prompt, 120), e.Turn)
	if len(e.Unused) == 0 {
		return head + fmt.Sprintf("all replies (%d) are used; add one, or set repeat on one of them", e.Replies)
	}
	list := e.Unused
	more := ""
	if len(list) > most {
		list = list[:most]
		more = fmt.Sprintf(" and %d more", len(e.Unused)-most)
	}
	return head + "still unused: " + strings.Join(list, "; ") + more
}

// splitDeltas splits a reply into the deltas that a provider would stream.
func splitDeltas(r llm.Reply) []llm.Delta {
	var list []llm.Delta
	call := 0
	for _, p := range r.Message.Parts {
		switch p := p.(type) {
		case llm.Reasoning:
			list = append(list, llm.Delta{Reasoning: p.Text})
		case llm.Text:
			for word := range strings.SplitAfterSeq(p.Text, " ") {
				if word != "" {
					list = append(list, llm.Delta{Text: word})
				}
			}
		case llm.ToolCall:
			list = append(list, llm.Delta{ToolCall: &llm.ToolCallDelta{
				Index: call,
				ID:    p.ID,
				Name:  p.Name,
				Args:  string(p.Args),
			}})
			call++
		}
	}
	return append(list, llm.Delta{Done: &r})
}

func sleepContext(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return stopError(ctx)
	}
}

// stopError returns the error of a call whose context has ended.
func stopError(ctx context.Context) error {
	err := ctx.Err()
	cause := context.Cause(ctx)
	if cause == err {
		return fmt.Errorf("model call stopped: %w", err)
	}
	return fmt.Errorf("model call stopped: %w (%w)", err, cause)
}
