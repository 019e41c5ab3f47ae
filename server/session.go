package server

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"raddle.dev/internal/base/failure"
)

// maxSession is the length of the longest name of a session, in bytes: names of files are made of it.
const maxSession = 200

// checkSession returns an error for a text that cannot be the name of a session; "" is no session.
func checkSession(name string) error {
	if len(name) > maxSession || name == "." || name == ".." || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return failure.NewUsage("choose a shorter name of letters and digits", "this cannot be the name of a session: it must have at most %d bytes, without control characters, and not be . or ..", maxSession)
	}
	return nil
}
