package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"raddle.dev/server"
	"raddle.dev/server/mcp"
)

func newMCPCommand(env *environment) *cobra.Command {
	return newCommand(env, &noOptions{}, runMCP, &cobra.Command{
		Use:   "mcp",
		Short: "Offer the agents as tools of an MCP server, over stdin and stdout",
		Long: `Speaks the Model Context Protocol with the program that starts it: each agent of the agents directory is a tool. A call starts a run,
and cancelling the call cancels the run. Questions of a run are asked through the client if it can do that; otherwise the
result of the call names them, and the tool raddle_answer continues the run. A call that needs permission can be
allowed once, never for longer. Runs that still work when the client ends are saved: see raddle runs ls.`,
		Example: `  {"mcpServers": {"raddle": {"command": "raddle", "args": ["mcp"]}}}    in the configuration of a client`,
		Args:    checkArgCount(0, 0, ""),
	})
}

func runMCP(ctx context.Context, env *environment, _ noOptions, _ []string) error {
	return serveStdio(ctx, env, func(ctx context.Context, s *server.Service, in io.ReadCloser, out io.WriteCloser) error {
		return mcp.Serve(ctx, s, in, out, env.devLog)
	})
}
