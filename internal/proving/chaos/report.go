package chaos

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"raddle.dev/internal/base/wording"
)

// Report is the result.
type Report struct {
	Agent   string      `json:"agent"`
	Case    string      `json:"case,omitempty"` // the test case that answered
	Seed    uint64      `json:"seed"`
	Servers int         `json:"servers"`
	Seconds float64     `json:"seconds"`
	Faults  []DoneFault `json:"faults"`
	Kept    string      `json:"store,omitempty"` // the store with the runs, without a password; "": they are deleted
	Verdict
	Took time.Duration `json:"-"`
}

// DoneFault is a fault that has happened.
type DoneFault struct {
	Seconds float64   `json:"seconds"` // since the first one could
	Server  int       `json:"server"`  // from 1
	Kind    FaultKind `json:"kind"`
	For     float64   `json:"for_seconds,omitempty"`
}

// Text returns the result for people: what happened, each finding with the command that shows more of it, and the
// effects that may have happened twice.
func (r *Report) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	counts := map[FaultKind]int{}
	for _, f := range r.Faults {
		counts[f.Kind]++
	}
	line("%s in %.0f s (--seed %d): %d kills, %d restarts, %d freezes, %d cuts", wording.FormatCount(len(r.Faults), "fault"),
		r.Took.Seconds(), r.Seed, counts[Kill], counts[Restart], counts[Freeze], counts[Cut])
	line("%s accepted, %d unconfirmed; %d ended, %d wait; %s", wording.FormatCount(r.Accepted, "run"),
		r.Unconfirmed, r.Done, r.Waiting, wording.FormatCount(r.Effects, "effect"))
	twice := 0
	for _, d := range r.InDoubt {
		twice += d.Times
	}
	line("lost %d, repeated %d, stranded %d, failed %d, in doubt %d", len(r.Lost), len(r.Repeated), len(r.Stranded), len(r.Failed), twice)
	for _, group := range []struct {
		name string
		list []Finding
	}{{"lost", r.Lost}, {"repeated", r.Repeated}, {"stranded", r.Stranded}, {"failed", r.Failed}} {
		for _, f := range group.list {
			line("%s: %s%s", group.name, f.What, r.suggestLook(f.Run))
		}
	}
	for _, d := range r.InDoubt {
		what := d.What
		if !strings.HasSuffix(what, " of node "+d.Node) {
			what += " at " + d.Node
		}
		line("in doubt: %s began again %s, in %s", what, wording.FormatCount(d.Times, "time"), wording.FormatCount(len(d.Runs), "run"))
	}
	if twice > 0 {
		line("A process died in these calls before their result was recorded: let each do its work only once for each")
		line("value of RADDLE_IDEMPOTENCY_KEY; see: raddle help durability")
	}
	if r.Kept != "" {
		line("the runs are in %s", r.Kept)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// suggestLook returns the command that shows a run, after a semicolon.
func (r *Report) suggestLook(run string) string {
	if run == "" {
		return ""
	}
	return fmt.Sprintf("; see: RADDLE_STORE=%s raddle runs history %s", wording.QuoteWord(cmp.Or(r.Kept, "URL")), run)
}
