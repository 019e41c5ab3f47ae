package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/internal/app"
	"raddle.dev/internal/runs"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

func toolsCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tools COMMAND",
		Short: "List, show, try and check tools",
		Long: `Without an AGENT the tools are those that every agent may name: what comes with raddle, and the scripts in
the directory of functions. With one they are the agent's.`,
		Example: `  raddle tools ls
  raddle tools ls examples/assistant
  raddle tools show fs_grep
  raddle tools call examples/assistant quote '{"items": ["R-210"]}'
  raddle tools call fs_write - <arguments.json`,
		Args: env.noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(toolsLsCommand(env), toolsShowCommand(env), toolsCallCommand(env), toolsBuildCommand(env), toolsExecCommand(env))
	return cmd
}

// outputFlag gives a command --output text or json.
func outputFlag(cmd *cobra.Command, output *string) *cobra.Command {
	cmd.Flags().StringVar(output, "output", formatText, "write it as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
}

func toolsLsCommand(env *environment) *cobra.Command {
	var output string
	return outputFlag(&cobra.Command{
		Use:               "ls [AGENT]",
		Short:             "List tools",
		Example:           "  raddle tools ls\n  raddle tools ls examples/assistant --output json",
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: env.completeAgents,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := toolList(env, output, args, nil)
			if err != nil {
				return err
			}
			if output == formatJSON {
				return env.printJSON(l)
			}
			env.out.PrintText(toolsText(l))
			for _, problem := range l.Problems {
				env.err.PrintLine("raddle: " + env.err.Paint(term.Yellow, "warning:") + " " + problem)
			}
			return nil
		},
	}, &output)
}

// toolList lists the tools of the agent that args name, or those of no agent, with variables of the
// agent.
func toolList(env *environment, output string, args []string, variables map[string]string) (*app.ToolList, error) {
	if err := checkFormat(output, formatText, formatJSON); err != nil {
		return nil, err
	}
	p, err := env.openProcess()
	if err != nil {
		return nil, err
	}
	l := app.LoadRequest{Variables: variables}
	if len(args) > 0 {
		l.Agent = args[0]
	}
	return p.ListTools(l)
}

func toolsText(l *app.ToolList) string {
	table := term.NewTable("TOOL", "FROM", "ASKS", "WHAT IT DOES")
	for _, t := range l.Tools {
		table.AddRow(t.Name, t.From, string(t.Asks), firstLine(t.Description))
	}
	for _, s := range l.Servers {
		table.AddRow("mcp_*_"+s, "MCP server", "", "its tools are known once it runs")
	}
	return table.Format(0)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return plainText(s)
}

// splitAgentAndName splits "[AGENT] NAME".
func splitAgentAndName(args []string) (agent []string, name string) {
	return args[:len(args)-1], args[len(args)-1]
}

func toolsShowCommand(env *environment) *cobra.Command {
	var output string
	return outputFlag(&cobra.Command{
		Use:     "show [AGENT] NAME",
		Short:   "Show what models see of a tool",
		Long:    "A tool of an MCP server starts the server.",
		Example: "  raddle tools show fs_grep\n  raddle tools show examples/assistant quote",
		Args:    checkArgCount(1, 2, "the name of a tool"),
		RunE: func(_ *cobra.Command, args []string) error {
			agent, name := splitAgentAndName(args)
			l, err := toolList(env, output, agent, nil)
			if err != nil {
				return err
			}
			ctx, stop := signalContext()
			defer stop()
			t, err := env.process.DescribeTool(ctx, l, name)
			if err != nil {
				return err
			}
			if output == formatJSON {
				return env.printJSON(t)
			}
			var schema bytes.Buffer
			if json.Indent(&schema, t.Schema, "           ", "  ") != nil {
				schema.Reset()
				schema.Write(t.Schema)
			}
			env.out.PrintText(fmt.Sprintf("%-10s %s\n%-10s %s\n%-10s %s\n%-10s %s\n%-10s %s\n%-10s %s\n", "tool", t.Name, "from", t.From, "effect", orElse(t.Effect, "not declared"),
				"asks", t.Asks, "about", strings.ReplaceAll(plainText(strings.TrimSpace(t.Description)), "\n", "\n           "), "arguments", schema.String()))
			return nil
		},
	}, &output)
}

// signalContext returns a context that ends with the signals that end a command.
func signalContext() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

