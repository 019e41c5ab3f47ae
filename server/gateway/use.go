package gateway

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
)

// usePeriod is how often the uses of tokens are saved at most.
const usePeriod = time.Minute

// tokenUse knows when tokens were used last. Uses are saved once a minute: that is how exact their times are. Several
// servers may save theirs. It is safe for concurrent use.
type tokenUse struct {
	path string

	mu    sync.Mutex
	last  map[string]time.Time // by the hashes of tokens, those that were used here; nil: none was
	known []Token              // all tokens at the last use
	saved time.Time
	later *time.Timer // saves what was used after saved; nil: there is nothing
}

// LastUse returns when a token was used last, to the minute; zero: it was never used.
func (t *Tokens) LastUse(k Token) time.Time {
	t.use.mu.Lock()
	defer t.use.mu.Unlock()
	return t.use.readUses()[k.Hash]
}

// readUses returns the uses that were saved. A damaged file is as good as none: the next use replaces it.
func (u *tokenUse) readUses() map[string]time.Time {
	last := map[string]time.Time{}
	if text, err := os.ReadFile(u.path); err == nil {
		_ = json.Unmarshal(text, &last)
	}
	return last
}

// noteUse notes that one of the tokens is used now. That this cannot be saved keeps no request from being served.
func (u *tokenUse) noteUse(used *Token, all []Token, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[string]time.Time{}
	}
	_, again := u.last[used.Hash]
	u.last[used.Hash], u.known = now.UTC().Truncate(time.Second), all
	switch wait := usePeriod - now.Sub(u.saved); {
	case !again || wait <= 0:
		u.save(now)
	case u.later == nil:
		u.later = time.AfterFunc(wait, func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.later = nil
			u.save(time.Now())
		})
	}
}

// save adds the uses to those that are saved. The caller must hold mu.
func (u *tokenUse) save(now time.Time) {
	u.saved = now
	last := u.readUses()
	for hash, at := range u.last {
		if at.After(last[hash]) {
			last[hash] = at
		}
	}
	maps.DeleteFunc(last, func(hash string, _ time.Time) bool { // the token was removed
		return !slices.ContainsFunc(u.known, func(k Token) bool { return k.Hash == hash })
	})
	if text, err := json.Marshal(last); err == nil {
		_ = writePrivate(u.path, text)
	}
}
