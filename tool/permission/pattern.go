package permission

import (
	"regexp"
	"sync"
)

// compileLater returns a function that compiles the expression when it is first called. Most processes judge no shell text, and compiling all
// expressions of this package was a tenth of the time in which the program starts. It panics if the expression is not valid.
func compileLater(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
