package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/base/commandline"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/chat"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runlimits"
	"raddle.dev/internal/terminal/updateview"
	"raddle.dev/tool/permission"
)

// chatOptions are the flags of "chat".
type chatOptions struct {
	noBox                bool
	session, model, mode string
	continues            bool
	variables            []string
	raw                  bool
	plain                bool
	theme                string
	limits               runlimits.Limits
}

func newChatCommand(env *environment) *cobra.Command {
	var opts chatOptions
	cmd := &cobra.Command{
		Use:   "chat [AGENT]",
		Short: "Talk with an agent",
		Long: `raddle alone on a terminal does the same. Without AGENT you talk with the assistant that comes with raddle.
Each message is a run, so nothing is lost: raddle -c continues the last conversation of this directory, even after a kill.`,
		Example: `  raddle
  raddle chat coder
  raddle -c
  raddle chat coder -s parser --mode edits`,
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: completeAgents(&env.opener),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runChat(cmd.Context(), env, opts, args)
		},
	}
	addChatFlags(&env.opener, cmd, &opts)
	return cmd
}

// addChatFlags adds the flags of a conversation.
func addChatFlags(op *opener, cmd *cobra.Command, opts *chatOptions) {
	flags := cmd.Flags()
	flags.BoolVarP(&opts.continues, "continue", "c", false, "continue the last conversation of this directory")
	flags.StringVarP(&opts.session, "session", "s", "", "start or continue the conversation `NAME`")
	opts.limits.AddFlags(flags, "each turn")
	flags.StringVarP(&opts.model, "model", "m", "", "use `CLIENT:MODEL` instead of every model of the agent")
	flags.StringArrayVar(&opts.variables, "agent-variable", nil, "set a variable of the agent: `NAME VALUE` (repeatable)")
	addUserFlag(cmd, op)
	addNoBoxFlag(cmd, &opts.noBox)
	addModeFlag(cmd, &opts.mode, "what runs without a question: `MODE` plan, ask, edits or box (default: as configured, or ask)")
	flags.BoolVar(&opts.raw, "raw", false, "show replies as they are written, without formatting their Markdown")
	flags.BoolVar(&opts.plain, "screen-reader", false, "write plain lines, one after the other, and never move the cursor")
	addTraceFlag(cmd, op)
	flags.StringVar(&opts.theme, "theme", "", "use the colours of `THEME`: auto, dark, light or mono")
	completeWords(cmd, "theme", config.Themes...)
	_ = cmd.RegisterFlagCompletionFunc("model", completeModels(op))
}

func runChat(ctx context.Context, env *environment, opts chatOptions, args []string) error {
	variables, err := parseVariables(opts.variables)
	if err != nil {
		return err
	}
	var mode permission.Mode
	if chosen, err := parseMode(opts.mode); err != nil {
		return err
	} else if chosen != nil {
		mode = chosen.Mode()
	}
	if opts.continues && opts.session != "" {
		return ending.BadUsage("leave one of them out", "--continue and --session exclude each other")
	}
	if !env.HasPerson() {
		return ending.BadUsage(`without a terminal, use: raddle run AGENT --session NAME "PROMPT"`, "a conversation needs a terminal")
	}
	env.Plain = opts.plain || term.IsDumb()
	env.Leave = "stop"
	if err := env.openProcess(); err != nil {
		return err
	}
	env.process.Tools.NoBox = opts.noBox
	if !opts.continues {
		env.offersLook = len(args) == 0
		if err := ensureModel(ctx, &env.opener, firstOrEmpty(append(args, chat.DefaultAgent)), opts.model); err != nil {
			return lookInstead(ctx, env, err)
		}
	}
	if opts.theme != "" && !env.SetTheme(opts.theme) {
		return ending.BadChoice("--theme", opts.theme, config.Themes)
	}
	return runUntilSignal(ctx, func(ctx context.Context) error {
		updateview.Show(ctx, env.Console, env.process.Config.UpdateNotice, env.process.Dirs.Cache)
		s := &chat.Session{
			Terminal: chat.Terminal{Console: env.Console, Prompter: env.NewPrompter()},
			Process:  env.process,
			Backend:  &chatBackend{env: env, ctx: ctx, raw: opts.raw},
			Options:  chat.Options{Agent: firstOrEmpty(args), Name: opts.session, Continue: opts.continues, Model: opts.model, Variables: variables, Mode: mode, Plain: env.Plain, Budget: opts.limits.Budget(), Deadline: opts.limits.Deadline},
		}
		return s.Run(ctx)
	})
}

