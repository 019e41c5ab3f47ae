package evalview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/experiment"
	"raddle.dev/internal/proving/score"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runlimits"
)

// Options are the flags of raddle eval. The zero value is not usable: [Describe] sets the defaults.
type Options struct {
	Output string // the format of the result

	data     string
	scorers  string
	variants []string
	least    []string
	tags     []string
	repeat   int
	jobs     int
	budget   string
	report   string
	fresh    bool
	retry    bool
	limits   runlimits.Limits // of each cell
}

// Describe returns the command with its flags, without --output and without what it does.
func Describe(opts *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval AGENT --data FILE",
		Short: "Score an agent on a data set, and compare variants of it",
		Long: `Runs the agent with each item of a data set, as it is and in each variant, scores the results, and says which variant is
worse or better than the agent as it is, beyond chance. Models and tools are real, and cost what they cost. Each cell,
an item in a variant and a repetition, is a run of the store: the same command continues an experiment that was
interrupted, and pays no cell twice. See: raddle help improving
The exit code is 6 if a mean is below --min, or if a variant is worse beyond chance.`,
		Example: `  raddle eval triage --data issues.jsonl --min score=0.8
  raddle eval writer --data topics.yaml --variant model=openai:gpt-5,anthropic:claude-sonnet-4-5 --repeat 3
  raddle eval writer --data topics.csv --scorers scorers.yaml --variant prompt:draft=@new.txt --report out.html`,
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.data, "data", "", "the data set: `FILE` of JSONL, JSON, YAML or CSV")
	flags.StringVar(&opts.scorers, "scorers", "", "score as `FILE` of YAML says (default the scorers in the data set, or what its items expect)")
	flags.StringArrayVar(&opts.variants, "variant", nil, "compare with `CHANGE`: model=A,B, prompt:NODE=@FILE, variable:NAME=VALUE or agent=DIR (repeatable)")
	flags.StringArrayVar(&opts.least, "min", nil, "the mean that every variant must reach: `SCORER=NUMBER`, or score=NUMBER for all scorers (repeatable)")
	flags.StringArrayVar(&opts.tags, "tag", nil, "only items with the tag `TAG` (repeatable)")
	flags.IntVar(&opts.repeat, "repeat", 1, "try each item `N` times in each variant (default 1)")
	flags.IntVar(&opts.jobs, "jobs", 4, "run `N` cells at the same time (default 4)")
	flags.StringVar(&opts.budget, "budget", "", "start no cell once all of them have cost `AMOUNT`, for example 2usd")
	opts.limits.AddFlags(flags, "the run of each cell")
	flags.StringVar(&opts.report, "report", "", "write a page with all results to `FILE`.html")
	flags.BoolVar(&opts.fresh, "fresh", false, "run all cells again, also those that have run")
	flags.BoolVar(&opts.retry, "retry-failed", false, "run the cells again that have failed")
	return cmd
}

// Run carries the command out. The error says how it ends.
func (o *Options) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	e, least, err := o.plan(p, args[0])
	if _, broken := errors.AsType[*strictyaml.FileError](err); broken {
		err = &failure.Error{Kind: failure.Invalid, Err: err}
	}
	if err != nil {
		return err
	}
	e.Done = o.newProgress(con)
	e.Hooks.Log = p.Log
	r, err := e.Run(ctx)
	con.Screen.ClearLive()
	switch {
	case ctx.Err() != nil && err != nil:
		con.PrintNote("interrupted; the same command continues")
		return ending.Silent{Code: ending.Interrupted}
	case err != nil:
		return err
	}
	verdict := r.Judge(least)
	if o.report != "" {
		if err := o.writeReport(con, p, r, verdict); err != nil {
			return err
		}
	}
	switch o.Output {
	case testrun.FormatJUnit:
		err = r.WriteJUnit(con.Out, verdict)
	case console.FormatJSON:
		err = con.PrintJSON(struct {
			*experiment.Report
			OK      bool     `json:"ok"`
			Failed  []string `json:"failed"`
			Remarks []string `json:"remarks"`
		}{r, len(verdict) == 0, append([]string{}, verdict...), append([]string{}, r.Explain()...)})
	default:
		o.printReport(con, r, verdict)
	}
	if err != nil || len(verdict) == 0 {
		return err
	}
	return ending.Silent{Code: ending.Budget}
}

