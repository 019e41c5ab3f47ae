package rag

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
)

// A slowModel takes a second for each batch, and answers with the number that a text is.
type slowModel struct {
	fail func(call int) error // nil: it always succeeds

	mu     sync.Mutex
	calls  int
	now    int             // calls in progress
	most   int             // of them at any time
	begins []time.Duration // of each call
	start  time.Time
}

func (m *slowModel) Embed(ctx context.Context, _ Purpose, texts []string) ([][]float32, error) {
	m.mu.Lock()
	m.calls++
	m.now++
	call := m.calls
	m.most = max(m.most, m.now)
	m.begins = append(m.begins, time.Since(m.start))
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		m.now--
		m.mu.Unlock()
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(time.Second):
	}
	if m.fail != nil {
		if err := m.fail(call); err != nil {
			return nil, err
		}
	}
	var all [][]float32
	for _, text := range texts {
		var n float32
		if _, err := fmt.Sscan(text, &n); err != nil {
			return nil, err
		}
		all = append(all, []float32{n + 1, 1})
	}
	return all, nil
}

// embedBatches sends n batches of one text each and returns what was kept.
func embedBatches(t *testing.T, ctx context.Context, m *slowModel, n int) (kept []string, err error) {
	t.Helper()
	var batches [][]string
	for i := range n {
		batches = append(batches, []string{fmt.Sprint(i)})
	}
	m.start = time.Now()
	w := &builder{base: &Base{o: Options{Attempts: 2}}, embed: embedding{model: m, limiter: newCallLimiter(maxAtOnce), dims: 2}}
	err = w.embedInOrder(ctx, batches, func(texts []string, vectors [][]float32) error {
		kept = append(kept, texts...)
		return nil
	})
	return kept, err
}

func numbers(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestSeveralBatchesAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slowModel{}
		kept, err := embedBatches(t, t.Context(), m, 12)
		if took := time.Since(m.start); err != nil || took != 3*time.Second || m.most != maxAtOnce {
			t.Errorf("%s, %d at a time, %v", took, m.most, err)
		}
		if diff := cmp.Diff(numbers(12), kept); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
	})
}

// TestRateLimitSlowsAllDown has a server that takes one call at a time, and asks for five seconds where there are more.
func TestRateLimitSlowsAllDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slowModel{}
		m.fail = func(int) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.now > 1 {
				return &llm.Error{Class: llm.RateLimited, RetryAfter: 5 * time.Second}
			}
			return nil
		}
		kept, err := embedBatches(t, t.Context(), m, 10)
		if err != nil || m.calls > 20 {
			t.Errorf("%d calls, %v", m.calls, err)
		}
		if diff := cmp.Diff(numbers(10), kept); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		for _, at := range m.begins {
			if at > 0 && at < 6*time.Second {
				t.Errorf("a call began after %s, in the pause", at)
			}
		}
	})
}

// TestRateLimitThatStays is an error after as many attempts as are allowed, made one at a time.
func TestRateLimitThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slowModel{fail: func(int) error { return &llm.Error{Class: llm.RateLimited} }}
		kept, err := embedBatches(t, t.Context(), m, 10)
		var limit *llm.Error
		if !errors.As(err, &limit) || limit.Class != llm.RateLimited || len(kept) > 0 || m.calls > 20 {
			t.Errorf("kept %v after %d calls, %v", kept, m.calls, err)
		}
	})
}

func TestPaceRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slowModel{fail: func(call int) error {
			if call == 1 {
				return &llm.Error{Class: llm.Overloaded}
			}
			return nil
		}}
		if _, err := embedBatches(t, t.Context(), m, 100); err != nil {
			t.Fatal(err)
		}
		began := map[time.Duration]int{}
		for _, at := range m.begins {
			began[at]++
		}
		times := slices.Sorted(maps.Keys(began))
		if first, last := began[times[3]], began[times[len(times)-2]]; first != 2 || last != 4 {
			t.Errorf("first %d calls at a time, in the end %d: %v", first, last, began)
		}
	})
}

// TestFailureKeepsWhatIsOnItsWay lets the second of four calls fail permanently. The three others end at the same instant, so that each may have
// let one more call begin before the failure is seen; no later call begins.
func TestFailureKeepsWhatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slowModel{fail: func(call int) error {
			if call == 2 {
				return &llm.Error{Class: llm.Auth}
			}
			return nil
		}}
		kept, err := embedBatches(t, t.Context(), m, 40)
		var wrong *llm.Error
		if !errors.As(err, &wrong) || len(kept) != m.calls-1 || m.calls > 2*maxAtOnce-1 {
			t.Errorf("kept %v after %d calls, %v", kept, m.calls, err)
		}
	})
}

func TestEmbeddingIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		m := &slowModel{}
		kept, err := embedBatches(t, ctx, m, 40)
		slices.Sort(kept)
		if took := time.Since(m.start); !errors.Is(err, context.DeadlineExceeded) || took != 1500*time.Millisecond || len(kept) != 4 {
			t.Errorf("kept %v after %s: %v", kept, took, err)
		}
	})
}
