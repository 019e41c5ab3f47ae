// Package backoff says how long the pauses between attempts are.
package backoff

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// A Policy is that of graph.Retry.
type Policy struct {
	Delay  time.Duration // before the second attempt; 0: attempts follow at once
	Factor float64       // multiplies the pause from attempt to attempt; 0: 2
	Most   time.Duration // the longest pause; 0: 30 s
	Jitter float64       // the share of each pause that is random, from 0 to 1
}

const (
	defaultFactor = 2
	defaultMost   = 30 * time.Second
)

// DelayAfter returns the pause after an attempt; the first one is 1. Its random part is the
// same for the same seed and attempt.
func (p Policy) DelayAfter(attempt int, seed string) time.Duration {
	if p.Delay <= 0 {
		return 0
	}
	if p.Factor <= 0 {
		p.Factor = defaultFactor
	}
	if p.Most <= 0 {
		p.Most = defaultMost
	}
	d := min(float64(p.Delay)*math.Pow(p.Factor, float64(attempt-1)), float64(p.Most))
	if j := min(max(p.Jitter, 0), 1); j > 0 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(seed)) // a hash never fails
		share := rand.New(rand.NewPCG(h.Sum64(), uint64(attempt))).Float64()
		d = d*(1-j) + d*j*share
	}
	return time.Duration(d)
}
