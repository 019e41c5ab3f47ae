// Package waterfall says when each part of a run worked, what it waited for, and which chain of work the run took so
// long for: spans in lanes by node, agent and item, from the moments of a journal.
package waterfall

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
)

// Chart is when the parts of a run worked. Times are milliseconds since its first record.
type Chart struct {
	Start   time.Time `json:"start"`
	Total   float64   `json:"total_ms"`
	Worked  float64   `json:"worked_ms"`              // without the folds
	Lanes   []Lane    `json:"lanes" nullable:"false"` // parents before children, in the order in which they began
	Folds   []Fold    `json:"folds" nullable:"false"` // long times without work, oldest first
	Longest string    `json:"critical,omitempty"`     // what the run took so long for, in words; "": nothing that took time is known
	Chain   float64   `json:"critical_ms"`            // for how long the spans of the chain worked
	Untimed int       `json:"untimed"`                // effects that an earlier version has recorded without their time
}

// Lane is a node, an agent or an item of a map.
type Lane struct {
	Path  string  `json:"path"` // of nodes and agents; "": the run itself
	Depth int     `json:"depth"`
	Start float64 `json:"start_ms"`               // of the first span in it or below
	End   float64 `json:"end_ms"`                 // of the last one
	Spans []Span  `json:"spans" nullable:"false"` // its own, in the order in which they began
}

// Span is one thing that took time.
type Span struct {
	Record   int64   `json:"record"`
	What     string  `json:"what"`           // model, tool, script, search, other, question
	Name     string  `json:"name,omitempty"` // of the model, the tool, the effect or the question
	Start    float64 `json:"start_ms"`
	End      float64 `json:"end_ms"`
	First    float64 `json:"first_ms,omitempty"` // from the start to the first part of the result
	Retries  int     `json:"retries,omitempty"`
	Waited   float64 `json:"retry_ms,omitempty"` // before it was tried again, in all
	Failed   bool    `json:"failed,omitempty"`
	Open     bool    `json:"open,omitempty"`     // it has not ended
	Untimed  bool    `json:"untimed,omitempty"`  // it is not known how long it took
	Critical bool    `json:"critical,omitempty"` // it is part of the chain that the run took so long for
}

// Fold is a long time in which nothing worked.
type Fold struct {
	Start float64 `json:"start_ms"`
	End   float64 `json:"end_ms"`
	Why   string  `json:"why"` // question: one was open; stopped: no process worked on the run
}

// These are what spans are.
const (
	Model    = "model"
	Tool     = "tool"
	Script   = "script"
	Search   = "search"
	Other    = "other"
	Question = "question"
)

// New returns the chart of a run whose moments these are, oldest first. now is the end of what has not ended; zero: the
// run does not work.
func New(moments []runs.Moment, now time.Time) *Chart {
	b := newBuilder(moments, now)
	for i := range moments {
		b.addMoment(&moments[i])
	}
	b.endOpen()
	b.chart.Lanes = b.listLanes()
	b.foldIdle()
	b.findChain()
	return b.chart
}

// A builder makes a chart of moments.
type builder struct {
	chart *Chart
	start time.Time
	end   time.Time

	lanes     map[string]*lane     // by path
	order     []*lane              // in the order in which they began
	root      *part                // the parts of the journal
	parts     map[string]*part     // by path
	questions map[string]*openSpan // open ones, by frame and name
	began     time.Time            // of a time in which no process works; zero: one does
	idle      []Fold               // times in which the run may not have worked
}

// A lane is a Lane whose spans can be marked.
type lane struct {
	path  string
	spans []*Span
}

// A part is a task or a frame of the journal, with what worked in it. Those in a frame work at the same time, or one after
// another.
type part struct {
	start, end float64
	items      []item
}

// An item is a span, or a part with what is in it.
type item struct {
	span *Span
	lane string
	part *part
}

// An openSpan is a span that has not ended, with its place.
type openSpan struct {
	span *Span
	lane string
	part string
}

