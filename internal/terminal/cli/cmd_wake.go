package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/runview"
)

func newWakeCommand(env *environment) *cobra.Command {
	var opts outputOptions
	cmd := newCommand(&env.opener, &opts, func(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
		return runWake(ctx, con, p, newUIHooks(ctx, con, p, &env.foreground), opts.output)
	}, &cobra.Command{
		Use:   "wake",
		Short: "Continue all runs whose time has come",
		Long: `A run waits for a time in a node of the type wait, and at a question with a deadline. raddle wake continues each run
of the store whose time has come, one after the other, until it ends or waits again, and asks nothing. Call it from
cron where no server runs: raddle serve continues its runs itself.`,
		Example: `  raddle wake
  raddle wake --output json`,
		Args: checkArgCount(0, 0, ""),
	})
	addTraceFlag(cmd, &env.opener)
	addOutputFlag(cmd, &opts.output, "write what was done as `FORMAT`: text or json")
	return cmd
}

// A wokenRun says what became of a run whose time had come.
type wokenRun struct {
	Run    string     `json:"run"`
	Agent  string     `json:"agent"`
	Status string     `json:"status"`
	Due    *time.Time `json:"due"`   // when it is to be continued next; null: it does not wait for a time
	Error  *string    `json:"error"` // why it failed or was not continued; null: nothing went wrong
}

// runWake continues the runs that are due. The error has the exit code of the first one that failed.
func runWake(ctx context.Context, con *console.Console, p *app.Process, hooks app.UIHooks, format string) error {
	list, err := p.Runs.ListDueRuns(ctx, time.Now())
	if err != nil {
		return err
	}
	woken := []wokenRun{}
	var failed error
	for i := range list {
		w, err := wakeRun(ctx, p, hooks, &list[i])
		if errors.As(err, new(*runs.BusyError)) || errors.As(err, new(*graph.BusyError)) || errors.As(err, new(*runs.EndedError)) {
			continue // another process was faster
		}
		if err != nil {
			w.Error = new(err.Error())
			if failed == nil {
				failed = silentExit{exitCode(err)}
			}
		}
		woken = append(woken, w)
		if format != console.FormatJSON {
			con.Out.PrintText(w.describe())
		}
		if ctx.Err() != nil {
			break
		}
	}
	if format == console.FormatJSON {
		return errors.Join(con.PrintJSON(woken), failed)
	}
	if len(woken) == 0 {
		con.PrintNote("no run is due")
	}
	return failed
}

// wakeRun continues a run until it ends or waits.
func wakeRun(ctx context.Context, p *app.Process, hooks app.UIHooks, i *runs.Info) (wokenRun, error) {
	w := wokenRun{Run: i.Run, Agent: i.Agent, Status: i.Status}
	run, err := p.ResumeRun(ctx, i.Run, app.ResumeOptions{UIHooks: hooks})
	if err != nil {
		return w, err
	}
	defer run.Close()
	res, err := run.Drive(ctx, app.Driver{Topics: graph.TopicRun})
	w.Status = res.Status.String()
	if !res.Due.IsZero() {
		w.Due = &res.Due
	}
	return w, err
}

// describe returns what became of the run in one line.
func (w *wokenRun) describe() string {
	text := fmt.Sprintf("%s  %s  %s", w.Run, term.CleanText(w.Agent), w.Status)
	switch {
	case w.Error != nil:
		text += ": " + term.CleanLine(*w.Error)
	case w.Due != nil:
		text += " " + runview.FormatUntil(*w.Due)
	}
	return text
}
