package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/term"
	"raddle.dev/internal/term/progress"
)

func ragCommand(env *environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rag",
		Short: "Build, search and remove the knowledge bases of agents",
		Long: `An agent with documents has a knowledge base for each of its rag nodes, or one of its own. A run builds what is missing
and updates what has changed; these commands do it without a run.`,
		Example: `  raddle rag build examples/handbook
  raddle rag search examples/handbook "How many days of leave are there?"`,
		Args: checkArgCount(0, 0, ""),
	}
	cmd.AddCommand(ragBuildCommand(env), ragStatusCommand(env), ragSearchCommand(env), ragRemoveCommand(env))
	return cmd
}

func ragBuildCommand(env *environment) *cobra.Command {
	var anew bool
	cmd := &cobra.Command{
		Use: "build AGENT", Short: "Build what is missing, and update the rest",
		Long: `raddle reads a document again only if it has changed, and then embeds only its new parts and sends only these to the
extractor model. It continues a build that was stopped.

A knowledge base keeps the settings that it was built with. If the agent's file has other settings now, raddle reports it, and --rebuild
builds it again: the old one answers until the new one is complete, and no part is sent to the same model twice.`,
		Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: env.completeAgents,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			ctx, stop := signalContext()
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal does not wait
			err = p.BuildKnowledge(ctx, app.KnowledgeBuild{Agent: args[0], Rebuild: anew, Hooks: newUIHooks(env)})
			if err != nil && ctx.Err() != nil {
				env.err.PrintLine("raddle: the build was stopped; the next build continues it")
				return silentExit{exitInterrupted}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&anew, "rebuild", false, "rebuild those that were built with other settings")
	return cmd
}

// addRetrievalHooks adds the functions that report builds and ask before one.
func addRetrievalHooks(env *environment, s *app.UIHooks) {
	if !env.quiet {
		s.Notify = func(line string) { env.err.PrintLine(term.CleanLine(line)) }
		if env.err.IsTerminal() {
			s.Progress = progress.NewBuildLine(env.err).ShowProgress
		}
	}
	if who := env.newPrompter(); who != nil {
		s.Confirm = func(question string) (bool, error) {
			answer, err := askQuestion(context.Background(), who, graph.Question{Kind: "confirm", Prompt: question, Options: []string{"yes", "no"}, Default: "yes"}, env.err.Colors)
			return answer == true || answer == "yes", err
		}
		s.Ask = func(question, usual string) (string, error) {
			text, err := askText(context.Background(), who, fmt.Sprintf("%s [%s] ", question, usual))
			if strings.TrimSpace(text) == "" {
				text = usual
			}
			return strings.TrimSpace(text), err
		}
	}
}

func ragStatusCommand(env *environment) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "status AGENT", Short: "Show the knowledge bases of an agent", Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: env.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			list, err := p.ListKnowledgeBases(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if output == formatJSON {
				return env.printJSON(list)
			}
			for _, k := range list {
				env.out.PrintText(knowledgeLine(p.Dirs.ShortPath, k))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&output, "output", formatText, "write it as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
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
	for _, what := range k.Differs {
		line += "\n  in the agent's file, " + what + " (raddle rag build --rebuild AGENT)"
	}
	return line
}

func ragSearchCommand(env *environment) *cobra.Command {
	var node, output string
	var top int
	cmd := &cobra.Command{
		Use: "search AGENT QUERY...", Short: "Show the parts of documents that best match a query",
		Args: checkArgCount(2, -1, "the agent and the query"), ValidArgsFunction: env.completeAgents,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(output, formatText, formatJSON); err != nil {
				return err
			}
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			chunks, err := p.SearchKnowledge(cmd.Context(), args[0], node, strings.Join(args[1:], " "), top)
			if err != nil {
				return err
			}
			if output == formatJSON {
				return env.printJSON(chunks)
			}
			env.out.PrintText(chunksText(func(source string) string { return env.out.Name(p.Dirs.ShortPath(source)) }, chunks))
			return nil
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the `ID` of the rag node, if the agent has several")
	cmd.Flags().IntVar(&top, "top", 0, "show `N` passages; 0: the knowledge base's top_k")
	cmd.Flags().StringVar(&output, "output", formatText, "write it as `FORMAT`: text or json")
	completeWords(cmd, "output", formatText, formatJSON)
	return cmd
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

func ragRemoveCommand(env *environment) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use: "rm AGENT", Short: "Delete the knowledge bases of an agent", Args: checkArgCount(1, 1, "the agent"), ValidArgsFunction: env.completeAgents,
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := env.openProcess()
			if err != nil {
				return err
			}
			removed, err := p.RemoveKnowledge(args[0], node)
			for _, path := range removed {
				env.err.PrintLine("removed " + env.err.Name(p.Dirs.ShortPath(path)))
			}
			if err == nil && removed == nil {
				env.err.PrintLine("there was no knowledge base")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the `ID` of the rag node; without it all are deleted")
	return cmd
}
