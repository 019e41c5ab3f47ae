package builtin

import (
	"context"
	"slices"
	"strings"

	"raddle.dev/tool"
)

// groups are names that stand for several tools, or for a tool with another name, in the list of
// tools of an agent.
var groups = map[string][]string{
	"command": {"command_input", "command_output", "command_start", "command_stop", "execute_command"},
	"fs":      {"apply_patch", "fs_cat", "fs_edit", "fs_glob", "fs_grep", "fs_ls", "fs_mkdir", "fs_patch", "fs_read", "fs_rm", "fs_write"},
	"memory":  {"memory__forget", "memory__save", "memory__search"},
	"python":  {"execute_py_code"},
}

// LookupGroup returns the tools that a name means: those of a group such as "fs", or the one tool that Lookup returns.
// It returns nil if there is no such name. Of the tools of a group that change files, a model may be offered only the
// one whose form it knows; a tool that is named alone has no form.
func LookupGroup(name string, h Host) []tool.Tool {
	if t, ok := Lookup(name, h); ok {
		return []tool.Tool{t}
	}
	var list []tool.Tool
	for _, member := range groups[name] {
		if t, ok := Lookup(member, h); ok {
			switch member { // the values of llm.Form
			case "fs_edit":
				t.Form = "replace"
			case "fs_patch":
				t.Form = "diff"
			case "apply_patch":
				t.Form = "patch"
			}
			list = append(list, t)
		}
	}
	return list
}

// webSearchNames are names of a search of the web that do not say which service is used.
var webSearchNames = []string{"web_search", "web_search_loki", "web_search_coyote", "web_search_aichat"}

// webSearch returns the definition of a search of the web with one of these names. It uses the
// service whose key is set, or Tavily if no key is set.
func webSearch(name string, h Host) definition {
	chosen := "web_search_tavily"
	if h.envValue("TAVILY_API_KEY") == "" && h.envValue("PERPLEXITY_API_KEY") != "" {
		chosen = "web_search_perplexity"
	}
	d := definitions[slices.IndexFunc(definitions, func(d definition) bool { return d.name == chosen })]
	d.name = name
	d.about = "Search the web, and get an answer."
	if h.envValue("TAVILY_API_KEY") == "" && h.envValue("PERPLEXITY_API_KEY") == "" {
		d.run = func(context.Context, Host, arguments) (tool.Result, error) {
			return tool.FailedResult("%s needs a key: set TAVILY_API_KEY or PERPLEXITY_API_KEY", name), nil
		}
	}
	return d
}

// trimEnding removes the ending of a tool's file from a name, and writes the rest as tools are named.
func trimEnding(name string) string {
	for _, ending := range endings {
		if stem, ok := strings.CutSuffix(name, ending); ok {
			name = stem
			break
		}
	}
	return strings.ReplaceAll(name, "-", "_")
}
