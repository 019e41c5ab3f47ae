package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/storage/runs"
)

// Spent is where the time of a run went, by what its journal says of each effect. What worked at the same time counts
// each for itself, so that the sum may be more than the time that passed.
type Spent struct {
	Models  float64 `json:"model_seconds"`
	Tools   float64 `json:"tool_seconds"`
	Scripts float64 `json:"script_seconds"`
	Other   float64 `json:"other_seconds"`  // of other effects, such as searches
	Retries float64 `json:"retry_seconds"`  // the part of the ones before that was waits between attempts
	Answers float64 `json:"answer_seconds"` // for which questions were open
	Slowest []Slow  `json:"slowest"`        // what took longest, the longest first
	Untimed int     `json:"untimed"`        // effects that an earlier version has recorded without their time
}

// Slow is an effect of a run that took time.
type Slow struct {
	Record  int64   `json:"record"`
	Node    string  `json:"node,omitempty"`
	What    string  `json:"what"` // model, tool, script or other
	Name    string  `json:"name"` // of the model, the tool or the effect
	Seconds float64 `json:"seconds"`
	First   float64 `json:"first_seconds,omitempty"` // until the first part of the result
	Retries int     `json:"retries,omitempty"`       // how often it was tried again
	Waited  float64 `json:"retry_seconds,omitempty"` // before it was tried again, in all
}

// mostSlow is how many of the slowest effects are named, and leastSlow how long one takes at least, in seconds.
const (
	mostSlow  = 5
	leastSlow = 0.05
)

// spentOf returns where the time of a run went whose moments these are, oldest first.
func spentOf(moments []runs.Moment) Spent {
	s := Spent{Slowest: []Slow{}}
	asked := map[string]time.Time{} // when questions were asked, by frame and name
	for i := range moments {
		m := &moments[i]
		switch m.Kind {
		case journal.KindQuestion:
			asked[m.Path+m.Asked] = m.Time
		case journal.KindAnswer:
			if at, open := asked[m.Path+m.Asked]; open && m.Time.After(at) {
				s.Answers += m.Time.Sub(at).Seconds()
			}
			delete(asked, m.Path+m.Asked)
		case journal.KindEffect, journal.KindFailure:
			s.addEffect(m)
		}
	}
	slices.SortStableFunc(s.Slowest, func(a, b Slow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	s.Slowest = s.Slowest[:min(len(s.Slowest), mostSlow)]
	return s
}

// addEffect adds an effect that has ended.
func (s *Spent) addEffect(m *runs.Moment) {
	slow := Slow{
		Record:  m.Seq,
		Node:    m.Node,
		What:    "other",
		Name:    m.Effect,
		Seconds: m.Took.Seconds(),
		First:   m.Timing.First.Seconds(),
		Retries: m.Timing.Retries,
		Waited:  m.Timing.Waited.Seconds(),
	}
	sum := &s.Other
	switch {
	case m.Reply != nil:
		slow.What = "model"
		slow.Name = m.Reply.Model
		sum = &s.Models
	case m.Call != nil:
		slow.What = "tool"
		slow.Name = m.Call.Tool
		sum = &s.Tools
	case m.Effect == "script":
		slow.What = "script"
		sum = &s.Scripts
	}
	if m.Took == 0 && slow.What != "other" {
		s.Untimed++
	}
	*sum += slow.Seconds
	s.Retries += slow.Waited
	if slow.Seconds >= leastSlow {
		s.Slowest = append(s.Slowest, slow)
	}
}

// Describe returns where the time went, for people: "models 2.1 s, tools 0.4 s; 1.2 s of it between attempts"; "": no
// effect took long.
func (s *Spent) Describe() string {
	var parts []string
	for _, p := range []struct {
		name    string
		seconds float64
	}{{"models", s.Models}, {"tools", s.Tools}, {"scripts", s.Scripts}, {"other", s.Other}} {
		if p.seconds >= leastSlow {
			parts = append(parts, p.name+" "+formatSeconds(p.seconds))
		}
	}
	text := strings.Join(parts, ", ")
	if text != "" && s.Retries >= leastSlow {
		text += "; " + formatSeconds(s.Retries) + " of it between attempts"
	}
	if s.Answers < 1 {
		return text
	}
	waited := "questions open for " + formatSeconds(s.Answers)
	if text == "" {
		return waited
	}
	return text + "; " + waited
}

// Describe returns an effect that took time, for people: "write: gpt-6-mini 2.1 s, tried again 2 times after 1.2 s".
func (s *Slow) Describe() string {
	name := cmp.Or(s.Name, "the "+s.What)
	if s.What == "script" {
		name = "its script"
	}
	text := name + " " + formatSeconds(s.Seconds)
	if s.Node != "" {
		text = s.Node + ": " + text
	}
	if s.Retries > 0 {
		text += fmt.Sprintf(", tried again %s", wording.FormatCount(s.Retries, "time"))
		if s.Waited >= leastSlow {
			text += " after " + formatSeconds(s.Waited)
		}
	}
	return text
}

// formatSeconds returns a number of seconds for people.
func formatSeconds(s float64) string {
	return story.FormatSeconds(time.Duration(s * float64(time.Second)))
}
