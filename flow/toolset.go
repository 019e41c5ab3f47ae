package flow

import (
	"context"
	"slices"

	"raddle.dev/tool"
)

// Toolbox opens the tools that agents may call.
type Toolbox interface {
	// Open finds the tools of an agent without running any. What cannot be had
	// is among the problems of the set, and the rest is of use; an error is only
	// what leaves nothing.
	Open(n ToolNeed) (*Toolset, error)
}

// ToolNeed is what an agent's file asks for.
type ToolNeed struct {
	Agent     string            // the name of its directory
	Dir       string            // absolute; its tools script is there
	Global    []string          // files of global tools, with or without extension
	Servers   []string          // ids of MCP servers; a sole "all" means every one
	Variables map[string]string // the agent's, for the environment of its tools
}

// Toolset is what an agent may call. It is safe for concurrent use.
type Toolset struct {
	Tools    []tool.Tool // of the global files, then of the agent's own script, in the order of their declaration
	Servers  []string    // ids of the MCP servers that the agent may use
	Problems []string    // what is missing, each with what to do about it
	Scripts  []string    // paths of the files that the tools come from
	Unused   []string    // paths of files of tools in a language that is not run
	// Serve lists the functions by which a model uses servers. It starts those
	// that do not run yet, all at once. What cannot be had is told once and left
	// out. nil: there are no servers.
	Serve func(ctx context.Context, ids []string) ([]tool.Tool, []error)
	// Instructions runs the script's own function that makes the agent's
	// instructions; nil: there is no script.
	Instructions func(ctx context.Context) (string, error)
}

// names lists the tools by name, sorted.
func (s *Toolset) names() []string {
	names := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i] = t.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unique is the tools, each name once: the agent's own, which come later, take
// the place of global ones.
func (s *Toolset) unique() []tool.Tool {
	var list []tool.Tool
	for _, t := range s.Tools {
		if i := slices.IndexFunc(list, func(o tool.Tool) bool { return o.Name == t.Name }); i >= 0 {
			list[i] = t
			continue
		}
		list = append(list, t)
	}
	return list
}

// serverPrefix begins the name of a server where tools are listed.
const serverPrefix = "mcp:"
