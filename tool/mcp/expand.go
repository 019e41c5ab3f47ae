package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/redact"
)

// An expansion fills in the references of one entry.
type expansion struct {
	lookup  func(string) (string, bool)
	missing []string
	secrets []string
}

// expandServer returns s with its references filled in, and the secrets among them.
func expandServer(s Server, lookup func(string) (string, bool)) (Server, []string, error) {
	e := expansion{lookup: lookup}
	s.Command = e.expandText("", s.Command)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = e.expandText("", a)
	}
	s.Env = e.expandTable(s.Env)
	s.Dir = e.expandText("", s.Dir)
	s.URL = e.expandText("", s.URL)
	s.Headers = e.expandTable(s.Headers)
	s.Login.ClientID = e.expandText("", s.Login.ClientID)
	s.Login.ClientSecret = e.expandText("client_secret", s.Login.ClientSecret)
	e.secrets = append(e.secrets, redact.FindPasswords(s.URL)...)
	e.secrets = append(e.secrets, redact.FindPasswords(s.Command)...)
	e.secrets = append(e.secrets, redact.FindFlagSecrets(s.Args)...)
	if len(e.missing) > 0 {
		slices.Sort(e.missing)
		return s, e.foundSecrets(), fmt.Errorf("%s: it refers to variables that are not set: %s; set them and try again",
			s.Pos, strings.Join(slices.Compact(e.missing), ", "))
	}
	return s, e.foundSecrets(), nil
}

func (e *expansion) expandTable(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out[name] = e.expandText(name, m[name])
		if redact.IsSecretField(name) {
			e.addSecret(out[name])
		}
		e.secrets = append(e.secrets, redact.FindPasswords(out[name])...)
	}
	return out
}

// expandText fills in a text; name is the variable or header that it is the value of.
func (e *expansion) expandText(name, s string) string {
	return environ.ReplaceReferences(s, func(ref environ.Reference) string {
		v, ok := e.lookup(ref.Name)
		if !ok {
			e.missing = append(e.missing, ref.Name)
			return ""
		}
		if ref.Secret || redact.IsSecretField(ref.Name) || redact.IsSecretField(name) {
			e.addSecret(v)
		}
		return v
	})
}

// foundSecrets returns the values that were added, sorted, without those that are too short for a
// redactor.
func (e *expansion) foundSecrets() []string {
	list := slices.DeleteFunc(e.secrets, func(v string) bool { return !redact.IsFindable(v) })
	slices.Sort(list)
	return slices.Compact(list)
}

// addSecret adds a value, and what follows the scheme in a header like "Bearer x".
func (e *expansion) addSecret(v string) {
	e.secrets = append(e.secrets, v)
	if _, token, ok := strings.Cut(v, " "); ok {
		e.secrets = append(e.secrets, token)
	}
}

// ExpandReferences returns an entry with its references filled in.
func (s Server) ExpandReferences(lookup func(string) (string, bool)) (Server, error) {
	if s.problem != nil {
		return s, s.problem
	}
	s, _, err := expandServer(s, lookup)
	return s, err
}

// Secrets returns the values of the file's entries that must not be seen, with
// the references that lookup can fill in, sorted: those of variables and headers with the
// name of a secret, those behind {{NAME}}, and passwords in addresses and
// arguments.
func (f *File) Secrets(lookup func(string) (string, bool)) (values []string) {
	for _, s := range f.Servers {
		_, own, _ := expandServer(s, lookup) // a reference that is missing has no value
		values = append(values, own...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}