// plan returns the experiment that the flags describe, and what its means must reach.
func (o *Options) plan(p *app.Process, agent string) (e *experiment.Experiment, least []experiment.Least, err error) {
	switch {
	case o.data == "":
		return nil, nil, failure.NewUsage("add --data FILE; raddle help improving shows one", "raddle eval: the data set is missing")
	case o.repeat < 1 || o.repeat > 1000:
		return nil, nil, failure.NewUsage("use a number from 1 to 1000", "--repeat %d is not a number of repetitions", o.repeat)
	case o.jobs < 1 || o.jobs > 1000:
		return nil, nil, failure.NewUsage("use a number from 1 to 1000", "--jobs %d is not a number of cells", o.jobs)
	}
	e = &experiment.Experiment{
		Process: p,
		Agent:   agent,
		Repeat:  o.repeat,
		Jobs:    o.jobs,
		Retry:   o.retry,

		Limits:   o.limits.Budget(),
		Deadline: o.limits.Deadline,
	}
	if e.Budget, err = readBudget(o.budget); err != nil {
		return nil, nil, err
	}
	if e.Variants, err = experiment.ReadVariants(o.variants, p.Dirs.Work); err != nil {
		return nil, nil, err
	}
	if e.Data, err = dataset.Load(p.Dirs.AbsPath(o.data)); err != nil {
		return nil, nil, explainRead("--data", err)
	}
	if e.Scorers, err = o.readScorers(p, e.Data); err != nil {
		return nil, nil, err
	}
	if len(o.tags) > 0 {
		if err := o.keepTagged(e.Data); err != nil {
			return nil, nil, err
		}
	}
	if o.fresh {
		e.Salt = graph.NewID(time.Now())
	}
	least, err = readLeast(o.least, e.Scorers)
	return e, least, err
}

// explainRead says of a file that cannot be read which flag names it. What is wrong with its text says it itself.
func explainRead(flag string, err error) error {
	if _, unread := errors.AsType[*fs.PathError](err); !unread {
		return err
	}
	return failure.NewUsage("name a file that is there and can be read", "%s: %v", flag, err)
}

// readScorers returns the scorers of --scorers, or those of the data set, or what scores items that expect something.
func (o *Options) readScorers(p *app.Process, data *dataset.File) ([]*score.Scorer, error) {
	if o.scorers != "" {
		path := p.Dirs.AbsPath(o.scorers)
		text, err := plainfile.Read(path, strictyaml.MaxFileSize)
		if err != nil {
			return nil, explainRead("--scorers", err)
		}
		return score.Read(path, text)
	}
	if data.Scorers != nil {
		list := score.ReadList(data.Document, data.Scorers)
		if len(data.Document.List) > 0 {
			return nil, &strictyaml.FileError{Findings: data.Document.List}
		}
		return list, nil
	}
	for _, item := range data.Items {
		if item.Expect != nil {
			return score.Default(), nil
		}
	}
	return nil, failure.NewUsage("add `expect` to its items, or --scorers FILE: raddle help improving", "no item of %s says what is expected, and there are no scorers", o.data)
}

// keepTagged removes the items without one of the tags.
func (o *Options) keepTagged(data *dataset.File) error {
	var kept []*dataset.Item
	for _, item := range data.Items {
		if item.HasTag(o.tags...) {
			kept = append(kept, item)
		}
	}
	if kept == nil {
		return failure.NewUsage("leave --tag out, or name another one", "no item of %s has the tag %s", o.data, strings.Join(o.tags, " or "))
	}
	data.Items = kept
	return nil
}

// readBudget reads an amount of dollars, such as 2usd, $2 or 2; "": 0.
func readBudget(text string) (float64, error) {
	if text == "" {
		return 0, nil
	}
	number := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(strings.TrimSpace(text)), "$"), "usd"))
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || !(f > 0) || math.IsInf(f, 0) {
		return 0, failure.NewUsage("write for example --budget 2usd", "--budget: %q is not an amount of dollars above 0", text)
	}
	return f, nil
}

// readLeast reads the means that must be reached.
func readLeast(words []string, scorers []*score.Scorer) (least []experiment.Least, err error) {
	var names []string
	for _, s := range scorers {
		names = append(names, s.Name)
	}
	for _, word := range words {
		name, number, ok := strings.Cut(word, "=")
		f, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil || !(f >= 0 && f <= 1) {
			return nil, failure.NewUsage("write for example --min score=0.8", "--min: %q is not a scorer and a number from 0 to 1", word)
		}
		l := experiment.Least{Scorer: name, Score: f}
		known := false
		for _, n := range names {
			known = known || n == name
		}
		switch {
		case known:
		case name == "score":
			l.Scorer = ""
		default:
			return nil, failure.NewUsage("use one of score, "+strings.Join(names, ", "), "--min: no scorer has the name %q", name)
		}
		least = append(least, l)
	}
	return least, nil
}

