package gateway

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"time"

	"raddle.dev/internal/storage/entries"
)

// The times of log-ins.
const (
	codeLife    = 10 * time.Minute    // of a one-time code
	sessionLife = 30 * 24 * time.Hour // of a browser session
)

// A session is what the servers of a store know of a browser that has logged in.
type session struct {
	Token string `json:"token"` // the hash of the token that it has the rights of: without that it is not valid
}

// Sessions are the browser sessions of a store, and the one-time codes that begin them. All servers of the store know
// them, by the hashes of what the browsers have.
type Sessions struct {
	begun entries.Table[session]
	codes entries.Table[bool]
}

func openSessions(st entries.Store) *Sessions {
	return &Sessions{begun: entries.NewTable[session](st, "sessions"), codes: entries.NewTable[bool](st, "codes")}
}

// newSecret returns a text that cannot be guessed.
func newSecret() string {
	b := make([]byte, tokenBytes)
	_, _ = rand.Read(b) // it never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

// addCode makes a one-time code.
func (s *Sessions) addCode(ctx context.Context) (string, error) {
	code := newSecret()
	return code, s.codes.PutValue(ctx, hashToken(code), true, codeLife)
}

// useCode reports whether a code is valid, and ends it. Codes are found by their hash: the time that this takes says
// nothing about them.
func (s *Sessions) useCode(ctx context.Context, code string) (bool, error) {
	return s.codes.RemoveValue(ctx, hashToken(code))
}

// startSession returns the value of the cookie of a new session for a token with a hash.
func (s *Sessions) startSession(ctx context.Context, tokenHash string) (string, error) {
	cookie := newSecret()
	return cookie, s.begun.PutValue(ctx, hashToken(cookie), session{tokenHash}, sessionLife)
}

// readSession returns the session of a cookie. ok is false if there is none, or if it has expired or was ended.
func (s *Sessions) readSession(ctx context.Context, cookie string) (found session, ok bool, err error) {
	return s.begun.ReadValue(ctx, hashToken(cookie))
}

// endSession ends the session of a cookie before it expires. It does nothing if there is none.
func (s *Sessions) endSession(ctx context.Context, cookie string) error {
	_, err := s.begun.RemoveValue(ctx, hashToken(cookie))
	return err
}
