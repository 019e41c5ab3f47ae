package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/progress"
	"raddle.dev/internal/report/question"
)

func newRagCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rag",
		Short: "Build, search and remove the knowledge bases of agents",
		Long: `An agent with documents has a knowledge base for each of its rag nodes, or one of its own. A run builds what is missing
and updates what has changed; these commands do it without a run.`,
		Example: `  raddle rag build examples/handbook
  raddle rag search examples/handbook "How many days of leave are there?"`,
		Args: checkArgCount(0, 0, ""),
	}
	cmd.AddCommand(newRagBuildCommand(env), newRagStatusCommand(env), newRagSearchCommand(env), newRagRmCommand(env))
	return cmd
}

// ragBuildOptions are the flags of "rag build".
type ragBuildOptions struct{ rebuild bool }

func newRagBuildCommand(env *environment) *cobra.Command {
	var opts ragBuildOptions
	cmd := newCommand(env, &opts, runRagBuild, &cobra.Command{
		Use: "build AGENT", Short: "Build what is missing, and update the rest",
		Long: `raddle reads a document again only if it has changed, and then embeds only its new parts and sends only these to the
extractor model. It continues a build that was stopped.

A knowledge base keeps the settings that it was built with. If the agent's file has other settings now, raddle reports it, and --rebuild
builds it again: the old one answers until the new one is complete, and no part is sent to the same model twice.`,
		Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: completeAgents(env),
	})
	cmd.Flags().BoolVar(&opts.rebuild, "rebuild", false, "rebuild those that were built with other settings")
	return cmd
}

func runRagBuild(ctx context.Context, env *environment, opts ragBuildOptions, args []string) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal does not wait
	err := env.process.Knowledge().BuildBases(ctx, app.KnowledgeBuild{Agent: args[0], Rebuild: opts.rebuild, Hooks: newUIHooks(ctx, env)})
	if err != nil && ctx.Err() != nil {
		env.err.PrintLine("raddle: the build was stopped; the next build continues it")
		return silentExit{exitInterrupted}
	}
	return err
}

// addRetrievalHooks adds the functions that report builds and ask before one.
func addRetrievalHooks(ctx context.Context, env *environment, s *app.UIHooks) {
	if !env.quiet {
		s.Notify = func(line string) { env.err.PrintLine(term.CleanLine(line)) }
		if env.err.IsTerminal() {
			s.Progress = progress.NewBuildLine(env.err).ShowProgress
		}
	}
	if prompter := env.newPrompter(); prompter != nil {
		s.Confirm = func(what string) (bool, error) { return env.newGuide().AskYesNo(ctx, what) }
		s.Ask = func(what, usual string) (string, error) {
			text, err := question.AskText(ctx, prompter, fmt.Sprintf("%s [%s] ", what, usual))
			if strings.TrimSpace(text) == "" {
				text = usual
			}
			return strings.TrimSpace(text), err
		}
	}
}

func newRagStatusCommand(env *environment) *cobra.Command {
	return newOutputCommand(env, "write it as `FORMAT`: text or json", runRagStatus, &cobra.Command{
		Use: "status AGENT", Short: "Show the knowledge bases of an agent", Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: completeAgents(env),
	})
}

func runRagStatus(ctx context.Context, env *environment, opts outputOptions, args []string) error {
	list, err := env.process.Knowledge().ListBases(ctx, args[0])
	if err != nil {
		return err
	}
	return env.printResult(opts.output, list, func() string {
		var lines []string
		for _, k := range list {
			lines = append(lines, knowledgeLine(env.process.Dirs.ShortPath, k))
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

// ragSearchOptions are the flags of "rag search".
type ragSearchOptions struct {
	node, output string
	top          int
}

func newRagSearchCommand(env *environment) *cobra.Command {
	var opts ragSearchOptions
	cmd := newCommand(env, &opts, runRagSearch, &cobra.Command{
		Use: "search AGENT QUERY...", Short: "Show the parts of documents that best match a query",
		Args: checkArgCount(2, -1, "the agent and the query"), ValidArgsFunction: completeAgents(env),
	})
	cmd.Flags().StringVar(&opts.node, "node", "", "the `ID` of the rag node, if the agent has several")
	cmd.Flags().IntVar(&opts.top, "top", 0, "show `N` passages; 0: the knowledge base's top_k")
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	return cmd
}

func runRagSearch(ctx context.Context, env *environment, opts ragSearchOptions, args []string) error {
	chunks, err := env.process.Knowledge().SearchBase(ctx, args[0], opts.node, strings.Join(args[1:], " "), opts.top)
	if err != nil {
		return err
	}
	return env.printResult(opts.output, chunks, func() string {
		return chunksText(func(source string) string { return env.out.Name(env.process.Dirs.ShortPath(source)) }, chunks)
	})
}

// chunksText shows chunks under the names of their documents.
func chunksText(name func(source string) string, chunks []flow.Chunk) string {
	var b strings.Builder
	for i, c := range chunks {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "%s, part %d\n  %s", name(c.Source), c.Index+1, strings.ReplaceAll(strings.TrimSpace(c.Text), "\n", "\n  "))
	}
	return b.String()
}

// ragRmOptions are the flags of "rag rm".
type ragRmOptions struct{ node string }

func newRagRmCommand(env *environment) *cobra.Command {
	var opts ragRmOptions
	cmd := newCommand(env, &opts, runRagRm, &cobra.Command{
		Use: "rm AGENT", Short: "Delete the knowledge bases of an agent", Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: completeAgents(env),
	})
	cmd.Flags().StringVar(&opts.node, "node", "", "the `ID` of the rag node; without it all are deleted")
	return cmd
}

func runRagRm(_ context.Context, env *environment, opts ragRmOptions, args []string) error {
	removed, err := env.process.Knowledge().RemoveBases(args[0], opts.node)
	for _, path := range removed {
		env.err.PrintLine("removed " + env.err.Name(env.process.Dirs.ShortPath(path)))
	}
	if err == nil && removed == nil {
		env.err.PrintLine("there was no knowledge base")
	}
	return err
}