// newProgress returns what shows how far an experiment is: a live line on a terminal, and a line for each cell with -v.
func (o *Options) newProgress(con *console.Console) func(experiment.Progress) {
	if con.Quiet {
		return nil
	}
	return func(p experiment.Progress) {
		if con.Verbose {
			var said []string
			for _, s := range p.Cell.Scores {
				if s.Applies {
					said = append(said, fmt.Sprintf("%.2f", s.Value))
				}
			}
			con.PrintNote("item %s: %s %s (run %s)", p.Cell.Item.ID, p.Cell.Result.Status, strings.Join(said, " "), p.Cell.Result.Run)
		}
		if !con.ShowsBlocks() {
			return
		}
		con.Screen.SetLive([]string{con.Screen.Paint(term.Dim, fmt.Sprintf("  %d of %d cells, %.4f USD", p.Done, p.Cells, p.Cost))})
	}
}

// writeReport writes the page.
func (o *Options) writeReport(con *console.Console, p *app.Process, r *experiment.Report, verdict []string) error {
	path := p.Dirs.AbsPath(o.report)
	var page strings.Builder
	if err := r.WriteHTML(&page, verdict); err != nil {
		return err
	}
	if err := config.WritePrivate(path, []byte(page.String())); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return failure.NewUsage("name a file in a directory that is there", "--report: %v", err)
		}
		return err
	}
	con.PrintNote("report: %s", p.Dirs.ShortPath(path))
	return nil
}

// A row is a line of the table: a scorer in a variant.
type row struct {
	*experiment.VariantReport
	experiment.ScoreReport
	first bool // of its variant
}

// printReport prints the table, what else should be known, and the verdict.
func (o *Options) printReport(con *console.Console, r *experiment.Report, verdict []string) {
	once := func(cell func(r row) string) func(row) string {
		return func(r row) string {
			if !r.first {
				return ""
			}
			return cell(r)
		}
	}
	table := term.NewTable(
		term.NewColumn("VARIANT", once(func(r row) string { return r.Name })),
		term.NewColumn("SCORER", func(r row) string { return r.Scorer }),
		term.NewColumn("MEAN", func(r row) string { return formatMean(r, r.Mean) }),
		term.NewColumn("95 %", func(r row) string { return formatMean(r, r.Low) + "–" + formatMean(r, r.High) }),
		term.NewColumn("AGAINST", formatAgainst),
		term.NewColumn("USD", once(func(r row) string { return fmt.Sprintf("%.4f", r.Cost+r.JudgeCost) })),
		term.NewColumn("P50", once(func(r row) string { return formatSeconds(r.P50) })),
		term.NewColumn("P95", once(func(r row) string { return formatSeconds(r.P95) })),
		term.NewColumn("FAILED", once(func(r row) string { return strconv.Itoa(r.Failed) })),
	)
	for n := range r.Variants {
		for at, s := range r.Variants[n].Scores {
			table.AddRow(row{&r.Variants[n], s, at == 0})
		}
	}
	con.PrintTable(table)
	paid := ""
	if r.Reused > 0 {
		paid = fmt.Sprintf(", %d of them had run before", r.Reused)
	}
	unknown := ""
	if r.Unpriced > 0 {
		unknown = fmt.Sprintf(" and %d model calls without a known price", r.Unpriced)
	}
	con.Out.PrintText(fmt.Sprintf("\n%d items, %d runs%s, %.4f USD%s", r.Items, r.Done, paid, r.Cost, unknown))
	for _, line := range r.Explain() {
		con.Out.PrintText(term.CleanLine(line))
	}
	for _, line := range verdict {
		con.Out.PrintText(con.Out.Paint(term.Red, "✗ ") + term.CleanLine(line))
	}
}

func formatMean(r row, f float64) string {
	if r.Items == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", f)
}

// formatAgainst says how a variant compares with the baseline.
func formatAgainst(r row) string {
	if r.Against == nil {
		return ""
	}
	text := fmt.Sprintf("%+.3f", r.Against.Mean)
	switch r.Verdict {
	case experiment.VerdictWorse, experiment.VerdictBetter:
		return text + " " + r.Verdict
	}
	return text + " open"
}

func formatSeconds(s float64) string {
	return strconv.FormatFloat(s, 'f', 2, 64) + "s"
}
