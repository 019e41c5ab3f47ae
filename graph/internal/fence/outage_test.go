package fence

import (
	"fmt"
	"testing"
)

// The end of an outage is reported once, when no call waits any more, if any of them was successful: in whatever order
// they end.
func TestOutageEnds(t *testing.T) {
	for calls := 1; calls <= 4; calls++ {
		for outcome := range 1 << calls { // a bit for each call: it is successful
			t.Run(fmt.Sprintf("%0*b", calls, outcome), func(t *testing.T) {
				var o Outage
				for range 2 { // the second outage knows nothing of the first
					for i := range calls {
						if first := o.BeginWait(); first != (i == 0) {
							t.Errorf("call %d is the first: %v", i, first)
						}
					}
					for i := range calls {
						want := i == calls-1 && outcome != 0
						if back := o.EndWait(outcome>>i&1 == 1); back != want {
							t.Errorf("after call %d the store is back: %v, want %v", i, back, want)
						}
					}
				}
				if o.EndWait(o.BeginWait() && false) {
					t.Error("a success of an outage before counts")
				}
			})
		}
	}
}
