package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/tool"
)

// A Policy is what decisions are made from. It is only read: it may be used by
// several goroutines at once, and a changed copy is a new policy.
type Policy struct {
	Rules     []Rules // of the user, of the project, and so on: all count the same
	Granted   []Rule  // given by answers for this run; they also beat rules that ask
	Workspace string  // absolute; where tools run, and what they may read and write
	Home      string  // absolute, the meaning of ~; empty: a path with ~ asks

	// Readable are directories outside of the workspace that may be read without asking: the
	// agent's own. Writing there asks, even if they are inside of the workspace.
	Readable []string
	// Guarded are files and directories that are not written without asking, also
	// in the workspace: those that hold permissions. No rule with a wildcard
	// covers them, and none without a pattern.
	Guarded []string
	// Code are further files and directories that are not written without asking, on
	// the same terms: what is in them runs later without being named, such as the
	// directories of agents and the libraries of their scripts.
	Code []string

	// Trusted reports whether a person consented to a tool by naming the script or server that it
	// belongs to. Such a tool runs although it does not declare what it touches, unless it is
	// declared dangerous. nil: no tool is trusted.
	Trusted func(name string) bool
}

// A Decision says whether a call runs, and why.
type Decision struct {
	Verdict Verdict
	// Risks say in plain words which harm the parts that ask may do, as the end of a
	// sentence that begins with "it": "runs code from the network (evil.example)". With
	// one of them Grant is empty, so that the call is allowed once or not at all.
	Risks []string
	// Reasons tell a person what the call needs that is not simply allowed, one
	// line each.
	Reasons []string
	// Model tells the model why the call was denied; empty: it was not.
	Model string
	// Grant are the rules that would have allowed the call. Empty with Ask: no
	// rule could name what only running it will show, so it can be allowed once.
	Grant []string
	// Lasting reports whether Grant would help in the next run as well. Not if a
	// rule that asks was the reason.
	Lasting bool
}

// Decide decides on a call. It returns an error if the tool cannot use the arguments, or if the
// policy names no workspace; then the call must not run.
func (p *Policy) Decide(t tool.Tool, c tool.Call) (Decision, error) {
	m, needs, err := p.analyzeCall(t, c.Args)
	if err != nil {
		return Decision{}, err
	}
	return p.judgeNeeds(m, needs), nil
}

// DecideTool returns the decision on every call of a tool. known is false if a call may be decided
// otherwise because of its arguments.
func (p *Policy) DecideTool(t tool.Tool) (v Verdict, known bool) {
	verdict, _, _ := p.decideNeed(matcher{tool: t.Name, home: p.Home}, p.callNeed(t, tool.Touch{}))
	return verdict, verdict == Deny || t.Touches == nil && !p.hasArgumentRule(t.Name)
}

// hasArgumentRule reports whether a rule about a tool, or about any tool, depends on arguments.
func (p *Policy) hasArgumentRule(name string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rules) bool {
		return slices.ContainsFunc(slices.Concat(r.Allow, r.Ask, r.Deny), func(rule Rule) bool { return rule.dependsOnArguments(name) })
	})
}

// analyzeCall takes a call apart into what it needs.
func (p *Policy) analyzeCall(t tool.Tool, args json.RawMessage) (matcher, []need, error) {
	a, err := p.resolveArea()
	if err != nil {
		return matcher{}, nil, fmt.Errorf("decide on %s: %w", t.Name, err)
	}
	if len(bytes.TrimSpace(args)) == 0 {
		args = json.RawMessage("{}")
	}
	var touch tool.Touch
	if t.Touches != nil {
		if touch, err = t.Touches(args); err != nil {
			return matcher{}, nil, fmt.Errorf("%s: %w", t.Name, err)
		}
	}
	m := matcher{tool: t.Name, shell: len(touch.Commands) > 0, area: a, home: p.Home, args: argumentTexts(args),
		patterns: map[string]pathPattern{}, trees: map[string]*subtree{}}
	if touch.Passed != nil {
		m.passed, m.passedArgs = touch.Passed.Tool, argumentTexts(touch.Passed.Args)
	}
	return m, p.listNeeds(t, touch, m), nil
}