func newBuilder(moments []runs.Moment, now time.Time) *builder {
	b := &builder{
		chart:     &Chart{Folds: []Fold{}},
		lanes:     map[string]*lane{},
		root:      &part{},
		questions: map[string]*openSpan{},
		end:       now,
	}
	b.parts = map[string]*part{"": b.root}
	if len(moments) == 0 {
		return b
	}
	b.start = moments[0].Time
	for i := range moments { // an effect may have started before the record that is listed first
		if began := moments[i].Time.Add(-moments[i].Took); began.Before(b.start) {
			b.start = began
		}
	}
	if last := moments[len(moments)-1].Time; b.end.Before(last) {
		b.end = last
	}
	b.chart.Start = b.start
	b.chart.Total = b.placeTime(b.end)
	return b
}

// placeTime returns a time in the chart.
func (b *builder) placeTime(t time.Time) float64 {
	return float64(t.Sub(b.start).Microseconds()) / 1000
}

// addMoment adds a moment.
func (b *builder) addMoment(m *runs.Moment) {
	switch m.Kind {
	case journal.KindEnd:
		b.began = m.Time
	case journal.KindClaim, journal.KindStart:
		if !b.began.IsZero() {
			b.idle = append(b.idle, Fold{Start: b.placeTime(b.began), End: b.placeTime(m.Time), Why: "stopped"})
			b.began = time.Time{}
		}
	case journal.KindQuestion:
		s := &Span{Record: m.Seq, What: Question, Name: m.Question.ID, Start: b.placeTime(m.Time)}
		b.questions[m.Path+m.Asked] = &openSpan{s, m.Node, m.Path}
	case journal.KindAnswer:
		if q := b.questions[m.Path+m.Asked]; q != nil {
			delete(b.questions, m.Path+m.Asked)
			q.span.End = b.placeTime(m.Time)
			q.span.Failed = m.Failure != ""
			b.addQuestion(q)
		}
	case journal.KindEffect, journal.KindFailure, journal.KindIntent:
		b.addEffect(m)
	}
}

// addQuestion adds the span of a question.
func (b *builder) addQuestion(q *openSpan) {
	b.addSpan(q.span, q.lane, q.part)
	b.idle = append(b.idle, Fold{Start: q.span.Start, End: q.span.End, Why: "question"})
}

// endOpen adds what has not ended.
func (b *builder) endOpen() {
	var open []*openSpan
	for _, q := range b.questions {
		open = append(open, q)
	}
	slices.SortFunc(open, func(x, y *openSpan) int { return cmp.Compare(x.span.Record, y.span.Record) })
	for _, q := range open {
		q.span.End = b.chart.Total
		q.span.Open = true
		b.addQuestion(q)
	}
}

// addEffect adds an effect, or one that works.
func (b *builder) addEffect(m *runs.Moment) {
	id := graph.ParseEffectID(m.ID)
	s := &Span{
		Record:  m.Seq,
		What:    Other,
		Name:    m.Effect,
		Start:   b.placeTime(m.Time.Add(-m.Took)),
		End:     b.placeTime(m.Time),
		First:   toMilliseconds(m.Timing.First),
		Retries: m.Timing.Retries,
		Waited:  toMilliseconds(m.Timing.Waited),
		Failed:  m.Kind == journal.KindFailure || m.Failure != "",
	}
	switch {
	case m.Reply != nil:
		s.What = Model
		s.Name = m.Reply.Model
	case m.Call != nil:
		s.What = Tool
		s.Name = m.Call.Tool
	case m.Search != nil:
		s.What = Search
	case m.Effect == "script" || m.Tried == "script":
		s.What = Script
		s.Name = ""
	case m.Tried != "":
		s.Name = m.Tried
	}
	switch {
	case m.Kind == journal.KindIntent:
		s.Open = true
		s.End = b.chart.Total
	case m.Took == 0 && s.What == Other:
		return // the journal does not say more than that it was made
	case m.Took == 0:
		s.Untimed = true
		b.chart.Untimed++
	}
	path := m.Path
	if id.Task != "" {
		path += id.Task + "/"
	}
	b.addSpan(s, m.Node, path)
}

// toMilliseconds returns a duration as charts have it.
func toMilliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// addSpan adds a span to its lane, and to its part of the journal.
func (b *builder) addSpan(s *Span, path, inPart string) {
	l := b.openLane(path)
	l.spans = append(l.spans, s)
	p := b.openPart(inPart)
	p.items = append(p.items, item{span: s, lane: path})
}

