package runview

import (
	"fmt"
	"strings"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
)

// FormatFailures lists failures that a run has survived, at most some of them.
func FormatFailures(failures []runs.Failure, most int) string {
	var b strings.Builder
	for i, f := range failures {
		if i == most {
			fmt.Fprintf(&b, "(%d more: raddle runs show RUN --output json)", len(failures)-i)
			break
		}
		fmt.Fprintf(&b, "@%-4d %s: %s\n", f.At, term.CleanText(f.Node), story.ShortenLine(f.Error))
	}
	return b.String()
}

// maxExplainedFailures is how many failures that a run has survived an explanation shows.
const maxExplainedFailures = 3

// FormatExplanation returns an explanation for people: one screen.
func FormatExplanation(e *overview.Explanation) string {
	text := term.NewFields(8)
	text.AddField("run", e.Run+", "+term.CleanLine(e.Agent)+": "+e.Status)
	text.AddField("why", term.CleanText(e.Why))
	if c := e.Cause; c != nil {
		text.AddField("cause", fmt.Sprintf("%s (@%d)", term.CleanText(c.String()), c.At))
	}
	var path strings.Builder
	for _, s := range e.Path {
		at := "→"
		if s.At > 0 {
			at = fmt.Sprintf("@%d", s.At)
		}
		line := strings.Join(s.Nodes, ", ")
		switch {
		case strings.HasPrefix(s.What, line): // it names the node itself
			line = s.What
		case s.What != "":
			line += ": " + s.What
		}
		fmt.Fprintf(&path, "%-5s %s\n", at, story.ShortenLine(term.CleanLine(line)))
	}
	text.AddField("path", path.String())
	text.AddField("failed", FormatFailures(e.Failures, maxExplainedFailures))
	for i, a := range e.Do {
		name := ""
		if i == 0 {
			name = "do"
		}
		text.AddField(name, a.Command+"\n    "+a.What)
	}
	return text.String()
}
