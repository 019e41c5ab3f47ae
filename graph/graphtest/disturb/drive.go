package disturb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/internal/probe"
	"raddle.dev/graph/journal"
)

// How long disturbances last, and what a drive gets to notice them.
const (
	leaseFor    = 3 * time.Second // that another process holds the lease
	noticeAfter = 2 * time.Second
)

// stranger owns the lease of a thread in a LeaseLost.
const stranger = "a process that does nothing"

// Errors of the store. The first is permanent.
var (
	errRefused = errors.New("disturb: the store refuses the write, as the test demands")
	errBusy    = journal.MarkUnavailable(errors.New("disturb: the store is busy, as the test demands"))
	errAway    = journal.MarkUnavailable(errors.New("disturb: the store is away, as the test demands"))
	errLost    = journal.MarkUnavailable(errors.New("disturb: the answer of the store is lost, as the test demands"))
)

// A Drive is one drive of a trial: the work of one process until it ends or is killed.
type Drive struct {
	// Killed is closed when the process is killed.
	Killed chan struct{}

	// Held is closed when another drive must take the run over. This one is held until ContinueHeld.
	Held chan struct{}

	// Paused is closed when the run must pause: graph.Input.Pause.
	Paused chan struct{}

	trial  *Trial
	n      int           // from 1
	kill   func()        // nil: a killed drive is frozen
	resume chan struct{} // closed by ContinueHeld
	once   sync.Once

	pauseOnce sync.Once

	// guarded by the mutex of the trial
	dead   bool
	broken Kind   // what has cut the drive off; "": nothing
	lost   bool   // it has lost its lease, and had time to notice it
	owner  string // of its lease
	inside journal.Leaser
}

// NewDrive begins a drive. If kill is nil, everything that a killed drive tries waits until ReleaseAll, as if its
// process had ended; else kill is called, which ends the context of the drive, and what it tries then is ErrKilled.
func (t *Trial) NewDrive(kill func()) *Drive {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := &Drive{Killed: make(chan struct{}), Held: make(chan struct{}), Paused: make(chan struct{}), resume: make(chan struct{}), trial: t, n: len(t.drives) + 1, kill: kill}
	t.drives = append(t.drives, d)
	return d
}

// ContinueHeld lets a drive that is held continue.
func (d *Drive) ContinueHeld() { d.once.Do(func() { close(d.resume) }) }

// CutOff returns the kind of the disturbance that has ended the drive before its end; "": none.
func (d *Drive) CutOff() Kind {
	d.trial.mu.Lock()
	defer d.trial.mu.Unlock()
	return d.broken
}

// WatchEffects returns a context for the drive, whose effects the trial sees.
func (d *Drive) WatchEffects(ctx context.Context) context.Context { return probe.WithWatcher(ctx, d) }

// WrapStore returns the store that the drive uses. It has leases if st has them.
func (d *Drive) WrapStore(st journal.Store) journal.Store {
	s := &driveStore{st, d}
	if l, ok := st.(journal.Leaser); ok {
		d.inside = l
		return &leasedStore{s, l}
	}
	return s
}

// checkAlive returns nil unless the process was killed, or the store is away.
func (d *Drive) checkAlive() error {
	t := d.trial
	t.mu.Lock()
	dead := d.dead
	away := time.Now().Before(t.away)
	t.mu.Unlock()
	switch {
	case dead:
		return d.stayDead()
	case away:
		return errAway
	}
	return nil
}

// stayDead waits for ReleaseAll if a killed drive is frozen.
func (d *Drive) stayDead() error {
	if d.kill == nil {
		<-d.trial.released
	}
	return ErrKilled
}

// dieLocked kills the process, and with it all its drives. Its leases end too, as those of a process do whose end can
// be seen.
func (d *Drive) dieLocked(k Kind) {
	d.broken = k
	for _, each := range d.trial.drives {
		if each.dead {
			continue
		}
		each.dead = true
		if each.inside != nil && each.owner != "" {
			_ = each.inside.ReleaseLease(context.Background(), d.trial.thread, each.owner)
		}
		close(each.Killed)
	}
	if d.kill != nil {
		d.kill()
	}
}

