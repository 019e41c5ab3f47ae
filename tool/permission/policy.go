package permission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
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
	Mode      Mode    // what runs without a question where no rule decides; empty: ModeEdits
	Workspace string  // absolute; where tools run, and what they may read and write
	// Env is the environment in which commands run, as "NAME=value"; nil: that of this process.
	Env []string
	// Home is the meaning of ~, and absolute; if the workspace contains it, its hidden files ask; empty: a path with ~
	// asks.
	Home string

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

	// Untrusted reports whether a tool is a script that no person consented to. Each of its calls asks, or runs as a
	// whole in the box. nil: no tool is.
	Untrusted func(name string) bool

	// Box is where the commands of calls run that no rule decides and that would ask otherwise, in ModeEdits and
	// ModeBox; nil: there is none, and they ask.
	Box *Box
	// Person reports that a person is at a terminal. In ModeBox a call that wants out of the box asks this person;
	// without one it is denied.
	Person bool
}

// A Decision says whether a call runs, and why.
type Decision struct {
	Verdict Verdict
	// Risks say in plain words which harm the parts that ask may do, as the end of a
	// sentence that begins with "it": "runs code from the network (evil.example)". With
	// one of them Grant is empty, so that the call is allowed once or not at all.
	Risks []string
	// Does says in plain words what the call does, as the end of a sentence that begins with "the
	// agent wants to": "run a command".
	Does string
	// Command is the shell text that the call would run; empty: none.
	Command string
	// Parts are what the call needs and is not simply allowed, for a user interface: Reasons has the
	// same as texts.
	Parts []Part
	// Reasons are what the call needs and is not simply allowed, one line each.
	Reasons []string
	// Model is the text for the model that says why the call was denied; empty: it was not.
	Model string
	// Grant lists the rules that would have allowed the call. If it is empty and the verdict is Ask,
	// no rule could name the call before it runs, so it can only be allowed once.
	Grant []string
	// Allowed reports whether rules or answers allow the commands of the call. If it is false, the commands that no
	// rule allows could learn what is in the environment, and run only because they are known to be harmless.
	Allowed bool
	// Unasked reports whether the call runs a command that no rule and no answer allows, because it is known to be
	// harmless now, and none that needs one of them. What makes it harmless, such as the settings of a repository, may
	// change before it runs.
	Unasked bool
	// Words lists the rules that a person can give for the run in place of Grant: they allow every command that begins
	// with the same first words. Empty: no part of the call has such words.
	Words []string
	// Lasting reports whether Grant would allow the call in the next run, too. It is false if a rule
	// that asks was the reason.
	Lasting bool
	// Boxed reports whether the commands of the call run in the box of the policy: it is allowed only there, or asks
	// for hosts only, which an answer opens to the box.
	Boxed bool
	// Hosts are the hosts that a boxed call says it reaches, without those that are denied.
	Hosts []string
	// Grounds say what decided: of a call that is allowed what let each thing pass that it needs, otherwise what asks
	// or denies.
	Grounds []Ground
}

// A Part is one thing that a call needs, and that is not simply allowed.
type Part struct {
	Text   string // a command, a file or a host
	Why    string // as the end of a sentence that begins with Text
	Detail string // what is known about its effect, such as the files that a command removes; empty: nothing
	Rule   string // the rule that decided, with its place; empty: no rule did
}

// Decide decides on a call. It returns an error if the tool cannot use the arguments, if the policy names no workspace,
// or if ctx ends; then the call must not run. Looking at the surroundings of the call takes at most ten seconds: what
// is not known by then asks.
func (p *Policy) Decide(ctx context.Context, t tool.Tool, c tool.Call) (Decision, error) {
	m, needs, err := p.analyzeCall(ctx, t, c.Args)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("decide on %s: %w", t.Name, context.Cause(ctx))
	}
	if err != nil {
		return Decision{}, err
	}
	d := p.judgeNeeds(m, needs)
	d.Does = m.describeCall(needs)
	d.Command = m.command
	if d.Boxed {
		if d.Unasked = true; d.Verdict == Ask {
			d.Does = listNames("run a command in the box, which reaches", d.Hosts)
		}
		return d, nil
	}
	d.Allowed, d.Unasked = p.allowsCommands(m, needs), p.leavesUnasked(m, needs)
	return d, nil
}

