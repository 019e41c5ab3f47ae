package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/runlimits"
	"raddle.dev/temporal"
	"raddle.dev/tool/permission"
)

const (
	defaultQueue   = "default"
	defaultRetries = 3
)

// takesNothing refuses arguments.
func takesNothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return failure.NewUsage("", "%s takes no argument, and got %q", cmd.Name(), args[0])
	}
	return nil
}

// takesRun demands the id of a run.
func takesRun(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return failure.NewUsage("raddle-temporal "+cmd.Use, "%s takes the id of one run", cmd.Name())
	}
	return nil
}

// startOptions are the flags of commands that start a workflow.
type startOptions struct {
	queue   string
	retries int
	answers []string
}

func addStartFlags(cmd *cobra.Command, opts *startOptions) {
	flags := cmd.Flags()
	flags.StringVar(&opts.queue, "queue", defaultQueue, "the workers of the queue `NAME` drive the run")
	flags.IntVar(&opts.retries, "retries", defaultRetries, "continue at most `N` times after failures that can pass, such as those of a provider that has too much to do")
	flags.StringArrayVar(&opts.answers, "answer", nil, "answer a question: `[ID=]TEXT`; =TEXT if the text itself has a = (repeatable)")
}

// runOptions are the flags of "run".
type runOptions struct {
	startOptions
	model, mode, user string
	files             []string
	variables         map[string]string
	limits            runlimits.Limits
}

