package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/server"
	"raddle.dev/server/acp"
	"raddle.dev/server/mcp"
)

// serveStdio lets a program use the runs of this process over its stdin and stdout, which carry nothing but the
// protocol. It returns when the program closes stdin, or with a signal, and then saves every run that still works.
func serveStdio(ctx context.Context, con *console.Console, p *app.Process, serve func(ctx context.Context, s *server.Service, in io.ReadCloser, out io.WriteCloser) error) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	s, err := server.New(p, server.Options{Log: p.Log})
	if err != nil {
		return err
	}
	err = serve(ctx, s, con.In, stdoutOnly{con.Out})
	stop() // the next signal ends the process
	ending, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return errors.Join(err, s.Close(ending))
}

// stdoutOnly is the stdout of the process for a protocol. Closing it does nothing: the process does that.
type stdoutOnly struct{ io.Writer }

// Close does nothing.
func (stdoutOnly) Close() error { return nil }

// editorAgent is the agent that editors talk with unless an argument names another one.
const editorAgent = "assistant"

func newACPCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runACP, &cobra.Command{
		Use:   "acp [AGENT]",
		Short: "Talk with an agent in an editor that speaks ACP, over stdin and stdout",
		Long: `Speaks the Agent Client Protocol with the editor that starts it. A session of the editor is a session of the agent, which
raddle chat can continue. The editor shows replies, calls, changes of files and the todo list as they come, and asks
before calls that need permission; it can allow a call once. Other questions end the turn with their text, and
the next message is the answer. Without AGENT, the assistant answers.`,
		Example: `  {"agent_servers": {"raddle": {"command": "raddle", "args": ["acp"]}}}    in the configuration of an editor
  raddle acp coder`,
		Args:              checkArgCount(0, 1, "the agent"),
		ValidArgsFunction: completeAgents(op),
	})
}

func runACP(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	agent := firstOrEmpty(append(args, editorAgent))
	if _, err := p.FindAgent(agent); err != nil {
		return err
	}
	if app.IsPath(agent) {
		agent = p.Dirs.AbsPath(agent) // sessions have other working directories
	}
	ctx, stop := signalContext(ctx)
	defer stop()
	opened := server.Directories{Log: p.Log} // a session of the editor has a directory of its own
	err := acp.Serve(ctx, opened.OpenService, agent, con.In, con.Out)
	stop() // the next signal ends the process
	ending, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return errors.Join(err, opened.CloseServices(ending))
}

func newMCPCommand(op *opener) *cobra.Command {
	cmd := newCommand(op, &noOptions{}, runMCP, &cobra.Command{
		Use:   "mcp",
		Short: "Offer the agents as tools of an MCP server, over stdin and stdout; add, list, try and remove MCP servers",
		Long: `Without a command, it speaks the Model Context Protocol with the program that starts it: each agent of the agents directory is a tool. A call starts a run,
and cancelling the call cancels the run. Questions of a run are asked through the client if it can do that; otherwise the
result of the call names them, and the tool raddle_answer continues the run. A call that needs permission can be
allowed once, never for longer. Runs that still work when the client ends are saved: see raddle runs ls.`,
		Example: `  {"mcpServers": {"raddle": {"command": "raddle", "args": ["mcp"]}}}    in the configuration of a client
  raddle mcp add docs https://docs.example.org/mcp`,
		Args: refuseWords(op),
	})
	cmd.AddCommand(newMCPServerCommands(op)...)
	return cmd
}

func runMCP(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, _ []string) error {
	return serveStdio(ctx, con, p, func(ctx context.Context, s *server.Service, in io.ReadCloser, out io.WriteCloser) error {
		return mcp.Serve(ctx, s, in, out, p.Log)
	})
}
