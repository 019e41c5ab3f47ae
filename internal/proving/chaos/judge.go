package chaos

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
)

// Start is a run that was asked for.
type Start struct {
	User string // of this start alone
	Run  string // the run that a server has named; "": no server has confirmed one
}

// Seen is a record that was in a journal: its number and its checksum.
type Seen struct {
	Seq int64
	Sum uint64
}

// History is a run at the end.
type History struct {
	Run, User string
	Status    string // as runs ls has it
	Reason    string // of a failure
	Ended     bool   // it is done, cancelled or failed
	Waits     bool   // for a person, an event or a time
	Entries   []history.Entry
	Sums      map[int64]uint64 // of the records, by their number

	Seen    []Seen // records that the journal has had
	Answers int    // answers that a server has accepted
}

// Effect is a line about an effect: its start, or its end.
type Effect struct {
	At     int64  `json:"at"`  // by the clock of this machine, in Unix microseconds
	Key    string `json:"key"` // graph.EffectKey
	What   string `json:"what"`
	Node   string `json:"node"`
	Server int    `json:"server"`
	End    bool   `json:"end,omitempty"`
	Failed bool   `json:"failed,omitempty"` // of an end: it returned an error
}

// Evidence is what the witnesses have seen.
type Evidence struct {
	Starts  []Start
	Runs    []History
	Effects []Effect // in any order
}

// Finding is something that must not happen.
type Finding struct {
	Run  string `json:"run,omitempty"` // "": the store has none
	What string `json:"what"`
}

// Doubt is an effect of a node of which no one knows how often it reached the outside.
type Doubt struct {
	Node  string   `json:"node"`
	What  string   `json:"what"`
	Times int      `json:"times"` // how often one began again
	Runs  []string `json:"runs"`
}

// Verdict is what Judge finds.
type Verdict struct {
	Accepted    int `json:"accepted"`    // starts that a server has confirmed
	Unconfirmed int `json:"unconfirmed"` // starts that no server has confirmed
	Done        int `json:"ended"`       // runs that have ended, the failed ones too
	Waiting     int `json:"waiting"`
	Effects     int `json:"effects"` // that began, each once

	Lost     []Finding `json:"lost"`
	Repeated []Finding `json:"repeated"`
	Stranded []Finding `json:"stranded"`
	Failed   []Finding `json:"failed"`
	InDoubt  []Doubt   `json:"in_doubt"`
}

// IsClean reports whether nothing is lost, repeated, stranded or failed. Effects in doubt do not count.
func (v *Verdict) IsClean() bool {
	return len(v.Lost)+len(v.Repeated)+len(v.Stranded)+len(v.Failed) == 0
}

// Judge says what is wrong in the evidence. The package's documentation has the rules.
func Judge(e Evidence) *Verdict {
	v := &Verdict{Lost: []Finding{}, Repeated: []Finding{}, Stranded: []Finding{}, Failed: []Finding{}, InDoubt: []Doubt{}}
	v.judgeStarts(e)
	began := groupEffects(e.Effects)
	v.Effects = len(began)
	recorded := map[string]time.Time{} // when each effect was recorded first, by its key
	for i := range e.Runs {
		h := &e.Runs[i]
		v.judgeEnd(h)
		v.judgeRecords(h)
		maps.Copy(recorded, v.judgeResults(h))
	}
	v.judgeEffects(began, recorded)
	return v
}

// judgeStarts compares what was accepted with what is there.
func (v *Verdict) judgeStarts(e Evidence) {
	byUser := map[string][]string{}
	for i := range e.Runs {
		byUser[e.Runs[i].User] = append(byUser[e.Runs[i].User], e.Runs[i].Run)
	}
	for _, s := range e.Starts {
		there := byUser[s.User]
		if s.Run == "" {
			v.Unconfirmed++
		} else if v.Accepted++; !slices.Contains(there, s.Run) {
			v.Lost = append(v.Lost, Finding{What: "the start of run " + s.Run + " was accepted, and the store has no such run"})
		}
		if len(there) > 1 {
			what := "one start has made several runs: " + strings.Join(there, ", ")
			v.Repeated = append(v.Repeated, Finding{Run: there[0], What: what})
		}
	}
}

