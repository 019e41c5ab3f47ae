package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/flow/narrate"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/progress"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/report/updates"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

// pollInterval is the time between two looks at the journal of a run that another process drives.
const pollInterval = 200 * time.Millisecond

func newWatchCommand(op *opener) *cobra.Command {
	return newOutputCommand(op, "write `FORMAT`: text, json (a report at the end) or stream-json (also each event)", runWatch, &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a run that another process drives",
		Long: `Prints what the run has done so far, and then what it does, from its journal, until it ends, waits for an answer
or is stopped, and no server is to continue it. Then it prints the result of a run that is done. Ctrl-C ends only the
command, not the run. The exit code is the one that the run has now.`,
		Example: `  raddle watch last
  raddle watch last --output stream-json`,
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completeRuns(op, 1, nil),
	})
}

func runWatch(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, args []string) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	name, _, err := runs.SplitPoint(args[0]) // it is watched from its start to its end
	if err != nil {
		return err
	}
	v, err := p.Runs.ReadView(ctx, name)
	if err != nil {
		return err
	}
	id := v.Run
	con.PrintNote("raddle: watching run %s", con.Screen.Paint(term.Cyan, id))
	show := newWatchedEvents(ctx, con, p, v.Detail)
	seq := int64(0)
	follower := p.Runs.FollowRun(id)
	timer := time.NewTicker(pollInterval)
	defer timer.Stop()
	for err == nil {
		var events []graph.Event
		var more bool
		// after the status: nothing that was recorded before the end is left out
		if events, more, err = follower.ReadEvents(ctx, runs.IsWorking(v.Status)); err != nil {
			break
		}
		for _, ev := range events {
			if seq++; opts.output == console.FormatStream {
				ev.Seq = seq
				ev.Run = id
				con.Out.PrintExact(string(updates.EncodeEvent(ev)))
			}
			show(ev)
		}
		asks := v.Status == runs.Running && v.Snapshot.Status == graph.Waiting
		switch over := !runs.IsWorking(v.Status) || asks; {
		case more:
			continue
		case over && opts.output != console.FormatText:
			return writeWatched(con, p, v, opts.output, seq+1)
		case over:
			return reportWatched(ctx, con, p, v)
		}
		select {
		case <-ctx.Done():
		case <-timer.C:
			err = v.Update(ctx)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil {
		con.PrintNote("raddle: run %s was not stopped; raddle only stopped watching it", id)
		return ending.Silent{Code: ending.Interrupted}
	}
	return err
}

// newWatchedEvents returns what prints the events of a run in the lines of run. If the agent of
// the run cannot be loaded, it prints nothing.
func newWatchedEvents(ctx context.Context, con *console.Console, p *app.Process, d *runs.Detail) func(graph.Event) {
	if con.Quiet || d.Record == nil {
		return func(graph.Event) {}
	}
	a, err := p.LoadOfRun(ctx, d.Record, d.Foreign != nil)
	if err != nil {
		con.PrintWarning("the agent of the run cannot be loaded, so that only its end is shown: " + term.CleanText(err.Error()))
		return func(graph.Event) {}
	}
	defer func() { _ = a.Close() }() // what is printed of it has been read
	kinds := map[string]string{}
	if g, err := a.CompileGraph(); err == nil {
		addKinds(kinds, "", g.Structure())
	}
	handle := newWatchedLines(con, a.Agent)
	return func(ev graph.Event) {
		if _, ok := ev.Body.(graph.TaskStarted); ok {
			ev.Body = graph.TaskStarted{Kind: kinds[ev.Path+ev.Node]}
		}
		handle(ev)
	}
}

// newWatchedLines returns what writes the lines about the events of another process.
func newWatchedLines(con *console.Console, a *flow.Agent) func(graph.Event) {
	if con.ShowsBlocks() {
		r := progress.NewReporter(con.Screen, progress.NewLook(con.Screen.Colors, os.Getenv), a)
		r.Detail = con.Verbose
		return r.HandleEvent
	}
	n := narrate.New(dimWriter{con.Screen}, a, false)
	n.Detail = con.Verbose
	return n.Event
}

// addKinds adds the kinds of the nodes of a graph and of its child graphs, by their paths.
func addKinds(kinds map[string]string, prefix string, s graph.Structure) {
	for _, n := range s.Nodes {
		kinds[prefix+n.Name] = n.Kind
		if n.Child != nil {
			addKinds(kinds, prefix+n.Name+"/", *n.Child)
		}
	}
}

// writeWatched writes the report of a run that is not driven any more, or waits. The error has the exit code of the
// run.
func writeWatched(con *console.Console, p *app.Process, v *runs.View, format string, seq int64) error {
	r, err := viewReport(p, v)
	if err != nil {
		return err
	}
	writeReport(con, format, r, seq)
	return ending.ExitSilently(r.ExitCode)
}

// reportWatched prints how a run has ended, or what it waits for. The error has the exit code of the run.
func reportWatched(ctx context.Context, con *console.Console, p *app.Process, d *runs.View) error {
	resume := "raddle resume " + d.Run
	switch d.Snapshot.Status {
	case graph.Done:
		o := flow.OutcomeOf(graph.Result{Status: graph.Done, Value: d.Snapshot.Result})
		calls, err := d.ReadModels(ctx)
		con.Out.PrintExact(o.Output)
		return errors.Join(err, ending.ExitSilently(overview.DoneCode(o, calls)))
	case graph.Waiting:
		next := resumeLine(resume, graph.Result{Status: graph.Waiting, Questions: d.Snapshot.Questions})
		if d.Status == runs.Running {
			next = "answer where it is driven " + runview.DescribeWait(d.Info)
		}
		what := "for an answer"
		if due := d.Snapshot.Due; !due.IsZero() && len(d.Snapshot.Questions) == 0 {
			what = runview.FormatUntil(due)
		}
		con.Screen.PrintLine(fmt.Sprintf("raddle: run %s waits %s", d.Run, what))
		for _, q := range d.Snapshot.Questions {
			con.Screen.PrintLine("  " + question.FormatName(q) + ": " + strings.ReplaceAll(strings.TrimSpace(question.FormatPrompt(q, con.Screen.Colors)), "\n", "\n    "))
		}
		con.Screen.PrintLine("next: " + next)
		return ending.Silent{Code: ending.Waiting}
	case graph.Abandoned, graph.CleanedUp:
		return &failure.Error{Kind: failure.Stale, Err: &runs.EndedError{ID: d.Run, Status: d.Snapshot.Status}}
	}
	e := &ending.Error{Code: ending.StatusCode(d.Snapshot.Status), Err: fmt.Errorf("run %s: %s", d.Run, d.Status), Next: resume}
	if d.Reason != "" {
		e.Err = fmt.Errorf("run %s: %s: %s", d.Run, d.Status, term.CleanText(d.Reason))
	}
	return e
}
