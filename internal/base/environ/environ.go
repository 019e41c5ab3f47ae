// Package environ reads environments of processes by the rules of the system: on Windows the names of variables have no
// case, and Path is PATH.
package environ

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// hasCase reports whether names that differ in case name two variables. Tests change it.
var hasCase = runtime.GOOS != "windows"

// FoldName returns the form in which a name is compared: two names of the same variable are then equal. Maps of
// variables use it.
func FoldName(name string) string {
	if hasCase {
		return name
	}
	return strings.ToUpper(name)
}

// SplitPair returns the name and the value of "NAME=value", and whether it is a variable. Names such as "=C:", in which
// Windows keeps the directory of a drive, are none.
func SplitPair(entry string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(entry, "=")
	return name, value, ok && name != ""
}

// Environ is an environment as "NAME=value". If a name occurs twice, the
// last one counts, as for child processes.
type Environ []string

// New returns an environment; if given is nil, that of this process.
func New(given []string) Environ {
	if given == nil {
		return os.Environ()
	}
	return given
}

// Lookup returns a variable's value, and whether it is set and not empty.
func (e Environ) Lookup(name string) (string, bool) {
	for _, entry := range slices.Backward(e) {
		if n, v, ok := SplitPair(entry); ok && FoldName(n) == FoldName(name) {
			return v, v != ""
		}
	}
	return "", false
}

// IsSet reports whether a variable is there, also with an empty value.
func (e Environ) IsSet(name string) bool {
	return slices.ContainsFunc(e, func(entry string) bool {
		n, _, ok := SplitPair(entry)
		return ok && FoldName(n) == FoldName(name)
	})
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
		if name, v, _ := SplitPair(entry); v == value && v != "" {
			return name
		}
	}
	return ""
}

// WithoutNames returns the environment without the given variables.
func (e Environ) WithoutNames(names ...string) Environ {
	return slices.DeleteFunc(slices.Clone(e), func(entry string) bool {
		name, _, _ := SplitPair(entry)
		return slices.ContainsFunc(names, func(n string) bool { return FoldName(n) == FoldName(name) })
	})
}

// FindHome returns the home directory of the user: HOME, on Windows otherwise USERPROFILE. It returns "" if neither is
// set.
func (e Environ) FindHome() string {
	if home := e.Get("HOME"); home != "" || hasCase {
		return home
	}
	return e.Get("USERPROFILE")
}

// PrependDir returns a list of directories, such as the value of PATH, with another one in front. An empty list has
// none.
func PrependDir(dir, list string) string {
	if list == "" {
		return dir
	}
	return dir + string(filepath.ListSeparator) + list
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
