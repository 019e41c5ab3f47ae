package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/question"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/internal/terminal/runview"
)

// refused is the status in a report about a run that has not started.
const refused = "refused"

// report is the state of a run when a command leaves it: what --output json writes.
type report struct {
	Run       *string          `json:"run"` // null if it has not started
	Agent     *string          `json:"agent"`
	Status    string           `json:"status"`
	ExitCode  int              `json:"exit_code"`
	Output    *string          `json:"output"` // null if there is none
	State     json.RawMessage  `json:"state"`
	Path      []any            `json:"path"` // names of the nodes that ran; those of a parallel step in a list
	Usage     overview.Usage   `json:"usage"`
	Error     *string          `json:"error"`
	Warnings  []string         `json:"warnings"`
	Questions []graph.Question `json:"questions"`     // open
	Due       *time.Time       `json:"due,omitempty"` // when a run that waits is to be continued; absent: when it is answered
	Resume    *string          `json:"resume"`        // the command that continues the run; null if it is over
	thread    string
}

// driveOutcome describes how a drive ended.
type driveOutcome struct {
	res  graph.Result
	err  error
	code int
}

// reportRun describes a run after a drive.
func reportRun(p *app.Process, run *app.Run, o driveOutcome, warnings []string) (r *report, err error) {
	if o.res.Head == 0 && !run.Resumed && o.res.Status == graph.Failed { // nothing was recorded
		r = emptyReport(o.code, o.err)
		r.thread = run.Thread
		r.Run = &run.ID
		r.Agent = &run.Agent.Name
		r.Status = o.res.Status.String()
	} else {
		v, err := p.Runs.ReadView(context.Background(), run.ID)
		if err != nil {
			return nil, err
		}
		v.Status = o.res.Status.String() // a drive may not have been able to record its end
		v.Snapshot.Status = o.res.Status
		v.Snapshot.Result = o.res.Value
		v.Snapshot.Questions = o.res.Questions
		v.Snapshot.Due = o.res.Due
		if r, err = viewReport(p, v); err != nil {
			return nil, err
		}
		r.ExitCode = o.code
		r.setError(o.err)
	}
	r.Warnings = append(r.Warnings, warnings...)
	r.Resume = nil
	if !o.res.Status.Final() && run.Kept {
		r.Resume = new(resumeLine(run.ResumeCommand(), o.res))
	}
	return r, nil
}

// viewReport describes a run from its journal: earlier drives count too. A run that is done or over cannot be resumed.
func viewReport(p *app.Process, v *runs.View) (*report, error) {
	calls, err := v.ReadModels(context.Background()) // the command's own context may have ended
	if err != nil {
		return nil, err
	}
	r := emptyReport(ending.StatusCode(v.Snapshot.Status), nil)
	r.thread = v.Snapshot.Thread
	r.Run = &v.Run
	r.Agent = &v.Agent
	r.Status = v.Status
	r.State = flow.StoredJSON(v.Snapshot.Values)
	r.Path = v.Path()
	r.Usage = overview.UsageOf(p, calls)
	res := graph.Result{Status: v.Snapshot.Status, Value: v.Snapshot.Result, Questions: v.Snapshot.Questions}
	switch {
	case res.Status == graph.Done:
		o := flow.OutcomeOf(res)
		r.Output = &o.Output
		r.ExitCode = overview.DoneCode(o, calls)
	case res.Status == graph.Waiting:
		r.Questions = append(r.Questions, res.Questions...)
		if due := v.Snapshot.Due; !due.IsZero() {
			r.Due = &due
		}
	case res.Status.Final():
		r.setError(&runs.EndedError{ID: v.Run, Status: res.Status})
	case v.Reason != "":
		r.Error = &v.Reason
	}
	if !v.Final && v.Status != runs.Running {
		r.Resume = new(resumeLine("raddle resume "+v.Run, res))
	}
	return r, nil
}

// setError makes an error that of the report; nil: there is none.
func (r *report) setError(err error) {
	r.Error = nil
	if err != nil {
		r.Error = new(err.Error())
	}
}

