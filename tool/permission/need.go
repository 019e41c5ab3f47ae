package permission

// A Verdict is what becomes of a call.
type Verdict int

// The verdicts, from the mild to the strict.
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

// A need is one thing that must be allowed for a call to run.
type need struct {
	facet facet
	text  string // as a person reads it

	env   []word   // of a command: the assignments before it
	words []word   // of a command; none: the text could not be taken apart
	paths []string // of a file: all that it may be, absolute; none: only the shell will know
	hosts []string // the forms in which a rule may name a host

	fallback Verdict // where no rule says anything
	why      string  // the reason of the fallback, as the end of a sentence that begins with text
	root     string  // of a guarded path: what a rule must name
}

// commandNeed is a need for a command.
func commandNeed(env, words []word, verdict Verdict, why string) need {
	return need{facet: command, text: texts(append(env[:len(env):len(env)], words...)), env: env, words: words, fallback: verdict, why: why}
}

// doubt is a part of a shell text of which nobody can tell what it does before
// it runs.
func doubt(text, why string) need {
	return need{facet: command, text: text, fallback: Ask, why: why}
}
