// Package pattern compiles regular expressions when they are first needed, so that a program that starts does not pay
// for those that it does not use. A test of the root compiles all of them.
package pattern

import (
	"regexp"
	"sync"
)

// CompileLater returns a function that returns the compiled expression, for variables of packages. It compiles when it
// is first called, panics then if the expression is not valid, and is safe for concurrent use.
func CompileLater(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
