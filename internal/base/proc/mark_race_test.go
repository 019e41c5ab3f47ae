//go:build linux

package proc

import (
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// TestRunEndsWhatIsBeingStarted ends scripts at the moment in which what they start becomes another program and has no environment to read.
func TestRunEndsWhatIsBeingStarted(t *testing.T) {
	testneed.RequirePrograms(t, "setsid")
	for range 60 {
		w := newWire(t)
		c := bash(`exec 9>"$WIRE"; setsid setsid setsid setsid sleep 1000 >/dev/null 2>&1 </dev/null & setsid setsid sleep 1000 >/dev/null 2>&1 </dev/null &`)
		c.Mark = "MARK=" + w.path
		c.Env = append(c.Env, "WIRE="+w.path, c.Mark)
		if _, err := Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		<-w.end // no process that the script started is alive
	}
}
