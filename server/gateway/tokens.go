package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/storage/entries"
	"raddle.dev/server"
)

// TokenVariable is the variable of the environment that replaces the first token.
const TokenVariable = "RADDLE_SERVER_TOKEN"

// firstName is the name of the token that is made at the first start.
const firstName = "first"

// tokenBytes is the number of random bytes of a token.
const tokenBytes = 32

// Tokens are the tokens of the servers of a store. The first one is in a file of its own, for clients on this machine; of
// the others only the hash is saved, in the store. Older programs have saved them in a file of the machine: what it has
// is valid, too.
type Tokens struct {
	dir   string
	log   *securityLog
	added entries.Table[Token] // by their hashes
	use   tokenUse
}

// OpenTokens returns the tokens of a store and of the state directory of raddle.
func OpenTokens(state string, st entries.Store) *Tokens {
	return &Tokens{
		dir:   filepath.Join(state, "serve"),
		log:   openSecurityLog(state),
		added: entries.NewTable[Token](st, "tokens"),
		use:   tokenUse{uses: entries.NewTable[time.Time](st, "uses")},
	}
}

// A Token is what a server knows of a token.
type Token struct {
	Name   string         `json:"name"`
	Scopes []server.Scope `json:"scopes"`
	Hash   string         `json:"hash"` // SHA-256 of the token

	Created time.Time `json:"created,omitzero"` // zero: by an older raddle
	Expires time.Time `json:"expires,omitzero"` // from then on it is refused; zero: never
}

// FirstPath returns the file of the first token.
func (t *Tokens) FirstPath() string { return filepath.Join(t.dir, "token") }

func (t *Tokens) listPath() string { return filepath.Join(t.dir, "tokens.json") }

// ReadFirst returns the first token. It makes one if there is none. own is the value of [TokenVariable]; "" if it is
// not set.
func (t *Tokens) ReadFirst(own string) (string, error) {
	if own != "" {
		return own, checkToken(own)
	}
	text, err := os.ReadFile(t.FirstPath())
	if err == nil && len(text) > 0 {
		return string(text), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the token of the server: %w", err)
	}
	token := newToken()
	if err = os.MkdirAll(t.dir, 0o700); err == nil {
		err = writePrivate(t.FirstPath(), []byte(token))
	}
	if err != nil {
		return "", fmt.Errorf("the token of the server: %w", err)
	}
	return token, nil
}

// shortestToken is the length of the shortest token that is accepted from the environment.
const shortestToken = 16

func checkToken(token string) error {
	if len(token) < shortestToken {
		return failure.NewUsage("make one: openssl rand -hex 32", "the token in %s is too short: it must have at least %d characters", TokenVariable, shortestToken)
	}
	return nil
}

func newToken() string { return "raddle_" + newSecret() }

// writePrivate writes a file that only its owner may read, and that is complete or absent.
func writePrivate(path string, text []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, text, 0o600); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o600); err != nil { // it may have existed
		return err
	}
	return os.Rename(part, path)
}

