package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/progress"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/ragview"
)

func newRagCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rag",
		Short: "Build, search and remove the knowledge bases of agents",
		Long: `An agent with documents has a knowledge base for each of its rag nodes, or one of its own. A run builds what is missing
and updates what has changed; these commands do it without a run.`,
		Example: `  raddle examples copy handbook
  raddle rag build examples/handbook
  raddle rag search examples/handbook "How many days of leave are there?"`,
		Args: checkArgCount(0, 0, ""),
	}
	cmd.AddCommand(newRagBuildCommand(env), newRagStatusCommand(&env.opener), newRagSearchCommand(&env.opener), newRagEvalCommand(&env.opener), newRagRmCommand(&env.opener))
	return cmd
}

// ragBuildOptions are the flags of "rag build".
type ragBuildOptions struct{ rebuild bool }

func newRagBuildCommand(env *environment) *cobra.Command {
	var opts ragBuildOptions
	cmd := newCommand(&env.opener, &opts, func(ctx context.Context, _ *console.Console, _ *app.Process, opts ragBuildOptions, args []string) error {
		return runRagBuild(ctx, env.Console, env.process, &env.foreground, opts, args)
	}, &cobra.Command{
		Use: "build AGENT", Short: "Build what is missing, and update the rest",
		Long: `raddle reads a document again only if it has changed, and then embeds only its new parts and sends only these to the
extractor model. It continues a build that was stopped.

A knowledge base keeps the settings that it was built with. If the agent's file has other settings now, raddle reports it, and --rebuild
builds it again: the old one answers until the new one is complete, and no part is sent to the same model twice.`,
		Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: completeAgents(&env.opener),
	})
	cmd.Flags().BoolVar(&opts.rebuild, "rebuild", false, "rebuild those that were built with other settings")
	return cmd
}

func runRagBuild(ctx context.Context, con *console.Console, p *app.Process, fg *foreground, opts ragBuildOptions, args []string) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal does not wait
	err := p.Knowledge().BuildBases(ctx, app.KnowledgeBuild{Agent: args[0], Rebuild: opts.rebuild, Hooks: newUIHooks(ctx, con, p, fg)})
	if err != nil && ctx.Err() != nil {
		con.Screen.PrintLine("raddle: the build was stopped; the next build continues it")
		return ending.Silent{Code: ending.Interrupted}
	}
	return err
}

// addRetrievalHooks adds the functions that report builds and ask before one.
func addRetrievalHooks(ctx context.Context, con *console.Console, p *app.Process, s *app.UIHooks) {
	if !con.Quiet {
		s.Notify = func(line string) { con.Screen.PrintLine(term.CleanLine(line)) }
		if con.Screen.IsTerminal() {
			s.Progress = progress.NewBuildLine(con.Screen).ShowProgress
		}
	}
	if prompter := con.NewPrompter(); prompter != nil {
		s.Confirm = func(what string) (bool, error) { return newGuide(con, p).AskYesNo(ctx, what) }
		s.Ask = func(what, usual string) (string, error) {
			text, err := question.AskText(ctx, prompter, fmt.Sprintf("%s [%s] ", what, usual))
			if strings.TrimSpace(text) == "" {
				text = usual
			}
			return strings.TrimSpace(text), err
		}
	}
}

func newRagStatusCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write it as `FORMAT`: text or json", runRagStatus, &cobra.Command{
		Use: "status AGENT", Short: "Show the knowledge bases of an agent", Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: completeAgents(op),
	})
}

func runRagStatus(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	list, err := p.Knowledge().ListBases(ctx, args[0])
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, list, func() string {
		var lines []string
		for _, k := range list {
			lines = append(lines, knowledgeLine(p.Dirs.ShortPath, k))
		}
		return strings.Join(lines, "\n")
	})
}

// knowledgeLine describes a knowledge base, with a line for each setting that differs from how it was built.
func knowledgeLine(short func(string) string, k app.KnowledgeBase) string {
	if !k.Built {
		return fmt.Sprintf("%s: not built; documents: %s", k.ID, strings.Join(k.BaseFile.Documents, ", "))
	}
	line := fmt.Sprintf("%s: %d documents, %d chunks, model %s, %s", k.ID, k.Status.Documents, k.Chunks, k.Model, short(k.Store))
	if k.Model == "keyword" {
		line += " (searched only by words)"
	}
	if k.ExtractorModel != "" {
		line += fmt.Sprintf(", %d entities and %d relations by %s", k.Entities, k.Relations, k.ExtractorModel)
	}
	if !k.Places && k.BaseFile.Path != k.Store {
		line += ", without the places of passages (raddle rag build --rebuild AGENT)"
	}
	if k.Pending > 0 {
		line += fmt.Sprintf("; a build was stopped with %d documents ready", k.Pending)
	}
	for _, u := range k.Unread {
		line += "\n  could not be read: " + term.CleanLine(u.String())
	}
	for _, what := range k.Differs {
		line += "\n  in the agent's file, " + what + " (raddle rag build --rebuild AGENT)"
	}
	return line
}

func newRagSearchCommand(op *opener) *cobra.Command {
	var opts ragview.SearchOptions
	cmd := newCommand(op, &opts, runRagSearch, ragview.DescribeSearch(&opts))
	cmd.Args = checkArgCount(1, -1, "the knowledge base and the queries")
	cmd.ValidArgsFunction = completeAgents(op)
	addOutputFlag(cmd, &opts.Output, "write it as `FORMAT`: text or json")
	return cmd
}

func runRagSearch(ctx context.Context, con *console.Console, p *app.Process, opts ragview.SearchOptions, args []string) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	return opts.RunSearch(ctx, con, p, args)
}

func newRagEvalCommand(op *opener) *cobra.Command {
	var opts ragview.EvalOptions
	cmd := newCommand(op, &opts, runRagEval, ragview.DescribeEval(&opts))
	cmd.Args = checkArgCount(2, 2, "the knowledge base and the file of questions")
	cmd.ValidArgsFunction = completeAgents(op)
	addOutputFlag(cmd, &opts.Output, "write the result as `FORMAT`: text or json")
	return cmd
}

func runRagEval(ctx context.Context, con *console.Console, p *app.Process, opts ragview.EvalOptions, args []string) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	return opts.RunEval(ctx, con, p, args)
}

// ragRmOptions are the flags of "rag rm".
type ragRmOptions struct{ node string }

func newRagRmCommand(op *opener) *cobra.Command {
	var opts ragRmOptions
	cmd := newCommand(op, &opts, runRagRm, &cobra.Command{
		Use: "rm AGENT", Short: "Delete the knowledge bases of an agent", Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: completeAgents(op),
	})
	cmd.Flags().StringVar(&opts.node, "node", "", "the `ID` of the rag node; without it all are deleted")
	return cmd
}

func runRagRm(_ context.Context, con *console.Console, p *app.Process, opts ragRmOptions, args []string) error {
	removed, err := p.Knowledge().RemoveBases(args[0], opts.node)
	for _, path := range removed {
		con.Screen.PrintLine("removed " + con.Screen.Name(p.Dirs.ShortPath(path)))
	}
	if err == nil && removed == nil {
		con.Screen.PrintLine("there was no knowledge base")
	}
	return err
}