// BeginEffect implements the watcher of effects.
func (d *Drive) BeginEffect(ctx context.Context) (end func()) {
	if d.checkAlive() == ErrKilled { // the run has ended
		return func() {}
	}
	t := d.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	run, path, _ := strings.Cut(graph.EffectKey(ctx), "/")
	name := strings.ReplaceAll(path, "/", " ")
	switch {
	case strings.Contains(run, "~"): // a fork makes the effects of its first step again
		return func() {}
	case t.recorded[path]:
		t.addFaultLocked("the effect " + name + " is made again although its result is stored")
	case d.lost:
		t.addFaultLocked("the effect " + name + " is made by a drive that has lost its lease")
	case d.n < t.effects:
		t.addFaultLocked("the effect " + name + " is made by a drive that was displaced, after an effect of the next one")
	}
	t.effects = max(t.effects, d.n)
	for _, other := range t.drives {
		if other.n < d.n {
			other.ContinueHeld()
		}
	}
	return func() { d.endEffect(path) }
}

// endEffect notes that the function of an effect has returned.
func (d *Drive) endEffect(path string) {
	t := d.trial
	t.mu.Lock()
	label := t.makeLabel("made", path)
	m := Milestone{Label: label + countSuffix(t.made[path])}
	t.made[path]++
	killed := false
	if !d.dead {
		t.milestones = append(t.milestones, m)
		if x, place, ok := t.matchLocked([]Milestone{m}); ok {
			t.fired[place], t.last, t.saved, killed = true, nil, false, true
			d.dieLocked(x.Kind)
		}
	}
	t.mu.Unlock()
	if killed {
		_ = d.stayDead()
	}
}

// appendRecords is journal.Store.Append.
func (d *Drive) appendRecords(ctx context.Context, st journal.Store, thread string, after int64, recs []journal.Record) error {
	if err := d.checkAlive(); err != nil {
		return err
	}
	t := d.trial
	t.mu.Lock()
	if t.thread == "" {
		t.thread = thread
	}
	if t.thread != thread {
		defer t.mu.Unlock()
		return st.Append(ctx, thread, after, recs)
	}
	if d.dead { // meanwhile
		t.mu.Unlock()
		return d.stayDead()
	}
	entries := listEntries(after, recs)
	milestones := t.labelRecords(entries)
	x, place, ok := t.matchLocked(milestones)
	var err error
	if !ok || x.Kind.isAfter() {
		err = t.storeLocked(ctx, st, after, recs, entries)
	}
	if ok && err == nil {
		t.fired[place], t.last, t.saved = true, entries, x.Kind.isAfter()
		err = d.disturbLocked(x, milestones, entries)
	}
	t.mu.Unlock()
	switch {
	case !ok || err != nil && !errors.Is(err, ErrKilled):
	case err != nil:
		return d.stayDead()
	case x.Kind == Takeover:
		return d.waitForOther(ctx, st, after, recs, entries)
	case x.Kind == LeaseLost:
		d.loseLease(ctx)
	}
	return err
}

// isAfter reports whether the disturbance comes when the record is stored.
func (k Kind) isAfter() bool {
	switch k {
	case CrashBefore, FailBefore, Busy, Away, Takeover:
		return false
	}
	return true
}

// disturbLocked does what a disturbance does at an append that was stored, or not, as the kind wants.
func (d *Drive) disturbLocked(x Disturbance, milestones []Milestone, entries []history.Entry) error {
	t := d.trial
	switch x.Kind {
	case CrashBefore, CrashAfter:
		d.dieLocked(x.Kind)
		return ErrKilled
	case FailBefore, FailAfter, Takeover, LeaseLost:
		d.broken = x.Kind
	case Away:
		t.away = time.Now().Add(t.Outage)
	case Pause:
		d.pauseOnce.Do(func() { close(d.Paused) })
	case Fork:
		for i, m := range milestones {
			if m.Label == x.At {
				t.forkAt = entries[i].Seq
			}
		}
	}
	return x.Kind.writeError()
}

// waitForOther holds an append until another drive has taken the run over.
func (d *Drive) waitForOther(ctx context.Context, st journal.Store, after int64, recs []journal.Record, entries []history.Entry) error {
	close(d.Held)
	select {
	case <-d.resume:
	case <-d.trial.released:
	}
	if err := d.checkAlive(); err != nil {
		return err
	}
	d.trial.mu.Lock()
	defer d.trial.mu.Unlock()
	err := d.trial.storeLocked(ctx, st, after, recs, entries)
	if err == nil && d.trial.effects > d.n {
		d.trial.addFaultLocked(fmt.Sprintf("a drive that was displaced has appended record %d after an effect of the next drive", after+1))
	}
	return err
}

