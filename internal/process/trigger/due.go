package trigger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph/journal"
)

// Lateness says which ticks of a schedule that are late happen in any case, and how many at most.
type Lateness struct {
	Least time.Duration
	Ticks int
}

// AddDue adds the ticks of a schedule that have come until now, and sets its next one. What is later than the schedule
// allows to catch up is one tick that has ended. If another process was faster, it does nothing.
func (s *Set) AddDue(ctx context.Context, t *Trigger, now time.Time, late Lateness) error {
	if ok, err := s.ConfirmFiles(ctx, t); err != nil || !ok {
		return err
	}
	times, err := t.Schedule.ParseTimes()
	if err != nil {
		return s.turnOff(ctx, t, err.Error())
	}
	var ticks []journal.Tick
	at := t.row.Due
	if limit := now.Add(-max(t.Schedule.CatchUp, late.Least)); at.Before(limit) {
		ticks = append(ticks, t.newMissed(at, fmt.Sprintf("no server worked; catch_up is %v", t.Schedule.CatchUp)))
		at = times.Next(limit.Add(-1))
	}
	var come []time.Time
	for ; !at.IsZero() && !at.After(now); at = times.Next(at) {
		come = append(come, at)
	}
	if more := len(come) - late.Ticks; more > 0 {
		ticks = append(ticks, t.newMissed(come[0], fmt.Sprintf("%d ticks came while no server worked, and the newest %d happen", len(come), late.Ticks)))
		come = come[more:]
	}
	for _, at := range come {
		tick, err := t.NewScheduleTick(at)
		if err != nil {
			return err
		}
		ticks = append(ticks, tick)
	}
	row, err := t.encodeRow()
	if err != nil {
		return err
	}
	row.Due = at
	if _, err := s.Store.AddTicks(ctx, &row, ticks); !errors.Is(err, journal.ErrConflict) {
		return err
	}
	return nil
}

// newMissed returns a tick that has ended because it was too late.
func (t *Trigger) newMissed(at time.Time, note string) journal.Tick {
	return journal.Tick{Trigger: t.ID(), Key: "missed:" + at.UTC().Format(time.RFC3339), Time: at, State: Missed, Note: note}
}

// ActivateRun notes the run that a trigger is about to start. It fails with [journal.ErrConflict] if the trigger was
// changed since it was read, as by another process that starts a run of it.
func (s *Set) ActivateRun(ctx context.Context, t *Trigger, run string) error {
	if t.Active == run {
		return nil
	}
	t.Active = run
	return s.putTrigger(ctx, t)
}

// AddLimits returns what two runs spend together.
func AddLimits(a, b agent.Limits) agent.Limits {
	return agent.Limits{
		Tokens:    a.Tokens + b.Tokens,
		Money:     a.Money + b.Money,
		Calls:     a.Calls + b.Calls,
		ToolCalls: a.ToolCalls + b.ToolCalls,
	}
}

// LimitBy returns a limit of one run that is within what is left of another one. used says what is used up of that; "":
// nothing is.
func LimitBy(limit, of, spent agent.Limits) (rest agent.Limits, used string) {
	rest = limit
	for _, part := range []struct {
		limit     *int
		of, spent int
		name      string
	}{{&rest.Tokens, of.Tokens, spent.Tokens, "tokens"}, {&rest.Calls, of.Calls, spent.Calls, "calls"}} {
		switch left := part.of - part.spent; {
		case part.of == 0:
		case left <= 0:
			return rest, fmt.Sprintf("the budget of 24 hours is used up: %d of %d %s", part.spent, part.of, part.name)
		case *part.limit == 0 || left < *part.limit:
			*part.limit = left
		}
	}
	switch left := of.Money - spent.Money; {
	case of.Money == 0:
	case left <= 0:
		return rest, fmt.Sprintf("the budget of 24 hours is used up: $%.4f of $%.2f", spent.Money, of.Money)
	case rest.Money == 0 || left < rest.Money:
		rest.Money = left
	}
	return rest, ""
}