func newRunCommand(e *environment) *cobra.Command {
	var opts runOptions
	cmd := &cobra.Command{
		Use:   "run AGENT [PROMPT...]",
		Short: "Start a run, and print its id",
		Long: `The run is recorded in the store; a worker drives it. raddle watch RUN follows it, and raddle runs show RUN has its result.
The prompt is the words after the agent; standard input instead of "-"; then the files.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return failure.NewUsage("raddle-temporal "+cmd.Use, "run: the agent is missing")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return startRun(cmd.Context(), e, opts, args) },
	}
	addStartFlags(cmd, &opts.startOptions)
	flags := cmd.Flags()
	flags.StringVarP(&opts.model, "model", "m", "", "use `CLIENT:MODEL` instead of every model of the agent")
	flags.StringVar(&opts.mode, "mode", "", "what runs without a question: `MODE` plan, ask or edits (default edits)")
	opts.limits.AddFlags(flags, "the run")
	flags.StringVar(&opts.user, "user", "", "run for `NAME`: memory and {{user.…}} are that person's, and a full queue gives each user the same share")
	flags.StringArrayVarP(&opts.files, "file", "f", nil, "add the text of `FILE` to the prompt (repeatable)")
	flags.StringToStringVar(&opts.variables, "variable", nil, "set a variable of the agent: `NAME=VALUE` (repeatable)")
	return cmd
}

func startRun(ctx context.Context, e *environment, opts runOptions, args []string) error {
	if err := e.openProcess(); err != nil {
		return err
	}
	defer func() { _ = e.process.Close() }()
	req := app.Request{Agent: args[0], Model: opts.model, Variables: opts.variables, User: opts.user, Remote: true, Budget: opts.limits.Budget(), Deadline: opts.limits.Deadline}
	if opts.mode != "" {
		mode, ok := permission.ParseMode(opts.mode)
		if !ok {
			return failure.NewUsage("use one of "+strings.Join(permission.Modes, ", "), "--mode %s: there is no such mode", opts.mode)
		}
		req.Mode = permission.NewModeSwitch(mode)
	}
	var err error
	if req.Prompt, err = readPrompt(args[1:], opts.files); err != nil {
		return err
	}
	for _, path := range opts.files {
		req.Files = append(req.Files, e.process.Dirs.AbsPath(path))
	}
	c, err := e.dial(ctx) // nothing is recorded for nothing
	if err != nil {
		return err
	}
	defer c.Close()
	run, err := e.process.StartRun(req)
	if err != nil {
		return err
	}
	defer run.Close()
	given, err := question.ParseAnswers(opts.answers, question.NamesOf(nil, run.GraphStructure()))
	if err != nil {
		return err
	}
	if _, err := app.RecordChange(ctx, e.process, app.RunChange{Run: run, Answers: given.Preset()}); err != nil {
		return err
	}
	detail, err := e.process.Runs.ReadRunDetail(ctx, run.ID)
	if err != nil {
		return err
	}
	if err := temporal.Start(ctx, c, run, temporal.Order{Queue: opts.queue, Retries: opts.retries, User: opts.user, Hash: detail.Snapshot.Digest}); err != nil {
		return &failure.Error{Kind: failure.Stale, Msg: "run " + run.ID + " is recorded, but Temporal did not start it", Err: err, Next: "start it with: raddle-temporal resume " + run.ID}
	}
	_, err = fmt.Fprintln(e.out, run.ID)
	return err
}

// readPrompt returns the prompt of a run: words, standard input instead of "-", and files.
func readPrompt(words, files []string) (string, error) {
	if at := slices.Index(words, "-"); at >= 0 {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return "", err
		}
		words = slices.Clone(words)
		words[at] = strings.TrimSuffix(string(text), "\n")
	}
	var attached []attach.File
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err == nil && !utf8.Valid(text) {
			err = errors.New(path + " is not UTF-8 text")
		}
		if err != nil {
			return "", failure.NewUsage("", "--file: %v", err)
		}
		attached = append(attached, attach.File{Name: path, Text: string(text)})
	}
	text, _, err := attach.Join(strings.Join(words, " "), attached)
	return text, err
}

// resumeOptions are the flags of "resume".
type resumeOptions struct {
	startOptions
	accept bool
}

func newResumeCommand(e *environment) *cobra.Command {
	var opts resumeOptions
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Record answers to questions, and let a worker continue the run",
		Long:  `A run that failed, or that raddle started, gets a workflow. RUN is the id of a run, or a unique prefix of it.`,
		Args:  takesRun,
		RunE:  func(cmd *cobra.Command, args []string) error { return resumeRun(cmd.Context(), e, opts, args[0]) },
	}
	addStartFlags(cmd, &opts.startOptions)
	cmd.Flags().BoolVar(&opts.accept, "accept-changes", false, "record the answers although files of the agent have changed")
	return cmd
}

func resumeRun(ctx context.Context, e *environment, opts resumeOptions, id string) error {
	if err := e.openProcess(); err != nil {
		return err
	}
	defer func() { _ = e.process.Close() }()
	detail, err := e.process.Runs.ReadRunDetail(ctx, id)
	if err != nil {
		return err
	}
	id = detail.Run
	if detail.Final {
		return ended(detail)
	}
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if len(opts.answers) > 0 {
		if err := recordAnswers(ctx, e, opts, id); err != nil {
			return err
		}
	}
	o := temporal.Order{Queue: opts.queue, Retries: opts.retries}
	if detail.Record != nil && detail.Record.Parent != nil {
		o.Parent = detail.Record.Parent.Run
	}
	return temporal.Poke(ctx, c, id, o)
}

// ended returns the error for a run that has ended.
func ended(d *runs.Detail) error {
	return &failure.Error{Kind: failure.Stale, Err: &runs.EndedError{ID: d.Run, Status: d.Snapshot.Status}, Next: "see all of it with: raddle runs show " + d.Run}
}

// recordAnswers writes the answers of the command line to the store.
func recordAnswers(ctx context.Context, e *environment, opts resumeOptions, id string) error {
	run, err := e.process.ResumeRun(ctx, id, app.ResumeOptions{AcceptChanges: opts.accept})
	if err != nil {
		return err
	}
	defer run.Close()
	given, err := question.ParseAnswers(opts.answers, question.NamesOf(run.Questions, run.GraphStructure()))
	if err != nil {
		return err
	}
	answers, err := matchAnswers(ctx, run, given)
	if err != nil {
		return err
	}
	if unused := given.ListUnused(); len(unused) > 0 {
		return failure.NewUsage("see: raddle runs show "+id, "no open question takes the answer %s", strings.Join(unused, ", "))
	}
	_, err = app.RecordChange(ctx, e.process, app.RunChange{Run: run, Answers: answers})
	return err
}

// matchAnswers returns the given answers to the open questions of a run: first those that name their question.
func matchAnswers(ctx context.Context, run *app.Run, given question.GivenAnswers) (answers []graph.Answer, err error) {
	open := graph.ForPeople(run.Questions)
	values := make([]*string, len(open))
	for _, bare := range []bool{false, true} {
		for i, q := range open {
			if values[i] != nil {
				continue
			}
			text, ok, wrong := given.Take(q, bare, func(text string, far int) error { return refuse(ctx, run, q, text, far) })
			if wrong != nil {
				return nil, wrong
			}
			if ok {
				values[i] = &text
			}
		}
	}
	for i, q := range open {
		if values[i] != nil {
			answers = append(answers, graph.Answer{ID: q.ID, Value: *values[i]})
		}
	}
	return answers, nil
}

// refuse returns why a text is not an answer to a question, or nil. far is the distance of the question from what
// the answer names.
func refuse(ctx context.Context, run *app.Run, q graph.Question, text string, far int) error {
	switch {
	case q.Kind == flow.KindTrust && text != "no":
		return failure.NewUsage("answer it with raddle resume or raddle inbox on a terminal, or over the API of raddle serve", "answer to %q: consent is given at a terminal, never by --answer", q.ID)
	case q.Kind == agent.KindPermission && far > 0 && !slices.Contains(q.Options, text):
		return failure.NewUsage("", "answer to %q: it must be one of %s", q.ID, strings.Join(q.Options, ", "))
	}
	return run.CheckAnswers(ctx, graph.Answer{ID: q.ID, Value: text})
}

func newCancelCommand(e *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "cancel RUN",
		Short: "End a run permanently, and the processes that it started",
		Args:  takesRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := e.openProcess(); err != nil {
				return err
			}
			defer func() { _ = e.process.Close() }()
			detail, err := e.process.Runs.ReadRunDetail(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if detail.Final {
				return ended(detail)
			}
			c, err := e.dial(cmd.Context())
			if err != nil {
				return err
			}
			defer c.Close()
			if err = temporal.Cancel(cmd.Context(), c, detail.Run); errors.Is(err, temporal.ErrNoWorkflow) {
				return &failure.Error{Kind: failure.Stale, Msg: "run " + detail.Run, Err: err, Next: "end it with: raddle runs cancel " + detail.Run}
			}
			return err
		},
	}
}

// listOptions are the flags of "ls".
type listOptions struct {
	all    bool
	output string
}

func newListCommand(e *environment) *cobra.Command {
	var opts listOptions
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the runs that Temporal drives, newest first",
		Args:  takesNothing,
		RunE:  func(cmd *cobra.Command, _ []string) error { return listRuns(cmd.Context(), e, opts) },
	}
	cmd.Flags().BoolVarP(&opts.all, "all", "a", false, "also list those that have ended")
	cmd.Flags().StringVar(&opts.output, "output", "text", "write the list as `FORMAT`: text or json")
	return cmd
}

func listRuns(ctx context.Context, e *environment, opts listOptions) error {
	if opts.output != "text" && opts.output != "json" {
		return failure.NewUsage("use one of text, json", "--output %s: there is no such format", opts.output)
	}
	c, err := e.dial(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	list := []temporal.Listed{}
	if err := temporal.List(ctx, c, !opts.all, func(l temporal.Listed) bool { list = append(list, l); return true }); err != nil {
		return err
	}
	if opts.output == "json" {
		encoder := json.NewEncoder(e.out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(list)
	}
	w := tabwriter.NewWriter(e.out, 0, 0, 2, ' ', 0)
	for _, l := range list {
		waiting := ""
		if l.State == "running" && len(l.Waiting) > 0 {
			waiting = "waits for " + strings.Join(l.Waiting, ", ")
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", e.clean(l.Run), e.clean(l.Agent), e.clean(l.Queue), l.Started.Local().Format(time.DateTime), cmp.Or(l.State, "?"), e.clean(waiting))
	}
	return w.Flush()
}
