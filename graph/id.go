package graph

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"time"
)

// idAlphabet is in byte order, so that ids sort by the time in them.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// The characters of an id: those of its time, and those that distinguish it.
const (
	idTime = 9
	idRest = 11
)

// NewID returns an identifier for a run or thread: nine characters of time, to the
// millisecond, and eleven random ones, enough for any number of machines that start runs
// in the same millisecond. Ids sort by time, also with those of older versions, which
// have five random characters.
func NewID(now time.Time) string {
	var r [idRest]byte
	_, _ = rand.Read(r[:]) // it never fails
	return timeOfID(now) + spellID(r[:])
}

// DeriveID returns an identifier that follows from a time and some texts: it is always the same one, and that of no other
// texts. It sorts as one of NewID does.
func DeriveID(at time.Time, parts ...string) string {
	return timeOfID(at) + hashID(idRest, parts...)
}

// timeOfID returns the beginning of the ids of a time.
func timeOfID(at time.Time) string {
	var b [idTime]byte
	ms := at.UnixMilli()
	for i := idTime - 1; i >= 0; i-- {
		b[i] = idAlphabet[ms&31]
		ms >>= 5
	}
	return string(b[:])
}

// hashID returns n characters of an id that follow from texts without zero bytes.
func hashID(n int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return spellID(sum[:n])
}

// spellID returns a character for each byte.
func spellID(bytes []byte) string {
	text := make([]byte, len(bytes))
	for i, c := range bytes {
		text[i] = idAlphabet[c&31]
	}
	return string(text)
}
