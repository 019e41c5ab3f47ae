package permission

// A Verdict says whether a call runs.
type Verdict int

// The verdicts, from the mildest to the strictest.
const (
	Allow Verdict = iota
	Ask
	Deny
)

// String is the word that rules use.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

// A reach says how much of a directory a need is about.
type reach int

const (
	itself   reach = iota // the names in it
	names                 // the names of everything below it
	contents              // the contents of everything below it
)

// A need is one thing that must be allowed for a call to run.
type need struct {
	kind needKind
	text string // as a person reads it

	env   []word   // of a command: the assignments before it
	words []word   // of a command; none: the text could not be taken apart
	paths []string // of a file: all that it may be, absolute; none: only the shell will know
	via   []string // of a file: further names under which it is reached, before links are followed
	hosts []string // the forms in which a rule may name a host

	reach   reach // of a file that is a directory
	follows bool  // links below that directory are followed
	guess   bool  // the word may not be a file or a host at all: a rule that denies only asks

	opaque bool   // of a command or call: what it does cannot be seen, so every rule that denies might apply
	runner bool   // of a command: its arguments may be a command in turn
	stdin  bool   // of a command: it runs what it reads as code
	risk   string // of a command: the harm that it may do, as the end of a sentence that begins with "it"; empty: none that is known

	repeated bool    // another need that asks already gives the reason of the fallback
	fallback Verdict // the verdict if no rule covers the need
	why      string  // the reason of the fallback, as the end of a sentence that begins with text
	root     string  // of a guarded path: what a rule must name
}

// commandNeed returns a need for a command.
func commandNeed(env, words []word, verdict Verdict, why string) need {
	return need{kind: command, text: joinWords(append(env[:len(env):len(env)], words...)), env: env, words: words, fallback: verdict, why: why}
}

// opaqueNeed returns a need for a command whose effect cannot be known before it runs.
func opaqueNeed(env, words []word, why string) need {
	n := commandNeed(env, words, Ask, why)
	n.opaque = true
	return n
}

// uncertainNeed returns a need for a part of a shell text whose effect cannot be known before it
// runs.
func uncertainNeed(text, why string) need {
	return need{kind: command, text: text, fallback: Ask, why: why, opaque: true}
}
