package flow

import (
	"math"
	"time"
)

// Seconds is a time in whole seconds.
type Seconds uint64

// Duration is the time, at most the longest there is.
func (s Seconds) Duration() time.Duration {
	if s > math.MaxInt64/Seconds(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s) * time.Second
}
