package builtin_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
)

// A shell text that no one allowed runs in an environment in which git takes no programs from a repository; any other runs in that of the host. The permit
// says which it is: the text is not looked at again.
func TestCommandsThatNobodyAllowed(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	unasked := &tool.Permit{Unasked: true}
	for _, text := range []string{"echo", "true; echo", "make -v >/dev/null 2>&1; echo", `bash -c 'true'; echo`} {
		text += ` "${GIT_CONFIG_COUNT:-none} $GIT_CONFIG_KEY_0 $GIT_CONFIG_VALUE_1"`
		for _, c := range []struct {
			name   string
			permit *tool.Permit
			want   string
		}{
			{"no permit", nil, "3 safe.bareRepository false"},
			{"no permit that a person answers", (*tool.Permit)(nil).Answer(nil), "3 safe.bareRepository false"},
			{"unasked", unasked, "3 safe.bareRepository false"},
			{"a person allowed it", unasked.Answer(nil), "none"},
			{"a rule allowed it", &tool.Permit{Allowed: true}, "none"},
			{"a rule allowed a part of it", &tool.Permit{}, "none"},
		} {
			r, err := lookup(t, place(t, nil), "execute_command").Run(t.Context(), tool.Call{Args: raw(t, object{"command": text}), Permit: c.permit})
			if err != nil || !strings.Contains(r.Text(), c.want) {
				t.Errorf("%s: %s: %q, want %q (%v)", c.name, text, r.Text(), c.want, err)
			}
		}
	}
}
