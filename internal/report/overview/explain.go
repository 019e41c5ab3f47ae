package overview

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/runs"
)

// An Explanation says in a few lines why a run is as it is, and what can be done. It is made of the journal alone.
type Explanation struct {
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	Status string `json:"status"`

	// Why says why the run has stopped or what it does, in words for people; it may have several lines.
	Why string `json:"why"`
	// Cause is the failure of an earlier node that has led to that of the run; null: none is known.
	Cause *runs.Cause `json:"cause"`
	// Path is what led there, oldest first: the steps of the run's own graph, at most the newest maxStages.
	Path []Stage `json:"path"`
	// Failures are those that the run has survived, oldest first.
	Failures []runs.Failure `json:"failures"`
	// Do is what can be done, the best first.
	Do []Action `json:"do"`
}

// A Stage is one step on the way of a run.
type Stage struct {
	At    int64    `json:"at"`    // number of the record with which it ended; 0: it has not
	Nodes []string `json:"nodes"` // that ran
	What  string   `json:"what"`  // failures of the nodes, or the status of the run; "": they are done
}

// An Action is a command, and what it does.
type Action struct {
	Command string `json:"command"`
	What    string `json:"what"`
}

// maxStages is how many steps an Explanation has.
const maxStages = 12

// Explain says why a run is as it is. s describes what the view has read.
func Explain(s *Run, v *runs.View) *Explanation {
	e := &Explanation{
		Run:      s.Run,
		Agent:    s.Agent,
		Status:   s.Status,
		Cause:    s.Cause,
		Path:     listStages(s),
		Failures: s.Failures,
		Do:       []Action{},
	}
	add := func(what, format string, args ...any) {
		e.Do = append(e.Do, Action{Command: fmt.Sprintf(format, args...), What: what})
	}
	skipped := v.CountSkipped()
	switch {
	case v.Snapshot.Status == graph.Done:
		e.Why = "it is done"
		if s.ExitCode != nil && *s.ExitCode != 0 {
			e.Why = fmt.Sprintf("it is done, with the exit code %d of its end", *s.ExitCode)
		}
		if skipped > 0 {
			e.Why += ", without " + wording.FormatCount(skipped, "failed item")
		}
	case v.Snapshot.Status.Final():
		e.Why = cmp.Or(s.Reason, "a person or a program has ended it")
		if point := newestPoint(s); point != "" {
			add("continues a copy of it from its newest checkpoint", "raddle runs fork %s --resume", point)
		}
	case s.Status == runs.Running:
		e.Why = "it works" + workPlace(s)
	case s.Status == runs.Queued:
		e.Why = "a server of the store continues it as soon as it has a place" + workPlace(s)
	case s.Status == runs.GivenUp:
		e.Why = "no server tries it again, because its drives have failed: " + s.Reason
		add("tries it again, and begins to count its failures again", "raddle resume %s", s.Run)
	case len(s.Questions) > 0:
		e.explainWait(s, add)
	case v.Snapshot.Status == graph.Waiting && !s.Due.IsZero():
		e.Why = "it waits until " + s.Due.Format(time.RFC3339) + workPlace(s)
		add("continues it when the time has come, as a server of the store does", "raddle wake")
	case s.Status == runs.Crashed:
		e.Why = "the process that worked on it has ended without saying why" + workPlace(s)
		add("continues after the last recorded result", "raddle resume %s", s.Run)
	case v.Snapshot.Status == graph.Failed:
		e.explainFailure(s, add)
	default:
		e.Why = cmp.Or(s.Reason, "it was stopped") + workPlace(s)
		add("continues after the last recorded result", "raddle resume %s", s.Run)
	}
	if skipped > 0 && s.Status != runs.Running && v.Snapshot.Status != graph.Failed {
		add("repeats only the "+wording.FormatCount(skipped, "failed item")+" of maps, in a copy of the run", "raddle resume %s --only-failed", s.Run)
	}
	add("shows all of it", "raddle runs show %s", s.Run)
	return e
}

