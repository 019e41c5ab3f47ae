package permission

import (
	"context"
	"encoding/json"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"

	"raddle.dev/tool"
)

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
	dirs  []string // of a command: the directories in which it may start; none: they are not known
	// content is a digest of what the names in the need mean now: of the files that a command runs, or of the
	// definition of a tool. Empty: nothing that could change, or it is not known.
	content string
	changed bool   // of a call: the tool has another definition than before
	named   naming // of a host: what a rule that allows it must name

	reach   reach // of a file that is a directory
	follows bool  // links below that directory are followed
	guess   bool  // the word may not be a file or a host at all: a rule that denies only asks

	opaque  bool // of a command or call: what it does cannot be seen, so every rule that denies might apply
	runner  bool // of a command: its arguments may be a command in turn
	stdin   bool // of a command: it runs what it reads as code
	changes bool // of a call or a host: the call may change something

	// of a command: the harm that it may do, as the end of a sentence that begins with "it"; empty: none that is known
	risk string

	protected []protectedWord // of a command: protected places that a rule must name

	detail   string  // of a command: the files that it removes, as far as they are known
	repeated bool    // another need that asks already gives the reason of the fallback
	fallback Verdict // the verdict if no rule covers the need
	why      string  // the reason of the fallback, as the end of a sentence that begins with text
	root     string  // of a guarded path: what a rule must name
}

// A naming is what of a host a rule must name, a set.
type naming int

const (
	itsPlace naming = 1 << iota // it is this machine or lies in a private network
	itsPort                     // the port is none of the web
)

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

// listNeeds lists what a call needs. The first need is the call itself.
// Files that a tool declares to read or write count with everything below them, because they may be
// directories. Each shell text is analyzed in the workspace, where commands start.
func (p *Policy) listNeeds(ctx context.Context, t tool.Tool, touch tool.Touch, m matcher) []need {
	needs := []need{p.callNeed(t, touch)}
	looks := newRepositoryLooks(ctx, p.Env)
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
		needs = append(needs, p.analyzeShell(text, m.area, looks)...)
	}
	for _, host := range touch.Network {
		if touch.Boxes {
			needs = append(needs, boxHostNeed(host))
			continue
		}
		n := need{kind: network, text: host, hosts: m.hostForms(host), fallback: Ask, why: "is on the network", changes: t.Effect != tool.ReadOnly && touch.Passed == nil}
		if slices.Contains(touch.Private, host) {
			n.named = itsPlace
			n.why = "is this machine or lies in a private network"
		}
		if host == "*" {
			n.text = t.Name
			n.why = "reaches the network, and does not say where"
		}
		needs = append(needs, n)
	}
	return needs
}

// analyzeShell returns what a shell text needs. It begins in the workspace.
func (p *Policy) analyzeShell(text string, a area, looks *repositoryLooks) []need {
	s := shellAnalyzer{area: a, home: p.Home, dirs: []string{a.workspace}, watched: p.watchesFiles(), looks: looks, values: map[string]values{}, slept: new(float64), times: 1}
	s.analyzeText(text)
	return s.needs
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
	n := need{kind: theCall, text: t.Name, content: shortDigest(touch.Definition), changed: touch.Changed, opaque: t.Touches == nil || touch.Unknown != "", changes: changesSomething(t, touch)}
	trusted := p.Trusted != nil && p.Trusted(t.Name)
	switch {
	case t.Effect == tool.Dangerous:
		n.fallback = Ask
		n.why = "is declared dangerous"
	case p.Untrusted != nil && p.Untrusted(t.Name):
		n.fallback = Ask
		n.why = noConsent
		n.opaque = true
	case touch.Unknown != "":
		n.fallback = Ask
		n.why = touch.Unknown
	case t.Touches != nil || trusted || t.Effect == tool.ReadOnly:
	default:
		n.fallback = Ask
		n.why = "does not declare what it touches"
	}
	return n
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
