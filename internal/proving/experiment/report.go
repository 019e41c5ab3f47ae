package experiment

import (
	"fmt"
	"strings"

	"raddle.dev/internal/base/stats"
	"raddle.dev/internal/proving/score"
)

// A Report is what an experiment has found.
type Report struct {
	Agent    string          `json:"agent"`
	Data     string          `json:"data"`
	Items    int             `json:"items"`
	Repeat   int             `json:"repeat"`
	Cells    int             `json:"cells"`
	Done     int             `json:"done"`     // cells that have run, now or before; fewer than all if the budget was used up
	Reused   int             `json:"reused"`   // of them, those that had run before
	Cost     float64         `json:"cost_usd"` // of all cells and judges, also of those that had run before
	Unpriced int             `json:"unpriced_model_calls,omitempty"`
	Scorers  []string        `json:"scorers"`
	Variants []VariantReport `json:"variants"`
	Results  []CellReport    `json:"results"`
}

// VariantReport is what an experiment says of a variant.
type VariantReport struct {
	Name      string        `json:"name"`
	Done      int           `json:"done"`
	Failed    int           `json:"failed"` // runs that have no output
	Cost      float64       `json:"cost_usd"`
	JudgeCost float64       `json:"judge_cost_usd"`
	Calls     int           `json:"model_calls"`
	P50       float64       `json:"p50_seconds"`
	P95       float64       `json:"p95_seconds"`
	Scores    []ScoreReport `json:"scores"`
}

// ScoreReport is what one scorer says of a variant.
type ScoreReport struct {
	Scorer string `json:"scorer"`
	stats.Interval
	Items  int `json:"items"` // that it applies to
	Errors int `json:"errors"`
	// Against is the difference from the baseline on the same items; null: it is the baseline, or there is no such item.
	Against *stats.Difference `json:"against_baseline"`
	Verdict string            `json:"verdict"` // VerdictWorse, VerdictBetter or VerdictOpen; "" of the baseline
}

// The verdicts about a variant.
const (
	VerdictWorse  = "worse"
	VerdictBetter = "better"
	VerdictOpen   = "no difference beyond chance"
)

// CellReport is the result of a cell.
type CellReport struct {
	Item    string            `json:"item"`
	Line    int               `json:"line"`
	Variant string            `json:"variant"`
	Round   int               `json:"round"`
	Run     string            `json:"run"`
	Status  string            `json:"status"`
	Error   string            `json:"error,omitempty"`
	Output  string            `json:"output"`
	Cost    float64           `json:"cost_usd"`
	Seconds float64           `json:"seconds"`
	Reused  bool              `json:"reused"`
	Scores  []CellScoreReport `json:"scores"`

	prompt string
	expect string
}

// CellScoreReport is one score of a cell.
type CellScoreReport struct {
	Scorer string   `json:"scorer"`
	Score  *float64 `json:"score"` // null: the scorer does not apply, or has failed
	Reason string   `json:"reason,omitempty"`
	Error  string   `json:"error,omitempty"`
}

// A tally sums what cells say of a variant.
type tally struct {
	seconds []float64
	// of each scorer: for each item, the sum of its scores and their number
	sums   [][]float64
	counts [][]int
}

// report counts what the cells say.
func (e *Experiment) report(cells []*Cell) *Report {
	r := &Report{
		Agent:  e.Agent,
		Data:   e.Data.Path,
		Items:  len(e.Data.Items),
		Repeat: e.Repeat,
		Cells:  len(cells),
	}
	for _, s := range e.Scorers {
		r.Scorers = append(r.Scorers, s.Name)
	}
	tallies := make([]tally, len(e.Variants))
	for n, v := range e.Variants {
		r.Variants = append(r.Variants, VariantReport{Name: v.Name})
		for _, s := range e.Scorers {
			r.Variants[n].Scores = append(r.Variants[n].Scores, ScoreReport{Scorer: s.Name})
			tallies[n].sums = append(tallies[n].sums, make([]float64, len(e.Data.Items)))
			tallies[n].counts = append(tallies[n].counts, make([]int, len(e.Data.Items)))
		}
	}
	for _, c := range cells {
		if c.Scores != nil {
			e.addCell(r, &tallies[c.Variant], c)
		}
	}
	e.compare(r, tallies)
	return r
}

// addCell adds a cell to a report.
func (e *Experiment) addCell(r *Report, t *tally, c *Cell) {
	v := &r.Variants[c.Variant]
	one := CellReport{
		Item:    c.Item.ID,
		Line:    c.Item.Pos.Line,
		Variant: v.Name,
		Round:   c.Round,
		Run:     c.Result.Run,
		Status:  c.Result.Status,
		Error:   c.Result.Error,
		Output:  c.Result.Output,
		Cost:    c.Result.Cost,
		Seconds: c.Result.Seconds,
		Reused:  c.Reused,
		prompt:  c.Item.Prompt,
		expect:  describeExpected(c.Item.Expected),
	}
	r.Done++
	v.Done++
	if c.Reused {
		r.Reused++
	}
	if c.Result.Status != score.StatusDone {
		v.Failed++
	}
	v.Cost += c.Result.Cost
	v.Calls += c.Result.ModelCalls
	r.Cost += c.Result.Cost
	r.Unpriced += c.Result.Unpriced
	t.seconds = append(t.seconds, c.Result.Seconds)
	for n, s := range c.Scores {
		said := CellScoreReport{Scorer: e.Scorers[n].Name, Reason: s.Reason}
		v.JudgeCost += s.Cost
		r.Cost += s.Cost
		switch {
		case s.Err != nil:
			said.Error = s.Err.Error()
			v.Scores[n].Errors++
		case s.Applies:
			said.Score = &s.Value
			t.sums[n][c.index] += s.Value
			t.counts[n][c.index]++
		}
		one.Scores = append(one.Scores, said)
	}
	r.Results = append(r.Results, one)
}

