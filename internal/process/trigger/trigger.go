// Package trigger is what starts agents without a person: the triggers of their files that a person at this machine has
// enabled, as rows of the store, and their ticks. A trigger is bound to the files of its agent as they were then, and
// has the budget that enabling named. A server drives them: see package server.
package trigger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// The states of a trigger.
const (
	On     = "on"
	Paused = "paused" // by a person, who may let it continue
	Off    = "off"    // something has changed: a person must enable it again
)

// How ticks end, in addition to the statuses of runs that have ended.
const (
	Started = "started" // its run was started, and has not ended as far as the store knows
	Skipped = "skipped" // no run was started, on purpose
	Missed  = "missed"  // it was too late
	Failed  = "failed"  // the run could not be started, or has failed

	// Seen is the state of a tick that is only the memory of a signed request.
	Seen = "seen"
)

// A Trigger is one that a person has enabled.
type Trigger struct {
	spec.Trigger
	Agent   string        `json:"agent"`           // its name in the catalogue
	Graph   bool          `json:"graph,omitempty"` // the agent is one
	Hash    string        `json:"hash"`            // of Sources
	Sources []flow.Source `json:"sources"`         // the files that the person has seen
	Budget  Budget        `json:"budget,omitzero"`
	Status  string        `json:"status"`
	Reason  string        `json:"reason,omitempty"` // why it is off
	By      string        `json:"by,omitempty"`     // who has enabled it, and where
	Enabled time.Time     `json:"enabled"`

	// Active is the run that was started last, if the next one may have to wait for its end; "": none.
	Active string `json:"active,omitempty"`

	row journal.Trigger
}

// A Budget limits what a trigger may spend. The zero value sets no limit.
type Budget struct {
	Run agent.Limits `json:"run,omitzero"` // of each run
	// Deadline is how long after its start a run is ended, also while it waits; 0: never.
	Deadline time.Duration `json:"deadline,omitzero"`

	Day agent.Limits `json:"day,omitzero"` // of all runs that were started in 24 hours
}

// ID names the trigger in the store: AGENT/NAME.
func (t *Trigger) ID() string { return t.Agent + "/" + t.Name }

// Due returns when a schedule fires next; the zero time for other kinds.
func (t *Trigger) Due() time.Time { return t.row.Due }

// A Set are the triggers of a store. It is safe for concurrent use.
type Set struct {
	Store   journal.Triggers
	process *app.Process
}

// Open returns the triggers of the store of a process.
func Open(p *app.Process) (*Set, error) {
	st, err := p.Runs.OpenStore()
	if err != nil {
		return nil, err
	}
	store := runs.TriggersOf(st)
	if store == nil {
		return nil, failure.NewUsage("use a store in SQLite or PostgreSQL", "the store %s keeps no triggers", st.Location.URL())
	}
	return &Set{Store: store, process: p}, nil
}

// ListAll returns the triggers by id, and what time it is by the clock of the store. A row that this program cannot read
// is a trigger that is off.
func (s *Set) ListAll(ctx context.Context) (list []Trigger, now time.Time, err error) {
	rows, now, err := s.Store.ListTriggers(ctx)
	for _, row := range rows {
		t := Trigger{row: row}
		if err := json.Unmarshal(row.Data, &t); err != nil || t.ID() != row.ID {
			agentName, name, _ := strings.Cut(row.ID, "/")
			t = Trigger{row: row, Agent: agentName, Status: Off, Reason: "another version of raddle has written it"}
			t.Name = name
		}
		list = append(list, t)
	}
	return list, now, err
}

// FindOne returns the trigger with an id, or the only one of an agent.
func (s *Set) FindOne(ctx context.Context, id string) (*Trigger, error) {
	list, err := s.findAll(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case len(list) > 1:
		var names []string
		for i := range list {
			names = append(names, list[i].ID())
		}
		return nil, failure.NewUsage("name one of "+strings.Join(names, ", "), "agent '%s' has %d triggers", id, len(list))
	}
	return &list[0], nil
}

// findAll returns the trigger with an id, or those of an agent: at least one.
func (s *Set) findAll(ctx context.Context, id string) (found []Trigger, err error) {
	list, _, err := s.ListAll(ctx)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if list[i].ID() == id || list[i].Agent == id {
			found = append(found, list[i])
		}
	}
	if found == nil {
		return nil, &UnknownError{ID: id}
	}
	return found, nil
}

// UnknownError reports a trigger that is not enabled.
type UnknownError struct{ ID string }

// Error names the trigger, and what to do.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("no trigger %q was enabled: raddle triggers ls lists all, and raddle triggers enable AGENT enables those of an agent", e.ID)
}

// putTrigger writes a trigger; [journal.ErrConflict] if someone else has written it since it was read.
func (s *Set) putTrigger(ctx context.Context, t *Trigger) error {
	row, err := t.encodeRow()
	if err != nil {
		return err
	}
	t.row, err = s.Store.PutTrigger(ctx, row)
	return err
}

