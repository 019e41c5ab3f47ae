package provider

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"sync"

	"raddle.dev/llm"
	"raddle.dev/llm/script"
)

// A lazyModel is a model that its first call opens. A call that is cancelled meanwhile leaves it to the next one.
type lazyModel struct {
	open func(context.Context) (llm.Model, error)

	mu     sync.Mutex
	opened bool
	model  llm.Model
	err    error
}

// find returns the model, opened.
func (l *lazyModel) find(ctx context.Context) (llm.Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened {
		return l.model, l.err
	}
	model, err := l.open(ctx)
	if err != nil && ctx.Err() != nil {
		return nil, err
	}
	l.opened = true
	l.model = model
	l.err = err
	return model, err
}

// Stream implements [llm.Model].
func (l *lazyModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		model, err := l.find(ctx)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		for d, err := range model.Stream(ctx, r) {
			if !yield(d, err) {
				return
			}
		}
	}
}

// A replayModel is a transcript whose replies differ from those of another file
// with the same name: their ids begin with the directory's name.
type replayModel struct {
	*script.Transcript
	dir string
}

// openScript opens a transcript that continues after the recorded replies of a run.
// It ignores recorded replies that are not in the transcript, which has changed then.
func openScript(place transcriptPlace, recorded []string) (llm.Model, error) {
	t, err := place.read()
	if err != nil {
		return nil, fmt.Errorf("the transcript cannot be replayed: %w", err)
	}
	path := place.path
	m := &replayModel{t, filepath.Base(filepath.Dir(path)) + "/"}
	for _, id := range recorded {
		if own, ok := strings.CutPrefix(id, m.dir+filepath.Base(path)+"#"); ok {
			_ = t.Skip(filepath.Base(path) + "#" + own)
		}
	}
	return m, nil
}

// Stream implements [llm.Model].
func (m *replayModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range m.Transcript.Stream(ctx, r) {
			if d.Done != nil && d.Done.ID != "" {
				reply := *d.Done
				reply.ID = m.dir + reply.ID
				d.Done = &reply
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
