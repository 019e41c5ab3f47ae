package app

import (
	"os"
	"slices"
	"strings"
)

// environ is an environment as "NAME=value". If a name occurs twice, the
// last one counts, as for child processes.
type environ []string

// lookup returns a variable's value, and whether it is set and not empty.
func (e environ) lookup(name string) (string, bool) {
	for i := len(e) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e[i], name+"="); ok {
			return v, v != ""
		}
	}
	return "", false
}

func (e environ) get(name string) string {
	v, _ := e.lookup(name)
	return v
}

// lookupFirst returns the value of the first variable that is set.
func (e environ) lookupFirst(names []string) (string, bool) {
	for _, name := range names {
		if v, ok := e.lookup(name); ok {
			return v, true
		}
	}
	return "", false
}

// nameOf returns the name of the first variable that has a value, or "".
func (e environ) nameOf(value string) string {
	for _, entry := range e {
		if name, v, _ := strings.Cut(entry, "="); v == value && v != "" {
			return name
		}
	}
	return ""
}

// withoutNames returns the environment without the given variables.
func (e environ) withoutNames(names []string) environ {
	return slices.DeleteFunc(slices.Clone(e), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}

// envName returns a name in the form that environment variables have.
func envName(name string) string {
	return strings.ToUpper(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_':
			return r
		}
		return '_'
	}, name))
}

func environOf(given []string) environ {
	if given == nil {
		return os.Environ()
	}
	return given
}
