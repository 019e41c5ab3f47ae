package permission

import (
	"regexp"
	"testing"
)

// TestPatterns compiles every expression, since the program does so only when it needs one.
func TestPatterns(t *testing.T) {
	for _, pattern := range []func() *regexp.Regexp{
		gitPlain, quotedWildcard, notInPaths, urlText, printfSets, unaryTests, binaryTests, setFlags, setOption, sedPrints, shortFlags, argumentsText, versioned, takesValue, awkActs, sedScript, nameText,
	} {
		if first, second := pattern(), pattern(); first == nil || first != second {
			t.Error("a pattern is compiled more than once, or not at all")
		}
	}
}