// encodeRow returns the row of a trigger with what it holds now.
func (t *Trigger) encodeRow() (row journal.Trigger, err error) {
	row = t.row
	row.ID = t.ID()
	row.Data, err = json.Marshal(t)
	return row, err
}

// changeAll changes each trigger with an id, or of an agent, as often as others are faster. f returns false to leave one
// as it is.
func (s *Set) changeAll(ctx context.Context, id string, f func(t *Trigger, now time.Time) (bool, error)) (changed []Trigger, err error) {
	list, err := s.findAll(ctx, id)
	for i := range list {
		for {
			all, now, err := s.ListAll(ctx)
			if err != nil {
				return changed, err
			}
			at := slices.IndexFunc(all, func(t Trigger) bool { return t.ID() == list[i].ID() })
			if at < 0 {
				break
			}
			t := all[at]
			wanted, err := f(&t, now)
			if err != nil {
				return changed, err
			}
			if wanted {
				err = s.putTrigger(ctx, &t)
			}
			if errors.Is(err, journal.ErrConflict) {
				continue
			}
			if err != nil {
				return changed, err
			}
			changed = append(changed, t)
			break
		}
	}
	return changed, err
}

// PauseAll stops triggers with an id or of an agent until Continue. Ticks that come meanwhile do not happen later.
func (s *Set) PauseAll(ctx context.Context, id string) ([]Trigger, error) {
	return s.changeAll(ctx, id, func(t *Trigger, _ time.Time) (bool, error) {
		if t.Status == Off {
			return false, newOffError(t)
		}
		t.Status = Paused
		return true, nil
	})
}

// ContinueAll lets paused triggers fire again.
func (s *Set) ContinueAll(ctx context.Context, id string) ([]Trigger, error) {
	return s.changeAll(ctx, id, func(t *Trigger, now time.Time) (bool, error) {
		if t.Status == Off {
			return false, newOffError(t)
		}
		if t.Status == On {
			return false, nil
		}
		t.Status = On
		return true, t.setDue(now)
	})
}

// newOffError reports a trigger that only a person at this machine can enable.
func newOffError(t *Trigger) error {
	return failure.NewStale("raddle triggers enable "+t.Agent+" at the machine of the server", "trigger %s is off: %s", t.ID(), cmp.Or(t.Reason, "it was disabled"))
}

// setDue sets when a schedule fires next after a time.
func (t *Trigger) setDue(after time.Time) error {
	if t.Schedule == nil {
		t.row.Due = time.Time{}
		return nil
	}
	times, err := t.Schedule.ParseTimes()
	if err != nil {
		return fmt.Errorf("trigger %s: %w", t.ID(), err)
	}
	t.row.Due = times.Next(after)
	return nil
}

// DisableAll removes triggers with an id or of an agent, with their history.
func (s *Set) DisableAll(ctx context.Context, id string) (removed []Trigger, err error) {
	list, err := s.findAll(ctx, id)
	for i := range list {
		if err := s.Store.RemoveTrigger(ctx, list[i].ID()); err != nil {
			return removed, err
		}
		removed = append(removed, list[i])
	}
	return removed, err
}

// turnOff turns a trigger off for a reason, unless someone else has changed it since it was read.
func (s *Set) turnOff(ctx context.Context, t *Trigger, reason string) error {
	t.Status = Off
	t.Reason = reason
	err := s.putTrigger(ctx, t)
	if errors.Is(err, journal.ErrConflict) {
		return nil
	}
	return err
}

// DescribeChanges says what has changed in the files of a trigger's agent since it was enabled; "": nothing. elsewhere
// is true if this machine does not have the agent: then others may.
func (s *Set) DescribeChanges(t *Trigger) (text string, elsewhere bool) {
	place, err := s.process.FindAgent(t.Agent)
	if err != nil {
		return "", true
	}
	lines := flow.DescribeChanges(t.Sources, flow.HashSources(place.Dir, t.Sources))
	return strings.Join(lines, ", "), false
}

// ConfirmFiles reports whether a trigger may fire on this machine now. One whose files have changed is turned off.
func (s *Set) ConfirmFiles(ctx context.Context, t *Trigger) (ok bool, err error) {
	if t.Status != On {
		return false, nil
	}
	changes, elsewhere := s.DescribeChanges(t)
	if changes == "" || elsewhere {
		return !elsewhere, nil
	}
	return false, s.turnOff(ctx, t, "its files have changed since it was enabled: "+changes)
}

// hashSources returns a short hash of files by their names and contents.
func hashSources(list []flow.Source) string {
	h := sha256.New()
	for _, src := range list {
		_, _ = fmt.Fprintf(h, "%q %s\n", src.Path, src.Hash)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
