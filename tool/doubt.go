package tool

// A Doubt says how to handle a call that a crash cut off before its outcome was known: the call may
// have happened or not. A call whose Effect allows a repetition is never in doubt: it is made
// again.
type Doubt string

// The choices.
const (
	DoubtUnset Doubt = ""      // the loop that runs the tool decides
	DoubtAsk   Doubt = "ask"   // a person is asked
	DoubtRetry Doubt = "retry" // the call is made again
	DoubtSkip  Doubt = "skip"  // the call is not made again, and the model reads that its outcome is not known
)

// Doubts lists the values that a file or a flag may choose.
var Doubts = []string{string(DoubtRetry), string(DoubtSkip), string(DoubtAsk)}

// ParseDoubt returns the choice with that name; ok reports whether there is one.
func ParseDoubt(name string) (d Doubt, ok bool) {
	switch d = Doubt(name); d {
	case DoubtAsk, DoubtRetry, DoubtSkip:
		return d, true
	}
	return DoubtUnset, false
}
