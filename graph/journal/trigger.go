package journal

import (
	"context"
	"time"
)

// Triggers may be implemented by a Store that keeps what starts runs without a person, so that any of several processes
// does it, and each thing is done once. It knows triggers and their ticks: what is to happen for one of them at one
// time. It reads nothing of what they mean.
//
// A tick has a key, and is there once however often it is added. Who takes it has it for a time, and says what has come
// of it; if it does not, for example because its process was killed, another one takes it. So a tick is never lost, and
// may be taken again by someone who cannot know how far the first one has come: what a tick starts has a name that
// follows from the tick, Tick.Run, which cannot be started twice.
//
// The clock of the store counts. What it keeps is safe for concurrent use, also by several processes.
type Triggers interface {
	Ticks

	// ListTriggers returns all triggers by id, and what time it is.
	ListTriggers(ctx context.Context) (list []Trigger, now time.Time, err error)

	// PutTrigger writes a trigger, and returns it with a new token. It fails with ErrConflict unless t has the token of
	// the stored one; "": there must be none.
	PutTrigger(ctx context.Context, t Trigger) (Trigger, error)

	// RemoveTrigger removes a trigger and its ticks. It does nothing if there is none.
	RemoveTrigger(ctx context.Context, id string) error
}

// Ticks are the ticks of Triggers.
type Ticks interface {
	// AddTicks adds ticks that are not there yet, and returns all of them as they are stored. If of is not nil, it is
	// put with them, as by PutTrigger, all or nothing. It also forgets ticks that have ended [TicksKept] ago.
	AddTicks(ctx context.Context, of *Trigger, ticks []Tick) ([]Tick, error)

	// TakeTicks gives waiting ticks that are due to the caller, at most limit, those first that are due longest: no one
	// else gets them until ttl from now. It counts an attempt of each.
	TakeTicks(ctx context.Context, limit int, ttl time.Duration) ([]Tick, error)

	// ChangeTick writes State, Run, Note and Data of a tick that was taken. A waiting one is due again after a delay. It
	// fails with ErrConflict if someone else has taken the tick since, or if it is gone.
	ChangeTick(ctx context.Context, t Tick, delay time.Duration) error

	// ListTicks returns ticks of a trigger, or of all if trigger is "", the newest first and at most limit.
	ListTicks(ctx context.Context, trigger string, limit int) ([]Tick, error)
}

// TicksKept is how long a tick that has ended is remembered, at least.
const TicksKept = 30 * 24 * time.Hour

// A Trigger is a row of Triggers.
type Trigger struct {
	// ID is the name of the trigger.
	ID string

	// Token is new whenever someone writes the trigger.
	Token string

	// Due is when its next tick comes; zero: none is known.
	Due time.Time

	// Data is what its users keep in it, at most 1 MiB.
	Data []byte
}

// TickWaiting is the state of a tick that is to be taken. In any other one, which its users name, it has ended.
const TickWaiting = "waiting"

// A Tick is what is to happen for a trigger at one time.
type Tick struct {
	// Trigger and Key name the tick.
	Trigger string
	Key     string

	// Time is when the tick came: the time that a schedule names, or that of a request.
	Time time.Time

	// Run is the run that the tick starts; "": none.
	Run string

	// State is TickWaiting, or how the tick has ended.
	State string

	// Note says for people what it has done.
	Note string

	// Data is what the tick brings, at most 1 MiB.
	Data []byte

	// Due is when a waiting tick may be taken.
	Due time.Time

	// Attempts is how often it was taken.
	Attempts int

	// Token is new whenever someone takes the tick.
	Token string
}
