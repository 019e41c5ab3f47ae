package modeltest

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"time"

	"raddle.dev/llm"
	"raddle.dev/llm/openai"
)

// A Status says how a step ended.
type Status string

// These are the values of Status.
const (
	Works Status = "yes"
	Fails Status = "no"
	// Untested means that it makes no sense without a step that failed, or that the catalogue says that the model
	// cannot do it.
	Untested Status = "untested"
	running  Status = "running" // only while it runs
)

// A Result is what a step has found.
type Result struct {
	Step    string `json:"step"`
	Title   string `json:"title"`
	Status  Status `json:"status"`
	Claimed bool   `json:"claimed"`          // a failure means that the model does not do what it should
	Detail  string `json:"detail,omitempty"` // what came
	Error   string `json:"error,omitempty"`  // why it does not work
	Means   string `json:"means,omitempty"`  // what that means for agents

	refused bool // the server has refused a request
}

// IsRunning reports whether the step has not ended yet.
func (r Result) IsRunning() bool { return r.Status == running }

// A Report is what a test has found.
type Report struct {
	Model   string        `json:"model"`
	Server  string        `json:"server"` // the profile of a compatible server, or the type of the client
	Date    string        `json:"date"`
	Works   bool          `json:"works"` // everything that the model claims
	Steps   []Result      `json:"steps"`
	Profile *FoundProfile `json:"profile"` // null if it was known
	Usage   llm.Usage     `json:"usage"`
	Cost    *float64      `json:"cost_usd"` // null if the price is not known
	Most    Plan          `json:"most"`     // what it could have sent
	Row     string        `json:"row"`      // of the table of the guide
	Error   string        `json:"error,omitempty"`
}

// A FoundProfile is the profile of a server that raddle did not know.
type FoundProfile struct {
	Fits     bool     `json:"fits"`     // one fits, or none is needed
	Name     string   `json:"name"`     // "": none is needed, or none fits
	Same     []string `json:"same"`     // others with the same rules
	Refusals []string `json:"refusals"` // what the server has said to other forms
}

// Run plays the steps. It calls show when a step begins and when it has ended. An error that every other step would end
// with ends the test: the report has the steps before it.
func Run(ctx context.Context, target Target, show func(Result)) (Report, error) {
	s := &dialogue{target: target, tap: &tap{}}
	if target.Trial.Unknown {
		s.search = newSearch()
	}
	report := Report{
		Model:  target.Trial.ID,
		Server: target.Trial.Server,
		Date:   time.Now().Format(time.DateOnly),
		Works:  true,
		Steps:  []Result{},
		Most:   PlanTest(target),
	}
	var ended error
	for _, step := range ListSteps() {
		result, err := s.runStep(ctx, step, report.Steps, show)
		if err != nil {
			ended, report.Works, report.Error = err, false, err.Error()
			break
		}
		report.Steps = append(report.Steps, result)
		report.Works = report.Works && (result.Status != Fails || !result.Claimed)
		show(result)
	}
	report.Usage = s.usage
	if facts := target.Trial.Facts; facts.Free || !facts.IsUnpriced() {
		report.Cost = new(facts.Price.CostOf(s.usage))
	}
	if s.search != nil && ended == nil {
		report.Profile = s.search.describeProfile(report.Steps)
		report.Server = cmp.Or(report.Profile.Name, "unknown server")
	}
	report.Row = FormatRow(report.Server, target.Trial.Model, report.Date, report.Steps, nil)
	return report, ended
}

// runStep plays one step, unless it makes no sense.
func (s *dialogue) runStep(ctx context.Context, step Step, before []Result, show func(Result)) (Result, error) {
	r := Result{
		Step:    step.Name,
		Title:   step.Title,
		Status:  Untested,
		Claimed: step.claims == nil || step.claims(s.target.Trial),
	}
	if step.tools && s.target.Trial.Facts.NoTools {
		r.Detail = "the model calls no tools"
		r.Claimed = false
		return r, nil
	}
	if i := slices.IndexFunc(before, func(b Result) bool { return b.Step == step.After }); i >= 0 && before[i].Status != Works {
		r.Detail = "not tried without: " + before[i].Title
		return r, nil
	}
	r.Status = running
	show(r)
	if s.search != nil {
		s.search.paused = step.claims != nil
	}
	v := step.play(ctx, s)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if endsTest(v.err) {
		return r, v.err
	}
	r.Status = Works
	r.Detail = v.detail
	if v.err != nil || v.fault != "" {
		r.Status, r.Means, r.refused, r.Error = Fails, step.Means, isRefusal(v.err), v.fault
		r.Claimed = r.Claimed && !v.minor
	}
	if v.minor && r.Status == Fails {
		r.Means = "an agent makes its calls one after the other"
	}
	if v.err != nil {
		r.Error = describeFailure(v.err)
	}
	return r, nil
}

// describeFailure returns an error without the host, which is that of every step.
func describeFailure(err error) string {
	var failure *llm.Error
	if !errors.As(err, &failure) {
		return err.Error()
	}
	own := *failure
	own.Host = ""
	return own.Error()
}

// describeProfile returns what the search has found.
func (s *profileSearch) describeProfile(steps []Result) *FoundProfile {
	p := &FoundProfile{Fits: true, Name: s.current.Name, Same: []string{}, Refusals: []string{}}
	untested := false
	for _, r := range steps {
		switch r.Step {
		case "answer", "parallel", "round", "moved":
			p.Fits = p.Fits && !r.refused
			untested = untested || r.Status == Untested
		}
	}
	if untested && p.Fits && p.Name == "" {
		p.Fits = false // the server has refused something else
		return p
	}
	p.Refusals = append(p.Refusals, s.refusals...)
	if !p.Fits {
		p.Name = ""
	}
	for _, other := range s.profiles {
		if p.Name != "" && other.Name != p.Name && hasSameRules(other, s.current) {
			p.Same = append(p.Same, other.Name)
		}
	}
	return p
}

// hasSameRules reports whether requests are the same with both profiles.
func hasSameRules(a, b openai.Profile) bool {
	a.Name = b.Name
	a.Hosts = b.Hosts
	a.Source = b.Source
	return reflect.DeepEqual(a, b)
}

// A Plan is what a test sends and costs at most. Requests that the server refuses are not counted.
type Plan struct {
	Requests int      `json:"requests"`
	Input    int      `json:"input"`  // tokens
	Output   int      `json:"output"` // tokens
	Cost     *float64 `json:"cost_usd"`
}

// mostRequest is more than the tokens of each request of the conversation, without what is attached and what the model
// has said: no token is smaller than a byte.
const mostRequest = 1_500

// PlanTest returns what the test of a model sends at most.
func PlanTest(target Target) Plan {
	var plan Plan
	facts := target.Trial.Facts
	cost := 0.0
	for _, step := range ListSteps() {
		if step.tools && facts.NoTools {
			continue
		}
		for range step.requests {
			u := llm.Usage{Input: mostRequest + step.media, Output: mostReply}
			if step.tools {
				u.Output = 2 * mostReply
				u.Input += u.Output // of the reply that goes back
			}
			plan.Requests++
			plan.Input += u.Input
			plan.Output += u.Output
			cached := u
			cached.Written = u.Input
			cost += max(facts.Price.CostOf(u), facts.Price.CostOf(cached))
		}
	}
	if facts.Free || !facts.IsUnpriced() {
		plan.Cost = &cost
	}
	return plan
}
