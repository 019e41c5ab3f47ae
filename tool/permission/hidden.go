package permission

// HiddenFilter returns a function that reports whether a tool that searches directories must leave
// out a file or a directory, because a rule that denies or asks means it. Call it for a directory
// before the files in it, with absolute paths without links. The function is for one search: it
// does not see rules that are added later. If the policy cannot be used, it hides everything.
func (p *Policy) HiddenFilter(tool string) func(path string) bool {
	a, err := p.resolveArea()
	if err != nil {
		return func(string) bool { return true }
	}
	m := matcher{tool: tool, area: a, home: p.Home}
	var patterns []pathPattern
	for _, rules := range p.Rules {
		for _, list := range [][]Rule{rules.Deny, rules.Ask} {
			for _, r := range list {
				if m.appliesTo(r, need{kind: reading}) && !r.bare {
					patterns = append(patterns, m.deniedPaths(r))
				}
			}
		}
	}
	return func(path string) bool {
		for _, p := range patterns {
			if matches, _ := p.comparePath(path); matches || p.unclear {
				return true
			}
		}
		return false
	}
}