// explainWait explains a run that waits for answers.
func (e *Explanation) explainWait(s *Run, add func(what, format string, args ...any)) {
	var asked []string
	what := "an event"
	for _, q := range s.Questions {
		line := fmt.Sprintf("%s asks: %s", q.ID, q.Prompt)
		if w, ok := graph.EventWaitOf(&q); ok {
			line = q.ID + " " + q.Prompt
			add("sends the event to this run", "raddle events send %s JSON --run %s", wording.QuoteWord(w.Name), s.Run)
		} else {
			what = "an answer"
		}
		if !q.Due.IsZero() {
			line += " (until " + q.Due.Format(time.RFC3339) + ")"
		}
		asked = append(asked, line)
		if q.Kind != flow.KindTrust && q.Kind != graph.KindRemote && q.Kind != graph.KindEvent {
			add("answers it", "raddle resume %s --answer %s", s.Run, wording.QuoteWord(q.ID+"=TEXT"))
		}
	}
	e.Why = "it waits for " + what + ":\n" + strings.Join(asked, "\n")
	if len(graph.ForPeople(s.Questions)) > 0 {
		add("shows all open questions, and takes answers on a terminal", "raddle inbox")
	}
}

// explainFailure explains a run that has failed.
func (e *Explanation) explainFailure(s *Run, add func(what, format string, args ...any)) {
	e.Why = cmp.Or(flow.PlainReason(s.Reason), "no reason is recorded")
	var failed []string
	if last := len(s.Moments) - 1; last >= 0 {
		failed = s.Moments[last].FailedNodes
	}
	isItem := func(node string) bool { return strings.HasSuffix(node, "]") }
	switch {
	case e.Cause != nil:
		add("runs "+e.Cause.Node+" again, and what follows it", "raddle resume %s", s.Run)
		add("the same in a copy, and this run stays as it is", "raddle runs fork %s --resume", runs.Point{Run: s.Run, At: e.Cause.From})
	case slices.ContainsFunc(failed, isItem):
		add("repeats only the failed items, and continues", "raddle resume %s --only-failed", s.Run)
	case s.Talks || len(s.Next) == 0: // the nodes of a conversation are raddle's own
		add("continues after the last recorded result", "raddle resume %s", s.Run)
	default:
		add("runs "+strings.Join(s.Next, ", ")+" again, and continues", "raddle resume %s", s.Run)
	}
	add("continues with files that you have changed", "raddle resume %s --accept-changes", s.Run)
}

// workPlace names the nodes that run next.
func workPlace(s *Run) string {
	if len(s.Next) == 0 || s.Talks {
		return ""
	}
	return ", at " + strings.Join(s.Next, ", ")
}

// newestPoint returns the newest checkpoint of a run from which a copy can continue; "": there is none.
func newestPoint(s *Run) string {
	finally := s.Picture.Finally
	for _, c := range s.Points {
		if len(c.Next) > 0 && (finally == "" || !slices.Contains(c.Next, finally)) { // a copy from there would only end
			return runs.Point{Run: s.Run, At: c.At}.String()
		}
	}
	return ""
}

// listStages returns the steps of a run's own graph, with the failures of their nodes, and the step at which it is.
func listStages(s *Run) []Stage {
	stages := []Stage{}
	if s.Talks {
		return stages
	}
	var failed []string
	for i := range s.Moments {
		m := &s.Moments[i]
		switch {
		case m.Path != "":
		case m.Kind == journal.KindEffect && flow.IsFailure(m.ID):
			failed = append(failed, m.Node+", "+flow.DescribeFailure(m.Failure))
		case m.Kind == journal.KindStep && len(m.From) > 0:
			stages = append(stages, Stage{At: m.Entry.Seq, Nodes: m.From, What: strings.Join(failed, "; ")})
			failed = nil
		case m.Kind == journal.KindEdit:
			stages = append(stages, Stage{At: m.Entry.Seq, Nodes: []string{}, What: "edited, then " + strings.Join(m.Next, ", ")})
		}
	}
	if len(s.Next) > 0 {
		stages = append(stages, Stage{Nodes: s.Next, What: s.Status + " here"})
	}
	return stages[max(0, len(stages)-maxStages):]
}
