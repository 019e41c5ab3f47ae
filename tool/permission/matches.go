package permission

import (
	"cmp"
	"context"
	"slices"

	"raddle.dev/tool"
)

// MatchesRule reports whether a rule is about a call, or may be: where a rule that denies would deny or ask.
func (p *Policy) MatchesRule(ctx context.Context, r Rule, t tool.Tool, c tool.Call) (bool, error) {
	if r.kind == "" && !matchesWildcard(cmp.Or(r.tool, "*"), t.Name) {
		return false, nil
	}
	if r.bare && r.kind == "" {
		return true, nil
	}
	only := *p
	only.Rules = []Rules{{Deny: []Rule{r}}}
	only.Granted = nil
	only.Mode = ModeEdits
	d, err := only.Decide(ctx, t, c)
	return d.Verdict == Deny || slices.ContainsFunc(d.Parts, func(part Part) bool { return part.Rule != "" }), err
}
