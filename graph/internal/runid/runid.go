// Package runid spells the ids of runs and threads: they sort by the time in them.
package runid

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

// New returns the id of a moment, with random characters.
func New(now time.Time) string {
	var r [idRest]byte
	_, _ = rand.Read(r[:]) // it never fails
	return timeOfID(now) + spellID(r[:])
}

// Derive returns the id that follows from a moment and some texts.
func Derive(at time.Time, parts ...string) string {
	return timeOfID(at) + Hash(idRest, parts...)
}

// Extend returns the id of something that belongs to a run: it begins with the time of the run, and n characters follow from the texts.
func Extend(run string, n int, parts ...string) string {
	return run[:min(idTime, len(run))] + Hash(n, append([]string{run}, parts...)...)
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

// Hash returns n characters of an id that follow from texts without zero bytes.
func Hash(n int, parts ...string) string {
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
