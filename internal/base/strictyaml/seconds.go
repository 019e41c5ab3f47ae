package strictyaml

import (
	"math"
	"time"
)

// Seconds is a duration in whole seconds.
type Seconds uint64

// Duration returns s as a time.Duration, limited to the largest one.
func (s Seconds) Duration() time.Duration {
	if s > math.MaxInt64/Seconds(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s) * time.Second
}