// judgeEnd says whether a run has come to an end or to a wait.
func (v *Verdict) judgeEnd(h *History) {
	switch {
	case h.Ended:
		v.Done++
		if runs.HasFailed(h.Status) {
			v.Failed = append(v.Failed, Finding{Run: h.Run, What: cmp.Or(h.Reason, "it is "+h.Status)})
		}
	case h.Waits:
		v.Waiting++
	default:
		what := "it is " + h.Status
		if h.Reason != "" {
			what += ": " + h.Reason
		}
		if n := len(h.Entries); n > 0 {
			what += fmt.Sprintf("; its newest record is %d (%s)", h.Entries[n-1].Seq, h.Entries[n-1].Kind)
		}
		v.Stranded = append(v.Stranded, Finding{Run: h.Run, What: what})
	}
}

// judgeRecords finds records and answers that were there and are not.
func (v *Verdict) judgeRecords(h *History) {
	lose := func(format string, args ...any) {
		v.Lost = append(v.Lost, Finding{Run: h.Run, What: fmt.Sprintf(format, args...)})
	}
	for _, s := range h.Seen {
		sum, there := h.Sums[s.Seq]
		switch {
		case !there:
			lose("record %d was in the journal and is not there any more", s.Seq)
		case sum != s.Sum:
			lose("record %d is another one than before", s.Seq)
		}
	}
	answers := 0
	for i := range h.Entries {
		if h.Entries[i].Kind == journal.KindAnswer {
			answers++
		}
		if i > 0 && h.Entries[i].Seq != h.Entries[i-1].Seq+1 {
			lose("between the records %d and %d others are missing", h.Entries[i-1].Seq, h.Entries[i].Seq)
		}
	}
	if answers < h.Answers {
		lose("%d answers were accepted, and the journal has %d", h.Answers, answers)
	}
}

// judgeResults finds effects with two results, and returns when each was recorded.
func (v *Verdict) judgeResults(h *History) map[string]time.Time {
	recorded := map[string]time.Time{}
	for i := range h.Entries {
		e := &h.Entries[i]
		if e.Kind != journal.KindEffect {
			continue
		}
		key := h.Run + "/" + e.Path + strings.ReplaceAll(e.ID, "\x00", "/")
		if _, again := recorded[key]; again {
			what := fmt.Sprintf("record %d is a second result of %s", e.Seq, e.What)
			v.Repeated = append(v.Repeated, Finding{Run: h.Run, What: what})
			continue
		}
		recorded[key] = e.Time
	}
	return recorded
}

// groupEffects returns the lines about each effect, oldest first, by its key.
func groupEffects(list []Effect) map[string][]Effect {
	byKey := map[string][]Effect{}
	for _, e := range list {
		byKey[e.Key] = append(byKey[e.Key], e)
	}
	for _, lines := range byKey {
		slices.SortStableFunc(lines, func(a, b Effect) int { return cmp.Compare(a.At, b.At) })
	}
	return byKey
}

// judgeEffects finds effects that began after their result was recorded, and those in doubt.
func (v *Verdict) judgeEffects(began map[string][]Effect, recorded map[string]time.Time) {
	doubts := map[string]*Doubt{}
	for _, key := range slices.Sorted(maps.Keys(began)) {
		run, _, _ := strings.Cut(key, "/")
		at, is := recorded[key]
		open := 0 // how many are in doubt: they began, and neither a record nor an error has ended them
		for _, e := range began[key] {
			switch {
			case e.End && e.Failed:
				open = max(0, open-1)
			case e.End:
			case is && e.At > at.UnixMicro():
				what := fmt.Sprintf("server %d began %s of node %s again, after its result was recorded", e.Server+1, e.What, e.Node)
				v.Repeated = append(v.Repeated, Finding{Run: run, What: what})
			default:
				if open > 0 {
					addDoubt(doubts, e, run)
				}
				open++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doubts)) {
		v.InDoubt = append(v.InDoubt, *doubts[name])
	}
}

// addDoubt counts an effect that began again.
func addDoubt(doubts map[string]*Doubt, e Effect, run string) {
	name := e.Node + "\x00" + e.What
	d := doubts[name]
	if d == nil {
		d = &Doubt{Node: e.Node, What: e.What}
		doubts[name] = d
	}
	d.Times++
	if !slices.Contains(d.Runs, run) {
		d.Runs = append(d.Runs, run)
	}
}
