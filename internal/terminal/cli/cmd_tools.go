package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/toolbox"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/prompting"
)

func newToolsCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{
		Use:   "tools COMMAND",
		Short: "List, show, try and check tools",
		Long: `Without an AGENT the tools are those that every agent may name: what comes with raddle, and the scripts in
the directory of functions. With one they are the agent's.`,
		Example: `  raddle tools ls
  raddle tools ls explore
  raddle tools show fs_grep
  raddle tools call explore search_content '{"pattern": "TODO"}'
  raddle tools call fs_write - <arguments.json`,
	}, newToolsLsCommand(op), newToolsShowCommand(op), newToolsCallCommand(op), newToolsBuildCommand(op), newToolsExecCommand(op))
}

func newToolsLsCommand(op *opener) *cobra.Command {
	var opts toolsLsOptions
	cmd := newCommand(op, &opts, runToolsLs, &cobra.Command{
		Use:               "ls [AGENT]",
		Short:             "List tools",
		Example:           "  raddle tools ls\n  raddle tools ls explore --mode ask\n  raddle tools ls explore --output json",
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: completeAgents(op),
	})
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	addModeFlag(cmd, &opts.mode, "say what asks in the permission mode `MODE`: plan, ask, edits or box (default edits)")
	return cmd
}

// toolsLsOptions are the flags of "tools ls".
type toolsLsOptions struct{ output, mode string }

func runToolsLs(_ context.Context, con *console.Console, p *app.Process, opts toolsLsOptions, args []string) error {
	mode, err := parseMode(opts.mode)
	if err != nil {
		return err
	}
	l, err := listToolsIn(p, args, app.LoadRequest{Mode: mode.Mode()})
	if err != nil {
		return err
	}
	if opts.output == console.FormatText {
		defer printProblems(con, l)
	}
	return con.PrintResult(opts.output, l, func() string { return toolsText(l) })
}

// listTools lists the tools of the agent that args name, or those of no agent, with variables of the
// agent.
func listTools(p *app.Process, args []string, variables map[string]string) (*toolbox.ToolList, error) {
	return listToolsIn(p, args, app.LoadRequest{Variables: variables})
}

// listToolsIn is listTools with everything that a request says.
func listToolsIn(p *app.Process, args []string, l app.LoadRequest) (*toolbox.ToolList, error) {
	if len(args) > 0 {
		l.Agent = args[0]
	}
	return p.ListTools(l)
}

func printProblems(con *console.Console, l *toolbox.ToolList) {
	for _, problem := range l.Problems {
		con.PrintWarning(problem)
	}
}

func toolsText(l *toolbox.ToolList) string {
	rows := slices.Clone(l.Tools)
	for _, s := range l.Servers {
		rows = append(rows, toolbox.ToolInfo{Name: "mcp_*_" + s, From: "MCP server", Description: "its tools are known once it runs"})
	}
	return term.FormatRows(rows,
		term.NewColumn("TOOL", func(t toolbox.ToolInfo) string { return t.Name }),
		term.NewColumn("FROM", func(t toolbox.ToolInfo) string { return t.From }),
		term.NewColumn("ASKS", func(t toolbox.ToolInfo) string { return string(t.Asks) }),
		term.NewColumn("WHAT IT DOES", func(t toolbox.ToolInfo) string { return firstLine(t.Description) }),
	)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return term.CleanText(s)
}

// splitAgentAndName splits "[AGENT] NAME".
func splitAgentAndName(args []string) (agent []string, name string) {
	return args[:len(args)-1], args[len(args)-1]
}

func newToolsShowCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write it as `FORMAT`: text or json", runToolsShow, &cobra.Command{
		Use:     "show [AGENT] NAME",
		Short:   "Show what models see of a tool",
		Long:    "A tool of an MCP server starts the server.",
		Example: "  raddle tools show fs_grep\n  raddle tools show explore search_content",
		Args:    checkArgCount(1, 2, "the name of a tool"),
	})
}

func runToolsShow(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	agent, name := splitAgentAndName(args)
	l, err := listTools(p, agent, nil)
	if err != nil {
		return err
	}
	ctx, stop := signalContext(ctx)
	defer stop()
	t, err := l.DescribeTool(ctx, name)
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, t, func() string {
		var schema bytes.Buffer
		if json.Indent(&schema, t.Schema, "", "  ") != nil {
			schema.Reset()
			schema.Write(t.Schema)
		}
		text := term.NewFields(10)
		text.AddField("tool", t.Name)
		text.AddField("from", t.From)
		text.AddField("effect", cmp.Or(t.Effect, "not declared"))
		text.AddField("asks", string(t.Asks))
		text.AddField("about", term.CleanText(strings.TrimSpace(t.Description)))
		text.AddField("arguments", schema.String())
		return text.String()
	})
}

// signalContext returns a context that ends with the signals that end a command.
func signalContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// toolsCallOptions are the flags of "tools call".
type toolsCallOptions struct{ answers, variables []string }

func newToolsCallCommand(op *opener) *cobra.Command {
	var opts toolsCallOptions
	cmd := newCommand(op, &opts, runToolsCall, &cobra.Command{
		Use:   "call [AGENT] NAME [JSON|-|ARGUMENT=VALUE...]",
		Short: "Call a tool and print what a model would read",
		Long: `JSON is an object with the arguments; for - it is read from standard input. In ARGUMENT=VALUE a value that is JSON, such as 3 or true, counts
as such, and any other one is a text. raddle runs the tool without asking for permission, and records
nothing. The exit code is 1 if the call fails.`,
		Example: `  raddle tools call get_current_time
  raddle tools call fs_ls path=.
  raddle tools call explore search_content '{"pattern": "TODO"}'`,
		Args: checkArgCount(1, -1, "the name of a tool"),
	})
	cmd.Flags().StringArrayVar(&opts.answers, "answer", nil, "answer a question of the tool: `TEXT` (repeatable)")
	cmd.Flags().StringArrayVar(&opts.variables, "agent-variable", nil, "set a variable of the agent: `NAME VALUE` (repeatable)")
	return cmd
}

