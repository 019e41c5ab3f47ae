package runs

import (
	"errors"

	"raddle.dev/graph/journal"
)

// IsDamage reports whether an error is about one journal that cannot be read, and not about the store: lists show this
// run as [Damaged], and continue with the others.
func IsDamage(err error) bool {
	return errors.As(err, new(*journal.DamagedError)) || errors.Is(err, journal.ErrNoPoint)
}

// damagedInfo returns the line of a list for a run whose journal cannot be read. What is known of the run stays in it.
func damagedInfo(i Info, err error) Info {
	i.Status, i.Reason, i.Final, i.PID, i.Host = Damaged, err.Error(), false, 0, ""
	if i.Questions == nil {
		i.Questions = []OpenQuestion{}
	}
	return i
}
