package config

import (
	"os"
	"slices"
	"strings"
)

// Environ is an environment as "NAME=value". If a name occurs twice, the
// last one counts, as for child processes.
type Environ []string

// Lookup returns a variable's value, and whether it is set and not empty.
func (e Environ) Lookup(name string) (string, bool) {
	for i := len(e) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e[i], name+"="); ok {
			return v, v != ""
		}
	}
	return "", false
}

// Get returns a variable's value, or "".
func (e Environ) Get(name string) string {
	v, _ := e.Lookup(name)
	return v
}

// LookupFirst returns the value of the first of the variables that is set and not empty.
func (e Environ) LookupFirst(names []string) (string, bool) {
	for _, name := range names {
		if v, ok := e.Lookup(name); ok {
			return v, true
		}
	}
	return "", false
}

// FindName returns the name of the first variable that has a value, or "".
func (e Environ) FindName(value string) string {
	for _, entry := range e {
		if name, v, _ := strings.Cut(entry, "="); v == value && v != "" {
			return name
		}
	}
	return ""
}

// WithoutNames returns the environment without the given variables.
func (e Environ) WithoutNames(names []string) Environ {
	return slices.DeleteFunc(slices.Clone(e), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// FormatVariable returns a name in the form that environment variables have.
func FormatVariable(name string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, name))
}

// NewEnviron returns an environment; if given is nil, that of this process.
func NewEnviron(given []string) Environ {
	if given == nil {
		return os.Environ()
	}
	return given
}
