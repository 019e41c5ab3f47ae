package writer

import (
	"context"
	"errors"
)

// FirstError returns the failure of a store if another error only follows from it.
func FirstError(err, store error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return store
	}
	if errors.Is(err, store) {
		return err
	}
	return errors.Join(err, store)
}
