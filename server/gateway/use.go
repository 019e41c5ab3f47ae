package gateway

import (
	"context"
	"sync"
	"time"

	"raddle.dev/internal/storage/entries"
)

// usePeriod is how often the use of a token is saved at most.
const usePeriod = time.Minute

// useLife is how long the last use of a token is remembered.
const useLife = 400 * 24 * time.Hour

// tokenUse knows when tokens were used last. A use is saved if the last one that this server has saved is a minute ago:
// that is how exact the times are. Several servers may save theirs. It is safe for concurrent use.
type tokenUse struct {
	uses entries.Table[time.Time] // by the hashes of tokens

	mu    sync.Mutex
	saved map[string]time.Time // by the hashes of tokens, the last use that this server has saved
}

// LastUse returns when a token was used last, to the minute; zero: it was never used.
func (t *Tokens) LastUse(ctx context.Context, k Token) (time.Time, error) {
	at, _, err := t.use.uses.ReadValue(ctx, k.Hash)
	return at, err
}

// noteUse notes that a token is used now. That this cannot be saved keeps no request from being served.
func (u *tokenUse) noteUse(ctx context.Context, hash string, now time.Time) {
	if u.wasSaved(hash, now) {
		return
	}
	_ = u.uses.PutValue(ctx, hash, now.UTC().Truncate(time.Second), useLife)
}

// wasSaved reports whether a use of a token was saved in the last minute. If not, the caller saves it.
func (u *tokenUse) wasSaved(hash string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if last, ok := u.saved[hash]; ok && now.Sub(last) < usePeriod {
		return true
	}
	if u.saved == nil {
		u.saved = map[string]time.Time{}
	}
	u.saved[hash] = now
	return false
}

// forgetUse forgets the use of a token that was removed.
func (u *tokenUse) forgetUse(ctx context.Context, hash string) error {
	_, err := u.uses.RemoveValue(ctx, hash)
	return err
}
