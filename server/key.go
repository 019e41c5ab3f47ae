package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// keyLife is how long an idempotency key is known.
const keyLife = 48 * time.Hour

// A keyEntry is what an idempotency key means. All servers of a store know it.
type keyEntry struct {
	Run     string `json:"run"`
	Thread  string `json:"thread,omitempty"` // of the run, if it is that of a session
	Request string `json:"request"`          // hash of what was requested
}

// KeyReusedError reports an idempotency key that was used for another request.
type KeyReusedError struct {
	Run string // the run of that request
}

// Error names the run that the other request started.
func (e *KeyReusedError) Error() string {
	return "the idempotency key was used for another request, which started run " + e.Run
}

// startKeyed starts a run, unless a request with the same key has started one: then it returns that. It works on one
// request with a key at a time. Other servers may work on it, too: the first one decides the id of the run, and a run
// with an id can be started once.
func startKeyed(ctx context.Context, s *Service, req StartRequest) (run string, err error) {
	release, err := s.keyed.lock(ctx, req.Key)
	if err != nil {
		return "", err
	}
	defer release()
	text, err := json.Marshal(req)
	if err != nil {
		return "", err
	}
	own := keyEntry{Request: hashText(text)}
	for end := time.Now().Add(confirmWait); ; {
		run, err := tryKeyed(ctx, s, req, own)
		if !errors.Is(err, errKeyTaken) {
			return run, err
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(keyPause):
		}
		if time.Now().After(end) {
			return "", newUnconfirmedError()
		}
	}
}

// keyPause is how long a server waits for another one that starts the run of a key.
const keyPause = 50 * time.Millisecond

// errKeyTaken reports that another server starts the run of a key.
var errKeyTaken = errors.New("another server starts the run of this idempotency key")

// tryKeyed is an attempt of startKeyed. The error is errKeyTaken as long as another server may record the start.
func tryKeyed(ctx context.Context, s *Service, req StartRequest, own keyEntry) (run string, err error) {
	place := hashText([]byte(req.Key))
	known, found, err := s.keys.ReadValue(ctx, place)
	if err != nil {
		return "", newKeyError(err)
	}
	if found {
		recorded, err := own.findRecorded(ctx, s, known)
		if recorded || err != nil {
			return known.Run, err
		}
		req.ID = known.Run // a server has ended before it recorded the start
	}
	run, err = s.startNew(ctx, req, func(run *app.Run) error {
		own.Run = run.ID
		own.Thread = run.Thread
		if known, err = s.keys.AddValue(ctx, place, own, keyLife); err != nil {
			return newKeyError(err)
		}
		if known.Run != own.Run {
			return errKeyTaken
		}
		return nil
	})
	if err == nil || known.Run == "" || errors.Is(err, errKeyTaken) {
		return run, err
	}
	if recorded, findErr := own.findRecorded(ctx, s, known); recorded || findErr != nil { // another server was faster
		return known.Run, findErr
	}
	return "", err
}

// findRecorded reports whether the start of the run is recorded that is known of a key.
func (e *keyEntry) findRecorded(ctx context.Context, s *Service, known keyEntry) (bool, error) {
	if known.Request != e.Request {
		return false, &KeyReusedError{Run: known.Run}
	}
	recorded, driven, err := findKeyed(ctx, s, known)
	if !recorded && driven && err == nil {
		return false, errKeyTaken
	}
	return recorded, err
}

func newKeyError(err error) error {
	return &failure.Error{Kind: failure.Unavailable, Err: fmt.Errorf("the idempotency key: %w", err), Next: "try again in a moment"}
}

// findKeyed reports whether the start of the run of a key is recorded, and whether a drive may still record it. The
// error is of the kind [failure.Unavailable] if a drive of this service has not said so.
func findKeyed(ctx context.Context, s *Service, key keyEntry) (recorded, driven bool, err error) {
	if d := s.findDrive(key.Run); d != nil {
		if _, err := d.receipt.wait(ctx); failure.IsUnavailable(err) {
			return false, true, err
		}
	}
	thread := cmp.Or(key.Thread, key.Run)
	if driven, err = runs.IsThreadDriven(s.process.Runs, thread); err != nil {
		return false, false, err
	}
	_, err = s.findRun(ctx, key.Run)
	if is[*runs.UnknownError](err) {
		return false, driven, nil
	}
	return err == nil, driven, err
}
