package server

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
)

// RunState is what a run is now.
type RunState struct {
	Run       string           `json:"run"`
	Thread    string           `json:"thread"`
	Agent     string           `json:"agent"`
	Session   string           `json:"session,omitempty"`
	Status    string           `json:"status"`
	Final     bool             `json:"final"` // it has ended permanently
	Started   time.Time        `json:"started"`
	Updated   time.Time        `json:"updated"`
	Prompt    string           `json:"prompt,omitempty"`
	Output    string           `json:"output,omitempty"`
	ExitCode  int              `json:"exit_code,omitempty"` // from the end node of a graph
	Questions []graph.Question `json:"questions"`           // those that are open and that people answer
	Due       time.Time        `json:"due,omitzero"`        // when a run that waits is continued; zero: when it is answered, or an event comes
	Error     string           `json:"error,omitempty"`     // why it failed
	Usage     llm.Usage        `json:"usage"`               // of all model calls that are recorded
	// Cost is in the currency of the prices; nil if a price is not known.
	Cost   *float64     `json:"cost,omitempty"`
	At     int64        `json:"at"` // number of its newest record
	Record *runs.Record `json:"-"`  // what its start recorded; nil if raddle did not start it

	asks bool // nothing but a person can continue it

	hidden bool // its reader may see nothing but Run
}

// MarshalJSON writes a state; of one that its reader may not see, only the run.
func (st RunState) MarshalJSON() ([]byte, error) {
	if st.hidden {
		return json.Marshal(map[string]string{"run": st.Run})
	}
	type plain RunState
	return json.Marshal(plain(st))
}

// ReadChangedState is [Service.ReadState] for the caller who has just started or changed a run. One without the scope
// read gets a state that says only which run it is.
func ReadChangedState(ctx context.Context, s *Service, id string) (*RunState, error) {
	if is[*ScopeError](s.RequireScope(ctx, ScopeRead)) {
		return &RunState{Run: id, hidden: true}, nil
	}
	return s.ReadState(ctx, id)
}

// Position returns the place of the newest record, for SubscribeOptions.After: a subscription that begins there has
// only what came after this state was read.
func (st *RunState) Position() string { return strconv.FormatInt(st.At, 10) }

// ReadState returns what a run is now, whichever process drives it. id may be a unique prefix, last or last~N.
func (s *Service) ReadState(ctx context.Context, id string) (*RunState, error) {
	if err := s.RequireScope(ctx, ScopeRead); err != nil {
		return nil, err
	}
	v, err := s.readUsage(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.newState(ctx, v)
}

// newState returns what a run is now.
func (s *Service) newState(ctx context.Context, d *runs.Usage) (*RunState, error) {
	st := &RunState{Run: d.Run, Thread: d.Snapshot.Thread, Agent: d.Agent, Session: d.Session, Status: d.Status, Final: d.Final, Started: d.Started, Updated: d.Updated,
		Questions: graph.ForPeople(d.Snapshot.Questions), Due: d.Due, Error: d.Reason, Record: d.Record, At: d.Snapshot.Head, asks: d.Snapshot.Status == graph.Waiting}
	if st.Questions == nil {
		st.Questions = []graph.Question{}
	}
	if d.Record != nil {
		st.Prompt = d.Record.Prompt
	}
	if d.Snapshot.Status == graph.Done && d.Status == graph.Done.String() {
		o := flow.OutcomeOf(graph.Result{Status: graph.Done, Value: d.Snapshot.Result})
		st.Output = o.Output
		st.ExitCode = o.ExitCode
	}
	calls, err := d.ReadModels(ctx)
	if err != nil {
		return nil, err
	}
	st.Usage, st.Cost = calls.Usage, s.sumCost(calls)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isQueued(d.Run) {
		st.Status = runs.Queued
	}
	return st, nil
}

// sumCost returns what calls have cost, or nil if a price is not known.
func (s *Service) sumCost(calls runs.Calls) *float64 {
	sum := 0.0
	for _, m := range calls.Models {
		cost, known := s.process.Models.UsageCost(m.Model, m.Usage)
		if !known {
			return nil
		}
		sum += cost
	}
	return &sum
}

// pollInterval is the time between two looks at a run that another process drives.
const pollInterval = 200 * time.Millisecond

// WaitRun returns the state of a run when it has ended, has stopped, or waits for an answer.
func (s *Service) WaitRun(ctx context.Context, id string) (*RunState, error) {
	if err := s.RequireScope(ctx, ScopeRead); err != nil {
		return nil, err
	}
	finished := s.countFinished()
	v, err := s.readUsage(ctx, id)
	if err != nil {
		return nil, err
	}
	for ; ; finished = s.countFinished() {
		if err := v.Update(ctx); err != nil {
			return nil, err
		}
		st, err := s.newState(ctx, v)
		if err != nil {
			return nil, err
		}
		d := s.findDrive(st.Run)
		if d == nil && !st.Final && s.countFinished() != finished {
			continue // the state may be from before the end of a drive
		}
		if d == nil && (!runs.IsWorking(st.Status) || st.asks && st.Status == runs.Running) {
			return st, nil
		}
		var done chan struct{} // nil: another process drives the run, or it is queued
		if d != nil {
			done = d.done
		}
		select {
		case <-done:
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

// countFinished returns how many drives of this service have ended.
func (s *Service) countFinished() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.finished
}

// ReadLoad returns what of the runs in the store waits.
func (s *Service) ReadLoad(ctx context.Context) (runs.Load, error) {
	return s.process.Runs.ReadLoad(ctx)
}

// CountRuns returns the number of runs in the store by status.
func (s *Service) CountRuns(ctx context.Context) (map[string]int, error) {
	return s.process.Runs.CountRuns(ctx)
}