// loseLease gives the lease to another process, and the drive time to notice it.
func (d *Drive) loseLease(ctx context.Context) {
	t := d.trial
	t.mu.Lock()
	owner := d.owner
	inside := d.inside
	t.mu.Unlock()
	if inside == nil || owner == "" {
		return
	}
	if by, err := inside.AcquireLease(context.WithoutCancel(ctx), t.thread, stranger, owner, leaseFor); err != nil || by.Owner != stranger {
		return // the drive releases it just now
	}
	time.Sleep(noticeAfter)
	t.mu.Lock()
	d.lost = true
	t.mu.Unlock()
}

// driveStore is the store of one drive, without leases.
type driveStore struct {
	journal.Store
	drive *Drive
}

// Append implements journal.Store.
func (s *driveStore) Append(ctx context.Context, thread string, after int64, recs []journal.Record) error {
	return s.drive.appendRecords(ctx, s.Store, thread, after, recs)
}

// Read implements journal.Store.
func (s *driveStore) Read(ctx context.Context, thread string, r journal.Range) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if err := s.drive.checkAlive(); err != nil && (s.drive.kill == nil || !errors.Is(err, ErrKilled)) {
			yield(journal.Record{}, err)
			return
		}
		s.Store.Read(ctx, thread, r)(yield)
	}
}

// Prune implements journal.Store.
func (s *driveStore) Prune(ctx context.Context, thread string, before int64) error {
	if err := s.drive.checkAlive(); err != nil {
		return err
	}
	return s.Store.Prune(ctx, thread, before)
}

// leasedStore is the store of one drive, with leases.
type leasedStore struct {
	*driveStore
	inside journal.Leaser
}

// changeLease is a change of a lease, or a look at it. what names a change; "": it is a look.
func (s *leasedStore) changeLease(what, thread, owner string, do func() (journal.Lease, error)) (journal.Lease, error) {
	if err := s.drive.checkAlive(); err != nil {
		return journal.Lease{}, err
	}
	var x Disturbance
	if what != "" {
		x = s.drive.noteLease(what, thread)
	}
	if err := x.Kind.writeError(); err != nil && !x.Kind.isAfter() {
		return journal.Lease{}, err
	}
	l, err := do()
	if err == nil && owner != "" && l.Owner == owner {
		s.drive.trial.mu.Lock()
		s.drive.owner = owner
		s.drive.trial.mu.Unlock()
	}
	if err == nil {
		err = x.Kind.writeError()
	}
	return l, err
}

// noteLease notes that the lease of a thread is about to be changed, and returns what disturbs that.
func (d *Drive) noteLease(what, thread string) Disturbance {
	t := d.trial
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.thread != "" && t.thread != thread {
		return Disturbance{}
	}
	label := t.makeLabel("lease", what)
	m := Milestone{Label: label + countSuffix(t.leases[label]), First: true}
	t.leases[label]++
	t.milestones = append(t.milestones, m)
	x, place, ok := t.matchLocked([]Milestone{m})
	if !ok {
		return Disturbance{}
	}
	t.fired[place], t.last, t.saved = true, nil, false
	switch x.Kind {
	case FailBefore, FailAfter:
		d.broken = x.Kind
	case Away:
		t.away = time.Now().Add(t.Outage)
	}
	return x
}

// writeError returns the error of a write that is disturbed; nil: it has none.
func (k Kind) writeError() error {
	switch k {
	case FailBefore, FailAfter:
		return errRefused
	case Busy:
		return errBusy
	case Away:
		return errAway
	case AnswerLost:
		return errLost
	}
	return nil
}

// AcquireLease implements journal.Leaser.
func (s *leasedStore) AcquireLease(ctx context.Context, thread, owner, over string, ttl time.Duration) (journal.Lease, error) {
	return s.changeLease("acquire", thread, owner, func() (journal.Lease, error) { return s.inside.AcquireLease(ctx, thread, owner, over, ttl) })
}

// RenewLease implements journal.Leaser.
func (s *leasedStore) RenewLease(ctx context.Context, thread, owner string, ttl time.Duration) (journal.Lease, error) {
	return s.changeLease("renew", thread, owner, func() (journal.Lease, error) { return s.inside.RenewLease(ctx, thread, owner, ttl) })
}

// ReleaseLease implements journal.Leaser.
func (s *leasedStore) ReleaseLease(ctx context.Context, thread, owner string) error {
	_, err := s.changeLease("release", thread, "", func() (journal.Lease, error) {
		return journal.Lease{}, s.inside.ReleaseLease(ctx, thread, owner)
	})
	return err
}

// ReadLease implements journal.Leaser.
func (s *leasedStore) ReadLease(ctx context.Context, thread string) (journal.Lease, error) {
	return s.changeLease("", thread, "", func() (journal.Lease, error) { return s.inside.ReadLease(ctx, thread) })
}
