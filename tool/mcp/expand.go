package mcp

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// reference matches ${NAME} and {{NAME}}.
var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}`)

// secretName matches the names of variables, of the environment or of headers,
// whose values are secrets.
var secretName = regexp.MustCompile(`(?i)key|token|secret|passw|pwd|credential|auth|cookie|private`)

// shortestSecret is the length below which a value is too ordinary to be taken
// out of texts.
const shortestSecret = 6

// An expansion fills in the references of one entry.
type expansion struct {
	lookup  func(string) (string, bool)
	missing []string
	secrets []string
}

// expand returns s with its references filled in, and the secrets among them.
func expand(s Server, lookup func(string) (string, bool)) (Server, []string, error) {
	x := expansion{lookup: lookup}
	s.Command = x.text("", s.Command)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = x.text("", a)
	}
	s.Env = x.table(s.Env)
	s.Dir = x.text("", s.Dir)
	s.URL = x.text("", s.URL)
	s.Headers = x.table(s.Headers)
	if len(x.missing) > 0 {
		slices.Sort(x.missing)
		return s, nil, fmt.Errorf("%s: it refers to what the environment does not have: %s; set it and try again",
			s.Pos, strings.Join(slices.Compact(x.missing), ", "))
	}
	return s, longestFirst(x.secrets), nil
}

func (x *expansion) table(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for _, name := range sortedKeys(m) {
		out[name] = x.text(name, m[name])
		if secretName.MatchString(name) {
			x.secret(out[name])
		}
	}
	return out
}

// text fills in a text; name is the variable or header that it is the value of.
func (x *expansion) text(name, s string) string {
	return reference.ReplaceAllStringFunc(s, func(ref string) string {
		match := reference.FindStringSubmatch(ref)
		plain, vault := match[1], match[2]
		v, ok := x.lookup(plain + vault)
		if !ok {
			x.missing = append(x.missing, plain+vault)
			return ""
		}
		if vault != "" || secretName.MatchString(plain) || secretName.MatchString(name) {
			x.secret(v)
		}
		return v
	})
}

// secret notes a value, and what follows the scheme in a header like "Bearer x".
func (x *expansion) secret(v string) {
	x.secrets = append(x.secrets, v)
	if _, token, ok := strings.Cut(v, " "); ok {
		x.secrets = append(x.secrets, token)
	}
}

// longestFirst puts the values in the order in which they are to be taken out:
// a secret may contain another one.
func longestFirst(values []string) []string {
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < shortestSecret })
	slices.SortFunc(values, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(values)
}

// without takes secrets out of a text.
func without(text string, secrets []string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "[redacted]")
	}
	return text
}