// describeCall says what a call does: see Decision.Does.
// A command comes before files, a change before a host, and a host before reading: the person
// should see the strongest part of the call.
func (m matcher) describeCall(needs []need) string {
	var changed, read, hosts []string
	for _, n := range needs {
		switch {
		case n.guess || n.repeated:
		case n.kind == command && m.unboxed:
			return "run a command outside of the box"
		case n.kind == command:
			return "run a command"
		case n.kind == writing:
			changed = append(changed, n.text)
		case n.kind == reading:
			read = append(read, n.text)
		case n.kind == network:
			hosts = append(hosts, n.text)
		}
	}
	switch {
	case m.passed != "":
		return "call " + m.passed
	case len(changed) > 0:
		return listNames("change", changed)
	case len(hosts) > 0 && hosts[0] != m.tool:
		return listNames("get something from", hosts)
	case len(read) > 0:
		return listNames("read", read)
	}
	return "call " + m.tool
}

// listNames returns a verb with names, of which it shows two at most.
func listNames(verb string, names []string) string {
	if len(names) > 2 {
		return fmt.Sprintf("%s %s and %d more", verb, shortenReason(names[0]), len(names)-1)
	}
	return verb + " " + shortenReason(strings.Join(names, " and "))
}

// DecideTool returns the decision on every call of a tool. known is false if a call may be decided
// otherwise because of its arguments.
func (p *Policy) DecideTool(t tool.Tool) (v Verdict, known bool) {
	m := matcher{tool: t.Name, home: p.Home}
	n := p.callNeed(t, tool.Touch{})
	verdict, _ := p.decideNeed(m, n)
	if verdict == Ask && p.deniesQuestion(m, n) {
		verdict = Deny
	}
	if verdict == Allow && t.Touches != nil && (p.Mode == ModePlan || p.Mode == ModeAsk) {
		return p.sampleCall(t)
	}
	return verdict, verdict == Deny || t.Touches == nil && !p.hasArgumentRule(t.Name)
}

// hasArgumentRule reports whether a rule about a tool, or about any tool, depends on arguments.
func (p *Policy) hasArgumentRule(name string) bool {
	return slices.ContainsFunc(p.Rules, func(r Rules) bool {
		return slices.ContainsFunc(slices.Concat(r.Allow, r.Ask, r.Deny), func(rule Rule) bool { return rule.dependsOnArguments(name) })
	})
}