// openLane returns the lane of a path, and makes it and those above it.
func (b *builder) openLane(path string) *lane {
	l := b.lanes[path]
	if l == nil {
		if above, _, ok := cutLast(path); ok {
			b.openLane(above)
		}
		l = &lane{path: path}
		b.lanes[path] = l
		b.order = append(b.order, l)
	}
	return l
}

// cutLast cuts the last name off a path; ok is false if it has only one.
func cutLast(path string) (above, name string, ok bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// openPart returns the part of a path of the journal, each of whose names has a slash behind it.
func (b *builder) openPart(path string) *part {
	p := b.parts[path]
	if p == nil {
		above, _, ok := cutLast(strings.TrimSuffix(path, "/"))
		if ok {
			above += "/"
		}
		in := b.openPart(above)
		p = &part{}
		b.parts[path] = p
		in.items = append(in.items, item{part: p})
	}
	return p
}

// listLanes returns the lanes, parents before their children, in the order in which they began.
func (b *builder) listLanes() []Lane {
	below := map[string][]*lane{}
	var top []*lane
	for _, l := range b.order {
		if above, _, ok := cutLast(l.path); ok {
			below[above] = append(below[above], l)
		} else {
			top = append(top, l)
		}
	}
	list := []Lane{}
	var add func(of []*lane, depth int) (start, end float64)
	add = func(of []*lane, depth int) (start, end float64) {
		start = b.chart.Total
		type placed struct {
			lanes      []Lane
			start, end float64
		}
		var all []placed
		for _, l := range of {
			from := len(list)
			list = append(list, Lane{})
			slices.SortStableFunc(l.spans, func(x, y *Span) int { return cmp.Compare(x.Start, y.Start) })
			lane := Lane{Path: l.path, Depth: depth}
			lane.Start, lane.End = add(below[l.path], depth+1)
			for _, s := range l.spans {
				lane.Start = min(lane.Start, s.Start)
				lane.End = max(lane.End, s.End)
			}
			list[from] = lane
			all = append(all, placed{slices.Clone(list[from:]), lane.Start, lane.End})
			list = list[:from]
			start = min(start, lane.Start)
			end = max(end, lane.End)
		}
		slices.SortStableFunc(all, func(x, y placed) int { return cmp.Compare(x.start, y.start) })
		for _, p := range all {
			list = append(list, p.lanes...)
		}
		return start, end
	}
	add(top, 0)
	return list
}

// leastFold is how long nothing must have worked for a time to be folded, in milliseconds.
const leastFold = 2000

// foldIdle finds the times in which nothing worked while a question was open, or no process worked on the run.
func (b *builder) foldIdle() {
	var busy []Fold
	for _, l := range b.order {
		for _, s := range l.spans {
			if s.What != Question {
				busy = append(busy, Fold{Start: s.Start, End: s.End})
			}
		}
	}
	busy = joinTimes(busy)
	idle := joinTimes(b.idle)
	next := 0
	for _, f := range idle {
		for next < len(busy) && busy[next].End <= f.Start {
			next++
		}
		from := f.Start
		for i := next; i < len(busy) && busy[i].Start < f.End; i++ {
			b.addFold(from, busy[i].Start, f.Why)
			from = max(from, busy[i].End)
		}
		b.addFold(from, f.End, f.Why)
	}
	b.chart.Worked = b.chart.Total
	for _, f := range b.chart.Folds {
		b.chart.Worked -= f.End - f.Start
	}
}

func (b *builder) addFold(from, to float64, why string) {
	if to-from >= leastFold {
		b.chart.Folds = append(b.chart.Folds, Fold{from, to, why})
	}
}

// joinTimes returns times in order in which those that meet are one. Its reason is a question if one of them is.
func joinTimes(list []Fold) (joined []Fold) {
	slices.SortFunc(list, func(x, y Fold) int { return cmp.Compare(x.Start, y.Start) })
	for _, f := range list {
		n := len(joined) - 1
		if n < 0 || f.Start > joined[n].End {
			joined = append(joined, f)
			continue
		}
		joined[n].End = max(joined[n].End, f.End)
		if f.Why == Question {
			joined[n].Why = Question
		}
	}
	return joined
}