// compare fills in the means and the differences.
func (e *Experiment) compare(r *Report, tallies []tally) {
	var all []*stats.Difference
	for n := range r.Variants {
		v := &r.Variants[n]
		v.P50 = stats.Quantile(tallies[n].seconds, 0.5)
		v.P95 = stats.Quantile(tallies[n].seconds, 0.95)
		for s := range v.Scores {
			own, base := pairScores(&tallies[n], &tallies[0], s)
			v.Scores[s].Items = len(own.all)
			v.Scores[s].Interval = stats.MeanOf(own.all)
			if n == 0 || len(base.paired) == 0 {
				continue
			}
			d := stats.Differ(own.paired, base.paired)
			v.Scores[s].Against = &d
			all = append(all, &d)
		}
	}
	stats.Correct(all)
	for n := range r.Variants {
		for s := range r.Variants[n].Scores {
			one := &r.Variants[n].Scores[s]
			switch d := one.Against; {
			case d == nil:
			case d.IsWorse():
				one.Verdict = VerdictWorse
			case d.IsBetter():
				one.Verdict = VerdictBetter
			default:
				one.Verdict = VerdictOpen
			}
		}
	}
}

// itemScores are mean scores of items: of all that a variant has, and of those that the baseline has, too.
type itemScores struct{ all, paired []float64 }

// pairScores returns the mean score of each item in a variant and in the baseline.
func pairScores(t, baseline *tally, scorer int) (own, base itemScores) {
	for item, count := range t.counts[scorer] {
		if count == 0 {
			continue
		}
		mean := t.sums[scorer][item] / float64(count)
		own.all = append(own.all, mean)
		if others := baseline.counts[scorer][item]; others > 0 {
			own.paired = append(own.paired, mean)
			base.paired = append(base.paired, baseline.sums[scorer][item]/float64(others))
		}
	}
	return own, base
}

// A Least is a mean that every variant must reach.
type Least struct {
	Scorer string // "": the mean of all scorers
	Score  float64
}

// Judge returns why the results are not good enough: one line for each mean below a least one, for each variant that is
// worse than the baseline beyond chance, and for each scorer without a single score. No line: they are.
func (r *Report) Judge(least []Least) (lines []string) {
	for n := range r.Variants {
		v := &r.Variants[n]
		for _, l := range least {
			mean, ok := v.meanOf(l.Scorer)
			name := l.Scorer
			if name == "" {
				name = "score"
			}
			switch {
			case !ok:
				lines = append(lines, fmt.Sprintf("%s: %s has no score, and must reach %g", v.Name, name, l.Score))
			case mean < l.Score:
				lines = append(lines, fmt.Sprintf("%s: %s is %.3f, below %g", v.Name, name, mean, l.Score))
			}
		}
		for _, s := range v.Scores {
			if s.Verdict == VerdictWorse {
				lines = append(lines, fmt.Sprintf("%s: %s is worse than %s by %.3f (%.3f to %.3f), beyond chance", v.Name, s.Scorer, r.Variants[0].Name, -s.Against.Mean, -s.Against.High, -s.Against.Low))
			}
		}
	}
	return lines
}

// meanOf returns the mean of a scorer, or of all of them.
func (v *VariantReport) meanOf(scorer string) (mean float64, ok bool) {
	n := 0
	for _, s := range v.Scores {
		if s.Items > 0 && (scorer == "" || s.Scorer == scorer) {
			mean += s.Mean
			n++
		}
	}
	return mean / float64(max(1, n)), n > 0
}

// Explain returns what a person should know in addition to the numbers: open verdicts with the number of items that they need,
// scorers that have failed or never applied, runs that have failed.
func (r *Report) Explain() (lines []string) {
	if r.Done < r.Cells {
		lines = append(lines, fmt.Sprintf("The budget is used up: %d of %d cells have run. With a larger one, the same command continues.", r.Done, r.Cells))
	}
	for n := range r.Variants {
		v := &r.Variants[n]
		for _, s := range v.Scores {
			if s.Items == 0 && s.Errors == 0 && v.Done > 0 {
				lines = append(lines, fmt.Sprintf("%s: %s scores no item: none has what it compares with.", v.Name, s.Scorer))
			}
			if s.Errors > 0 {
				lines = append(lines, fmt.Sprintf("%s: %s has failed for %d of %d results: %s", v.Name, s.Scorer, s.Errors, v.Done, r.findError(v.Name, s.Scorer)))
			}
			if d := s.Against; d != nil && s.Verdict == VerdictOpen && d.Mean != 0 && d.Needed > d.Items {
				lines = append(lines, fmt.Sprintf("%s: the difference in %s (%+.3f) may be chance. If it is real, it takes about %d items to tell; there are %d.", v.Name, s.Scorer, d.Mean, d.Needed, d.Items))
			}
		}
		if v.Failed > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d of %d runs have no result: %s", v.Name, v.Failed, v.Done, r.findFailure(v.Name)))
		}
	}
	return lines
}

// findError returns the first error of a scorer.
func (r *Report) findError(variant, scorer string) string {
	for _, c := range r.Results {
		for _, s := range c.Scores {
			if c.Variant == variant && s.Scorer == scorer && s.Error != "" {
				return s.Error
			}
		}
	}
	return ""
}

// findFailure returns why the first run has failed, and its id.
func (r *Report) findFailure(variant string) string {
	for _, c := range r.Results {
		if c.Variant == variant && c.Status != score.StatusDone {
			return strings.TrimSpace("raddle explain " + c.Run + "  " + c.Error)
		}
	}
	return ""
}