// analyzeCall takes a call apart into what it needs.
// The matcher that it returns is for this call alone. Arguments that are missing count as an empty
// object.
func (p *Policy) analyzeCall(ctx context.Context, t tool.Tool, args json.RawMessage) (matcher, []need, error) {
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
	m := matcher{tool: t.Name, shell: len(touch.Commands) > 0, boxes: touch.Boxes, unboxed: touch.Unboxed, area: a, home: p.Home, args: argumentTexts(args),
		patterns: map[string]pathPattern{}, trees: map[string]*subtree{}}
	m.command = strings.Join(touch.Commands, "\n")
	if touch.Boxes {
		m.boxHosts = len(touch.Network)
	}
	if touch.Like != "" {
		m.tool = touch.Like
		m.own = t.Name
	}
	if touch.Passed != nil {
		m.passed, m.passedArgs = touch.Passed.Tool, argumentTexts(touch.Passed.Args)
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	needs := p.listNeeds(ctx, t, touch, m)
	for i, n := range needs {
		needs[i] = p.dropAllowedPlaces(m, n)
	}
	return m, needs, nil
}

// OnlyReads reports whether everything that a call does is known, and is reading: it writes
// nothing, reaches no host, and every command is one that runs without asking. It does not use
// rules.
// A tool that does not declare what it touches never counts.
func (p *Policy) OnlyReads(t tool.Tool, args json.RawMessage) bool {
	_, needs, err := p.analyzeCall(context.Background(), t, args)
	if err != nil || t.Touches == nil {
		return false
	}
	return !slices.ContainsFunc(needs, func(n need) bool {
		return n.kind != reading && (n.fallback != Allow || n.kind == writing || n.kind == network)
	})
}

// decideNeed decides on one need. The ground has no text.
// The order is that of the package's description. A rule that denies and only may match asks, and a
// grant of this run has then been compared before.
func (p *Policy) decideNeed(m matcher, n need) (Verdict, Ground) {
	best := no
	rule := Rule{}
	for _, rules := range p.Rules {
		for _, r := range rules.Deny {
			f := m.forbidsNeed(r, n)
			if f == no && m.mayHide(r, n) {
				f = maybe
			}
			if f > best {
				best = f
				rule = r
			}
		}
	}
	if best == sure {
		return Deny, rule.groundOf(ByRule, "is denied by the rule "+rule.describeRule())
	}
	if p.Mode == ModePlan && n.mayChange() {
		return Deny, Ground{By: ByMode, Why: inPlan, Rule: "the mode plan"}
	}
	if r := p.findGrant(m, n); r != nil {
		return Allow, r.groundOf(ByAnswer, "is allowed by an earlier answer: "+r.describeRule())
	}
	if best == maybe {
		return Ask, rule.groundOf(ByRule, n.describeMatch()+" what the rule "+rule.describeRule()+" denies")
	}
	for _, rules := range p.Rules {
		for _, r := range rules.Ask {
			if m.forbidsNeed(r, n) != no {
				return Ask, r.groundOf(ByRule, "is asked about by the rule "+r.describeRule())
			}
		}
	}
	if r := p.findAllow(m, n); r != nil {
		return Allow, r.groundOf(ByRule, "is allowed by the rule "+r.describeRule())
	}
	if why := p.describeChange(m, n); why != "" {
		return Ask, Ground{By: ByDefault, Why: why}
	}
	v := Ask
	ground := Ground{By: ByDefault, Why: m.judgeHome(n)}
	if ground.Why == "" {
		v, ground = p.judgeByMode(m, n)
	}
	if v == Ask && p.boxesNeed(m, n) {
		return Allow, Ground{By: ByBox, Why: "runs in the box, because nothing else lets it pass"}
	}
	return v, ground
}

// findGrant returns the answer of this run that covers a need; nil: none does.
func (p *Policy) findGrant(m matcher, n need) *Rule {
	granted := p.Granted
	if n.risk != "" { // no answer is about a harm that the person has not seen
		granted = slices.DeleteFunc(slices.Clone(granted), isByWords)
	}
	return m.findCovering(granted, n)
}

// findAllow returns the rule that allows and covers a need; nil: none does.
func (p *Policy) findAllow(m matcher, n need) *Rule {
	for _, rules := range p.Rules {
		if r := m.findCovering(rules.Allow, n); r != nil {
			return r
		}
	}
	return nil
}

// findCovering returns the first rule that covers a need; nil: none does.
func (m matcher) findCovering(rules []Rule, n need) *Rule {
	for i := range rules {
		if m.coversNeed(rules[i], n) {
			return &rules[i]
		}
	}
	return nil
}

// describeMatch returns a sentence that says how a rule that denies might be about the need.
func (n need) describeMatch() string {
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

// shortenReason returns a text, or its beginning if it is long, without cutting a character.
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

// isDir reports whether there is a directory at a path, also through a link.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// A Verdict says whether a call runs.
type Verdict int

// The verdicts, from the mildest to the strictest.
const (
	Allow Verdict = iota
	Ask
	Deny
)

// String returns the word that rules use.
func (v Verdict) String() string {
	switch v {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}
