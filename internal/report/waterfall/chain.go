package waterfall

import (
	"cmp"
	"slices"
	"strings"

	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/story"
)

// A share is for how long one kind of work of a lane was in the chain.
type share struct {
	lane, what, name string
	took             float64
	count            int
}

// A chain goes back from the end of a run over what ended last before each piece of work began: a step begins when the
// last task of the one before it has ended, and an item of a map when one has made room for it.
type chain struct {
	shares []*share
	asked  float64 // for which questions were open in it
}

// findChain marks the spans that the run took so long for, and says it.
func (b *builder) findChain() {
	b.root.measureTimes()
	c := &chain{}
	c.followPart(b.root, b.root.end)
	for i := range b.chart.Lanes {
		l := &b.chart.Lanes[i]
		l.Spans = []Span{}
		for _, s := range b.lanes[l.Path].spans {
			l.Spans = append(l.Spans, *s)
		}
	}
	for _, s := range c.shares {
		b.chart.Chain += s.took
	}
	b.chart.Longest = c.describeChain(b.chart.Worked)
}

// measureTimes sets when a part began and ended, and puts what is in it into the order in which that ended, the last first.
func (p *part) measureTimes() {
	for i := range p.items {
		if in := p.items[i].part; in != nil {
			in.measureTimes()
		}
		start, end := p.items[i].findTimes()
		if i == 0 {
			p.start = start
			p.end = end
		}
		p.start = min(p.start, start)
		p.end = max(p.end, end)
	}
	slices.SortStableFunc(p.items, func(x, y item) int {
		_, a := x.findTimes()
		_, b := y.findTimes()
		return cmp.Compare(b, a)
	})
}

// findTimes returns when an item began and ended.
func (i *item) findTimes() (start, end float64) {
	if i.part != nil {
		return i.part.start, i.part.end
	}
	return i.span.Start, i.span.End
}

// slack is by how many milliseconds the record of an end may be later than the beginning of what it has let begin: a
// record is written after its effect has ended.
const slack = 3

// followPart marks the spans of a part that what ended at a time took so long for.
func (c *chain) followPart(p *part, until float64) {
	for i := range p.items {
		it := &p.items[i]
		start, end := it.findTimes()
		if end > until+slack || start >= until || end <= start {
			continue // it worked at the same time as what is in the chain already
		}
		if it.part != nil {
			c.followPart(it.part, min(end, until))
		} else {
			c.addSpan(it.span, it.lane, min(end, until)-start)
		}
		until = start
	}
}

// addSpan adds a span that was in the chain for a time.
func (c *chain) addSpan(s *Span, lane string, took float64) {
	s.Critical = true
	if s.What == Question {
		c.asked += took
		return
	}
	for _, known := range c.shares {
		if known.lane == lane && known.what == s.What && known.name == s.Name {
			known.took += took
			known.count++
			return
		}
	}
	c.shares = append(c.shares, &share{lane, s.What, s.Name, took, 1})
}

// leastTold is how long the parts of the sentence took, in milliseconds.
const leastTold = 50

// describeChain returns what the run took so long for, in one sentence: "2.1 of 2.6 s: w48, model m-1".
func (c *chain) describeChain(worked float64) string {
	slices.SortStableFunc(c.shares, func(x, y *share) int { return cmp.Compare(y.took, x.took) })
	var told []string
	for _, s := range c.shares {
		if s.took < leastTold || len(told) == 2 || len(told) == 1 && s.took < worked/5 {
			break
		}
		took := story.FormatMilliseconds(s.took)
		if len(told) == 0 {
			took = formatPart(s.took, worked)
		}
		told = append(told, took+": "+s.describeShare())
	}
	if c.asked >= leastFold {
		told = append(told, story.FormatMilliseconds(c.asked)+" more: questions were open")
	}
	return strings.Join(told, "; ")
}

// describeShare returns whose work it is: "w48, model m-1 (3 times)".
func (s *share) describeShare() string {
	text := s.what
	if s.name != "" {
		text += " " + s.name
	}
	if s.what == Other {
		text = s.name
	}
	if s.lane != "" {
		text = s.lane + ", " + text
	}
	if s.count > 1 {
		text += " (" + wording.FormatCount(s.count, "time") + ")"
	}
	return text
}

// formatPart returns a part of a time, with the unit once: "2.1 of 2.6 s".
func formatPart(part, all float64) string {
	x, y := story.FormatMilliseconds(part), story.FormatMilliseconds(max(part, all))
	for _, unit := range []string{" s", " ms"} {
		if short, ok := strings.CutSuffix(x, unit); ok && strings.HasSuffix(y, unit) {
			return short + " of " + y
		}
	}
	return x + " of " + y
}
