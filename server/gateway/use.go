package gateway

import (
	"encoding/json"
	"os"
	"slices"
	"sync"
	"time"
)

// usePeriod is how often the uses of tokens are saved at most.
const usePeriod = time.Minute

// tokenUse knows when tokens were used last. Uses are saved once a minute: that is how exact their times are. It is safe for concurrent use.
type tokenUse struct {
	path string

	mu    sync.Mutex
	last  map[string]time.Time // by the hashes of tokens; nil: not read yet
	saved time.Time
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
		u.last = u.readUses()
	}
	first := u.last[used.Hash].IsZero()
	u.last[used.Hash] = now.UTC().Truncate(time.Second)
	if !first && now.Sub(u.saved) < usePeriod {
		return
	}
	u.saved = now
	for hash := range u.last {
		if !slices.ContainsFunc(all, func(k Token) bool { return k.Hash == hash }) {
			delete(u.last, hash) // the token was removed
		}
	}
	if text, err := json.Marshal(u.last); err == nil {
		_ = writePrivate(u.path, text)
	}
}
