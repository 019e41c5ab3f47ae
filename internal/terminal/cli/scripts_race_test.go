//go:build race

package cli_test

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"raddle.dev/internal/testkit/testneed"
)

// TestExtraScripts is TestScripts with the race detector in each command.
func TestExtraScripts(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	testscript.Run(t, scriptParams("testdata/script", ""))
}
