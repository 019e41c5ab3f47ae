package graph

import (
	"time"

	"raddle.dev/graph/internal/runid"
)

// NewID returns an identifier for a run or thread: nine characters of time, to the
// millisecond, and eleven random ones, enough for any number of machines that start runs
// in the same millisecond. Ids sort by time, also with those of older versions, which
// have five random characters.
func NewID(now time.Time) string { return runid.New(now) }

// DeriveID returns an identifier that follows from a time and some texts: it is always the same one, and that of no other
// texts. It sorts as one of NewID does.
func DeriveID(at time.Time, parts ...string) string { return runid.Derive(at, parts...) }
