package server

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"time"
)

// QuotaError reports a request for which its caller has no room at this time. Nothing was done.
type QuotaError struct {
	Code       string        // what is used up, as one stable word for programs
	Detail     string        // the same for people
	RetryAfter time.Duration // when there is room again, at the earliest
}

// Error says what is used up, and when to try again.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("%s; try again in %s s", e.Detail, e.FormatSeconds())
}

// FormatSeconds returns RetryAfter as the header of HTTP with that name has it: in whole seconds.
func (e *QuotaError) FormatSeconds() string {
	return strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds())))
}

// takeStart counts the start of a run by the caller of a context. The error is a [*QuotaError] if the caller may start
// none now.
func takeStart(ctx context.Context) error {
	if c, ok := CallerOf(ctx); ok && c.TakeStart != nil {
		return c.TakeStart()
	}
	return nil
}
