package builtin

import (
	"testing"
	"time"

	"raddle.dev/tool"
)

// A command that no one has allowed gets the usual time, and others what their call says, up to the limit of the user.
func TestCommandTimeout(t *testing.T) {
	t.Parallel()
	unasked, allowed := &tool.Permit{Unasked: true}, &tool.Permit{Allowed: true}
	for _, c := range []struct {
		user    time.Duration
		seconds int
		permit  *tool.Permit
		want    time.Duration
	}{
		{want: 10 * time.Minute},
		{seconds: 5, want: 5 * time.Second},
		{seconds: 1200, permit: allowed, want: 20 * time.Minute},
		{seconds: 1200, permit: unasked, want: 10 * time.Minute},
		{seconds: 99999, permit: allowed, want: 30 * time.Minute},
		{seconds: -1, want: 10 * time.Minute},
		{user: time.Hour, want: time.Hour},
		{user: time.Hour, seconds: 99999, permit: allowed, want: time.Hour},
		{user: time.Minute, seconds: 120, want: time.Minute},
	} {
		if got := (Host{Timeout: c.user, permit: c.permit}).commandTimeout(c.seconds); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
