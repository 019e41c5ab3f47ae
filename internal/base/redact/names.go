package redact

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/pattern"
)

var (
	secretName = pattern.CompileLater(`(?i)((keys?|tokens?|secrets?|passw(or)?ds?|passphrases?|pass|pwd|credentials?|_b64|_base64)|(^|[_.-])pat)$`)
	plainName  = pattern.CompileLater(`(?i)^((old)?pwd|.*(askpass|bypass|compass))$`)
	tableName  = pattern.CompileLater(`(?i)key|token|secret|passw|passphrase|pwd|credential|auth|cookie|private`)
	base64Name = pattern.CompileLater(`(?i)(_b64|_base64)$`)
)

// IsSecretName reports whether a variable of this name holds a secret: names
// that end, in any case, in KEY, TOKEN, SECRET, PASSWORD, PASSWD, PASSPHRASE,
// PASS, PWD or CREDENTIAL, each also with an S, in _PAT, _B64 or _BASE64. PWD,
// OLDPWD and names like SSH_ASKPASS do not count.
func IsSecretName(name string) bool {
	return secretName().MatchString(name) && !plainName().MatchString(name)
}

// IsSecretField reports whether a field of this name holds a secret, in a table
// that was written for one service: a header, or a variable of a server's entry.
func IsSecretField(name string) bool { return tableName().MatchString(name) || IsSecretName(name) }

// These are the lengths in bytes of what can be a secret. A shorter value would
// match texts that have nothing to do with it.
const (
	shortest = 6
	sure     = 8 // for a value that only its name marks as a secret
)

// common are values that are too common to be a secret, in lower case.
var common = []string{
	"changeme", "disabled", "enabled", "example", "localhost", "password", "passphrase", "production", "required", "undefined",
	"username", "development", "optional", "00000000", "automatic", "anonymous", "redacted", "[redacted]",
}

// IsSecretValue reports whether the value of a variable with the name of a secret
// is one: at least 8 bytes, or 6 if it is not letters only or digits only, and not one
// of a few common words. White space at the ends does not count.
func IsSecretValue(value string) bool {
	value = strings.TrimSpace(value)
	if len(value) < sure {
		letters := strings.Trim(strings.ToLower(value), "abcdefghijklmnopqrstuvwxyz") == ""
		digits := strings.Trim(value, "0123456789") == ""
		return IsFindable(value) && !letters && !digits
	}
	return IsFindable(value)
}

// isNamedSecret reports whether a value is a secret because of its name, which is that of a variable or of a member of
// a JSON object: the name of a secret may also be that of a file which holds one.
func isNamedSecret(name, value string) bool {
	return IsSecretName(name) && !isPath(value) && IsSecretValue(value)
}

// IsFindable reports whether texts are searched for a value that is known to be a
// secret: it has at least 6 bytes and is not one of a few common words. White space at
// the ends does not count.
func IsFindable(value string) bool {
	value = strings.TrimSpace(value)
	return len(value) >= shortest && !slices.Contains(common, strings.ToLower(value))
}

// isPath reports whether a value names a file: an absolute path whose directory
// exists, or one below the home directory.
func isPath(value string) bool {
	if strings.HasPrefix(value, "~/") {
		return true
	}
	if !filepath.IsAbs(value) || strings.Contains(value, "\n") {
		return false
	}
	if _, err := os.Stat(value); err == nil {
		return true
	}
	dir := filepath.Dir(value)
	_, err := os.Stat(dir)
	return err == nil && dir != filepath.Dir(dir)
}

var (
	userInfo  = pattern.CompileLater(`[A-Za-z][A-Za-z0-9+.-]*://([^/?#\s"'<>]+)@`)
	parameter = pattern.CompileLater(`(?:^|[?&;,\s])([A-Za-z0-9_.-]+)=([^&;\s"'#]+)`)
)

// FindPasswords returns the secrets inside a value that is not a secret itself: the passwords of URLs, the parameters
// of queries and connection strings whose names are those of secrets, and the credentials in headers ("Authorization:
// Bearer VALUE"). Each is returned as written and decoded.
func FindPasswords(text string) (found []string) {
	add := func(v string) {
		found = append(found, v)
		for _, decode := range []func(string) (string, error){url.PathUnescape, url.QueryUnescape} {
			if plain, err := decode(v); err == nil && plain != v {
				found = append(found, plain)
			}
		}
	}
	if strings.Contains(text, "://") {
		for _, m := range userInfo().FindAllStringSubmatch(text, -1) {
			user, password, ok := strings.Cut(m[1], ":")
			switch {
			case ok && IsSecretValue(password):
				add(password)
				add(m[1]) // in base64 it is a header
			case !ok && len(user) >= longPart || ok && password == "" && len(user) >= longPart:
				add(user) // a token
			}
		}
	}
	for _, value := range findCredentials(text) {
		add(value)
	}
	if strings.Contains(text, "=") {
		for _, m := range parameter().FindAllStringSubmatch(text, -1) {
			if IsSecretName(m[1]) {
				add(m[2])
			}
		}
	}
	return found
}

// RedactURL returns an address that may be shown to people: without the password and the
// values of its query whose names are those of secrets.
func RedactURL(address string) string {
	text := userInfo().ReplaceAllStringFunc(address, func(found string) string {
		scheme, info, _ := strings.Cut(found, "://")
		user, _, ok := strings.Cut(strings.TrimSuffix(info, "@"), ":")
		if !ok {
			return found
		}
		return scheme + "://" + user + ":" + Mask + "@"
	})
	return parameter().ReplaceAllStringFunc(text, func(found string) string {
		name, _, _ := strings.Cut(found, "=")
		if !IsSecretName(strings.TrimLeft(name, "?&;, \t\r\n")) {
			return found
		}
		return name + "=" + Mask
	})
}
