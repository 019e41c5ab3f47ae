package trigger

import (
	"context"
	"errors"
	"slices"
	"time"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
)

// An Offer is what a person is about to enable: the triggers of an agent, and its files as they are now.
type Offer struct {
	Agent    string         `json:"agent"`
	Graph    bool           `json:"-"`
	Hash     string         `json:"hash"`
	Sources  []flow.Source  `json:"-"`
	Triggers []spec.Trigger `json:"triggers"`
}

// ReadOffer reads the triggers of an agent of the catalogue. Its variables must have values without a person.
func ReadOffer(p *app.Process, name string) (*Offer, error) {
	if app.IsPath(name) {
		return nil, failure.NewUsage("put it into "+p.Dirs.ShortPath(p.Dirs.Agents)+" and name it", "%s is a path, and servers start agents by their names", name)
	}
	a, err := p.Load(app.LoadRequest{Agent: name})
	if err != nil {
		return nil, err
	}
	defer func() { _ = a.Close() }() // nothing was written
	o := &Offer{Agent: name, Graph: a.Config == nil, Sources: a.Sources()}
	o.Hash = hashSources(o.Sources)
	if o.Graph {
		o.Triggers = a.File.Triggers
	} else {
		o.Triggers = a.Config.Triggers
	}
	if len(o.Triggers) == 0 {
		return nil, failure.NewUsage("write what shall start it into its file: raddle help triggers", "agent '%s' has no triggers", name)
	}
	if missing := a.MissingVariables(); missing != nil {
		return nil, &flow.VariablesError{Missing: missing}
	}
	return o, nil
}

// NextTicks returns the next ticks of a schedule after a time, at most n; none for other kinds.
func NextTicks(t *spec.Trigger, after time.Time, n int) (list []time.Time) {
	if t.Schedule == nil {
		return nil
	}
	times, err := t.Schedule.ParseTimes()
	if err != nil {
		return nil
	}
	for at := times.Next(after); !at.IsZero() && len(list) < n; at = times.Next(at) {
		list = append(list, at)
	}
	return list
}

// EnableOffer lets the triggers of an offer fire, with a budget. by says who has decided it. Triggers of the agent that are
// no longer in its file go.
func (s *Set) EnableOffer(ctx context.Context, o *Offer, budget Budget, by string) ([]Trigger, error) {
	if err := s.checkPaths(ctx, o); err != nil {
		return nil, err
	}
	var enabled []Trigger
	for _, def := range o.Triggers {
		t, err := s.enableOne(ctx, o, def, budget, by)
		if err != nil {
			return enabled, err
		}
		enabled = append(enabled, *t)
	}
	list, _, err := s.ListAll(ctx)
	for i := range list {
		old := &list[i]
		if old.Agent != o.Agent || slices.ContainsFunc(enabled, func(t Trigger) bool { return t.Name == old.Name }) {
			continue
		}
		if err := s.Store.RemoveTrigger(ctx, old.ID()); err != nil {
			return enabled, err
		}
	}
	return enabled, err
}

// checkPaths returns an error if a webhook of an offer has the path of one of another agent, or of the same.
func (s *Set) checkPaths(ctx context.Context, o *Offer) error {
	list, _, err := s.ListAll(ctx)
	if err != nil {
		return err
	}
	taken := map[string]string{}
	for i := range list {
		if w := list[i].Webhook; w != nil && list[i].Agent != o.Agent {
			taken[w.Path] = list[i].ID()
		}
	}
	for _, t := range o.Triggers {
		if t.Webhook == nil {
			continue
		}
		if other := taken[t.Webhook.Path]; other != "" {
			return failure.NewUsage("give one of them another path", "the path %s of trigger %s/%s is that of %s", t.Webhook.Path, o.Agent, t.Name, other)
		}
		taken[t.Webhook.Path] = o.Agent + "/" + t.Name
	}
	return nil
}

// enableOne writes one trigger of an offer.
func (s *Set) enableOne(ctx context.Context, o *Offer, def spec.Trigger, budget Budget, by string) (*Trigger, error) {
	for {
		list, now, err := s.ListAll(ctx)
		if err != nil {
			return nil, err
		}
		t := Trigger{
			Trigger: def,
			Agent:   o.Agent,
			Graph:   o.Graph,
			Hash:    o.Hash,
			Sources: o.Sources,
			Budget:  budget,
			Status:  On,
			By:      by,
			Enabled: now,
		}
		if at := slices.IndexFunc(list, func(old Trigger) bool { return old.ID() == t.ID() }); at >= 0 {
			t.row = list[at].row
			t.Active = list[at].Active
		}
		if err := t.setDue(now); err != nil {
			return nil, err
		}
		if err := s.putTrigger(ctx, &t); !errors.Is(err, journal.ErrConflict) {
			return &t, err
		}
	}
}
