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
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/strictyaml"
	"raddle.dev/tool"
)

// A Policy is what decisions are made from. It is only read: it may be used by
// several goroutines at once, and a changed copy is a new policy.
type Policy struct {
	Rules     []Rules // of the user, of the project, and so on: all count the same
	Granted   []Rule  // given by answers for this run; they also beat rules that ask
	Mode      Mode    // what runs without a question where no rule decides; empty: ModeEdits
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
	// Does says in plain words what the call does, as the end of a sentence that begins with "the
	// agent wants to": "run a command".
	Does string
	// Command is the shell text that the call would run; empty: none.
	Command string
	// Parts are what the call needs that is not simply allowed: the Reasons, taken apart.
	Parts []Part
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

// A Part is one thing that a call needs, and that is not simply allowed.
type Part struct {
	Text   string // a command, a file or a host
	Why    string // as the end of a sentence that begins with Text
	Detail string // what is known about its effect, such as the files that a command removes; empty: nothing
	Rule   string // the rule that decided, with its place; empty: no rule did
}

// Decide decides on a call. It returns an error if the tool cannot use the arguments, or if the
// policy names no workspace; then the call must not run.
func (p *Policy) Decide(t tool.Tool, c tool.Call) (Decision, error) {
	m, needs, err := p.analyzeCall(t, c.Args)
	if err != nil {
		return Decision{}, err
	}
	d := p.judgeNeeds(m, needs)
	d.Does, d.Command = m.describeCall(needs), m.command
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
	list := func(verb string, names []string) string {
		if len(names) > 2 {
			return fmt.Sprintf("%s %s and %d more", verb, shortenReason(names[0]), len(names)-1)
		}
		return verb + " " + shortenReason(strings.Join(names, " and "))
	}
	switch {
	case m.passed != "":
		return "call " + m.passed
	case len(changed) > 0:
		return list("change", changed)
	case len(hosts) > 0 && hosts[0] != m.tool:
		return list("get something from", hosts)
	case len(read) > 0:
		return list("read", read)
	}
	return "call " + m.tool
}

// DecideTool returns the decision on every call of a tool. known is false if a call may be decided
// otherwise because of its arguments.
func (p *Policy) DecideTool(t tool.Tool) (v Verdict, known bool) {
	verdict, _, _ := p.decideNeed(matcher{tool: t.Name, home: p.Home}, p.callNeed(t, tool.Touch{}))
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
	m.command = strings.Join(touch.Commands, "\n")
	if touch.Passed != nil {
		m.passed, m.passedArgs = touch.Passed.Tool, argumentTexts(touch.Passed.Args)
	}
	return m, p.listNeeds(t, touch, m), nil
}

// OnlyReads reports whether everything that a call does is known, and is reading: it writes
// nothing, reaches no host, and every command is one that runs without asking. It does not use
// rules.
// A tool that does not declare what it touches never counts.
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
// Files that a tool declares to read or write count with everything below them, because they may be
// directories. Each shell text is analyzed in the workspace, where commands start.
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
		n := need{kind: network, text: host, hosts: m.hostForms(host), fallback: Ask, why: "is on the network", changes: t.Effect != tool.ReadOnly && touch.Passed == nil}
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
// A tool that declares what it touches, that a person trusts, or that only reads needs no question
// about the call as such; its other needs decide.
func (p *Policy) callNeed(t tool.Tool, touch tool.Touch) need {
	n := need{kind: theCall, text: t.Name, opaque: t.Touches == nil || touch.Unknown != "", changes: changesSomething(t, touch)}
	trusted := p.Trusted != nil && p.Trusted(t.Name)
	switch {
	case t.Effect == tool.Dangerous:
		n.fallback, n.why = Ask, "is declared dangerous"
	case touch.Unknown != "":
		n.fallback, n.why = Ask, touch.Unknown
	case t.Touches != nil || trusted || t.Effect == tool.ReadOnly:
	default:
		n.fallback, n.why = Ask, "does not declare what it touches"
	}
	return n
}

// judgeNeeds compares the needs with the rules: the strictest need decides.
// Every need with another verdict than Allow becomes a part, each reason once. Grant has the
// narrowest rule for each of these parts; it is dropped if one of them cannot be named by a rule,
// or is a risk, because a rule would then allow more than the person has seen.
func (p *Policy) judgeNeeds(m matcher, needs []need) Decision {
	d := Decision{Lasting: true}
	var denied []string
	nameable, seen, planned := true, map[string]bool{}, false
	var risky []need
	for _, n := range needs {
		verdict, why, by := p.decideNeed(m, n)
		if verdict == Allow {
			continue
		}
		if verdict == Ask {
			risky = append(risky, n)
		}
		reason := strings.TrimSpace(shortenReason(n.text) + " " + why)
		if n.repeated && by == "" && d.Verdict != Allow {
			nameable = false
			continue
		}
		if seen[reason] {
			continue
		}
		seen[reason] = true
		d.Reasons = append(d.Reasons, reason)
		d.Parts = append(d.Parts, Part{Text: shortenReason(n.text), Why: why, Detail: n.detail, Rule: by})
		d.Verdict = max(d.Verdict, verdict)
		if verdict == Deny {
			denied = append(denied, reason)
			planned = planned || why == inPlan
			continue
		}
		d.Lasting = d.Lasting && by == ""
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
	case d.Verdict == Deny && planned:
		d.Model = "in the mode plan you may only read: " + strings.ReplaceAll(strings.Join(denied, "; "), " "+inPlan, "") + ". " + planAdvice
		d.Grant, d.Lasting = nil, false
	case d.Verdict == Deny:
		d.Model = "not permitted: " + strings.Join(denied, "; ") + ". Do not try the same in another form."
		d.Grant, d.Lasting = nil, false
	case d.Verdict == Allow || !nameable || len(d.Risks) > 0:
		d.Grant, d.Lasting = nil, false
	}
	return d
}

// decideNeed decides on one need. by is the rule or the mode that was the reason, with its place;
// empty: the default.
// The order is that of the package's description. A rule that denies and only may match asks, and a
// grant of this run has then been compared before.
func (p *Policy) decideNeed(m matcher, n need) (v Verdict, why, by string) {
	best, rule := no, Rule{}
	for _, rules := range p.Rules {
		for _, r := range rules.Deny {
			f := m.forbidsNeed(r, n)
			if f == no && m.mayHide(r, n) {
				f = maybe
			}
			if f > best {
				best, rule = f, r
			}
		}
	}
	if best == sure {
		return Deny, "is denied by the rule " + rule.describeRule(), rule.describeRule()
	}
	if p.Mode == ModePlan && n.mayChange() {
		return Deny, inPlan, "the mode plan"
	}
	covered := func(r Rule) bool { return m.coversNeed(r, n) }
	if slices.ContainsFunc(p.Granted, covered) {
		return Allow, "", ""
	}
	if best == maybe {
		return Ask, n.describeMatch() + " what the rule " + rule.describeRule() + " denies", rule.describeRule()
	}
	for _, rules := range p.Rules {
		for _, r := range rules.Ask {
			if m.forbidsNeed(r, n) != no {
				return Ask, "is asked about by the rule " + r.describeRule(), r.describeRule()
			}
		}
	}
	for _, rules := range p.Rules {
		if slices.ContainsFunc(rules.Allow, covered) {
			return Allow, "", ""
		}
	}
	v, why = p.judgeByMode(n)
	return v, why, ""
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

// hostForms returns the forms in which a rule may name a host: its name, the name with the port,
// and the URLs among the arguments that lie on it.
// With the URLs a rule can allow a part of a host only. Their paths are cleaned, so that "/a/../b"
// cannot match a rule about "/a/*".
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

// argumentTexts returns the arguments by name: texts as they are, all other values as JSON. It is
// nil if the arguments are not an object: then no rule about arguments matches.
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

	opaque  bool // of a command or call: what it does cannot be seen, so every rule that denies might apply
	runner  bool // of a command: its arguments may be a command in turn
	stdin   bool // of a command: it runs what it reads as code
	changes bool // of a call or a host: the call may change something

	risk string // of a command: the harm that it may do, as the end of a sentence that begins with "it"; empty: none that is known

	detail   string  // of a command: the files that it removes, as far as they are known
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

// CheckTools returns what is wrong with rules once the tools are known, as an *Error with the place
// of each rule. A rule with a pattern of files, commands or hosts can never match a call of a tool
// that declares nothing about what it touches, so such a rule would protect nothing. Rules about
// arguments, such as create_issue(project=web), need no declaration. A rule for a name that no tool
// has is not an error. If two tools have the same name, the later one counts.
func CheckTools(rules []Rules, tools []tool.Tool) error {
	declares := map[string]bool{}
	for _, t := range tools {
		declares[t.Name] = t.Touches != nil
	}
	var faults []strictyaml.Finding
	for _, list := range rules {
		for _, some := range [][]Rule{list.Allow, list.Ask, list.Deny} {
			for _, r := range some {
				if name := r.patternInVain(declares); name != "" {
					faults = append(faults, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "rule-in-vain", Pos: r.pos, Message: fmt.Sprintf(
						"rule %q can never match: the tool %s does not declare which files, commands or hosts it touches. "+
							"Use %s without a pattern, or compare its arguments: %s(NAME=PATTERN)", r.Text, name, r.tool, r.tool)})
				}
			}
		}
	}
	if len(faults) > 0 {
		return &Error{Findings: faults}
	}
	return nil
}

// patternInVain returns the name of a tool that the rule means although its pattern cannot match:
// none of the tools that it means declares what it touches. It returns "" if the rule is fine.
func (r Rule) patternInVain(declares map[string]bool) (name string) {
	if r.bare || r.kind != "" || r.pattern == "*" || argumentsText().MatchString(r.pattern) && !strings.Contains(r.pattern, "://") {
		return ""
	}
	for tool, touches := range declares {
		switch {
		case !matchesWildcard(r.tool, tool):
		case touches:
			return ""
		case name == "" || tool < name:
			name = tool
		}
	}
	return name
}

// An Answer is what a person may say to a call that asks.
type Answer string

// The answers. No may come with a reason, which the model reads.
const (
	Once   Answer = "once"   // this call, and nothing else
	Run    Answer = "run"    // what Decision.Grant says, until the run ends
	Always Answer = "always" // what Decision.Grant says, from now on
	No     Answer = "no"
)

// Answers returns the answers that make sense for a decision that asks, in the order in which to
// offer them.
func (d Decision) Answers() []Answer {
	switch {
	case d.Verdict != Ask:
		return nil
	case len(d.Grant) == 0:
		return []Answer{Once, No}
	case !d.Lasting:
		return []Answer{Once, Run, No}
	}
	return []Answer{Once, Run, Always, No}
}

// narrowestGrant returns the narrowest rule that allows a need, and whether there is one.
// For a command it is the command itself, word by word; for a file the file, or the directory with
// everything below it; for a host that host.
func (m matcher) narrowestGrant(n need) (rule string, ok bool) {
	switch n.kind {
	case theCall:
		return m.grantCall(), true
	case command:
		return m.grantCommand(n)
	case network:
		who := m.tool
		if m.passed != "" {
			who = m.passed // not all that the function may call
		}
		return who + "(" + n.hosts[0] + ")", !strings.ContainsAny(n.hosts[0], "*\\=") || n.hosts[0] == "*"
	}
	if len(n.paths) != 1 {
		return "", false
	}
	who := m.tool
	if m.shell {
		who = "any " + string(n.kind)
	}
	path := m.shortPath(n.paths[0])
	if n.reach != itself && isDir(n.paths[0]) {
		path = strings.TrimSuffix(path, "/") + "/**"
	}
	return who + "(" + path + ")", true
}

// grantCall returns a rule that allows the tool. For a tool that calls others by name, the rule
// allows only the tool that the call names.
func (m matcher) grantCall() string {
	if one := m.args["tool"]; one != "" && strings.Trim(one, nameLetters) == "" {
		return m.tool + "(tool=" + one + ")"
	}
	return m.tool
}

// nameLetters are the characters of names of tools.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// grantCommand returns a rule that allows one command with these words. There is none if a word is
// known only when the command runs.
func (m matcher) grantCommand(n need) (string, bool) {
	if len(n.words) == 0 {
		return "", false
	}
	all := append(n.env[:len(n.env):len(n.env)], n.words...)
	for _, w := range all {
		if !w.isPlain() {
			return "", false
		}
	}
	return m.tool + "(" + joinWords(all) + ")", true
}

// shortPath returns a pattern that matches only this path.
// It is relative to the workspace if the path is inside.
func (m matcher) shortPath(path string) string {
	if path != m.area.workspace && isWithin(m.area.workspace, path, false) {
		if rel, err := filepath.Rel(m.area.workspace, path); err == nil && !strings.HasPrefix(rel, "~") {
			return escapePattern(rel)
		}
	}
	return escapePattern(path)
}

// codeDirs are names of directories whose files run, or decide what runs, although no command names
// them, with the reason to ask before they are written.
var codeDirs = map[string]string{
	".git": "it belongs to git", ".githooks": "it belongs to git", ".husky": "it belongs to git",
	".venv": "interpreters and packages run from there", "venv": "interpreters and packages run from there",
	"node_modules": "interpreters and packages run from there", "site-packages": "interpreters and packages run from there",
	"__pycache__": "Python runs it in place of a source file",
	".raddle":     "it decides what raddle may do in this project",
}

// codeFiles are names of files that decide what runs, with the reason to ask.
var codeFiles = map[string]string{
	"permissions.yaml": "it decides about permissions", "mcp.json": "it names servers to start", "graph.yaml": "it is an agent",
	"pyvenv.cfg": "it makes a directory an environment of Python", ".envrc": "it sets variables of programs",
}

// agentTools are the files that hold an agent's own tools. A config.yaml alone may belong to any
// program; with one of these next to it, it is an agent.
var agentTools = []string{"tools.sh", "tools.py", "tools.ts"}

// guardReason returns why writing a path needs a question although the path is in the workspace,
// with the root that is guarded; "": it needs none. A rule that allows the write must name the
// root, or something in it.
// A directory around a guarded place is guarded, too: a call that writes it may replace what is in
// it. Names are compared without case, because some file systems do not distinguish it.
func (a area) guardReason(path string) (what, root string) {
	for _, list := range []struct {
		paths    []string
		it, lies string
	}{
		{a.guarded, "it decides about permissions", "it holds files that decide about permissions"},
		{a.code, "its files run without being named", "files that run without being named lie in it"},
		{a.readable, "it belongs to the agent", ""},
	} {
		for _, g := range list.paths {
			if isWithin(g, path, true) {
				return list.it, g
			}
			if list.lies != "" && isWithin(path, g, true) {
				return list.lies, g
			}
		}
	}
	parts := strings.Split(filepath.ToSlash(path), "/")
	for i, part := range parts {
		if why := codeDirs[strings.ToLower(part)]; why != "" {
			return why, filepath.FromSlash(strings.Join(parts[:i+1], "/"))
		}
	}
	if why := codeFiles[strings.ToLower(filepath.Base(path))]; why != "" {
		return why, path
	}
	return a.codeAround(path)
}

// codeAround looks for directories around a file whose contents may run: directories of agents, and
// Python environments with any name.
// It looks only at directories in the workspace, from the file upwards.
func (a area) codeAround(path string) (what, root string) {
	for dir := filepath.Dir(path); isWithin(a.workspace, dir, false); dir = filepath.Dir(dir) {
		if isFile(filepath.Join(dir, "pyvenv.cfg")) {
			return codeDirs["venv"], dir
		}
		if mayRun(path) && isAgent(dir, path) {
			return "it belongs to an agent", dir
		}
	}
	return "", ""
}

// isAgent reports whether a directory is an agent's, or becomes one by the file
// that is written.
func isAgent(dir, written string) bool {
	has := func(file string) bool {
		path := filepath.Join(dir, file)
		return path == written || isFile(path)
	}
	if has("graph.yaml") {
		return true
	}
	return has("config.yaml") && (slices.ContainsFunc(agentTools, has) || has("mcp.json"))
}

// mayRun reports whether a file may be run, or decide what runs, by its name or by
// its mode.
func mayRun(path string) bool {
	if slices.Contains(scriptEndings, strings.ToLower(filepath.Ext(path))) || slices.Contains(scriptNames, filepath.Base(path)) {
		return true
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// isFile reports whether there is a regular file at a path, also through a link.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
