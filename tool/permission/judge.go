package permission

import (
	"slices"
	"strings"
)

// judgeNeeds compares the needs with the rules: the strictest need decides.
// Every need with another verdict than Allow becomes a part, each reason once.
func (p *Policy) judgeNeeds(m matcher, needs []need) Decision {
	j := judgement{m: m, seen: map[string]bool{}, nameable: true, hostsOnly: true}
	j.Lasting = true
	for i, n := range needs {
		verdict, ground := p.decideNeed(m, n)
		ground.Text = shortenReason(n.text)
		if n.kind == network && verdict != Deny {
			j.addHost(n)
		}
		isBoxHost := i >= len(needs)-m.boxHosts
		switch {
		case verdict == Allow:
			j.pass(n, ground)
		case verdict == Ask && isBoxHost && !j.Boxed && ground.Rule == "":
			// Nothing of the call runs in the box, and a host for the box is no question.
		case verdict == Ask && p.deniesQuestion(m, n):
			ground.Why += inBoxMode
			ground.By = ByMode
			j.unasked = true
			j.stop(n, Deny, ground)
		default:
			j.stop(n, verdict, ground)
		}
	}
	return j.decide(needs)
}

// A judgement collects what was decided about the needs of a call.
type judgement struct {
	Decision
	m       matcher
	seen    map[string]bool // reasons, and grants with a mark before them
	passed  []Ground        // of needs that are allowed
	stopped []Ground        // of those that are not
	denied  []string        // reasons
	risky   []need          // those that ask

	nameable  bool // rules can name everything that asks
	hostsOnly bool // what is not allowed are hosts, which an answer opens to the box
	wider     bool // Words allow more than Grant
	planned   bool // the mode plan denies
	unasked   bool // the mode box denies what would ask
}

// addHost notes a host that no rule denies.
func (j *judgement) addHost(n need) {
	j.Hosts = append(j.Hosts, n.text)
	if n.text == "*" || n.guess {
		j.hostsOnly = false
	}
}

// pass notes a need that is allowed.
func (j *judgement) pass(n need, ground Ground) {
	if ground.By == ByBox {
		j.Boxed = true
	}
	if j.m.tells(n, ground.By) {
		j.passed = append(j.passed, ground)
	}
}

// stop notes a need that asks or is denied.
func (j *judgement) stop(n need, verdict Verdict, ground Ground) {
	if n.kind != network {
		j.hostsOnly = false
	}
	if verdict == Ask {
		j.risky = append(j.risky, n)
	}
	if n.repeated && ground.Rule == "" && j.Verdict != Allow {
		j.nameable = false
		return
	}
	reason := strings.TrimSpace(ground.Text + " " + ground.Why)
	if j.seen[reason] {
		return
	}
	j.seen[reason] = true
	j.Reasons = append(j.Reasons, reason)
	j.Parts = append(j.Parts, Part{Text: ground.Text, Why: ground.Why, Detail: n.detail, Rule: ground.Rule})
	j.stopped = append(j.stopped, ground)
	j.Verdict = max(j.Verdict, verdict)
	if verdict == Deny {
		j.denied = append(j.denied, reason)
		j.planned = j.planned || ground.Why == inPlan
		return
	}
	j.offer(n, ground.Rule != "")
}

// offer adds the rules that would have allowed a need: the narrowest one, and the one of its first words. A rule that
// asks wants to be heard each time, so that no words are offered for it.
func (j *judgement) offer(n need, byRule bool) {
	grant, ok := j.m.narrowestGrant(n)
	if !ok {
		j.nameable = false
	}
	words := grant
	if byRule {
		j.Lasting = false
	} else if text, ok := j.m.grantWords(n); ok {
		words = text
		j.wider = true
	}
	if key := "grant " + grant; !j.seen[key] {
		j.seen[key] = true
		j.Grant = append(j.Grant, grant)
	}
	if !slices.Contains(j.Words, words) {
		j.Words = append(j.Words, words)
	}
}

// decide returns the decision about the needs that were noted. Grant is dropped if a part cannot be named by a rule, or
// is a risk, because a rule would then allow more than the person has seen.
func (j *judgement) decide(needs []need) Decision {
	d := j.Decision
	d.Grounds = j.stopped
	if d.Verdict == Allow {
		d.Grounds = listPassed(j.passed)
	}
	if d.Verdict == Ask {
		d.Risks = risksOf(j.risky, needs)
	}
	d.Boxed = d.Boxed && (d.Verdict == Allow || d.Verdict == Ask && j.hostsOnly)
	if !d.Boxed {
		d.Hosts = nil
	}
	if d.Verdict == Deny {
		d.Model = j.describeDenial()
	}
	if d.Verdict != Ask || !j.nameable || len(d.Risks) > 0 {
		d.Grant = nil
		d.Lasting = false
	}
	if len(d.Grant) == 0 || !j.wider {
		d.Words = nil
	}
	return d
}

// describeDenial returns what the model reads about a call that is denied.
func (j *judgement) describeDenial() string {
	reasons := strings.Join(j.denied, "; ")
	switch {
	case j.planned:
		return "in the mode plan you may only read: " + strings.ReplaceAll(reasons, " "+inPlan, "") + ". " + planAdvice
	case j.unasked:
		return "not permitted: " + strings.ReplaceAll(reasons, inBoxMode, "") + ". " + boxAdvice
	}
	return "not permitted: " + reasons + ". Do not try the same in another form."
}
