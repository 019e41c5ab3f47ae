// Package ragview is raddle rag on a terminal: what searches of knowledge bases find, and how well they find it.
package ragview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/rag"
	"raddle.dev/rag/measure"
)

// EvalOptions are the flags of "rag eval". The zero value compares the common settings for the base's number of
// passages.
type EvalOptions struct {
	Output  string // the format of the result
	node    string
	top     int
	weights []string
}

// DescribeEval returns the command with its flags, without --output and without what it does.
func DescribeEval(opts *EvalOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "eval BASE QUESTIONS.jsonl",
		Short: "Measure how well searches find the answers to questions",
		Long: `Asks the questions of a file with several settings, and shows side by side how well each finds what it should. BASE is an
agent, or the file of a knowledge base. Each line of the file is a question with the documents that its search should find, or with
a text that a passage must hold, or both:

  {"question": "How long is the notice period?", "relevant": ["leave.md"], "answer": "four weeks"}

The brackets hold 95 % intervals. "gain" is the difference of MRR to the first row, which is what the agent's file says; a star marks
one whose interval does not hold zero. See: raddle help retrieval`,
		Example: `  raddle examples copy handbook
  raddle rag build examples/handbook
  raddle rag eval examples/handbook examples/handbook/questions.jsonl`,
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.node, "node", "", "the `ID` of the rag node, if the agent has several")
	flags.IntVar(&opts.top, "top", 0, "search for `N` passages; 0: the knowledge base's top_k")
	flags.StringArrayVar(&opts.weights, "weights", nil, "also measure the `MEANING/WORDS[/ENTITIES]`, as 0.6/0.4; can be repeated")
	return cmd
}

// An evaluation is the result of the command.
type evaluation struct {
	Questions int              `json:"questions"`
	Top       int              `json:"top"`
	Settings  []measure.Result `json:"settings"`
}

// RunEval carries the command out. The error says how it ends.
func (o EvalOptions) RunEval(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	text, err := plainfile.Read(args[1], maxQuestions)
	if err != nil {
		return failure.NewUsage("name a file that is there and can be read; raddle rag eval --help shows one", "the questions: %v", err)
	}
	questions, err := measure.ReadQuestions(args[1], text)
	if err != nil {
		return &failure.Error{Kind: failure.Invalid, Err: err}
	}
	extra, err := parseWeights(o.weights)
	if err != nil {
		return err
	}
	base, err := p.Knowledge().OpenBase(app.KnowledgeSource{
		Base: args[0],
		Node: o.node,
		Wrap: func(e rag.Embedder) rag.Embedder { return &measure.Embedder{Model: e} },
	})
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }()
	settings, err := base.Settings(ctx)
	if err != nil {
		return err
	}
	top := o.top
	if top == 0 {
		top = max(settings.TopK, 1)
	}
	ways := append(measure.CommonSettings(settings, base.Fusion), extra...)
	results, err := measure.Compare(ctx, base, questions, ways, top)
	switch {
	case ctx.Err() != nil:
		return ending.Silent{Code: ending.Interrupted}
	case err != nil:
		return err
	}
	e := evaluation{
		Questions: len(questions),
		Top:       top,
		Settings:  results,
	}
	return con.PrintResult(o.Output, e, e.Text)
}

// maxQuestions is the size in bytes of the largest file of questions.
const maxQuestions = 64 << 20

// parseWeights reads the values of --weights.
func parseWeights(texts []string) (list []measure.Setting, err error) {
	for _, text := range texts {
		var w rag.Weights
		parts := []*float64{&w.Meaning, &w.Words, &w.Entities}
		fields := strings.Split(text, "/")
		ok := len(fields) >= 2 && len(fields) <= len(parts)
		for i := 0; ok && i < len(fields); i++ {
			n, err := fmt.Sscanf(fields[i]+"\n", "%g\n", parts[i])
			ok = n == 1 && err == nil
		}
		f := rag.Fusion{Method: rag.ByScores, Weights: w}
		if fault := f.Validate(); !ok || fault != nil || w == (rag.Weights{}) {
			reason := "write numbers, as 0.6/0.4, at least 0 and not all 0"
			return nil, ending.BadUsage(reason, "--weights %q is not MEANING/WORDS[/ENTITIES]", text)
		}
		list = append(list, measure.Setting{Name: "--weights " + text, Fusion: f})
	}
	return list, nil
}

// Text is the result for a person.
func (e evaluation) Text() string {
	best := func(of func(measure.Result) float64) float64 {
		values := make([]float64, len(e.Settings))
		for i, r := range e.Settings {
			values[i] = of(r)
		}
		return slices.Max(values)
	}
	column := func(heading string, of func(measure.Result) measure.Figure) term.Column[measure.Result] {
		most := best(func(r measure.Result) float64 { return of(r).Mean })
		return term.NewColumn(heading, func(r measure.Result) string {
			f := of(r)
			mark := ""
			if f.Mean == most {
				mark = " best"
			}
			return fmt.Sprintf("%.3f [%.3f %.3f]%s", f.Mean, f.Low, f.High, mark)
		})
	}
	table := term.FormatRows(e.Settings,
		term.NewColumn("setting", func(r measure.Result) string { return r.Setting }),
		column("first", func(r measure.Result) measure.Figure { return r.First }),
		column(fmt.Sprintf("recall@%d", e.Top), func(r measure.Result) measure.Figure { return r.Recall }),
		column("MRR", func(r measure.Result) measure.Figure { return r.MRR }),
		column("nDCG", func(r measure.Result) measure.Figure { return r.NDCG }),
		term.NewColumn("gain", e.formatGain),
	)
	return fmt.Sprintf("%d questions, %d passages each\n\n%s", e.Questions, e.Top, strings.TrimRight(table, "\n"))
}

// formatGain formats the difference to the first setting.
func (e evaluation) formatGain(r measure.Result) string {
	g := r.Gain
	switch {
	case r.Setting == e.Settings[0].Setting:
		return ""
	case g.Low > 0 || g.High < 0:
		return fmt.Sprintf("%+.3f [%+.3f %+.3f] *", g.Mean, g.Low, g.High)
	}
	return fmt.Sprintf("%+.3f [%+.3f %+.3f]", g.Mean, g.Low, g.High)
}
