package moving

import (
	"strings"

	"raddle.dev/tool/permission"
)

// A ruleText is a rule of another program in the words of raddle.
type ruleText struct {
	rules []string
	why   string // how it differs; "": it means the same
	none  string // why there is no rule; "": there is one
}

// takeRule takes a rule of Claude Code. One that denies or asks is taken whole: where raddle cannot say exactly the
// same, its rule is wider. One that allows is taken only if raddle's allows no more.
func (r *reader) takeRule(from, list, text string) {
	got := translateRule(list, text)
	if got.none == "" {
		for _, rule := range got.rules {
			if _, err := permission.ParseRule(rule); err != nil {
				got.none = "raddle cannot read the rule that it would be: " + err.Error()
			}
		}
	}
	if got.none != "" {
		r.leaveThing(kindRule, list+" "+text, from, got.none)
		return
	}
	to := "permissions.yaml: " + list + " " + strings.Join(got.rules, ", ")
	r.takeThing(kindRule, list+" "+text, from, to, rulePart{list: list, rules: got.rules}, got.why)
}

// translateRule returns what a rule means in raddle.
func translateRule(list, text string) ruleText {
	tool, pattern, hasPattern := strings.Cut(strings.TrimSpace(text), "(")
	allows := list == permission.ListAllow
	if hasPattern {
		inner, closed := strings.CutSuffix(pattern, ")")
		if !closed {
			return ruleText{none: "it is not closed: a ) is missing"}
		}
		pattern = strings.TrimSpace(inner)
	}
	if pattern == "*" || pattern == "**" {
		pattern = ""
	}
	if server, ok := strings.CutPrefix(tool, "mcp__"); ok {
		return translateServerRule(server, pattern, allows)
	}
	switch tool {
	case "Bash":
		return translateCommandRule(pattern, allows)
	case "Read", "Glob", "Grep", "LS":
		return translatePathRule("read", []string{"fs_read", "fs_cat"}, tool, pattern, allows)
	case "Edit", "Write", "MultiEdit", "NotebookEdit":
		return translatePathRule("write", []string{"fs_write", "fs_edit", "fs_patch"}, tool, pattern, allows)
	case "WebFetch":
		return translateHostRule(pattern, allows)
	case "WebSearch":
		if allows {
			return ruleText{none: "raddle's searches go to a service of yours: a rule names its host"}
		}
		return ruleText{rules: []string{"web_search*"}, why: "it means raddle's tools for searches"}
	}
	return ruleText{none: "raddle has no tool " + tool}
}

// plainWord is what words of a command are that mean the same in both programs.
const plainWord = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:@,%"

// translateCommandRule translates a rule about commands: words, of which the last may be any further ones.
func translateCommandRule(pattern string, allows bool) ruleText {
	if pattern == "" {
		if allows {
			return ruleText{none: "raddle does not allow all commands: most run in the box without a question"}
		}
		return ruleText{rules: []string{"any command"}}
	}
	begin, open := strings.CutSuffix(pattern, ":*")
	if !open {
		begin, open = strings.CutSuffix(pattern, " *")
	}
	var kept []string
	whole := true
	for _, word := range strings.Fields(begin) {
		if strings.Trim(word, plainWord) != "" {
			whole = false
			break
		}
		kept = append(kept, word)
	}
	rule := strings.Join(kept, " ")
	switch {
	case whole && open:
		rule += " *"
	case whole:
	case allows:
		return ruleText{none: "its wildcards and signs of the shell mean something else here; write it as raddle does: raddle help permissions"}
	case rule == "":
		return ruleText{rules: []string{"any command"}, why: "wider: raddle can say it only for every command"}
	default:
		return ruleText{rules: []string{"any command(" + rule + " *)"}, why: "wider: every command that begins like this"}
	}
	if allows {
		return ruleText{rules: []string{"execute_command(" + rule + ")"}}
	}
	return ruleText{rules: []string{"any command(" + rule + ")"}}
}

// translatePathRule translates a rule about files. A pattern there is one of gitignore: without a slash it means files in
// every directory.
func translatePathRule(kind string, tools []string, tool, pattern string, allows bool) ruleText {
	if pattern == "" {
		if allows {
			return ruleText{none: "raddle allows this in the workspace without a rule, and asks outside of it"}
		}
		return ruleText{rules: []string{"any " + kind}}
	}
	paths := []string{}
	why := ""
	switch rest, isAbsolute := strings.CutPrefix(pattern, "//"); {
	case isAbsolute:
		paths = append(paths, "/"+rest)
	case strings.HasPrefix(pattern, "~/"):
		paths = append(paths, pattern)
	case strings.HasPrefix(pattern, "./"):
		paths = append(paths, strings.TrimPrefix(pattern, "./"))
	case strings.HasPrefix(pattern, "/"):
		if allows {
			return ruleText{none: "a path with one slash is relative to a project there: write it relative to the workspace"}
		}
		paths = append(paths, strings.TrimPrefix(pattern, "/"), pattern)
		why = "wider: the path in the workspace and the absolute one"
	case strings.Contains(strings.TrimSuffix(pattern, "/"), "/"):
		paths = append(paths, pattern)
	default:
		paths = append(paths, "**/"+pattern)
	}
	var rules []string
	for _, path := range paths {
		path = strings.TrimSuffix(path, "/")
		if strings.ContainsAny(path, "!()") || path == "" {
			return ruleText{none: "raddle cannot write this pattern: see raddle help permissions"}
		}
		if !allows {
			rules = append(rules, "any "+kind+"("+path+")")
			continue
		}
		for _, own := range tools {
			rules = append(rules, own+"("+path+")")
		}
	}
	if allows && (tool == "Glob" || tool == "Grep" || tool == "LS") {
		return ruleText{none: "raddle finds files in the workspace without a rule"}
	}
	return ruleText{rules: rules, why: why}
}

// translateHostRule translates a rule about addresses.
func translateHostRule(pattern string, allows bool) ruleText {
	host, isDomain := strings.CutPrefix(pattern, "domain:")
	switch {
	case pattern == "" && allows:
		return ruleText{rules: []string{"fetch_url_via_curl"}, why: "not this machine and private networks, which a rule must name"}
	case pattern == "":
		return ruleText{rules: []string{"any host"}}
	case !isDomain || strings.Trim(host, plainWord+"*") != "" || strings.ContainsAny(host, "/:@,%=+") || host == "":
		if allows {
			return ruleText{none: "raddle does not know this form"}
		}
		return ruleText{rules: []string{"any host"}, why: "wider: raddle can say it only for every host"}
	case allows:
		return ruleText{rules: []string{"fetch_url_via_curl(" + host + ")"}}
	}
	return ruleText{rules: []string{"any host(" + host + ")"}}
}

// translateServerRule translates a rule about the tools of a server.
func translateServerRule(server, pattern string, allows bool) ruleText {
	id, tool, _ := strings.Cut(server, "__")
	if !isName(id) || strings.ContainsAny(id+tool, "() ,=") || pattern != "" {
		return ruleText{none: "raddle cannot write this rule: see raddle help permissions"}
	}
	if tool == "" || tool == "*" {
		if allows {
			return ruleText{rules: []string{"mcp__" + id + "__*", "mcp_invoke_" + id}}
		}
		return ruleText{rules: []string{"mcp__" + id + "__*", "mcp_*_" + id}}
	}
	return ruleText{rules: []string{"mcp__" + id + "__" + tool, "mcp_invoke_" + id + "(tool=" + tool + ")"}}
}
