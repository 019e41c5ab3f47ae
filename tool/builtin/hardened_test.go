package builtin_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/testneed"
	"raddle.dev/tool/builtin"
)

// A shell text that no one allowed runs in an environment in which git takes no programs from a repository; any other runs in that of the host.
func TestCommandsThatNobodyAllowed(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := place(t, nil)
	run := func(h builtin.Host) string {
		return use(t, h, "execute_command", object{"command": `echo "${GIT_CONFIG_COUNT:-none} $GIT_CONFIG_KEY_0 $GIT_CONFIG_VALUE_1"`})
	}
	const hardened = "3 safe.bareRepository false"
	if got := run(h); !strings.Contains(got, hardened) {
		t.Errorf("without Unasked: %q", got)
	}
	asked := ""
	h.Unasked = func(text string) bool { asked = text; return true }
	if got := run(h); !strings.Contains(got, hardened) || !strings.HasPrefix(asked, "echo ") {
		t.Errorf("unasked: %q for %q", got, asked)
	}
	h.Unasked = func(string) bool { return false }
	if got := run(h); !strings.Contains(got, "none") {
		t.Errorf("allowed: %q", got)
	}
}
