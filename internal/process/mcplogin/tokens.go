package mcplogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"raddle.dev/internal/storage/keystore"
)

// keyOf returns the name under which the grant of a server is stored.
func keyOf(server string) string { return "mcp " + server }

// SaveGrant stores a grant, and returns where, and why not in the keychain.
func SaveGrant(keys *keystore.Store, g Grant) (place keystore.Place, why, err error) {
	text, err := json.Marshal(g)
	if err != nil {
		return keystore.Nowhere, nil, err
	}
	return keys.Save(keyOf(g.Server), string(text), false)
}

// RemoveGrant removes the grant of a server, and returns where it was.
func RemoveGrant(keys *keystore.Store, server string) (keystore.Place, error) {
	return keys.Remove(keyOf(server))
}

// IsStored reports whether there is a grant of a server. It does not read it.
func IsStored(keys *keystore.Store, server string) bool {
	return keys.PlaceOf(keyOf(server)) != keystore.Nowhere
}

// loadGrant returns the grant of a server. One for another server is none.
func loadGrant(keys *keystore.Store, server string) (g Grant, err error) {
	if !IsStored(keys, server) {
		return Grant{}, nil
	}
	text, err := keys.Read(keyOf(server))
	if err != nil || text == "" {
		return Grant{}, err
	}
	if json.Unmarshal([]byte(text), &g) != nil || g.Server != server {
		return Grant{}, errors.New("the stored login is damaged")
	}
	return g, nil
}

// Tokens are the tokens of the servers to which the user has logged in. They are renewed before they expire, and when a
// server refuses them. It is safe for concurrent use.
type Tokens struct {
	Keys   *keystore.Store
	Secret func(values ...string) // gets what must not be seen; nil: nothing does

	mu    sync.Mutex
	known map[string]Grant // by the address of the server
}

// early is how long before its end a token is renewed.
const early = time.Minute

// Token returns the token for a server, "" if there is no login. rejected is the token that the server has refused; ""
// for a first request.
func (t *Tokens) Token(ctx context.Context, server, rejected string) (string, error) {
	if t == nil {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g, ok := t.known[server]
	if !ok {
		var err error
		if g, err = loadGrant(t.Keys, server); err != nil {
			return "", err
		}
		t.rememberGrant(server, g)
	}
	usable := g.Access != rejected && (g.Expires.IsZero() || time.Until(g.Expires) > early)
	switch {
	case g.Access == "" || usable:
		return g.Access, nil
	case g.Refresh == "":
		return "", nil
	}
	next, err := g.RenewTokens(ctx)
	if err == nil {
		_, _, err = SaveGrant(t.Keys, next)
		t.rememberGrant(server, next)
		return next.Access, err
	}
	// another process has renewed it
	if stored, other := loadGrant(t.Keys, server); other == nil && stored.Access != "" && stored.Access != g.Access {
		t.rememberGrant(server, stored)
		return stored.Access, nil
	}
	return "", fmt.Errorf("the login cannot be renewed: %w", err)
}

// rememberGrant keeps a grant. The caller must hold mu.
func (t *Tokens) rememberGrant(server string, g Grant) {
	if t.known == nil {
		t.known = map[string]Grant{}
	}
	t.known[server] = g
	if t.Secret != nil && g.Access != "" {
		t.Secret(g.Access, g.Refresh, g.ClientSecret)
	}
}