// runUntilSignal runs a function with a context that SIGTERM and SIGHUP end. After a signal, its exit code is part of
// the error.
func runUntilSignal(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	returned := make(chan struct{})
	watched := make(chan struct{})
	var ended os.Signal
	go func() {
		defer close(watched)
		select {
		case ended = <-signals:
			cancel()
		case <-returned:
		}
	}()
	err := run(ctx)
	close(returned)
	<-watched
	if ended != nil {
		return errors.Join(err, ending.Silent{Code: ending.SignalCode(ended)})
	}
	return err
}

// chatBackend is what a conversation uses of the command line.
type chatBackend struct {
	env *environment
	ctx context.Context
	raw bool
}

// Start implements [chat.Backend].
func (b *chatBackend) Start(ctx context.Context, req app.Request, start func(app.Request) (*app.Run, error)) (*app.Run, error) {
	mode := req.Mode
	req.UIHooks = newUIHooks(ctx, b.env.Console, b.env.process, &b.env.foreground)
	req.Mode = mode
	return startConsenting(ctx, b.env.Console, b.env.process, &req, start)
}

// Resume implements [chat.Backend].
func (b *chatBackend) Resume(ctx context.Context, run string, mode *permission.ModeSwitch) (*app.Run, error) {
	o := app.ResumeOptions{AcceptChanges: true, UIHooks: newUIHooks(ctx, b.env.Console, b.env.process, &b.env.foreground)}
	o.Mode = mode
	return b.env.process.ResumeRun(ctx, run, o)
}

// Drive implements [chat.Backend].
func (b *chatBackend) Drive(run *app.Run, c chat.Drive) (graph.Result, error) {
	d := newDrive(b.env.Console, b.env.process, &b.env.foreground, run)
	d.still = b.env.Plain
	d.raw = b.raw
	d.turn = &c
	d.watch = newRunWatcher(b.env.Console, b.env.process, run, false, !b.env.Plain)
	d.watch.started = true // which run it is does not matter to the person
	if run.Agent.Config != nil {
		d.watch.showReplies(b.raw)
	}
	b.env.watching.Store(d.watch)
	d.stop = newTurnStopper(b.env.Console, &b.env.foreground, c.Interrupt, c.Cancel)
	b.env.stopping.Store(d.stop)
	res, err := d.driveRun()
	d.watch.finishWatch()
	b.env.stopping.Store(nil)
	b.env.watching.Store(nil)
	d.stop.close()
	return res, err
}

// Command implements [chat.Backend].
func (b *chatBackend) Command(ctx context.Context, args []string) error {
	env := b.env
	defer func(leave string) { env.Leave = leave }(env.Leave)
	env.Leave = "" // its questions can be answered later
	kept := *env.Console
	level := env.logLevel
	root := newRootCommand(env) // its flags set the defaults
	*env.Console = kept
	env.logLevel = level
	root.SetArgs(commandline.RewriteArgs(args))
	finishCommand(&env.opener, root.ExecuteContext(ctx))
	return nil
}

// ShowReply implements [chat.Backend]. The screen writes the text above the editor.
func (b *chatBackend) ShowReply(text string) {
	b.env.Screen.PassThrough(b.env.Out, strings.TrimRight(b.env.RenderReply(text, b.raw), "\n")+"\n")
}

// ShowError implements [chat.Backend].
func (b *chatBackend) ShowError(err error) {
	var quiet ending.Silent
	if !errors.As(err, &quiet) {
		ending.PrintError(b.env.Console, b.env.process, err)
	}
}
