package mcpsetup

import (
	"fmt"
	"strings"

	"raddle.dev/internal/process/toolbox"
	"raddle.dev/tool"
)

// DescribeServers returns a list of servers as text. short shortens paths.
func DescribeServers(list []toolbox.ServerInfo, short func(path string) string) string {
	if len(list) == 0 {
		return "There are no MCP servers. To add one: raddle mcp add NAME ADDRESS\n"
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%s  %s  %s  (%s)\n", s.ID, s.Transport, s.Target, short(s.File))
		if s.Note != "" {
			fmt.Fprintf(&b, "    %s\n", s.Note)
		}
	}
	return b.String()
}

// DescribeTools returns the tools of a server as text.
func DescribeTools(id string, tools []tool.Tool) string {
	var own []string
	for _, t := range tools {
		if name, ok := strings.CutPrefix(t.Name, "mcp__"); ok {
			_, name, _ = strings.Cut(name, "__")
			first, _, _ := strings.Cut(t.Description, "\n")
			own = append(own, strings.TrimRight("  "+name+"  "+first, " "))
		}
	}
	if len(own) == 0 {
		return fmt.Sprintf("%s answers. Its tools are found with mcp_search_%[1]s.\n", id)
	}
	return fmt.Sprintf("%s answers. Its tools:\n%s\n", id, strings.Join(own, "\n"))
}
