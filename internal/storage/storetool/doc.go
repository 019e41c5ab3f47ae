// Package storetool looks after whole stores: it checks every journal of a store, copies journals between stores, and
// measures them.
package storetool

import (
	"context"
	"slices"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/stores"
)

// OpenStore opens the existing store at a URL; "" is the usual one. The caller must close it.
func OpenStore(url string, dirs config.Dirs) (journal.Store, stores.Location, error) {
	at, err := stores.Parse(url, dirs)
	if err != nil {
		return nil, at, err
	}
	if !at.Exists() {
		return nil, at, failure.NewInvalid("raddle run makes a store; another one is named by its URL, such as sqlite:PATH", "there is no store at %s", at.Place())
	}
	st, err := at.OpenToRead()
	return st, at, explainError(at, err)
}

// CreateStore opens the store at a URL, and creates it if it does not exist. The caller must close it.
func CreateStore(url string, dirs config.Dirs) (journal.Store, stores.Location, error) {
	at, err := stores.Parse(url, dirs)
	if err != nil {
		return nil, at, err
	}
	if !at.KeepsRuns() {
		return nil, at, failure.NewUsage("name one that does: sqlite:PATH, postgres://HOST/NAME, redis://HOST", "%s keeps no runs", url)
	}
	st, err := at.Open()
	return st, at, explainError(at, err)
}

// explainError names the store that an error is about.
func explainError(at stores.Location, err error) error {
	if err == nil {
		return nil
	}
	return &failure.Error{Kind: failure.Invalid, Msg: "the store " + at.Place() + " cannot be opened", Err: err, Next: "correct its URL, or what the error names"}
}

// listThreads returns the threads of a store, by name.
func listThreads(ctx context.Context, st journal.Store) ([]journal.ThreadInfo, error) {
	var list []journal.ThreadInfo
	for t, err := range st.Threads(ctx, "") {
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	slices.Reverse(list) // a listing is descending
	return list, nil
}