func toolsCallCommand(env *environment) *cobra.Command {
	var answers, variables []string
	cmd := &cobra.Command{
		Use:   "call [AGENT] NAME [JSON|-]",
		Short: "Call a tool and print what a model would read",
		Long: `JSON is an object with the arguments; for - it is read from standard input. raddle runs the tool without asking for permission, and records
nothing. The exit code is 1 if the call fails.`,
		Example: `  raddle tools call get_current_time
  raddle tools call examples/assistant quote '{"items": ["R-210"]}'`,
		Args: checkArgCount(1, 3, "the name of a tool"),
		RunE: func(_ *cobra.Command, args []string) error { return callTool(env, args, answers, variables) },
	}
	cmd.Flags().StringArrayVar(&answers, "answer", nil, "answer a question of the tool: `TEXT` (repeatable)")
	cmd.Flags().StringArrayVar(&variables, "agent-variable", nil, "set a variable of the agent: `NAME VALUE` (repeatable)")
	return cmd
}

func callTool(env *environment, args, answers, settings []string) error {
	variables, err := parseVariables(settings)
	if err != nil {
		return err
	}
	call := runs.ToolCall{Args: json.RawMessage("{}")}
	if last := strings.TrimSpace(args[len(args)-1]); len(args) > 1 && (len(args) == 3 || last == "-" || strings.HasPrefix(last, "{")) {
		if args = args[:len(args)-1]; last == "-" {
			text, err := readAll(env.in)
			if err != nil {
				return err
			}
			last = text
		}
		call.Args = json.RawMessage(last)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(call.Args, &object); err != nil {
		return badUsage(`write them like '{"path": "README.md"}'`, "the arguments must be a JSON object: %v", err)
	}
	agent, name := splitAgentAndName(args)
	call.Tool = name
	l, err := toolList(env, formatText, agent, variables)
	if err != nil {
		return err
	}
	given, err := parseAnswers(answers, questionNames{})
	if err != nil {
		return err
	}
	ctx, stop := signalContext()
	defer stop()
	ask := &asker{env: env, given: given, prompter: env.newPrompter(), stopped: func() bool { return ctx.Err() != nil }}
	text, failed, err := env.process.CallTool(ctx, l, call, ask.answerQuestions)
	switch {
	case ctx.Err() != nil:
		return silentExit{exitInterrupted}
	case err != nil:
		return err
	}
	env.out.PrintText(text)
	if failed {
		return silentExit{exitFailed}
	}
	return nil
}

func toolsBuildCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "build [AGENT]",
		Short: "Check tools, and make their scripts commands",
		Long: `This command reads the declarations of the tools in scripts and reports errors in them, with exit code 3. For
each script it writes a runner to the cache directory and prints its path: a program with the functions of the script as
commands. Scripts themselves stay as they are, and agents need no runner.`,
		Example: `  raddle tools build
  raddle tools build examples/assistant`,
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: env.completeAgents,
		RunE: func(_ *cobra.Command, args []string) error {
			l, err := toolList(env, formatText, args, nil)
			if err != nil {
				return err
			}
			for _, problem := range l.Problems {
				env.err.PrintLine("raddle: " + env.err.Paint(term.Yellow, "warning:") + " " + problem)
			}
			scripts := 0
			for _, t := range l.Tools {
				if t.From == "script" {
					scripts++
				}
			}
			runners, err := env.process.BuildRunners(l)
			if err != nil {
				return err
			}
			if !env.quiet {
				env.err.PrintLine(fmt.Sprintf("raddle: %s of %s can be called", wording.FormatCount(scripts, "tool"), wording.FormatCount(len(l.Files)+len(l.Unused), "script")))
			}
			for _, path := range runners {
				env.out.PrintText(path)
			}
			if len(l.Problems) > 0 {
				return silentExit{exitInvalid}
			}
			return nil
		},
	}
}

// toolsExecCommand is what runners call.
func toolsExecCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:    "exec -- DIR FILE [WORDS...]",
		Short:  "Run a function of a script as a command",
		Hidden: true,
		Args:   checkArgCount(2, -1, "the script"),
		RunE: func(_ *cobra.Command, args []string) error {
			var agent []string
			if args[0] != "" {
				agent = args[:1]
			}
			l, err := toolList(env, formatText, agent, nil)
			if err != nil {
				return err
			}
			ctx, stop := signalContext()
			defer stop()
			code, err := env.process.ExecTool(ctx, l, args[1], args[2:], env.out, env.err)
			switch {
			case ctx.Err() != nil:
				return silentExit{exitInterrupted}
			case err != nil:
				return err
			case code != 0:
				return silentExit{code}
			}
			return nil
		},
	}
}