// List returns the tokens that were added, by name.
func (t *Tokens) List(ctx context.Context) ([]Token, error) {
	old, err := t.readOld()
	if err != nil {
		return nil, err
	}
	list, err := t.added.ListValues(ctx)
	if err != nil {
		return nil, fmt.Errorf("the tokens of the server: %w", err)
	}
	list = append(list, old...)
	slices.SortStableFunc(list, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// readOld returns the tokens that older programs have saved in a file.
func (t *Tokens) readOld() (list []Token, err error) {
	text, err := os.ReadFile(t.listPath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, &failure.Error{Kind: failure.Invalid, Msg: "the tokens of the server in " + t.listPath(), Err: err, Next: "remove the file, and add the tokens again"}
	}
	return list, nil
}

var tokenName = pattern.CompileLater(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Add makes a token with a name and returns it. It is not shown again. It is refused from expires on; zero: it does not
// expire.
func (t *Tokens) Add(ctx context.Context, name string, scopes []server.Scope, expires time.Time) (string, error) {
	if !tokenName().MatchString(name) {
		return "", failure.NewUsage("use letters, digits, '.', '_' and '-'", "%q cannot be the name of a token", name)
	}
	list, err := t.List(ctx)
	if err != nil {
		return "", err
	}
	if name == firstName || slices.ContainsFunc(list, func(k Token) bool { return k.Name == name }) {
		return "", failure.NewUsage("remove it first: raddle serve token rm "+name, "there is a token with the name %q", name)
	}
	token := newToken()
	added := Token{Name: name, Scopes: scopes, Hash: hashToken(token), Created: time.Now().UTC().Round(time.Second), Expires: expires}
	if err := t.added.PutValue(ctx, added.Hash, added, 0); err != nil {
		return "", fmt.Errorf("save the token: %w", err)
	}
	t.log.write(SecurityEntry{Event: "token-added", Token: name, Detail: fmt.Sprint(scopes)})
	return token, nil
}

// Remove removes a token. If two were added with the name at the same moment, it removes both.
func (t *Tokens) Remove(ctx context.Context, name string) error {
	list, err := t.List(ctx)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(k Token) bool { return k.Name != name })
	if len(list) == 0 {
		return failure.NewUsage("see: raddle serve token ls", "there is no token with the name %q", name)
	}
	for _, k := range list {
		if _, err := t.added.RemoveValue(ctx, k.Hash); err != nil {
			return fmt.Errorf("remove the token: %w", err)
		}
		if err := t.use.forgetUse(ctx, k.Hash); err != nil {
			return fmt.Errorf("remove the token: %w", err)
		}
	}
	if err := t.removeOld(name); err != nil {
		return err
	}
	t.log.write(SecurityEntry{Event: "token-removed", Token: name})
	return nil
}

// removeOld removes a token from the file of older programs, if it is there.
func (t *Tokens) removeOld(name string) error {
	list, err := t.readOld()
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(list), func(k Token) bool { return k.Name == name })
	if len(kept) == len(list) {
		return nil
	}
	text, err := json.MarshalIndent(kept, "", "  ")
	if err == nil {
		err = writePrivate(t.listPath(), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save the tokens of the server: %w", err)
	}
	return nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// errExpired reports a token that was valid until it expired.
var errExpired = errors.New("the token has expired")

// findCaller returns the caller that a token belongs to. The error is errExpired, or what the store says; the first token
// needs no store. Tokens are found by their hashes: the time that it takes says nothing about them.
func (t *Tokens) findCaller(ctx context.Context, token, first string) (c server.Caller, ok bool, err error) {
	if token == "" {
		return c, false, nil
	}
	return t.findHash(ctx, hashToken(token), first)
}

// findHash is findCaller for the hash of a token.
func (t *Tokens) findHash(ctx context.Context, tokenHash, first string) (c server.Caller, ok bool, err error) {
	if tokenHash == hashToken(first) {
		return server.Caller{Name: firstName, Scopes: server.Scopes}, true, nil
	}
	found, ok, err := t.readToken(ctx, tokenHash)
	switch {
	case err != nil || !ok:
		return c, false, err
	case found.IsExpired(time.Now()):
		return c, false, errExpired
	}
	t.use.noteUse(ctx, tokenHash, time.Now())
	return server.Caller{Name: found.Name, User: found.Name, Scopes: found.Scopes}, true, nil
}

// readToken returns the token with a hash; ok is false if there is none.
func (t *Tokens) readToken(ctx context.Context, tokenHash string) (found Token, ok bool, err error) {
	old, err := t.readOld()
	if err != nil {
		old = nil // those of the store are valid
	}
	for _, k := range old {
		if k.Hash == tokenHash {
			return k, true, nil
		}
	}
	return t.added.ReadValue(ctx, tokenHash)
}

// IsExpired reports whether a token is refused at a time.
func (k *Token) IsExpired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }
