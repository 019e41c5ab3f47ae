package flow

import (
	"context"
	"io"
	"slices"

	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/tool"
)

// Toolbox opens the tools that agents may call.
type Toolbox interface {
	// Open finds the tools of an agent without running any. Missing tools are
	// listed in the problems of the set, and the other tools can be used. Open
	// fails only if no tool can be used.
	Open(n ToolNeed) (*Toolset, error)
}

// ToolNeed says which tools an agent's file needs.
type ToolNeed struct {
	Agent     string            // the name of its directory
	Dir       string            // absolute; contains its tools script
	Global    []string          // files of global tools, with or without extension
	Servers   []string          // ids of MCP servers; a single "all" means every server
	Variables map[string]string // the agent's, for the environment of its tools

	SkillTools   []string // files of global tools that the agent's skills bring
	SkillServers []string // ids of MCP servers that they bring
}

// Toolset contains what an agent may call. It must be safe for concurrent use.
type Toolset struct {
	Tools    []tool.Tool // of the global files, then of the agent's own script, in the order of their declaration
	Servers  []string    // ids of the MCP servers that the agent may use
	Problems []ToolProblem
	Scripts  []string // paths of the files that contain the tools
	Unused   []string // paths of files of tools in an unsupported language
	// SkillTools are the tools that skills bring, by the names in ToolNeed.SkillTools; a name without tools is missing.
	// SkillServers are the ids of the servers of ToolNeed.SkillServers that exist. SkillProblems are about either.
	SkillTools    map[string][]tool.Tool
	SkillServers  []string
	SkillProblems []ToolProblem
	// Serve returns the tools with which a model uses servers. It starts the
	// servers that do not run yet, concurrently. A server that cannot be used
	// is reported once and left out. nil: there are no servers.
	Serve func(ctx context.Context, ids []string) ([]tool.Tool, []error)
	// Start starts servers and returns which of them have their tools (true) and which cannot be used (false), for
	// which it returns the errors that were not returned before. It waits a moment for each server, and leaves out
	// those that are still starting. nil: Serve has to be called for all.
	Start func(ctx context.Context, ids []string) (settled map[string]bool, failed []error)
	// Starting returns what a model can call of a server that is still starting. It is set if Start is.
	Starting func(id string) []tool.Tool
	// Instructions runs the function of the script that returns the agent's
	// instructions; nil: there is no script.
	Instructions func(ctx context.Context) (string, error)
	// RunWords runs a function of one of Scripts as a command, with the words of a
	// command line. It returns the exit code; nil: there are no scripts.
	RunWords func(ctx context.Context, file string, words []string, stdout, stderr io.Writer) (code int, err error)
}

// A ToolProblem is something that is missing or wrong about an agent's tools.
type ToolProblem struct {
	Text   string         // what it is, and what to do about it
	Pos    strictyaml.Pos // in the file that causes it; the zero Pos: the agent's own file
	Tool   string         // the entry of the agent's global_tools that it is about
	Server string         // the entry of the agent's mcp_servers that it is about
	Hint   string         // what to do about it, if Text does not say so
}

// String returns the problem with its position.
func (p ToolProblem) String() string {
	text := p.Text
	if p.Hint != "" {
		text += " (" + p.Hint + ")"
	}
	if p.Pos.File == "" {
		return text
	}
	return p.Pos.String() + ": " + text
}

// toolNames returns the names of the tools, sorted.
func (s *Toolset) toolNames() []string {
	names := make([]string, len(s.Tools))
	for i, t := range s.Tools {
		names[i] = t.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// uniqueTools returns the tools, each name once: the agent's own, which come later,
// replace global ones.
func (s *Toolset) uniqueTools() []tool.Tool {
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

// serverPrefix starts the name of a server in lists of tools.
const serverPrefix = "mcp:"
