package experiment

import (
	"fmt"
	"html"
	"io"
	"strings"

	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/junit"
	"raddle.dev/internal/proving/testcase"
)

// describeExpected returns what an item expects, for people.
func describeExpected(v any) string {
	if v == nil {
		return ""
	}
	return testcase.Text(v)
}

// WriteJUnit writes the results in the form of JUnit: a suite for each variant, a test for each cell, which fails if one
// of its scores is below 1, and a test named verdict that fails with the lines of [Report.Judge].
func (r *Report) WriteJUnit(w io.Writer, verdict []string) error {
	all := junit.Report{Name: "raddle eval"}
	for _, v := range r.Variants {
		suite := junit.Suite{Name: v.Name}
		for n := range r.Results {
			if c := &r.Results[n]; c.Variant == v.Name {
				suite.Add(junit.Case{
					Name:    fmt.Sprintf("%s (%d)", c.Item, c.Round),
					Class:   v.Name,
					File:    r.Data,
					Line:    c.Line,
					Time:    junit.Seconds(c.Seconds),
					Failure: c.describeFailure(),
				})
			}
		}
		all.Add(suite)
	}
	last := junit.Suite{Name: "verdict"}
	one := junit.Case{
		Name:  "verdict",
		Class: "verdict",
		File:  r.Data,
		Line:  1,
	}
	if len(verdict) > 0 {
		one.Failure = &junit.Failure{Message: verdict[0], Text: strings.Join(verdict, "\n")}
	}
	last.Add(one)
	all.Add(last)
	return all.Write(w)
}

// describeFailure returns what is not perfect in a cell; nil: nothing.
func (c *CellReport) describeFailure() *junit.Failure {
	var lines []string
	for _, s := range c.Scores {
		switch {
		case s.Error != "":
			lines = append(lines, s.Scorer+": "+s.Error)
		case s.Score != nil && *s.Score < 1:
			lines = append(lines, fmt.Sprintf("%s: %.3g %s", s.Scorer, *s.Score, s.Reason))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return &junit.Failure{Message: lines[0], Text: strings.Join(append(lines, "run "+c.Run, "output: "+c.Output), "\n")}
}

// style is that of the page: light or dark as the reader's system is.
const style = `:root{color-scheme:light dark;font:15px/1.5 system-ui,sans-serif}body{margin:2rem auto;max-width:72rem;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{text-align:left;vertical-align:top;padding:.35rem .7rem;border-bottom:1px solid #8884}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.2rem 0;max-height:20rem;overflow:auto}
.bad{color:#c62828}.good{color:#2e7d32}.dim{opacity:.7}@media (prefers-color-scheme:dark){.bad{color:#ff8a80}.good{color:#81c784}}
.wide{overflow-x:auto}details{border-bottom:1px solid #8884;padding:.3rem 0}summary{cursor:pointer}h2{margin-top:2.5rem}`

// WriteHTML writes the results as one page that needs no other file and runs no script.
func (r *Report) WriteHTML(w io.Writer, verdict []string) error {
	page := &htmlPage{}
	page.add(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s</title><style>`, "Experiment: "+r.Agent)
	page.text.WriteString(style) // of this program, and no value
	tries := ""
	if r.Repeat > 1 {
		tries = fmt.Sprintf(", each %d times", r.Repeat)
	}
	page.add(`</style></head><body><h1>%s</h1><p>%s of %s%s, %s; %d of %s, %.4f USD</p>`, r.Agent, wording.FormatCount(r.Items, "item"), r.Data, tries,
		wording.FormatCount(len(r.Variants), "variant"), r.Done, wording.FormatCount(r.Cells, "run"), r.Cost)
	for _, line := range verdict {
		page.add(`<p class="bad">%s</p>`, line)
	}
	page.add(`<div class="wide"><table><thead><tr><th>Variant</th><th>Scorer</th><th>Mean</th><th>95 %%</th><th>Against %s</th><th>Verdict</th><th>Cost USD</th><th>p50 s</th><th>p95 s</th><th>Failed</th></tr></thead><tbody>`, r.Variants[0].Name)
	for n := range r.Variants {
		r.Variants[n].addRows(page)
	}
	page.add(`</tbody></table></div>`)
	for _, line := range r.Explain() {
		page.add(`<p class="dim">%s</p>`, line)
	}
	page.add(`<h2>Results</h2>`)
	for n := range r.Results {
		r.Results[n].addDetails(page, r.Repeat > 1)
	}
	page.add("</body></html>\n")
	_, err := io.WriteString(w, page.text.String())
	return err
}

// An htmlPage is a page that is written part by part.
type htmlPage struct{ text strings.Builder }

// add adds a part. Values that are texts are data, whatever they contain.
func (p *htmlPage) add(format string, values ...any) {
	for n, v := range values {
		if text, ok := v.(string); ok {
			values[n] = html.EscapeString(text)
		}
	}
	fmt.Fprintf(&p.text, format, values...)
}

func (v *VariantReport) addRows(page *htmlPage) {
	for n, s := range v.Scores {
		name := v.Name
		if n > 0 {
			name = ""
		}
		page.add(`<tr><td>%s</td><td>%s</td><td class="n">%.3f</td><td class="n">%.3f – %.3f</td>`, name, s.Scorer, s.Mean, s.Low, s.High)
		against := ""
		if s.Against != nil {
			against = fmt.Sprintf("%+.3f (%+.3f to %+.3f)", s.Against.Mean, s.Against.Low, s.Against.High)
		}
		class := map[string]string{VerdictWorse: "bad", VerdictBetter: "good"}[s.Verdict]
		page.add(`<td class="n">%s</td><td class="%s">%s</td>`, against, class, s.Verdict)
		if n > 0 {
			page.add(`<td></td><td></td><td></td><td></td></tr>`)
			continue
		}
		page.add(`<td class="n">%.4f</td><td class="n">%.2f</td><td class="n">%.2f</td><td class="n">%d</td></tr>`, v.Cost+v.JudgeCost, v.P50, v.P95, v.Failed)
	}
}

// addDetails adds a result, with the number of its repetition if there are several.
func (c *CellReport) addDetails(page *htmlPage, repeated bool) {
	class := "good"
	var said []string
	for _, s := range c.Scores {
		switch {
		case s.Error != "":
			class = "bad"
			said = append(said, s.Scorer+" failed")
		case s.Score != nil:
			if *s.Score < 1 {
				class = "bad"
			}
			said = append(said, fmt.Sprintf("%s %.2f", s.Scorer, *s.Score))
		}
	}
	round := ""
	if repeated {
		round = fmt.Sprintf(" · repetition %d", c.Round)
	}
	page.add(`<details><summary>item %s · %s%s · <span class="%s">%s</span></summary><table><tbody>`, c.Item, c.Variant, round, class, strings.Join(said, ", "))
	rows := []struct{ name, text string }{{"Prompt", c.prompt}, {"Expected", c.expect}, {"Output", c.Output}, {"Error", c.Error}, {"Run", c.Run}}
	for _, s := range c.Scores {
		if why := strings.TrimSpace(s.Reason + s.Error); why != "" {
			rows = append(rows, struct{ name, text string }{s.Scorer, why})
		}
	}
	for _, row := range rows {
		if row.text != "" {
			page.add(`<tr><th>%s</th><td><pre>%s</pre></td></tr>`, row.name, row.text)
		}
	}
	page.add(`</tbody></table></details>`)
}