// OnlyReads reports whether everything that a call does is known, and is reading: it writes
// nothing, reaches no host, and every command is one that runs without asking. It does not use
// rules.
func (p *Policy) OnlyReads(t tool.Tool, args json.RawMessage) bool {
	_, needs, err := p.analyzeCall(t, args)
	if err != nil || t.Touches == nil {
		return false
	}
	return !slices.ContainsFunc(needs, func(n need) bool {
		return n.kind != reading && (n.fallback != Allow || n.kind == writing || n.kind == network)
	})
}

// listNeeds lists what a call needs. The first need is the call itself.
func (p *Policy) listNeeds(t tool.Tool, touch tool.Touch, m matcher) []need {
	needs := []need{p.callNeed(t, touch)}
	for _, f := range touch.Reads {
		needs = append(needs, m.area.fileNeed(reading, contents, f, m.area.workspace, f))
	}
	for _, f := range touch.Lists {
		needs = append(needs, m.area.fileNeed(reading, itself, f, m.area.workspace, f))
	}
	for _, f := range touch.Writes {
		needs = append(needs, m.area.fileNeed(writing, contents, f, m.area.workspace, f))
	}
	for _, text := range touch.Commands {
		s := shellAnalyzer{area: m.area, home: p.Home, dirs: []string{m.area.workspace}, watched: p.watchesFiles()}
		s.analyzeText(text)
		needs = append(needs, s.needs...)
	}
	for _, host := range touch.Network {
		n := need{kind: network, text: host, hosts: m.hostForms(host), fallback: Ask, why: "is on the network"}
		if host == "*" {
			n.text, n.why = t.Name, "reaches the network, and does not say where"
		}
		needs = append(needs, n)
	}
	return needs
}

// watchesFiles reports whether a rule denies or asks about what calls of any tool read,
// write or reach on the network.
func (p *Policy) watchesFiles() bool {
	about := func(r Rule) bool { return r.kind == reading || r.kind == writing || r.kind == network }
	return slices.ContainsFunc(p.Rules, func(r Rules) bool {
		return slices.ContainsFunc(r.Deny, about) || slices.ContainsFunc(r.Ask, about)
	})
}

// callNeed returns the need for the tool itself.
func (p *Policy) callNeed(t tool.Tool, touch tool.Touch) need {
	n := need{kind: theCall, text: t.Name, opaque: t.Touches == nil || touch.Unknown != ""}
	trusted := p.Trusted != nil && p.Trusted(t.Name)
	switch {
	case t.Effect == tool.Dangerous:
		n.fallback, n.why = Ask, "is declared dangerous"
	case touch.Unknown != "":
		n.fallback, n.why = Ask, touch.Unknown
	case t.Touches != nil || trusted || t.Effect == tool.ReadOnly:
	default:
		n.fallback, n.why = Ask, "does not tell what it touches"
	}
	return n
}

// judgeNeeds compares the needs with the rules: the strictest need decides.
func (p *Policy) judgeNeeds(m matcher, needs []need) Decision {
	d := Decision{Lasting: true}
	var denied []string
	nameable, seen := true, map[string]bool{}
	var risky []need
	for _, n := range needs {
		verdict, why, rule := p.decideNeed(m, n)
		if verdict == Allow {
			continue
		}
		if verdict == Ask {
			risky = append(risky, n)
		}
		reason := strings.TrimSpace(shortenReason(n.text) + " " + why)
		if n.repeated && !rule && d.Verdict != Allow {
			nameable = false
			continue
		}
		if seen[reason] {
			continue
		}
		seen[reason] = true
		d.Reasons = append(d.Reasons, reason)
		d.Verdict = max(d.Verdict, verdict)
		if verdict == Deny {
			denied = append(denied, reason)
			continue
		}
		d.Lasting = d.Lasting && !rule
		grant, ok := m.narrowestGrant(n)
		nameable = nameable && ok
		if key := "grant " + grant; !seen[key] {
			seen[key] = true
			d.Grant = append(d.Grant, grant)
		}
	}
	if d.Verdict == Ask {
		d.Risks = risksOf(risky, needs)
	}
	switch {
	case d.Verdict == Deny:
		d.Model = "not permitted: " + strings.Join(denied, "; ") + ". Do not try the same in another form."
		d.Grant, d.Lasting = nil, false
	case d.Verdict == Allow || !nameable || len(d.Risks) > 0:
		d.Grant, d.Lasting = nil, false
	}
	return d
}

