package testrun

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"sync"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/proving/coverage"
	"raddle.dev/internal/proving/testcase"
)

// Coverage gathers which parts of the graphs of agents the runs of their cases reach. The zero value is empty. It is
// safe for concurrent use.
type Coverage struct {
	mu     sync.Mutex
	agents map[string]*covered // by the directory of the agent
}

// covered is an agent and what the cases of its directory have reached.
type covered struct {
	dir     string
	profile *coverage.Profile
	shape   graph.Structure
}

// Wrap returns a setup of a case with which its run is counted. Agents that are no graphs are left out: they have no
// nodes of their own.
func (v *Coverage) Wrap(c *testcase.Case, s Setup) Setup {
	var run *coverage.Run
	loaded := s.Loaded
	event := s.Event
	answered := s.Answered
	drive := s.Drive
	s.Loaded = func(a *flow.Agent) {
		if run == nil && a.Config == nil {
			run = v.profileOf(filepath.Dir(c.Pos.File), a).StartRun()
		}
		if loaded != nil {
			loaded(a)
		}
	}
	s.Event = func(ev graph.Event) {
		if run != nil {
			run.AddEvent(ev)
		}
		if event != nil {
			event(ev)
		}
	}
	s.Answered = func(q graph.Question, answer any) {
		if run != nil {
			run.AddAnswer(q, answer)
		}
		if answered != nil {
			answered(q, answer)
		}
	}
	s.Drive = func(ctx context.Context, t *Trial) (graph.Result, error) {
		defer func() {
			if run != nil {
				run.End()
			}
		}()
		if drive != nil {
			return drive(ctx, t)
		}
		return t.Drive(ctx)
	}
	return s
}

// profileOf returns the profile of the agent of a directory.
func (v *Coverage) profileOf(dir string, a *flow.Agent) *coverage.Profile {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.agents == nil {
		v.agents = map[string]*covered{}
	}
	if v.agents[dir] == nil {
		s := a.Structure()
		v.agents[dir] = &covered{dir, coverage.New(s), s}
	}
	return v.agents[dir].profile
}

// AgentCoverage is what the cases of one agent have reached.
type AgentCoverage struct {
	Dir string `json:"dir"`
	coverage.Report
	Structure graph.Structure `json:"-"` // for a picture
}

// wrapSetup returns a function that makes setups of cases with which their runs are counted.
func (v *Coverage) wrapSetup(setup func(*testcase.Case) Setup) func(*testcase.Case) Setup {
	return func(c *testcase.Case) Setup {
		var s Setup
		if setup != nil {
			s = setup(c)
		}
		return v.Wrap(c, s)
	}
}

// Reports returns what the cases that have ended have reached, for each agent that is a graph, in the order of their
// directories.
func (v *Coverage) Reports() (list []AgentCoverage) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.agents {
		list = append(list, AgentCoverage{a.dir, a.profile.Report(), a.shape})
	}
	slices.SortFunc(list, func(a, b AgentCoverage) int { return cmp.Compare(a.Dir, b.Dir) })
	return list
}
