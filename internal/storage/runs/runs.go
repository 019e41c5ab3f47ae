package runs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/foreign"
)

// These are the statuses of a run in addition to those of the engine.
const (
	Running = "running"  // a process drives it
	Queued  = "queued"   // a server of the store continues it as soon as one has a place
	Crashed = "crashed"  // no process drives it, and the last one did not record that it stopped
	GivenUp = "given-up" // no server tries it again, because its drives failed
	Damaged = "damaged"  // the store does not hold what was written
)

// IsWorking reports whether a run with a status continues by itself.
func IsWorking(status string) bool { return status == Running || status == Queued }

// NeedsResume reports whether a run with a status continues only if someone resumes it.
func NeedsResume(status string) bool {
	return status == graph.Paused.String() || status == Crashed || status == GivenUp
}

// HasFailed reports whether a run with a status has ended by a failure or a limit, whether or not it can be resumed.
func HasFailed(status string) bool {
	switch ParseStatus(status) {
	case graph.Failed, graph.StepLimit, graph.VisitLimit, graph.TimedOut, graph.Stuck, graph.CleanedUp:
		return true
	}
	return false
}

// Statuses returns every status that a run in a list can have: those of the engine, and those in addition.
func Statuses() []string {
	names := []string{Running, Queued}
	for s := graph.Done; s <= graph.Crashed; s++ {
		names = append(names, s.String())
	}
	return append(names, graph.CleanedUp.String(), GivenUp, Damaged)
}

// ParseStatus returns the status of the engine that has a name; [graph.Crashed]: none has it.
func ParseStatus(name string) graph.Status {
	for s := range graph.CleanedUp + 1 {
		if s.String() == name && s != graph.NotStarted {
			return s
		}
	}
	return graph.Crashed
}

// Info is one line of a list of runs.
type Info struct {
	Run     string    `json:"run"`
	Session string    `json:"session,omitempty"` // the session whose newest turn it is
	Agent   string    `json:"agent"`
	Graph   string    `json:"graph,omitempty"`
	Status  string    `json:"status"`
	Started time.Time `json:"started"`
	Updated time.Time `json:"updated"`
	PID     int       `json:"pid,omitempty"` // of the process that drives it, if known
	// Host is the machine of that process, if only the lease says that the run is driven.
	Host      string         `json:"host,omitempty"`
	Questions []OpenQuestion `json:"questions"`
	Due       time.Time      `json:"due,omitzero"`     // when a run that waits is to be continued; zero: when it is answered
	Reason    string         `json:"reason,omitempty"` // for a failure
	From      *Point         `json:"from,omitempty"`   // for a fork: what was copied
	Final     bool           `json:"-"`

	line *runLine // what else the index says; nil: nothing
}

// threadName returns the name of the thread whose newest run it is.
func (i *Info) threadName() string {
	if i.Session != "" {
		return NameSession(i.Agent, i.Session)
	}
	return i.Run
}

// OpenQuestion is a question as lists show it.
type OpenQuestion struct {
	ID     string `json:"id"`
	Prompt string `json:"prompt"`
}

// ListRuns returns the runs whose ids begin with prefix, newest first.
func (a *Archive) ListRuns(ctx context.Context, prefix string) (infos []Info, err error) {
	for i, err := range a.EachRun(ctx, RunRange{Prefix: prefix}) {
		if err != nil {
			return nil, err
		}
		infos = append(infos, i)
	}
	return infos, nil
}

// ListNewest returns at most n runs whose ids begin with prefix, newest first. It reads little more than them.
func (a *Archive) ListNewest(ctx context.Context, prefix string, n int) (infos []Info, err error) {
	var r RunRange
	if prefix != "" {
		r.Below = prefix + string(utf8.MaxRune)
	}
	for i, err := range a.EachRun(ctx, r) {
		if err != nil {
			return nil, err
		}
		if len(infos) == n || i.Run < prefix {
			break
		}
		if strings.HasPrefix(i.Run, prefix) {
			infos = append(infos, i)
		}
	}
	return infos, nil
}

// describeAgain describes the newest run of a thread as the store lists it now, or returns i if there is no such thread
// any more. A run that looked crashed needs it: the run may have ended after its journal was read, and before its lock
// was.
func (s *Store) describeAgain(ctx context.Context, thread string, i Info) (Info, error) {
	for t, err := range s.Threads(ctx, thread) {
		if err != nil {
			return i, err
		}
		if t.Name != thread {
			continue
		}
		d, err := history.Describe(t)
		if err == nil {
			err = s.completeInfo(ctx, &d)
		}
		if err != nil {
			return i, err
		}
		return s.describeRun(ctx, d)
	}
	return i, nil
}

// describeRun describes the newest run of a thread as it is now.
func (s *Store) describeRun(ctx context.Context, d history.RunInfo) (Info, error) {
	return s.describeListed(ctx, d, &jobSet{store: s})
}

