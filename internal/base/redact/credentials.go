package redact

import (
	"encoding/base64"
	"strings"
	"unicode"

	"raddle.dev/internal/base/pattern"
)

var (
	// scheme matches a value behind the name of a way to log in, as headers have it.
	scheme = pattern.CompileLater(`(?i)(?:^|[\s"'=:,])(bearer|basic|token|apikey|api-key|bot|jwt|ssws|splunk|negotiate|digest)[ \t]+([^\s"',;]+)`)
	// header matches a line of a header, or a text that begins like one.
	header = pattern.CompileLater(`(?:^|[\r\n"'=])\s*([A-Za-z][A-Za-z0-9_-]*)["']?[ \t]*:[ \t]*["']?([^\r\n"']+)`)
	// secretHeader matches names of headers whose values are secrets; other names that begin with x- may be.
	secretHeader = pattern.CompileLater(`(?i)^((proxy-)?authorization|(.+[-_])?(auth|authorization|authentication|token|key|apikey|secret|password|credentials?|pat|jwt)|(set-)?cookie)$`)
	ownHeader    = pattern.CompileLater(`(?i)^x-`)
	// member matches a member of a JSON object whose value is a text.
	member = pattern.CompileLater(`"([A-Za-z0-9_.-]+)"\s*:\s*"((?:[^"\\]|\\.)*)"`)
)

// findCredentials returns the values of headers in a text that are secrets: those of headers whose names say so, and
// those that follow the name of a way to log in, such as Bearer. What is encoded behind "Basic" is returned, too.
func findCredentials(text string) (found []string) {
	add := func(kind, value string) {
		found = append(found, value)
		if strings.EqualFold(kind, "basic") {
			found = append(found, basicPassword(value)...)
		}
	}
	for _, m := range scheme().FindAllStringSubmatch(text, -1) {
		whole := strings.TrimSpace(m[0]) == strings.TrimSpace(text)
		if IsSecretValue(m[2]) && (looksMade(m[2]) || whole && !isLetters(m[2])) {
			add(m[1], m[2])
		}
	}
	for _, m := range header().FindAllStringSubmatch(text, -1) {
		kind, value, pair := strings.Cut(strings.TrimSpace(m[2]), " ")
		value = strings.TrimSpace(value)
		if !pair {
			kind, value = "", kind
		}
		switch {
		case !IsSecretValue(value) || isPath(value):
		case secretHeader().MatchString(m[1]) && (pair || len(value) >= sure && !isLetters(value)):
			add(kind, value)
			for part := range strings.SplitSeq(m[2], ";") { // of a cookie
				if _, own, ok := strings.Cut(part, "="); ok && IsSecretValue(own) && looksMade(own) {
					add("", own)
				}
			}
		case ownHeader().MatchString(m[1]) && pair && !strings.Contains(value, " ") && looksMade(value):
			add(kind, value)
		}
	}
	return found
}

// basicPassword returns the password in a value of the way to log in "Basic", alone and behind its user.
func basicPassword(value string) []string {
	data, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		data, err = base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	}
	_, password, ok := strings.Cut(string(data), ":")
	if err != nil || !ok || !IsSecretValue(password) {
		return nil
	}
	return []string{password, string(data)}
}

// isLetters reports whether a value is one word of letters, which may be a word of a sentence.
func isLetters(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) })
}

// looksMade reports whether a value looks like one that a program has made and not like words: it is long, or has
// digits between letters or capitals behind small letters.
func looksMade(value string) bool {
	small := false
	digit := false
	capital := false
	for i, r := range value {
		small = small || unicode.IsLower(r)
		digit = digit || unicode.IsDigit(r)
		capital = capital || i > 0 && unicode.IsUpper(r)
	}
	return len(value) >= 20 || digit && (small || capital) || small && capital
}

// These are flags that take a secret although their names do not end like one, and those that take a user with a
// password.
var (
	secretFlag = pattern.CompileLater(`(?i)^((x-)?auth(orization)?|bearer|cookies?|jwt|api-?key|pat|pw|dsn-password)$`)
	loginFlag  = pattern.CompileLater(`(?i)^(u|user|login|auth|basic|proxy-user|credentials?)$`)
	shortFlag  = pattern.CompileLater(`^-([pPakt])(.*)$`)
	numbers    = pattern.CompileLater(`^[0-9.,:_-]+$`)
	fileEnding = pattern.CompileLater(`(?i)\.(pem|key|crt|cer|json|ya?ml|toml|txt|env|ini|conf|p12|pfx)$`)
)

// FindFlagSecrets returns the secrets among the arguments of a program: the values of flags whose names are those of
// secrets, in the next argument or behind "=", passwords behind a user, headers, members of JSON texts and what
// [FindPasswords] finds.
func FindFlagSecrets(args []string) (found []string) {
	for i, arg := range args {
		for _, m := range member().FindAllStringSubmatch(arg, -1) {
			if isNamedSecret(m[1], m[2]) {
				found = append(found, m[2])
			}
		}
		if !strings.HasPrefix(arg, "-") {
			found = append(found, FindPasswords(arg)...)
			continue
		}
		next := ""
		if i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") {
			next = args[i+1]
		}
		name, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if joined {
			found = append(found, FindPasswords(value)...)
		} else {
			found = append(found, findCredentials(arg)...) // -HName: value
			value = next
		}
		found = append(found, flagSecrets(name, value)...)
		if m := shortFlag().FindStringSubmatch(arg); m != nil {
			if m[2] != "" {
				value = strings.TrimPrefix(m[2], "=")
			}
			if isPassword(value) && mixesDigits(value) {
				found = append(found, value)
			}
		}
	}
	return found
}

// flagSecrets returns the secrets in the value of a flag.
func flagSecrets(name, value string) (found []string) {
	if IsSecretName(name) && isPassword(value) || secretFlag().MatchString(name) && isPassword(value) && len(value) >= sure && looksMade(value) {
		found = append(found, value)
	}
	if _, password, ok := strings.Cut(value, ":"); ok && loginFlag().MatchString(name) && !strings.HasPrefix(password, "//") && isPassword(password) {
		found = append(found, password, value)
	}
	if secretFlag().MatchString(name) {
		found = append(found, findCredentials("Authorization: "+value)...)
	}
	return found
}

// isPassword reports whether the value of a flag can be a secret: not a file and not a number.
func isPassword(value string) bool {
	for _, prefix := range []string{"./", "../", "~/", "${"} {
		if strings.HasPrefix(value, prefix) {
			return false
		}
	}
	return IsSecretValue(value) && !isPath(value) && !fileEnding().MatchString(value) && (len(value) >= longPart || !numbers().MatchString(value))
}

// mixesDigits reports whether a value has a digit directly before a letter and one directly behind a letter: flags of
// one letter may mean anything, such as a port, a project or a path.
func mixesDigits(value string) bool {
	before := false
	behind := false
	last := ' '
	for _, r := range value {
		before = before || unicode.IsDigit(last) && unicode.IsLetter(r)
		behind = behind || unicode.IsLetter(last) && unicode.IsDigit(r)
		last = r
	}
	return before && behind && !strings.ContainsAny(value, "/ ")
}
