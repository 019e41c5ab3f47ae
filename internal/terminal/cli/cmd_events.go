package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/prompting"
	"raddle.dev/internal/terminal/triggerview"
)

// eventOptions are the flags of "events send".
type eventOptions struct{ run, key, keep, output string }

func newEventsCommand(env *environment) *cobra.Command {
	return newGroup(&env.opener, &cobra.Command{
		Use:   "events COMMAND",
		Short: "Send events to runs that wait for them",
		Example: `  raddle events send paid '{"order": 7}'
  raddle events ls`,
	}, newEventsSendCommand(env), newOutputCommand(&env.opener, "write them as `FORMAT`: text or json", runEventsLs, &cobra.Command{
		Use:   "ls [NAME]",
		Short: "List the events that are kept, and which runs have taken them",
		Args:  checkArgCount(0, 1, ""),
	}))
}

func newEventsSendCommand(env *environment) *cobra.Command {
	var opts eventOptions
	send := func(ctx context.Context, con *console.Console, p *app.Process, opts eventOptions, args []string) error {
		return runEventsSend(ctx, con, p, newUIHooks(ctx, con, p, &env.foreground), opts, args)
	}
	cmd := newCommand(&env.opener, &opts, send, &cobra.Command{
		Use:   "send NAME [JSON|-]",
		Short: "Send an event",
		Long: `Each run that waits for an event with this name, in a node of the type wait, takes it and continues: on a server of
the store, in the process that drives the run, or else here, until it ends or waits again. If none waits, the event is
kept for the first one that does. Triggers that wait for it start a run each. JSON is the data of the event; for - it is read from standard input.

With --key you can send an event again after an error: what has arrived is not given twice.`,
		Example: `  raddle events send paid '{"order": 7, "method": "card"}' --key invoice-2026-7
  raddle events send approved --run last
  curl … | raddle events send deployed -`,
		Args: checkArgCount(1, 2, "the name of the event"),
	})
	cmd.Flags().StringVar(&opts.run, "run", "", "only `RUN` may take it")
	cmd.Flags().StringVar(&opts.key, "key", "", "what distinguishes the event from others with its name: `TEXT` (default: a new one)")
	cmd.Flags().StringVar(&opts.keep, "keep", "7d", "keep it for `TIME` for runs that wait later")
	addOutputFlag(cmd, &opts.output, "write what was done as `FORMAT`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("run", completeRuns(&env.opener, 0, nil))
	return cmd
}

func runEventsSend(ctx context.Context, con *console.Console, p *app.Process, hooks app.UIHooks, opts eventOptions, args []string) error {
	life, err := parseAge("--keep", opts.keep)
	if err != nil {
		return err
	}
	req := app.EventRequest{Name: args[0], Key: opts.key, Run: opts.run, Life: life}
	if len(args) > 1 {
		text := args[1]
		if text == "-" {
			if text, err = prompting.ReadText(con.In); err != nil {
				return err
			}
		}
		req.Data = json.RawMessage(text)
	}
	ctx, stop := signalContext(ctx)
	defer stop()
	sent, err := trigger.SendEvent(ctx, p, req, p.ContinueQuietly(hooks))
	if err != nil {
		return err
	}
	near := ""
	if sent.Kept && len(sent.Started) == 0 {
		if near, err = p.FindNearEvent(ctx, sent.Name); err != nil {
			return err
		}
	}
	return con.PrintResult(opts.output, sent, func() string {
		text := "taken by run " + strings.Join(sent.Runs, ", ")
		switch {
		case near != "":
			text = "no run waits for it, but one waits for " + near + "; it is kept for the first one that does"
		case sent.Kept:
			text = "no run waits for it; it is kept for the first one that does"
		case sent.Again:
			text = "it was sent before; " + text
		}
		if len(sent.Started) > 0 {
			text += "\nstarts run " + strings.Join(sent.Started, ", ") + ": a server of the store drives it"
		}
		return text
	})
}

func newRunsMessageCommand(op *opener) *cobra.Command {
	return newCommand(op, new(struct{}), runRunsMessage, &cobra.Command{
		Use:   "message RUN TEXT|-",
		Short: "Say something to an agent while its turn works",
		Long: `The agent gets the text with its next request to the model, whatever process it works in, or when the run continues if
nothing drives it now. A graph takes no messages: answer its questions, or send it an event. For - the text is read from
standard input.`,
		Example:           `  raddle runs message last "Use metres, and be brief."`,
		Args:              checkArgCount(2, 2, "the run or the text"),
		ValidArgsFunction: completeRuns(op, 1, nil),
	})
}

func runRunsMessage(ctx context.Context, con *console.Console, p *app.Process, _ struct{}, args []string) (err error) {
	text := args[1]
	if text == "-" {
		if text, err = prompting.ReadText(con.In); err != nil {
			return err
		}
	}
	if err = p.SendMessage(ctx, app.MessageRequest{Run: args[0], Text: text, By: p.User}); err == nil {
		con.PrintNote("the agent gets it with its next request")
	}
	return err
}

func runEventsLs(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	return triggerview.ListEvents(ctx, con, p, strings.Join(args, ""), opts.output)
}
