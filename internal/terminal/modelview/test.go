package modelview

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/terminal/modeltest"
)

// A TestView shows the test of a model while it runs.
type TestView struct {
	Out    *term.Output
	Screen *term.Screen
	Hidden bool // results are not for people
}

// titleWidth is the width of the titles of steps.
const titleWidth = 18

// RunTest plays the steps and shows what they find.
func (v *TestView) RunTest(ctx context.Context, target modeltest.Target) (modeltest.Report, error) {
	report, err := modeltest.Run(ctx, target, v.showResult)
	v.Screen.ClearLive()
	if err == nil && !v.Hidden {
		v.showEnd(report)
	}
	return report, err
}

// showResult shows which step runs, below the results, or what one has found.
func (v *TestView) showResult(r modeltest.Result) {
	v.Screen.ClearLive()
	switch {
	case r.IsRunning() && v.Screen.IsTerminal():
		v.Screen.SetLive([]string{"… " + r.Title})
	case r.IsRunning() || v.Hidden:
	default:
		v.Out.PrintText(v.formatResult(r))
	}
}

func (v *TestView) formatResult(r modeltest.Result) string {
	mark := v.Out.Paint(term.Green, "✓")
	switch {
	case r.Status == modeltest.Untested:
		mark = "–"
	case r.Status == modeltest.Fails && r.Claimed:
		mark = v.Out.Paint(term.Red, "✗")
	case r.Status == modeltest.Fails:
		mark = v.Out.Paint(term.Yellow, "✗")
	}
	text := v.wrapField(mark+" ", r.Title, cmp.Or(r.Error, r.Detail, "works"))
	if r.Means != "" {
		text += v.wrapField("  ", "", "→ "+r.Means)
	}
	return text
}

// wrapField returns a name and the text that follows it, in lines that fit on the terminal.
func (v *TestView) wrapField(mark, name, text string) string {
	head := mark + term.PadText(name, titleWidth) + " "
	lines := term.WrapPainted(term.CleanLine(text), v.columns()-titleWidth-len("✓  ")+len("✓")-1)
	return head + strings.Join(lines, "\n"+strings.Repeat(" ", titleWidth+3)) + "\n"
}

// wrapText returns a text in lines that fit on the terminal.
func (v *TestView) wrapText(text string) string {
	return strings.Join(term.WrapPainted(term.CleanLine(text), v.columns()), "\n") + "\n"
}

// columns returns how wide lines may be.
func (v *TestView) columns() int {
	const unlimited, least = 10_000, 40
	for _, w := range []*term.Writer{v.Out.Writer, v.Screen.Writer} {
		if w.IsTerminal() {
			width, _ := w.Size()
			return max(width, least)
		}
	}
	return unlimited
}

// DescribePlan says what the test sends, and what that costs at most.
func (v *TestView) DescribePlan(target modeltest.Target) string {
	plan := modeltest.PlanTest(target)
	trial := target.Trial
	at := ""
	if trial.Host != "" {
		at = " at " + trial.Host
	}
	cost := "What that costs is not known, because the price of the model is not known."
	switch {
	case trial.Facts.Free:
		cost = "That costs nothing."
	case plan.Cost != nil:
		cost = fmt.Sprintf("That costs at most $%.2f, and mostly a small part of it.", *plan.Cost)
	}
	text := v.wrapText(fmt.Sprintf("%s%s gets at most %s with %s tokens, and may write %s tokens. %s",
		trial.ID, at, wording.FormatCount(plan.Requests, "request"), wording.FormatTokens(plan.Input), wording.FormatTokens(plan.Output), cost))
	more := "The conversation is made up: a few words, a tool that is not run, a picture of one colour, a page with one word. Nothing is stored."
	if trial.Unknown {
		more += " raddle does not know this server. Where the server refuses a form, it tries others, and so finds the profile."
	}
	return text + v.wrapText(more)
}

// showEnd shows what the test has found in all.
func (v *TestView) showEnd(report modeltest.Report) {
	var failed, others []string
	for _, r := range report.Steps {
		switch {
		case r.Status != modeltest.Fails:
		case r.Claimed:
			failed = append(failed, r.Title)
		default:
			others = append(others, r.Title)
		}
	}
	verdict := "Everything that the model claims works."
	switch {
	case len(failed) > 0:
		verdict = "These do not work: " + strings.Join(append(failed, others...), ", ") + "."
	case len(others) > 0:
		verdict = "Everything that the model claims works; it does not claim: " + strings.Join(others, ", ") + "."
	}
	cost := ""
	if report.Cost != nil && *report.Cost > 0 {
		cost = fmt.Sprintf(" The test cost $%.4f.", *report.Cost)
	}
	text := "\n" + v.wrapText(verdict+cost)
	if report.Profile != nil {
		text += "\n" + v.describeProfile(*report.Profile)
	}
	v.Out.PrintExact(text + "\n" + v.wrapText("The row for the table of the guide (raddle help matrix):") + report.Row)
}

// describeProfile says which profile fits.
func (v *TestView) describeProfile(p modeltest.FoundProfile) string {
	same := ""
	if len(p.Same) > 0 {
		same = " (" + strings.Join(p.Same, ", ") + " is the same)"
	}
	found := "profile: " + p.Name + same + "; write profile: " + p.Name + " into the client in config.yaml."
	switch {
	case p.Fits && p.Name == "":
		return v.wrapText("profile: none is needed; the server takes the plain rules")
	case p.Fits && len(p.Refusals) == 0:
		return v.wrapText(found + " Its replies have members that go back only then.")
	case p.Fits:
		return v.wrapText(found+" What the server said to other forms:") + v.listRefusals(p)
	case len(p.Refusals) == 0:
		return v.wrapText("profile: not found, because the steps that show it were not tried")
	}
	return v.wrapText("profile: none fits. What the server said:") + v.listRefusals(p)
}

func (v *TestView) listRefusals(p modeltest.FoundProfile) string {
	var b strings.Builder
	for _, words := range p.Refusals {
		lines := term.WrapPainted(term.CleanLine(words), v.columns()-2)
		b.WriteString("- " + strings.Join(lines, "\n  ") + "\n")
	}
	return b.String()
}
