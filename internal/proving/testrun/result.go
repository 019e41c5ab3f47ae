package testrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/testcase"
)

// Result is what one run of a case did, and what of it was not as expected.
type Result struct {
	Case       *testcase.Case
	Failures   []testcase.Failure // empty: the case has passed
	Status     string             // done, failed or waiting
	Error      string             // of a failed run
	Output     string
	ExitCode   int
	State      *jsonvalue.Object // of the graph at the end; nil: the run has not started
	Path       []testcase.Event  // nodes in order, with those of maps and of agents below
	Calls      []testcase.Event  // of tools
	Questions  []testcase.Event
	ModelCalls int
	Cost       float64 // in US dollars, of the requests whose price is known
	Took       time.Duration

	requests []request
}

// HasPassed reports whether everything was as expected.
func (r *Result) HasPassed() bool { return len(r.Failures) == 0 }

// Result compares what the drives of the trial did with what is expected.
func (t *Trial) Result() *Result {
	r := &Result{Case: t.Case, Failures: slices.Clone(t.faults)}
	if len(t.faults) > 0 {
		return r
	}
	s := t.stubs
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Status = statusName(t.end.Status)
	if t.err != nil {
		r.Status, r.Error = "failed", t.cleanText(t.err.Error())
	}
	o := flow.OutcomeOf(t.end)
	r.Output = t.cleanText(o.Output)
	r.ExitCode = o.ExitCode
	r.Path, r.Calls, r.requests, r.ModelCalls, r.Cost = t.seen.path(), s.listCalls(), s.requests, len(s.requests), s.cost
	for _, q := range t.seen.questions {
		r.Questions = append(r.Questions, testcase.Event{Name: s.asker(q), Full: q.Node, Text: q.Prompt})
	}
	r.State, _ = parseJSON(flow.StateJSON(t.end.State)).(*jsonvalue.Object)
	if r.Failures = s.missing; len(s.missing) == 0 {
		r.Failures = r.compare(t)
	}
	return r
}

// statusName returns a status as cases have it.
func statusName(s graph.Status) string {
	switch s {
	case graph.Done, graph.Waiting:
		return s.String()
	}
	return "failed"
}

// compare returns what was not as expected.
func (r *Result) compare(t *Trial) (failed []testcase.Failure) {
	e := &r.Case.Expect
	if f, ok := r.checkStatus(t); !ok {
		return []testcase.Failure{f}
	}
	check := func(m *testcase.Matcher, what string, v any) {
		if m != nil {
			failed = append(failed, m.Check(what, v, true)...)
		}
	}
	sequence := func(s *testcase.Sequence, what string, all []testcase.Event, exact func(*testcase.Event) bool) {
		if s != nil {
			failed = append(failed, s.Check(what, all, exact)...)
		}
	}
	sequence(e.Path, "path", r.Path, isOfGraph)
	check(e.Error, "error", r.Error)
	check(e.Output, "output", r.Output)
	check(e.ExitCode, "exit_code", int64(r.ExitCode))
	for i := range e.State {
		v, ok := testcase.Lookup(r.State, e.State[i].Path)
		failed = append(failed, e.State[i].Check("state."+e.State[i].Path, v, ok)...)
	}
	for i := range e.Prompts {
		failed = append(failed, e.Prompts[i].Check("prompts", r.Prompts(e.Prompts[i].Node))...)
	}
	for i := range e.Instructions {
		failed = append(failed, e.Instructions[i].Check("instructions", r.Instructions(e.Instructions[i].Node))...)
	}
	sequence(e.Calls, "calls", r.Calls, nil)
	sequence(e.Questions, "questions", r.Questions, nil)
	check(e.ModelCalls, "model_calls", int64(r.ModelCalls))
	check(e.Cost, "cost", r.Cost)
	return failed
}

// checkStatus compares how the run ended: what else differs follows from that.
func (r *Result) checkStatus(t *Trial) (f testcase.Failure, ok bool) {
	e := &r.Case.Expect
	want := e.Status
	pos := e.StatusPos
	if want == "" {
		want = "done"
		pos = e.Pos
		if e.Error != nil {
			want = "failed"
		}
	}
	if want == r.Status {
		return f, true
	}
	f = testcase.Failure{Pos: pos, What: "status", Message: fmt.Sprintf("expected %s, the run is %s", want, r.Status)}
	if e.Status != "" {
		f.At = pos
		f.Actual = r.Status
	}
	switch r.Status {
	case "failed":
		f.Message += ": " + r.Error
	case "waiting":
		for _, q := range t.end.Questions {
			name := t.stubs.asker(q)
			f.Message += fmt.Sprintf(". %s asks %q", name, wording.CutText(q.Prompt, 100, "…"))
			if given, found := t.stubs.asked[q.ID]; found {
				f.Message += fmt.Sprintf(", and the answer %q is refused", testcase.Text(given))
			} else {
				f.Message += fmt.Sprintf(": write `answers: {%s: ...}`", name)
			}
		}
	}
	if len(r.Path) > 0 {
		names := make([]string, len(r.Path))
		for i := range r.Path {
			names[i] = r.Path[i].Name
		}
		f.Message += ". Path: " + wording.CutText(strings.Join(names, " → "), 300, "…")
	}
	return f, false
}

// Prompts returns the texts that a node sent as the user's messages, one for each request.
func (r *Result) Prompts(node string) []string {
	return r.texts(node, func(q *request) string { return q.prompt })
}

// Instructions returns the system prompts that a node sent, one for each request.
func (r *Result) Instructions(node string) []string {
	return r.texts(node, func(q *request) string { return q.instructions })
}

// texts returns a text of each request of a node. Those of the branches of a map, which work side by side, are in the
// order of the items.
func (r *Result) texts(node string, text func(*request) string) (list []string) {
	var found []*request
	frames := map[string]int{}
	for i := range r.requests {
		if q := &r.requests[i]; q.place.Name == node {
			found = append(found, q)
			if _, known := frames[q.place.frame()]; !known {
				frames[q.place.frame()] = len(frames)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b *request) int {
		return cmp.Or(cmp.Compare(frames[a.place.frame()], frames[b.place.frame()]), cmp.Compare(a.place.Index, b.place.Index))
	})
	for _, q := range found {
		list = append(list, text(q))
	}
	return list
}

// parseJSON returns JSON as a value, or as text if it is not JSON.
func parseJSON(text []byte) any {
	v, err := jsonvalue.Parse(text)
	if err != nil {
		return string(text)
	}
	return v
}