// describeListed is describeRun for one of many runs, which look up their jobs in one set.
func (s *Store) describeListed(ctx context.Context, d history.RunInfo, jobs *jobSet) (Info, error) {
	_, session, _ := SessionOf(d.Thread)
	i := Info{Run: RunOf(d.Thread, d.Run), Session: session, Agent: d.Label, Graph: d.Graph, Status: d.Status.String(), Started: d.Started, Updated: d.Updated,
		Questions: []OpenQuestion{}, Due: d.Due, Reason: flow.PlainReason(d.Reason), Final: d.Status.Final()}
	for _, q := range d.Questions {
		i.Questions = append(i.Questions, OpenQuestion{q.ID, q.Prompt})
	}
	if d.From.Thread != "" {
		i.From = &Point{d.From.Thread, d.From.Seq}
	}
	if pid, yes := findDriver(s.Location.LockDir(), d.Thread); yes {
		i.Status = Running
		i.PID = pid
		i.Final = false
	} else if d.Status == graph.Running {
		i.Host, i.PID, _ = d.Lease.Holder()
	}
	return i, jobs.applyJob(ctx, d.Thread, &i)
}

// Detail is the state of a run, now or at an earlier point, as its journal records it.
type Detail struct {
	Info
	At       int64 // the requested record; 0: the newest
	Snapshot *history.Snapshot
	Record   *Record       // nil if the command line did not start the run
	Foreign  *foreign.Mark // says where the run came from; nil: it was started here, or where the store is used
}

// Waits reports whether the last drive has stopped because only answers, or a time, can continue the run.
func (d *Detail) Waits() bool { return d.Snapshot.Status == graph.Waiting }

// ReadRunDetail reads a run from its journal alone, in its current state or in that of RUN@AT;
// its agent need not exist any more.
func (a *Archive) ReadRunDetail(ctx context.Context, point string) (*Detail, error) {
	st, at, snap, err := inspectPoint(ctx, a, point)
	if err != nil {
		return nil, err
	}
	return a.newDetail(ctx, st, at, snap, func() (*history.Snapshot, error) {
		snap, err := history.Inspect(ctx, st.Store, at.Thread, 0)
		return snap, st.pointError(ctx, at, err)
	})
}

// newDetail returns the details of the run that a thread holds at a point, where it was folded. again folds it to its
// end now.
func (a *Archive) newDetail(ctx context.Context, st *Store, at journal.Point, snap *history.Snapshot, again func() (*history.Snapshot, error)) (*Detail, error) {
	rec, _ := DecodeRecord(snap.Meta)
	i, err := st.describeRun(ctx, snap.RunInfo)
	// it may have ended after its journal was read, and before its lock or its job was
	if err == nil && at.Seq == 0 && (i.Status == Crashed || NeedsResume(i.Status) && QueueOf(st) != nil) {
		if snap, err = again(); err != nil {
			return nil, err
		}
		i, err = st.describeRun(ctx, snap.RunInfo)
	}
	d := &Detail{Info: i, At: at.Seq, Snapshot: snap, Record: rec}
	if err == nil {
		d.Foreign, err = foreign.FindCurrent(ctx, st, at.Thread, at.Seq)
	}
	if err == nil && at.Seq == 0 {
		err = d.askAboutOrigin(ctx, st, a.dirs.Work)
	}
	if at.Seq == 0 || err != nil {
		return d, err
	}
	if _, _, kept := SessionOf(at.Thread); kept && snap.Status.Final() {
		return d, nil // of an earlier turn
	}
	d.Info, err = st.describeAgain(ctx, at.Thread, i)
	return d, err
}

// ReadHistory returns the records of a run, newest first: of a session all of them, of
// one of its runs only those of that run.
func (a *Archive) ReadHistory(ctx context.Context, id string) (string, []history.Entry, error) {
	st, found, err := a.locateRun(ctx, id)
	if err != nil {
		return "", nil, err
	}
	entries, err := st.listEntries(ctx, found)
	return found.thread, entries, err
}

// errMissing says that a store has lost a record.
var errMissing = errors.New("it is missing")

// listEntries returns the heads of the records of a run, newest first.
func (s *Store) listEntries(ctx context.Context, of runRef) (entries []history.Entry, err error) {
	next := int64(0)
	for e, err := range history.Entries(ctx, s, of.thread) {
		if err == nil && next > 0 && e.Seq != next-1 {
			err = &journal.DamagedError{Thread: of.thread, Seq: next - 1, Err: errMissing}
		}
		if err != nil {
			return nil, err
		}
		next = e.Seq
		if of.containsRecord(e.Seq) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// RemoveRun deletes a run's journal permanently. It does not remove a run that is being driven.
func (a *Archive) RemoveRun(ctx context.Context, id string) (string, error) {
	st, id, err := a.FindThread(ctx, id)
	if err != nil {
		return "", err
	}
	lock, err := st.lockIdleRun(id)
	if err != nil {
		return id, err
	}
	defer lock.Release()
	if err := st.Prune(ctx, id, math.MaxInt64); err != nil {
		return id, fmt.Errorf("remove run %s: %w", id, err)
	}
	if err := removeMedia(a.dirs, id); err != nil {
		return id, err
	}
	return id, foreign.Remove(ctx, st, id)
}