// decideNeed decides on one need. It reports whether a rule was the reason.
func (p *Policy) decideNeed(m matcher, n need) (v Verdict, why string, rule bool) {
	best, by := no, Rule{}
	for _, rules := range p.Rules {
		for _, r := range rules.Deny {
			f := m.forbidsNeed(r, n)
			if f == no && m.mayHide(r, n) {
				f = maybe
			}
			if f > best {
				best, by = f, r
			}
		}
	}
	if best == sure {
		return Deny, "is denied by the rule " + by.describeRule(), true
	}
	covered := func(r Rule) bool { return m.coversNeed(r, n) }
	if slices.ContainsFunc(p.Granted, covered) {
		return Allow, "", false
	}
	if best == maybe {
		return Ask, n.mayBe() + " what the rule " + by.describeRule() + " denies", true
	}
	for _, rules := range p.Rules {
		for _, r := range rules.Ask {
			if m.forbidsNeed(r, n) != no {
				return Ask, "is asked about by the rule " + r.describeRule(), true
			}
		}
	}
	for _, rules := range p.Rules {
		if slices.ContainsFunc(rules.Allow, covered) {
			return Allow, "", false
		}
	}
	return n.fallback, n.why, false
}

// mayBe returns a sentence that says how a rule that denies might be about the need.
func (n need) mayBe() string {
	switch {
	case (n.kind == reading || n.kind == writing) && n.reach != itself && slices.ContainsFunc(n.paths, isDir):
		return "may hold"
	case n.kind == command && n.opaque:
		return "may do"
	}
	return "may be"
}

// describeRule returns a rule with its place.
func (r Rule) describeRule() string {
	if r.Source == "" {
		return r.Text
	}
	return r.Text + " (" + r.Source + ")"
}

// longestReason is how many bytes of a command a reason quotes.
const longestReason = 300

func shortenReason(text string) string {
	if len(text) <= longestReason {
		return text
	}
	end := longestReason
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + " ..."
}

// hostForms returns the forms in which a rule may name a host: its name, the name with the port,
// and the URLs among the arguments that lie on it.
func (m matcher) hostForms(host string) []string {
	forms := []string{host}
	if name, _, err := net.SplitHostPort(host); err == nil {
		forms = append(forms, name)
	}
	for _, arg := range slices.Concat(slices.Collect(maps.Values(m.args)), slices.Collect(maps.Values(m.passedArgs))) {
		u, err := url.Parse(arg)
		if err != nil || u.Host == "" || u.Hostname() != host && u.Host != host {
			continue
		}
		plain := url.URL{Scheme: strings.ToLower(u.Scheme), Host: u.Host, Path: path.Clean("/" + u.Path), RawQuery: u.RawQuery}
		if strings.HasSuffix(u.Path, "/") && plain.Path != "/" {
			plain.Path += "/"
		}
		forms = append(forms, plain.String())
	}
	slices.Sort(forms[1:])
	return slices.Compact(forms)
}

// argumentTexts returns the arguments by name: texts as they are, all other values as JSON.
func argumentTexts(args json.RawMessage) map[string]string {
	var raw map[string]json.RawMessage
	if json.Unmarshal(args, &raw) != nil {
		return nil
	}
	out := make(map[string]string, len(raw))
	for name, value := range raw {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		out[name] = text
	}
	return out
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
