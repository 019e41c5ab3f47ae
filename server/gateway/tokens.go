package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/server"
)

// TokenVariable is the variable of the environment that replaces the first token.
const TokenVariable = "RADDLE_SERVER_TOKEN"

// firstName is the name of the token that is made at the first start.
const firstName = "first"

// tokenBytes is the number of random bytes of a token.
const tokenBytes = 32

// Tokens are the tokens of a server. The first one is in a file of its own, for clients on this machine; of the others
// only the hash is saved.
type Tokens struct {
	dir string
	log *securityLog
	use tokenUse
}

// OpenTokens returns the tokens in the state directory of raddle.
func OpenTokens(state string) *Tokens {
	dir := filepath.Join(state, "serve")
	return &Tokens{dir: dir, log: openSecurityLog(state), use: tokenUse{path: filepath.Join(dir, "tokens-used.json")}}
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

func newToken() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // it never fails
	return "raddle_" + base64.RawURLEncoding.EncodeToString(b)
}

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
func (t *Tokens) List() (list []Token, err error) {
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
func (t *Tokens) Add(name string, scopes []server.Scope, expires time.Time) (string, error) {
	if !tokenName().MatchString(name) {
		return "", failure.NewUsage("use letters, digits, '.', '_' and '-'", "%q cannot be the name of a token", name)
	}
	list, err := t.List()
	if err != nil {
		return "", err
	}
	if name == firstName || slices.ContainsFunc(list, func(k Token) bool { return k.Name == name }) {
		return "", failure.NewUsage("remove it first: raddle serve token rm "+name, "there is a token with the name %q", name)
	}
	token := newToken()
	list = append(list, Token{Name: name, Scopes: scopes, Hash: hashToken(token), Created: time.Now().UTC().Round(time.Second), Expires: expires})
	if err := t.save(list); err != nil {
		return "", err
	}
	t.log.write(SecurityEntry{Event: "token-added", Token: name, Detail: fmt.Sprint(scopes)})
	return token, nil
}

// Remove removes a token.
func (t *Tokens) Remove(name string) error {
	list, err := t.List()
	if err != nil {
		return err
	}
	kept := slices.DeleteFunc(slices.Clone(list), func(k Token) bool { return k.Name == name })
	if len(kept) == len(list) {
		return failure.NewUsage("see: raddle serve token ls", "there is no token with the name %q", name)
	}
	if err := t.save(kept); err != nil {
		return err
	}
	t.log.write(SecurityEntry{Event: "token-removed", Token: name})
	return nil
}

func (t *Tokens) save(list []Token) error {
	text, err := json.MarshalIndent(list, "", "  ")
	if err == nil {
		err = os.MkdirAll(t.dir, 0o700)
	}
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

// findCaller returns the caller that a token belongs to. The error is errExpired or nil. first is the first token. The
// time it takes says nothing about tokens.
func (t *Tokens) findCaller(token, first string) (c server.Caller, ok bool, err error) {
	return t.findHash(hashToken(token), first)
}

// findHash is findCaller for the hash of a token.
func (t *Tokens) findHash(tokenHash, first string) (c server.Caller, ok bool, err error) {
	list, err := t.List()
	if err != nil {
		list = nil // the first token still works
	}
	hash := []byte(tokenHash)
	var found *Token
	list = append(list, Token{Name: firstName, Scopes: server.Scopes, Hash: hashToken(first)})
	for _, k := range list {
		if subtle.ConstantTimeCompare(hash, []byte(k.Hash)) == 1 {
			found = &k
		}
	}
	switch {
	case found == nil:
		return c, false, nil
	case found.IsExpired(time.Now()):
		return c, false, errExpired
	}
	t.use.noteUse(found, list, time.Now())
	c = server.Caller{Name: found.Name, User: found.Name, Scopes: found.Scopes}
	if c.Name == firstName {
		c.User = ""
	}
	return c, true, nil
}

// IsExpired reports whether a token is refused at a time.
func (k *Token) IsExpired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }
