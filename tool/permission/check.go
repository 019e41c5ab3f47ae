package permission

import (
	"fmt"
	"strings"

	"raddle.dev/tool"
)

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
	var faults []Fault
	for _, list := range rules {
		for _, some := range [][]Rule{list.Allow, list.Ask, list.Deny} {
			for _, r := range some {
				if name := r.patternInVain(declares); name != "" {
					faults = append(faults, Fault{File: r.file, Line: r.line, Col: r.col, Msg: fmt.Sprintf(
						"rule %q can never match: the tool %s does not declare which files, commands or hosts it touches. "+
							"Use %s without a pattern, or compare its arguments: %s(NAME=PATTERN)", r.Text, name, r.tool, r.tool)})
				}
			}
		}
	}
	if len(faults) > 0 {
		return &Error{Faults: faults}
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
