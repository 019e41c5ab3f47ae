package tool

// A Doubt is what is done with a call that a crash cut off before its outcome was
// known: it may or may not have happened. Calls whose Effect repeats are never in
// doubt; they are made again.
type Doubt string

// The choices.
const (
	DoubtUnset Doubt = ""      // whoever runs the tool decides
	DoubtAsk   Doubt = "ask"   // a person is asked
	DoubtRetry Doubt = "retry" // the call is made again
	DoubtSkip  Doubt = "skip"  // the call is not made again, and the model reads that its outcome is not known
)

// Doubts lists what a file or a flag may choose.
var Doubts = []string{string(DoubtRetry), string(DoubtSkip), string(DoubtAsk)}

// ParseDoubt returns the choice of that name; ok reports whether there is one.
func ParseDoubt(name string) (d Doubt, ok bool) {
	switch d = Doubt(name); d {
	case DoubtAsk, DoubtRetry, DoubtSkip:
		return d, true
	}
	return DoubtUnset, false
}