func emptyReport(code int, err error) *report {
	r := &report{Status: refused, ExitCode: code, State: json.RawMessage("{}"), Path: []any{}, Usage: overview.Usage{Models: []string{}}, Warnings: []string{}, Questions: []graph.Question{}}
	r.setError(err)
	return r
}

// resumeLine completes the command that resumes a run: if questions are open it
// answers them, with TEXT as each answer.
func resumeLine(line string, res graph.Result) string {
	if res.Status != graph.Waiting {
		return line
	}
	open := graph.ForPeople(res.Questions)
	if len(open) == 1 && open[0].Kind != flow.KindTrust {
		return line + " --answer TEXT"
	}
	for _, q := range open {
		if q.Kind == flow.KindTrust { // no flag consents: on a terminal, the command asks
			continue
		}
		line += " --answer " + wording.QuoteWord(q.ID+"=TEXT")
	}
	return line
}

// eventsLine returns the command that sends the event for which a question of a run waits; "": none does.
func eventsLine(run string, open []graph.Question) string {
	for i := range open {
		if w, ok := graph.EventWaitOf(&open[i]); ok {
			return "raddle events send " + wording.QuoteWord(w.Name) + " JSON --run " + run
		}
	}
	return ""
}

// trustHelp says how a question for consent is answered.
const trustHelp = "only a person can consent: resume the run on a terminal, use raddle inbox, or answer over the API of a server; --answer can only say no"

// parkNotice says what a run waits for and how to continue.
func parkNotice(con *console.Console, run *app.Run, res graph.Result, shown map[string]bool) {
	var b strings.Builder
	asked := graph.ForPeople(res.Questions)
	events := eventsLine(run.ID, res.Questions)
	what := "for an answer"
	switch {
	case len(res.Questions) == 0 && !res.Due.IsZero():
		what = runview.FormatUntil(res.Due)
	case len(asked) == 0:
		what = "for other runs"
		if events != "" {
			what = "for an event"
		}
	}
	fmt.Fprintf(&b, "raddle: run %s waits %s\n", run.ID, what)
	for _, q := range res.Questions {
		prompt := question.FormatPrompt(q, con.Screen.Colors && question.DecodeCall(q).Tool != "")
		name := con.Screen.Paint(term.Bold, question.FormatName(q))
		if from := question.FormatAsker(q); from != "" {
			name += ", asked by " + from
		}
		if shown[q.ID] {
			fmt.Fprintf(&b, "  %s\n", name)
		} else {
			fmt.Fprintf(&b, "  %s: %s\n", name, strings.ReplaceAll(strings.TrimSpace(prompt), "\n", "\n    "))
		}
		if q.Kind == flow.KindTrust {
			fmt.Fprintf(&b, "    %s\n", trustHelp)
			continue
		}
		if how := question.DescribeAnswers(q); how != "" {
			fmt.Fprintf(&b, "    %s\n", term.CleanText(how))
		}
		if !q.Due.IsZero() {
			fmt.Fprintf(&b, "    %s\n", runview.FormatUntil(q.Due))
		}
		if run.Kept && len(asked) > 1 && q.Kind != graph.KindRemote && q.Kind != graph.KindEvent {
			fmt.Fprintf(&b, "    alone: %s --answer %s\n", run.ResumeCommand(), wording.QuoteWord(q.ID+"=TEXT"))
		}
	}
	if len(res.Questions) == 0 && !res.Due.IsZero() && run.Kept {
		fmt.Fprintf(&b, "next: %s, or raddle wake, when the time has come\n", run.ResumeCommand())
	} else if len(asked) == 0 && events != "" && run.Kept {
		fmt.Fprintf(&b, "next: %s\n", events)
	} else if len(asked) == 0 && len(res.Questions) > 0 {
		b.WriteString("next: nothing, it continues when they have ended\n")
	} else if run.Kept {
		fmt.Fprintf(&b, "next: %s\n", resumeLine(run.ResumeCommand(), res))
	} else {
		b.WriteString("next: nothing, because the store is memory: and the run is lost; give answers ahead with --answer\n")
	}
	con.Screen.PrintLine(strings.TrimSuffix(b.String(), "\n"))
}