func runToolsCall(ctx context.Context, con *console.Console, p *app.Process, opts toolsCallOptions, args []string) error {
	variables, err := parseVariables(opts.variables)
	if err != nil {
		return err
	}
	words, arguments, err := takeArguments(con, args)
	if err != nil {
		return err
	}
	agent, name := splitAgentAndName(words)
	call := runs.ToolCall{Args: arguments, Tool: name}
	l, err := listTools(p, agent, variables)
	if err != nil {
		return err
	}
	given, err := question.ParseAnswers(opts.answers, question.Names{})
	if err != nil {
		return err
	}
	ctx, stop := signalContext(ctx)
	defer stop()
	ask := &asker{console: con, given: given, prompter: con.NewPrompter(), stopped: func() bool { return ctx.Err() != nil }}
	text, failed, err := l.CallTool(ctx, call, ask.answerQuestions)
	switch {
	case ctx.Err() != nil:
		return ending.Silent{Code: ending.Interrupted}
	case err != nil:
		return err
	}
	con.Out.PrintText(text)
	if failed {
		return ending.Silent{Code: ending.Failed}
	}
	return nil
}

// argumentWord matches an argument of a tool as a word of the command line.
var argumentWord = pattern.CompileLater(`^([A-Za-z_][A-Za-z0-9_.-]*)=`)

// takeArguments returns the words that name an agent and a tool, and the arguments after them as a JSON object.
func takeArguments(con *console.Console, args []string) (words []string, arguments json.RawMessage, err error) {
	object := map[string]json.RawMessage{}
	for len(args) > 1 && argumentWord().MatchString(args[len(args)-1]) {
		name, value, _ := strings.Cut(args[len(args)-1], "=")
		if args = args[:len(args)-1]; object[name] == nil { // the last one counts
			object[name] = json.RawMessage(value)
			if !json.Valid(object[name]) {
				object[name], _ = json.Marshal(value)
			}
		}
	}
	const most = 2
	if len(object) > 0 {
		if len(args) > most {
			return nil, nil, ending.BadUsage("write the agent, the tool, and then ARGUMENT=VALUE", "unexpected argument %q", args[most])
		}
		arguments, err = json.Marshal(object)
		return args, arguments, err
	}
	last := strings.TrimSpace(args[len(args)-1])
	if len(args) == 1 || len(args) == most && last != "-" && !strings.HasPrefix(last, "{") {
		return args, json.RawMessage("{}"), nil
	}
	if args = args[:len(args)-1]; len(args) > most {
		return nil, nil, ending.BadUsage("write the agent, the tool, and its arguments as one word", "unexpected argument %q", args[most])
	}
	if last == "-" {
		if last, err = prompting.ReadText(con.In); err != nil {
			return nil, nil, err
		}
	}
	if err := json.Unmarshal([]byte(last), &object); err != nil {
		return nil, nil, ending.BadUsage(`write them like '{"path": "README.md"}' or path=README.md`, "the arguments must be a JSON object: %v", err)
	}
	return args, json.RawMessage(last), nil
}

func newToolsBuildCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runToolsBuild, &cobra.Command{
		Use:   "build [AGENT]",
		Short: "Check tools, and make their scripts commands",
		Long: `This command reads the declarations of the tools in scripts and reports errors in them, with exit code 3. For
each script it writes a runner to the cache directory and prints its path: a program with the functions of the script as
commands. Scripts themselves stay as they are, and agents need no runner.`,
		Example: `  raddle tools build
  raddle tools build explore`,
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: completeAgents(op),
	})
}

func runToolsBuild(_ context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	l, err := listTools(p, args, nil)
	if err != nil {
		return err
	}
	printProblems(con, l)
	scripts := 0
	for _, t := range l.Tools {
		if t.From == "script" {
			scripts++
		}
	}
	runners, err := l.BuildRunners()
	if err != nil {
		return err
	}
	con.PrintNote("raddle: %s of %s can be called", wording.FormatCount(scripts, "tool"), wording.FormatCount(len(l.Files)+len(l.Unused), "script"))
	for _, path := range runners {
		con.Out.PrintExact(path)
	}
	if len(l.Problems) > 0 {
		return ending.Silent{Code: ending.Invalid}
	}
	return nil
}

// newToolsExecCommand returns what runners call.
func newToolsExecCommand(op *opener) *cobra.Command {
	return newCommand(op, &noOptions{}, runToolsExec, &cobra.Command{
		Use:    "exec -- DIR FILE [WORDS...]",
		Short:  "Run a function of a script as a command",
		Hidden: true,
		Args:   checkArgCount(2, -1, "the script"),
	})
}

func runToolsExec(ctx context.Context, con *console.Console, p *app.Process, _ noOptions, args []string) error {
	var agent []string
	if args[0] != "" {
		agent = args[:1]
	}
	l, err := listTools(p, agent, nil)
	if err != nil {
		return err
	}
	ctx, stop := signalContext(ctx)
	defer stop()
	code, err := l.ExecTool(ctx, args[1], args[2:], con.Out, con.Screen)
	switch {
	case ctx.Err() != nil:
		return ending.Silent{Code: ending.Interrupted}
	case err != nil:
		return err
	}
	return ending.ExitSilently(code)
}
