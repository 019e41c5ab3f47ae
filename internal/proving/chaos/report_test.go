package chaos

import (
	"testing"
	"time"
)

// TestReportText has what people read about runs that were lost and calls in doubt.
func TestReportText(t *testing.T) {
	r := &Report{
		Seed:   7,
		Faults: []DoneFault{{Kind: Kill}, {Kind: Kill}, {Kind: Cut}},
		Kept:   "sqlite:/state/chaos one/runs.db",
		Took:   61 * time.Second,
		Verdict: Verdict{
			Accepted: 12, Unconfirmed: 1, Done: 10, Waiting: 1, Effects: 30,
			Lost:     []Finding{{What: "the start of run r0 was accepted, and the store has no such run"}},
			Stranded: []Finding{{Run: "r1", What: "it is crashed"}},
			InDoubt: []Doubt{
				{Node: "pay", What: "the script pay.sh of node pay", Times: 2, Runs: []string{"r1", "r2"}},
				{Node: "sort", What: "the request to the model", Times: 1, Runs: []string{"r3"}},
			},
		},
	}
	const want = `3 faults in 61 s (--seed 7): 2 kills, 0 restarts, 0 freezes, 1 cuts
12 runs accepted, 1 unconfirmed; 10 ended, 1 wait; 30 effects
lost 1, repeated 0, stranded 1, failed 0, in doubt 3
lost: the start of run r0 was accepted, and the store has no such run
stranded: it is crashed; see: RADDLE_STORE='sqlite:/state/chaos one/runs.db' raddle runs history r1
in doubt: the script pay.sh of node pay began again 2 times, in 2 runs
in doubt: the request to the model at sort began again 1 time, in 1 run
A process died in these calls before their result was recorded: let each do its work only once for each
value of RADDLE_IDEMPOTENCY_KEY; see: raddle help durability
the runs are in sqlite:/state/chaos one/runs.db`
	if got := r.Text(); got != want {
		t.Errorf("%s\n\nwant:\n%s", got, want)
	}
}
