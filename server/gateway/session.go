package gateway

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/failure"
)

// The times of log-ins.
const (
	codeLife    = 10 * time.Minute    // of a one-time code
	sessionLife = 30 * 24 * time.Hour // of a browser session
)

// maxCodes is the largest number of one-time codes that are valid at a time.
const maxCodes = 16

// A session is what the cookie of a browser says. It is signed, and nothing of it is secret.
type session struct {
	ID      string    `json:"id"`
	Token   string    `json:"token"` // the hash of the token that it stands for: without that it is not valid
	Expires time.Time `json:"expires"`
}

// Sessions are the browser sessions of a server, and the one-time codes that begin them. The key that signs sessions is
// in the state directory, so that they outlive the server; codes do not.
type Sessions struct {
	dir string
	key []byte
	now func() time.Time

	mu    sync.Mutex // guards the fields below, and the file of ended sessions
	codes map[string]time.Time
	ended map[string]time.Time // ids of sessions that were ended, with the times at which they expire
}

// openSessions reads the key of the sessions, or makes it, and the sessions that were ended.
func openSessions(state string) (*Sessions, error) {
	s := &Sessions{dir: filepath.Join(state, "serve"), now: time.Now, codes: map[string]time.Time{}, ended: map[string]time.Time{}}
	var err error
	if s.key, err = os.ReadFile(s.keyPath()); errors.Is(err, fs.ErrNotExist) || err == nil && len(s.key) < tokenBytes {
		s.key = make([]byte, tokenBytes)
		_, _ = rand.Read(s.key) // it never fails
		if err = os.MkdirAll(s.dir, 0o700); err == nil {
			err = writePrivate(s.keyPath(), s.key)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the key of browser sessions: %w", err)
	}
	text, err := os.ReadFile(s.endedPath())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s.ended)
	}
	if err != nil {
		return nil, &failure.Error{Kind: failure.Invalid, Msg: "the ended browser sessions in " + s.endedPath(), Err: err, Next: "remove the file and " + s.keyPath() + ": all browsers must log in again"}
	}
	return s, nil
}

func (s *Sessions) keyPath() string   { return filepath.Join(s.dir, "session.key") }
func (s *Sessions) endedPath() string { return filepath.Join(s.dir, "sessions-ended.json") }

// addCode makes a one-time code. The oldest one ends if there are too many.
func (s *Sessions) addCode() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // it never fails
	code := base64.RawURLEncoding.EncodeToString(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.codes) >= maxCodes {
		oldest := ""
		for hash, expires := range s.codes {
			if oldest == "" || expires.Before(s.codes[oldest]) {
				oldest = hash
			}
		}
		delete(s.codes, oldest)
	}
	s.codes[hashToken(code)] = s.now().Add(codeLife)
	return code
}

// useCode reports whether a code is valid, and ends it. Codes are found by their hash: the time that this takes says
// nothing about them.
func (s *Sessions) useCode(code string) bool {
	hash := hashToken(code)
	s.mu.Lock()
	defer s.mu.Unlock()
	expires, ok := s.codes[hash]
	delete(s.codes, hash)
	return ok && s.now().Before(expires)
}

// start returns the value of the cookie of a new session for a token with a hash.
func (s *Sessions) start(tokenHash string) string {
	id := make([]byte, 16)
	// it never fails
	_, _ = rand.Read(id)
	text, _ := json.Marshal(session{hex.EncodeToString(id), tokenHash, s.now().Add(sessionLife).UTC().Round(time.Second)}) // it never fails
	return base64.RawURLEncoding.EncodeToString(text) + "." + base64.RawURLEncoding.EncodeToString(s.sign(text))
}

func (s *Sessions) sign(text []byte) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write(text)
	return mac.Sum(nil)
}

// read returns the session of a cookie. ok is false if it was not made here, has expired or was ended.
func (s *Sessions) read(cookie string) (found session, ok bool) {
	payload, mac, _ := strings.Cut(cookie, ".")
	text, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return found, false
	}
	sum, err := base64.RawURLEncoding.DecodeString(mac)
	if err != nil || !hmac.Equal(sum, s.sign(text)) || json.Unmarshal(text, &found) != nil || !s.now().Before(found.Expires) {
		return session{}, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ended := s.ended[found.ID]; ended {
		return session{}, false
	}
	return found, true
}

// end ends a session before it expires.
func (s *Sessions) end(over session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended[over.ID] = over.Expires
	for id, expires := range s.ended {
		if !s.now().Before(expires) {
			delete(s.ended, id)
		}
	}
	text, err := json.Marshal(s.ended)
	if err == nil {
		err = writePrivate(s.endedPath(), text)
	}
	if err != nil {
		return fmt.Errorf("end the browser session: %w", err)
	}
	return nil
}
