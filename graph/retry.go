package graph

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"

	"raddle.dev/graph/internal/panics"
)

const (
	defaultFactor   = 2
	defaultMaxDelay = 30 * time.Second
)

// retry is the policy of the task's node: its own, else the Runner's.
func (t *task) retry() *Retry {
	if n := t.node(); n.Retry.Attempts != 0 || n.Graph != nil || n.Children != nil {
		return &n.Retry
	}
	return &t.drive.r.Retry
}

// shouldRetry reports whether another attempt follows the one that failed. A panic in If is
// an error of its node.
func (r *Retry) shouldRetry(attempt int, err error) (again bool, fault error) {
	defer func() {
		if p := recover(); p != nil {
			again, fault = false, panics.NewError("Retry.If", p)
		}
	}()
	return attempt < r.Attempts && (r.If == nil || r.If(err)), nil
}

// attemptDelay returns the pause after an attempt. Its random part is the same for the same
// task and attempt, so that a run can be repeated exactly.
func (r *Retry) attemptDelay(attempt int, task string) time.Duration {
	if r.Delay <= 0 {
		return 0
	}
	factor, most := r.Factor, r.MaxDelay
	if factor <= 0 {
		factor = defaultFactor
	}
	if most <= 0 {
		most = defaultMaxDelay
	}
	d := min(float64(r.Delay)*math.Pow(factor, float64(attempt-1)), float64(most))
	if j := min(max(r.Jitter, 0), 1); j > 0 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(task))
		share := rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64()
		d = d*(1-j) + d*j*share
	}
	return time.Duration(d)
}
