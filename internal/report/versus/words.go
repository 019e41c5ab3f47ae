package versus

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/story"
)

// namePlace returns a node in words.
func namePlace(node string) string {
	if node == "" {
		return "the agent"
	}
	return node
}

// At returns at which records the runs part, in parentheses.
func (s *Split) At() string {
	switch {
	case s.A == 0:
		return fmt.Sprintf(" (B@%d)", s.B)
	case s.B == 0:
		return fmt.Sprintf(" (A@%d)", s.A)
	}
	return fmt.Sprintf(" (A@%d, B@%d)", s.A, s.B)
}

// describeSplit returns how two events with one key differ; "": they do not. One of them may be nil.
func describeSplit(a, b *event) string {
	if a == nil || b == nil {
		e, who := a, "A"
		if e == nil {
			e, who = b, "B"
		}
		return fmt.Sprintf("only %s %s", who, e.describeEvent())
	}
	at := namePlace(a.node)
	switch {
	case a.what == prompt && a.text != b.text:
		return "their prompts differ"
	case a.what == answer && a.text != b.text:
		return fmt.Sprintf("%s was answered %s in A and %s in B", at, cutLine(a.text), cutLine(b.text))
	case a.name != b.name && a.what == model:
		return fmt.Sprintf("%s used the model %s in A and %s in B", at, a.name, b.name)
	case a.name != b.name:
		return fmt.Sprintf("%s called %s in A and %s in B", at, a.name, b.name)
	case a.failed != b.failed:
		who := "A"
		if b.failed {
			who = "B"
		}
		return fmt.Sprintf("%s at %s failed only in %s", a.nameKind(), at, who)
	case a.text != b.text:
		return fmt.Sprintf("%s at %s has other arguments", a.nameKind(), at)
	case a.more != b.more && a.what == fault:
		return fmt.Sprintf("%s failed with another reason", at)
	case a.more != b.more:
		return fmt.Sprintf("%s at %s has another result", a.nameKind(), at)
	}
	return ""
}

// describeEvent returns what an event did that the other run has not.
func (e *event) describeEvent() string {
	at := namePlace(e.node)
	switch e.what {
	case model:
		return "asked a model at " + at
	case call:
		return "called " + e.name + " at " + at
	case search:
		return "searched at " + at
	case answer:
		return "was answered at " + at
	case fault:
		return "failed at " + at
	case prompt:
		return "has a prompt"
	}
	return "ran " + at
}

// nameKind returns what an event is.
func (e *event) nameKind() string {
	switch e.what {
	case model:
		return "the reply of " + e.name
	case call:
		return "the call of " + e.name
	case search:
		return "the search"
	case script:
		return "the script"
	}
	return e.name
}

// cutLine returns the beginning of a text on one line.
func cutLine(text string) string {
	const most = 60
	line := strings.Join(strings.Fields(text), " ")
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return line
}

// A difference of times or costs counts if it is more than a twentieth of the greater one, and not too small to notice.
const (
	leastShare = 0.05
	leastTime  = 50 // milliseconds
)

// describeRuns returns how the runs differ, and what that comes from.
func (c *Comparison) describeRuns() string {
	var parts []string
	if c.A.Status != c.B.Status {
		parts = append(parts, fmt.Sprintf("A is %s, B is %s%s", c.A.Status, c.B.Status, c.failReason()))
	}
	if by := c.B.Worked - c.A.Worked; isNotable(c.A.Worked, c.B.Worked) && math.Abs(by) >= leastTime {
		text := "B is slower by "
		if by < 0 {
			text = "B is faster by "
		}
		parts = append(parts, text+story.FormatMilliseconds(math.Abs(by))+c.explainTime(by))
	}
	if c.A.Cost != nil && c.B.Cost != nil && isNotable(*c.A.Cost, *c.B.Cost) {
		parts = append(parts, c.describeCost())
	}
	if c.A.Status == c.B.Status && c.A.Status == graph.Done.String() && c.A.Output != c.B.Output {
		parts = append(parts, "they returned different results")
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, "; ")
	case c.First != nil:
		return "they took the same time; " + c.First.Text
	}
	return "they took the same time and did the same"
}

// failReason returns why the one of the runs failed that did, with a colon before it.
func (c *Comparison) failReason() string {
	for _, s := range []Side{c.B, c.A} {
		if lines := strings.Split(strings.TrimSpace(s.Reason), "\n"); s.Status == graph.Failed.String() && s.Reason != "" {
			return " (" + cutLine(lines[len(lines)-1]) + ")"
		}
	}
	return ""
}

// describeCost returns how much more or less the second run cost.
func (c *Comparison) describeCost() string {
	a, b := *c.A.Cost, *c.B.Cost
	word := "more"
	if b < a {
		word = "less"
	}
	by := fmt.Sprintf("$%.4f", math.Abs(b-a))
	if a > 0 && b > 0 && b < 10*a {
		by = fmt.Sprintf("%.0f %%", 100*math.Abs(b-a)/a)
	}
	return fmt.Sprintf("B costs %s %s", by, word)
}

// isNotable reports whether two numbers differ by a part that people notice.
func isNotable(a, b float64) bool { return math.Abs(a-b) > leastShare*max(a, b) }

// explainTime returns which node the second run took more or less time for, and why; "" if no node explains a third of
// it.
func (c *Comparison) explainTime(by float64) string {
	most := slices.MaxFunc(append([]NodeWork{{}}, c.Nodes...), func(x, y NodeWork) int {
		dx := (x.B.Took - x.A.Took) * math.Copysign(1, by)
		dy := (y.B.Took - y.A.Took) * math.Copysign(1, by)
		switch {
		case dx < dy:
			return -1
		case dx > dy:
			return 1
		}
		return 0
	})
	if change := (most.B.Took - most.A.Took) * math.Copysign(1, by); change*3 < math.Abs(by) {
		return ""
	}
	at := namePlace(most.Node)
	more, less, who := &most.B, &most.A, "B" // the longer work
	if by < 0 {
		more, less, who = &most.A, &most.B, "A"
	}
	switch {
	case less.Record == 0:
		return fmt.Sprintf(" because only %s ran %s", who, at)
	case more.Visits > less.Visits:
		return fmt.Sprintf(" because %s ran %s in %s instead of %s", at, countTimes(more.Visits), who, countTimes(less.Visits))
	case more.Retries > less.Retries:
		return fmt.Sprintf(" because %s was tried again %s in %s", at, countTimes(more.Retries-less.Retries), who)
	case !slices.Equal(most.A.Models, most.B.Models) && len(most.A.Models) > 0 && len(most.B.Models) > 0:
		return fmt.Sprintf(" because %s used %s instead of %s", at, strings.Join(most.B.Models, ", "), strings.Join(most.A.Models, ", "))
	case more.Written > less.Written*6/5 && less.Written > 0:
		return fmt.Sprintf(" because %s wrote %s in %s instead of %s", at, wording.FormatCount(more.Written, "token"), who, wording.FormatTokens(less.Written))
	}
	return fmt.Sprintf(", most of it at %s: %s instead of %s", at, story.FormatMilliseconds(most.B.Took), story.FormatMilliseconds(most.A.Took))
}

// countTimes returns how often something happened, in words.
func countTimes(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return wording.FormatCount(n, "time")
}
