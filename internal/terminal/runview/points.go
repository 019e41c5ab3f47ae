package runview

import (
	"cmp"
	"fmt"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
)

// FormatSearches lists the queries, and the places that were found.
func FormatSearches(searches []flow.Search) string {
	var b strings.Builder
	for _, s := range searches {
		fmt.Fprintf(&b, "%s\n", story.ShortenLine(s.Query))
		for _, c := range s.Chunks {
			fmt.Fprintf(&b, "  %s, part %s: %s\n", term.CleanText(c.Source), term.CleanText(c.FormatPart()), story.ShortenLine(c.Text))
		}
	}
	return b.String()
}

// maxPoints is how many checkpoints are shown to people.
const maxPoints = 15

// FormatPoints lists checkpoints, newest first, each with what it changed.
func FormatPoints(s *overview.Run) string {
	moments := map[int64]*runs.Moment{}
	for i := range s.Moments {
		moments[s.Moments[i].Seq] = &s.Moments[i]
	}
	var b strings.Builder
	for i, c := range s.Points {
		if i == maxPoints {
			fmt.Fprintf(&b, "(%d more: --output json)", len(s.Points)-i)
			break
		}
		text := DescribePoint(&c)
		if m := moments[c.At]; m != nil && c.Kind == journal.KindStep.String() && len(m.From) > 0 {
			text = strings.Join(m.From, ", ") + cmp.Or(story.ArrowTo(c.Next), " → end")
			if !m.Inner {
				text += story.WrittenText(m.Keys)
			}
			if c.Path != "" {
				text += "  in " + namePlace(&c)
			}
		}
		fmt.Fprintf(&b, "@%-4d %s\n", c.At, text)
	}
	return b.String()
}

// namePlace returns the node or agent in which a checkpoint is.
func namePlace(c *runs.Checkpoint) string {
	return cmp.Or(strings.TrimSuffix(runs.PlainPath(c.Path), "/"), "the lead")
}

// DescribePoint describes a checkpoint.
func DescribePoint(c *runs.Checkpoint) string {
	what := c.Kind
	if c.What != "" {
		what += " of " + c.What
	}
	if c.Path != "" {
		what += " in " + namePlace(c)
	}
	if len(c.Next) > 0 {
		what += ", then " + strings.Join(c.Next, ", ")
	}
	return what
}
