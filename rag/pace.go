package rag

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"raddle.dev/llm"
)

const (
	maxAtOnce  = 4  // batches that are with the embedding model at the same time
	roundSize  = 2  // batches that are collected for each of these before any is sent
	raiseAfter = 16 // batches that must succeed before one more may be sent at the same time
)

// A callLimiter decides how many batches may be in progress at the same time. If the model asks for fewer, or does not
// answer in time, the limit becomes half, and all callers wait as long as the model asks for.
type callLimiter struct {
	slots chan struct{} // each value is a slot that a caller may take

	mu          sync.Mutex
	active      int       // calls in progress
	limit       int       // how many slots there are
	ceiling     int       // how many slots there may be again
	slotsToDrop int       // slots that must not be returned
	successes   int       // those since the last change
	resume      time.Time // no call begins before this time
}

func newCallLimiter(n int) *callLimiter {
	l := &callLimiter{slots: make(chan struct{}, n), limit: n, ceiling: n}
	for range n {
		l.slots <- struct{}{}
	}
	return l
}

// acquireSlot waits for a slot, and until the model may be called. It returns how many calls are allowed at a time.
func (l *callLimiter) acquireSlot(ctx context.Context) (allowed int, err error) {
	select {
	case <-ctx.Done():
	case <-l.slots:
		if ctx.Err() != nil {
			l.slots <- struct{}{}
		}
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	l.mu.Lock()
	l.active++
	allowed = l.limit
	wait := time.Until(l.resume)
	l.mu.Unlock()
	if wait <= 0 {
		return allowed, nil
	}
	select {
	case <-ctx.Done():
		l.releaseSlot()
		return 0, ctx.Err()
	case <-time.After(wait):
		return allowed, nil
	}
}

func (l *callLimiter) releaseSlot() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.active--
	if l.slotsToDrop > 0 {
		l.slotsToDrop--
		return
	}
	l.slots <- struct{}{}
}

// recordOutcome records how a call ended; allowed is the limit when the call began. It reports whether the call must be
// repeated because there may have been too many at the same time.
func (l *callLimiter) recordOutcome(allowed int, err error) (again bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		if l.successes++; l.successes >= raiseAfter && l.limit < l.ceiling && l.slotsToDrop == 0 {
			l.successes = 0
			l.limit = l.limit + 1
			l.slots <- struct{}{}
		}
		return false
	}
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return false
	}
	switch failure.Class {
	case llm.RateLimited, llm.Overloaded:
		if at := time.Now().Add(max(firstPause, min(failure.RetryAfter, longestPause))); at.After(l.resume) {
			l.resume = at
		}
	case llm.Timeout:
		l.ceiling = max(1, l.limit/2)
	default:
		return false
	}
	l.successes = 0
	if l.limit > 1 {
		l.slotsToDrop += l.limit - l.limit/2
		l.limit /= 2
	}
	return allowed > 1 && l.active > 1
}

// A pacedEmbedder is an Embedder whose calls wait for a callLimiter. It handles failures caused by too many calls
// itself. A call that waits ends with its own context. A call that was sent ends only with the context of all calls:
// its answer is not discarded because another call has failed.
type pacedEmbedder struct {
	Embedder
	limiter *callLimiter
	all     context.Context
}

func (m pacedEmbedder) Embed(ctx context.Context, purpose Purpose, texts []string) ([][]float32, error) {
	for {
		allowed, err := m.limiter.acquireSlot(ctx)
		if err != nil {
			return nil, err
		}
		vectors, err := m.Embedder.Embed(m.all, purpose, texts)
		again := m.limiter.recordOutcome(allowed, err)
		m.limiter.releaseSlot()
		if !again {
			return vectors, err
		}
	}
}

// A batchResult is the outcome of one batch.
type batchResult struct {
	vectors [][]float32
	err     error
}

// embedInOrder embeds batches and stores the vectors in the order of the batches. The batches that are in progress or
// wait to be stored are never more than the largest limit of a callLimiter. After a failure it sends no more batches,
// but it waits for those in progress and stores them.
func (w *builder) embedInOrder(ctx context.Context, batches [][]string, keep func(texts []string, vectors [][]float32) error) error {
	var wait sync.WaitGroup
	defer wait.Wait()
	sending, stop := context.WithCancel(ctx)
	defer stop()
	m := pacedEmbedder{w.embed.model, w.embed.limiter, ctx}
	replies := make([]chan batchResult, len(batches))
	send := func(i int) {
		replies[i] = make(chan batchResult, 1)
		r := request{model: w.settings.Model, purpose: ForDocument, texts: batches[i], attempts: w.base.o.Attempts, dims: w.embed.dims}
		wait.Go(func() {
			vectors, err := embedTexts(sending, m, r)
			if err != nil {
				stop()
			}
			replies[i] <- batchResult{vectors, err}
		})
	}
	var failed error
	sent := 0
	for i, texts := range batches {
		for ; sent < min(i+maxAtOnce, len(batches)) && sending.Err() == nil; sent++ {
			send(sent)
		}
		if i == sent {
			break
		}
		r := <-replies[i]
		if r.err == nil {
			r.err = keep(texts, r.vectors)
		}
		if r.err != nil {
			stop()
		}
		if failed == nil && !errors.Is(r.err, context.Canceled) {
			failed = r.err
		}
	}
	return cmp.Or(ctx.Err(), failed)
}
