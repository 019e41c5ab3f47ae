package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
	"raddle.dev/tool/permission"
)

// runsShowOptions are the flags of "runs show".
type runsShowOptions struct {
	output string
	state  bool
	web    bool
	why    bool
}

func newRunsShowCommand(op *opener) *cobra.Command {
	var opts runsShowOptions
	cmd := newCommand(op, &opts, runRunsShow, &cobra.Command{
		Use:   "show RUN[@N]",
		Short: "Show a run: what was said, its path, state and result",
		Long: `raddle reads only the run's journal: the agent need not exist any more.
Long values of the state are cut after three lines; --state shows them in full, and also raddle's own keys.
--why shows the calls of tools instead: for each one whether it was allowed, asked about or denied, and which rule, answer, default or
box was the reason, as it was recorded then.`,
		Example:           "  raddle runs show last\n  raddle runs show last --why\n  raddle runs show last --output json\n  raddle runs show last@7 --state\n  raddle runs show last --web",
		Args:              checkArgCount(1, 1, "the id of a run"),
		ValidArgsFunction: completePoints(op, 1),
	})
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.web, "web", false, "show it in a browser, as raddle studio RUN does")
	cmd.Flags().BoolVar(&opts.state, "state", false, "show the whole state")
	cmd.Flags().BoolVar(&opts.why, "why", false, "show what let each call of a tool pass or stopped it")
	return cmd
}

func runRunsShow(ctx context.Context, con *console.Console, p *app.Process, opts runsShowOptions, args []string) error {
	if opts.why && (opts.web || opts.state) {
		return ending.BadUsage("leave --web and --state out", "--why shows the calls instead of the rest, so it goes with neither --web nor --state")
	}
	if opts.web {
		return runStudio(ctx, con, p, studioOptions{}, args)
	}
	v, err := p.Runs.ReadView(ctx, args[0])
	if err != nil {
		return err
	}
	s, err := overview.DescribeRun(ctx, p, v)
	if err != nil {
		return err
	}
	return con.PrintResult(opts.output, s, func() string {
		if opts.why {
			return formatWhy(con, s)
		}
		return formatRun(s, opts.state)
	})
}

// formatWhy returns what was decided about each call of a run, for people.
func formatWhy(con *console.Console, s *overview.Run) string {
	text := term.NewFields(10)
	text.AddField("run", runs.Point{Run: s.Run, At: s.At}.String())
	text.AddField("status", s.Status)
	text.AddField("agent", s.Agent)
	if r := s.Start; r != nil {
		text.AddField("mode", cmp.Or(r.Mode, string(permission.ModeEdits)))
	}
	for _, b := range s.Tree.ListRuns() {
		text.AddField("elsewhere", b.Path+" worked in a run of its own: raddle runs show "+b.Run+" --why")
	}
	width := 0
	if con.Out.IsTerminal() {
		width, _ = con.Out.Size()
	}
	return text.String() + story.NewDescriber(s.Moments, &s.Info).DescribeWhy(s.Calls, width, con.Out.Colors)
}

// formatRun returns a run for people; wholeState reports whether its state is not cut.
func formatRun(s *overview.Run, wholeState bool) string {
	words := story.NewDescriber(s.Moments, &s.Info)
	text := term.NewFields(10)
	row := text.AddField
	row("run", runs.Point{Run: s.Run, At: s.At}.String())
	row("status", s.Status)
	if row("reason", s.Reason); s.Cut {
		row("reason", agent.InterruptReason)
	}
	if s.Cause != nil {
		row("cause", term.CleanText(s.Cause.String()))
	}
	row("agent", s.Agent)
	row("session", s.Session)
	if r := s.Start; r != nil {
		row("directory", r.Dir)
		row("model", term.CleanText(strings.Join(s.Usage.Models, ", ")))
		row("variables", formatVariables(r.Variables))
		row("prompt", r.Prompt)
		if above := r.Parent; above != nil {
			row("part of", "run "+above.Run+", "+term.CleanText(above.Question))
		}
		for _, node := range slices.Sorted(maps.Keys(r.Templates)) {
			row("template", "of "+node+", changed in this run: "+term.CleanText(r.Templates[node]))
		}
	}
	if s.From != nil {
		row("forked", "from "+s.From.String())
	}
	row("started", s.Started.Local().Format(time.DateTime)+" ("+runview.FormatAge(time.Since(s.Started))+")")
	row("updated", s.Updated.Local().Format(time.DateTime)+" ("+runview.FormatAge(time.Since(s.Updated))+")")
	row("active", fmt.Sprintf("%.2fs", s.Seconds))
	row("spent", s.Spent.Describe())
	row("slowest", slowestText(s.Spent.Slowest))
	if !s.Talks {
		row("path", pathText(s.Path))
		row("next", strings.Join(s.Next, ", "))
	}
	if u := s.Usage; u.Calls > 0 {
		row("usage", runview.FormatUsage(u))
	}
	row("said", words.DescribeSaid(s.Moments, s.Calls))
	row("tree", runview.FormatTree(&s.Tree))
	for _, w := range s.Warnings {
		row("warning", term.CleanText(w))
	}
	row("failed", runview.FormatFailures(s.Failures, maxFailures))
	row("found", runview.FormatSearches(s.Searches))
	for _, q := range s.Questions {
		row("question", question.FormatName(q)+": "+question.FormatPrompt(q, false))
		row("", question.DescribeAnswers(q))
		if !q.Due.IsZero() {
			row("", runview.FormatUntil(q.Due))
		}
	}
	if !s.Due.IsZero() && len(s.Questions) == 0 {
		row("waits", runview.FormatUntil(s.Due))
	}
	row("state", runview.FormatState(s.State, s.Talks, wholeState))
	row("points", runview.FormatPoints(s))
	for _, f := range s.Forks {
		row("fork", fmt.Sprintf("%s, at @%d", f.Run, f.At))
	}
	switch {
	case s.At > 0:
		row("go back", "raddle runs fork "+runs.Point{Run: s.Run, At: s.At}.String())
	case s.Output != nil:
		row("output", *s.Output)
	case s.Status != runs.Running && !s.Final:
		row("continue", resumeLine("raddle resume "+s.Run, graph.Result{Status: statusOf(s), Questions: s.Questions}))
	}
	return text.String()
}

// maxFailures is how many failures of a run that it has survived are shown to people.
const maxFailures = 10

// maxSlow is how many of the slowest effects of a run are shown to people.
const maxSlow = 3

// slowestText lists the effects that took longest, a line each.
func slowestText(list []overview.Slow) string {
	var b strings.Builder
	for i := range list[:min(len(list), maxSlow)] {
		b.WriteString(term.CleanText(list[i].Describe()) + "\n")
	}
	return b.String()
}

func statusOf(s *overview.Run) graph.Status {
	if len(s.Questions) > 0 || !s.Due.IsZero() {
		return graph.Waiting
	}
	return graph.Paused
}

// pathText joins the visited nodes; those of a parallel step are in brackets.
func pathText(path []any) string {
	var parts []string
	for _, p := range path {
		switch p := p.(type) {
		case string:
			parts = append(parts, p)
		case []string:
			parts = append(parts, "["+strings.Join(p, ", ")+"]")
		}
	}
	const most = 40
	if len(parts) > most {
		parts = append([]string{fmt.Sprintf("(%d steps)", len(parts)-most)}, parts[len(parts)-most:]...)
	}
	return strings.Join(parts, " -> ")
}

// formatVariables writes variables, sorted by their names.
func formatVariables(m map[string]string) string {
	var list []string
	for k, v := range m {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}
