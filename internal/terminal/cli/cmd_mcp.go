package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/mcpsetup"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// mcpOptions are the flags of the commands that change a list of MCP servers.
type mcpOptions struct {
	project      bool
	kind         string
	env, headers []string
}

// chooseFile returns the file to change.
func (o mcpOptions) chooseFile(p *app.Process) string {
	if o.project {
		return filepath.Join(p.Dirs.Work, toolbox.ProjectServersFile)
	}
	return p.Tools.UserServersFile()
}

// newMCPServerCommands returns the commands about servers that raddle uses.
func newMCPServerCommands(op *opener) []*cobra.Command {
	var adds, removes mcpOptions
	add := newCommand(op, &adds, runMCPAdd, &cobra.Command{
		Use: "add NAME ADDRESS|COMMAND [ARG]...", Short: "Add an MCP server that agents can use", Args: checkArgCount(2, -1, "the name of the server, and its address or its command"),
		Example: "  raddle mcp add docs https://docs.example.org/mcp\n  raddle mcp add files --env ROOT=. -- npx -y @modelcontextprotocol/server-filesystem .",
	})
	add.Flags().BoolVar(&adds.project, "project", false, "write it into .mcp.json of this directory, for everyone who works in it")
	add.Flags().StringVar(&adds.kind, "type", "", "how an address is spoken to, `TYPE`: http or sse")
	add.Flags().StringArrayVar(&adds.env, "env", nil, "a variable of the command, `NAME=VALUE`")
	add.Flags().StringArrayVar(&adds.headers, "header", nil, "a header of every request, `NAME: VALUE`")
	rm := newCommand(op, &removes, runMCPRm, &cobra.Command{Use: "rm NAME", Short: "Remove an MCP server", Args: checkArgCount(1, 1, "the name of the server"), Example: "  raddle mcp rm docs"})
	rm.Flags().BoolVar(&removes.project, "project", false, "remove it from .mcp.json of this directory")
	return []*cobra.Command{add, newOutputCommand(op, "write it as `FORMAT`: text or json", runMCPLs, &cobra.Command{Use: "ls", Short: "List the MCP servers", Args: checkArgCount(0, 0, ""), Example: "  raddle mcp ls"}), rm,
		newCommand(op, &noOptions{}, runMCPTest, &cobra.Command{Use: "test NAME", Short: "Start an MCP server and list its tools", Args: checkArgCount(1, 1, "the name of the server"), Example: "  raddle mcp test docs"}),
		newCommand(op, &noOptions{}, runMCPLogin, &cobra.Command{Use: "login NAME", Short: "Log in to an MCP server on the network, in the browser", Args: checkArgCount(1, 1, "the name of the server"), Example: "  raddle mcp login docs"}),
		newCommand(op, &noOptions{}, runMCPLogout, &cobra.Command{Use: "logout NAME", Short: "Remove the stored login to an MCP server", Args: checkArgCount(1, 1, "the name of the server"), Example: "  raddle mcp logout docs"})}
}

func runMCPLogin(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	return ending.EndInterrupted(newGuide(con, p).LogInServer(ctx, args[0]))
}

func runMCPLogout(_ context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	return newGuide(con, p).LogOutServer(args[0])
}

func runMCPAdd(_ context.Context, con *console.Console, p *app.Process, opts mcpOptions, args []string) error {
	vars, err := mcpsetup.ParsePairs(opts.env, "=")
	if err != nil {
		return err
	}
	headers, err := mcpsetup.ParsePairs(opts.headers, ":")
	if err != nil {
		return err
	}
	path := opts.chooseFile(p)
	if err := mcpsetup.AddServer(path, args[0], mcpsetup.Entry{Kind: opts.kind, Target: args[1:], Env: vars, Headers: headers, Shared: opts.project}); err != nil {
		return err
	}
	con.PrintNote("%s %s has the server %s. Try it: raddle mcp test %[3]s", con.Screen.Paint(term.Green, "✓"), p.Dirs.ShortPath(path), args[0])
	return nil
}

func runMCPRm(_ context.Context, con *console.Console, p *app.Process, opts mcpOptions, args []string) error {
	path := opts.chooseFile(p)
	there, err := mcpsetup.RemoveServer(path, args[0])
	if err == nil && !there {
		err = ending.BadUsage("see: raddle mcp ls", "%s has no server %q", p.Dirs.ShortPath(path), args[0])
	}
	return err
}

func runMCPLs(_ context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
	list, err := p.Tools.ListServers()
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, list, func() string { return mcpsetup.DescribeServers(list, p.Dirs.ShortPath) })
}

func runMCPTest(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	tools, left, err := p.Tools.TryServer(ctx, args[0])
	for _, problem := range left {
		con.PrintWarning(term.CleanText(problem.Error()))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(con.Out, term.CleanText(strings.TrimSpace(mcpsetup.DescribeTools(args[0], tools)))+"\n")
	return err
}
