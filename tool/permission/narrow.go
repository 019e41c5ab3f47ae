package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// CheckNarrowed returns an error if one of several rules might allow something that none of the
// granted rules allows. It is strict: it also refuses a rule of which it cannot know that.
// A person edits the rules of a question before answering "always" with it: this check keeps an
// edit from allowing more than the question was about.
func (p *Policy) CheckNarrowed(granted, rules []string) error {
	a, err := p.resolveArea()
	if err != nil {
		return err
	}
	m := matcher{area: a, home: p.Home}
	var wide []Rule
	for _, text := range granted {
		r, err := ParseRule(text)
		if err != nil {
			return err
		}
		wide = append(wide, r)
	}
	for _, text := range rules {
		r, err := ParseRule(text)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(wide, func(w Rule) bool { return m.isWithinRule(r, w) }) {
			return fmt.Errorf("the rule %s may allow more than %s: a rule can only be made narrower", r.Text, strings.Join(granted, ", "))
		}
	}
	return nil
}

// isWithinRule reports whether a rule allows nothing that another one does not allow.
func (m matcher) isWithinRule(r, wide Rule) bool {
	switch {
	case r.Text == wide.Text:
		return true
	case r.bound != wide.bound || r.tool != wide.tool || r.kind != wide.kind || r.bare || r.kind == "" && strings.Contains(r.tool, "*"):
		return false
	case wide.bare:
		return true
	case r.kind == command || r.kind == "" && !isPathPattern(wide.pattern) && len(wide.words) > 1:
		return sameWords(r.words, wide.words) && !r.broken && !wide.broken
	}
	if args := argumentPatterns(wide.pattern); args != nil {
		return argumentsWithin(argumentPatterns(r.pattern), args)
	}
	return r.pattern == wide.pattern || isURLOnHost(r.pattern, wide.pattern) || m.placeWithin(r, wide)
}

// isPathPattern reports whether a pattern is that of a directory with everything in it.
func isPathPattern(pattern string) bool { return strings.HasSuffix(pattern, "/**") }

// sameWords reports whether a pattern of a command allows only what another one allows: word by
// word the same, or any text where the other has a star.
func sameWords(words, wide []string) bool {
	for i, w := range wide {
		switch {
		case w == "*" && i == len(wide)-1:
			return true
		case i >= len(words):
			return false
		case w != words[i] && w != "*":
			return false
		}
	}
	return len(words) == len(wide)
}

// argumentPatterns returns the patterns of arguments of a rule by name, or nil if it is not about arguments.
func argumentPatterns(pattern string) map[string]string {
	list := map[string]string{}
	for part := range strings.SplitSeq(pattern, ",") {
		part = strings.TrimSpace(part)
		if !argumentsText().MatchString(part) {
			return nil
		}
		name, value, _ := strings.Cut(part, "=")
		if _, twice := list[name]; twice {
			return nil
		}
		list[name] = value
	}
	return list
}

// argumentsWithin reports whether patterns have at least the conditions of others.
func argumentsWithin(narrow, wide map[string]string) bool {
	for name, value := range wide {
		if own, ok := narrow[name]; !ok || own != value && value != "*" {
			return false
		}
	}
	return narrow != nil
}

// isURLOnHost reports whether a pattern is that of URLs on a host.
func isURLOnHost(narrow, host string) bool {
	scheme, rest, ok := strings.Cut(narrow, "://")
	name, _, path := strings.Cut(rest, "/")
	return ok && path && (scheme == "https" || scheme == "http") && name == host && !strings.ContainsAny(host, "*\\")
}

// placeWithin reports whether a rule is about files below a directory that another rule allows with everything in it.
// Links are followed as they are now.
func (m matcher) placeWithin(r, wide Rule) bool {
	dir, ok := strings.CutSuffix(m.pathPattern(wide), "/**")
	if !ok || strings.ContainsAny(dropEscaped(dir), "*?[{") || strings.ContainsAny(r.pattern, `{\`) || !doublestar.ValidatePattern(r.pattern) ||
		slices.Contains(strings.Split(r.pattern, "/"), "..") {
		return false
	}
	base, _ := doublestar.SplitPattern(m.pathPattern(r))
	return base == dir || strings.HasPrefix(base, dir+"/")
}
