package journal

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"raddle.dev/graph/internal/process"
	"raddle.dev/graph/internal/record"
)

// Queue may be implemented by a Store that says which threads are to be driven, so that any worker on the store
// continues what another one has left. It holds at most one DriveJob for each thread. A job is written by the same
// transaction as the record that makes its thread runnable: see WithHold. It does not replace the claim and the lease,
// which keep two drives of one thread apart: a worker that has taken a job may still find that someone else drives the
// thread, and then returns the job.
//
// The clock of the store counts. A Prune that deletes a thread deletes its job too. All methods but TakeJobs may be
// called twice without harm.
type Queue interface {
	Jobs
	JobLists
	Workers
}

// Notices may be implemented by a Queue whose workers need not only look now and then.
type Notices interface {
	// ListenJobs calls changed, one call after the other, when it begins to listen and whenever a job may have become
	// free to take, by any process. It returns when ctx ends. It may call changed without a reason, and what is due
	// later or was said while the store was away is not told: a worker looks now and then, too.
	ListenJobs(ctx context.Context, changed func())
}

// Jobs are the jobs of a Queue.
type Jobs interface {
	// TakeJobs gives jobs that are due to a worker, at most limit, until ttl from now: those that wait for a worker,
	// and those whose worker has not renewed them in time. It counts an attempt of each, and adds to Reasons that a
	// worker has been lost. Higher priorities come first, then those that are due longest. It leaves out jobs that are
	// given up, those of a format above the worker's, those of queues that the worker does not have.
	TakeJobs(ctx context.Context, w Worker, limit int, ttl time.Duration) ([]DriveJob, error)

	// PutJob writes a job without a record, of a thread that a person continues: it belongs to its worker until ttl
	// from now, or is due then.
	PutJob(ctx context.Context, job DriveJob, ttl time.Duration) error

	// FinishJob removes a job: its thread has ended, waits for a person, or was stopped on purpose. It does nothing if
	// the job has another token.
	FinishJob(ctx context.Context, thread, token string) error

	// ReturnJob lets a job wait for a worker again. It does nothing if the job has another token.
	ReturnJob(ctx context.Context, thread, token string, r Return) error
}

// JobLists show the jobs of a Queue.
type JobLists interface {
	// ReadJob returns the job of a thread; ok is false if there is none.
	ReadJob(ctx context.Context, thread string) (job DriveJob, ok bool, err error)

	// ReadJobs returns the jobs of some threads, by thread; those that have none are left out.
	ReadJobs(ctx context.Context, threads []string) ([]DriveJob, error)

	// MeasureJobs says how much there is to do, in one look at all jobs.
	MeasureJobs(ctx context.Context) (QueueMeasure, error)

	// ListJobs returns all jobs, or only those that are given up, by thread.
	ListJobs(ctx context.Context, givenUp bool) ([]DriveJob, error)
}

// Workers are the workers of a Queue.
type Workers interface {
	// RenewJobs extends jobs of a worker until ttl from now, and records that the worker lives. What it says about
	// itself replaces what was recorded before. It does nothing about a job that has another token.
	RenewJobs(ctx context.Context, w Worker, jobs []Renewal, ttl time.Duration) error

	// ListWorkers returns the workers that have renewed their jobs within [ForgottenAfter], by id.
	ListWorkers(ctx context.Context) ([]Worker, error)

	// RemoveWorker records that a worker has ended. Jobs that it has left are due at once.
	RemoveWorker(ctx context.Context, id string) error
}

// A DriveJob says that a thread is to be driven: by anyone from Due on if it has no worker, otherwise by its worker
// until Due.
type DriveJob struct {
	// Thread is the thread.
	Thread string

	// Run is the run of the thread, which a store does not read.
	Run string

	// Token is new whenever someone writes or takes the job. A worker with another one has lost it.
	Token string

	// Worker is the id of the worker that drives the thread; "": the job waits.
	Worker string

	// Queue is the name of the queue; "" is the queue of every worker that names none.
	Queue string

	// Priority is higher for what is driven first.
	Priority int

	// Format is the newest format of records that a driver of the thread must know.
	Format int

	// Due is when the job may be taken.
	Due time.Time

	// Waited is for how long the job had been due when it was taken. TakeJobs sets it.
	Waited time.Duration

	// Attempts is how often the thread was tried since a person has touched it, with the attempt of Worker.
	Attempts int

	// Reasons is why attempts have failed, one line for each, the newest last.
	Reasons string

	// GivenUp reports that no worker takes the job, until someone continues the thread.
	GivenUp bool
}

// A QueueMeasure says how much there is to do. The zero QueueMeasure is nothing.
type QueueMeasure struct {
	// Lag is for how long the job has been due that no worker holds, or whose worker has lost it, and that has been due
	// longest; 0: there is none.
	Lag time.Duration

	// ByStatus are the numbers of jobs by the status of the lines of their threads, in a store that is an Index.
	ByStatus map[string]JobCounts
}

// JobCounts are numbers of jobs.
type JobCounts struct {
	Due     int // no worker holds them
	Later   int // the same, and they are not due
	Held    int // by a worker
	GivenUp int
}

// A Renewal is a job that its worker still has.
type Renewal struct {
	// Token is that of the job.
	Token string

	// Progress says that the drive has finished a step since the job was taken: what was tried before does not count
	// any more.
	Progress bool
}

// A Return says how a job waits again. The zero Return is for a drive that was stopped for a reason outside of its
// thread, such as the end of its process: the job is due at once and the attempt does not count.
type Return struct {
	// Delay is when the job is due, from now.
	Delay time.Duration

	// Reason says in one line why the attempt has failed. If it is "", the attempt does not count.
	Reason string

	// GiveUp says that no worker is to take the job any more.
	GiveUp bool
}

// A Worker is a process that takes jobs.
type Worker struct {
	// ID is another one for each start of a process.
	ID string

	// Host is the name of its machine, and PID its number there.
	Host string
	PID  int

	// Version is that of its program.
	Version string

	// Format is the newest format of records that it knows.
	Format int

	// Queues are those whose jobs it takes, separated by commas; "": the queue without a name.
	Queues string

	// Places is how many threads it drives at once.
	Places int

	// Draining says that it takes no more jobs, because it ends.
	Draining bool

	// Silent is for how long it has not renewed its jobs, by the clock of the store, which sets it.
	Silent time.Duration

	// Driving is how many jobs it holds; a store sets it.
	Driving int
}

// NewWorkerID returns an id that no other call returns, in any process.
func NewWorkerID() string { return process.NewOwner() }

// HasEnded reports whether the process of a worker with an id of NewWorkerID is known to have ended. Only processes of
// this host can be.
func (w *Worker) HasEnded() bool { return process.HasOwnerEnded(w.ID) }

// A Hold is a job that a worker has while it drives the thread. It is safe for concurrent use.
type Hold struct {
	// Job is the job, with the token of this worker.
	Job DriveJob

	// TTL is for how long the job belongs to the worker when it is written.
	TTL time.Duration

	end      atomic.Int32
	progress atomic.Bool
}

// NoteProgress says that the drive has finished a step. It reports whether earlier attempts counted until now.
func (h *Hold) NoteProgress() (first bool) { return !h.progress.Swap(true) && h.Job.Attempts > 1 }

// CountAttempts returns how often the thread was tried since a step of it was finished, or a person has touched it.
func (h *Hold) CountAttempts() int {
	if h.progress.Load() {
		return 1
	}
	return h.Job.Attempts
}

// Renewal returns what RenewJobs gets about the job.
func (h *Hold) Renewal() Renewal { return Renewal{h.Job.Token, h.progress.Load()} }

// AtEnd says what to do with a job with the record that ends a drive of its thread.
type AtEnd int32

const (
	// RemoveAtEnd is for a drive that continues as long as it can: what it has left needs a person, or is done.
	RemoveAtEnd AtEnd = iota

	// ReturnIfStopped is for a drive that may be stopped before it must: then the job waits for any worker.
	ReturnIfStopped

	// ReturnAtEnd is for a drive that only records something: the job waits for any worker, unless the run has ended.
	ReturnAtEnd

	// KeepAtEnd is ReturnAtEnd for who drives the thread itself later.
	KeepAtEnd
)

// returnsJob reports whether the job waits for a worker again after the record that ends a drive.
func (e AtEnd) returnsJob(end *Record) bool {
	if e != ReturnIfStopped && e != ReturnAtEnd {
		return false
	}
	b := record.Parts{}
	if b.ReadHead(uint8(KindEnd), end.Head) != nil {
		return true
	}
	switch b.Status {
	case record.Paused, record.Canceled:
		return true
	case record.Waiting:
		return e == ReturnAtEnd // what was recorded may let another node of it work
	}
	return false
}

// SetEnd says what to do with the job at the end of its drive. The zero Hold removes it.
func (h *Hold) SetEnd(end AtEnd) { h.end.Store(int32(end)) }

// holdKey is the key of a Hold in a context.
type holdKey struct{}

// WithHold returns a context with which a Store that is a Queue writes the job of a hold in the transaction of the
// records that begin a drive of its thread or answer it, and removes or returns it in that of the record that ends the
// drive. A job that is written replaces an earlier one of the thread; of one with the same token it keeps how often it
// was tried.
func WithHold(ctx context.Context, h *Hold) context.Context {
	return context.WithValue(ctx, holdKey{}, h)
}

// A JobChange is what a Store that is a Queue does about a job in the transaction of some records. The zero JobChange
// is nothing.
type JobChange struct {
	// Put says that the job is written, Remove that whichever there is is removed, and Return that it waits for any
	// worker. At most one of them is true.
	Put    bool
	Remove bool
	Return bool

	// Job is what is written. Its Token is that of the job to remove or to return; "": whichever there is.
	Job DriveJob

	// TTL is in what time the job is due that is written.
	TTL time.Duration
}

// JobChangeOf returns what a Store that is a Queue does about the job of a thread together with records. The end of a
// drive that does not return its job removes whichever there is: who has continued a thread decides what becomes of it,
// and its end is accepted only if no one has continued it since. A thread that its process has left without an end
// keeps its job. The job of a thread that waits for a time stays, for any worker, and is due when the time has come: as
// long after the end as the record of it says, so that the clock of the driver need not be that of the store.
func JobChangeOf(ctx context.Context, thread string, recs []Record) (c JobChange) {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	if h != nil && h.Job.Thread == thread {
		c.Job = h.Job
		c.TTL = h.TTL
	} else {
		h = nil
	}
	var end *Record
	for i := range recs {
		switch recs[i].Kind {
		case KindStart, KindClaim, KindAnswer:
			c.Put = h != nil
			end = nil
		case KindEnd:
			end = &recs[i]
		}
	}
	if end == nil || h != nil && AtEnd(h.end.Load()) == KeepAtEnd {
		return c
	}
	if h == nil || !AtEnd(h.end.Load()).returnsJob(end) {
		return jobOfTime(h, end)
	}
	if !c.Put {
		c.Return = true
		return c
	}
	c.Job.Worker = ""
	c.Job.Attempts = 0
	c.TTL = 0
	return c
}

// jobOfTime returns the change of a job that does not wait for a worker now, at the end of its drive. h is nil if no
// worker has it. The job of a thread that waits for a time has a new token: what was tried does not count any more.
func jobOfTime(h *Hold, end *Record) JobChange {
	b := record.Parts{}
	if h == nil || b.ReadHead(uint8(KindEnd), end.Head) != nil || b.Due == 0 {
		return JobChange{Remove: true}
	}
	c := JobChange{Put: true, Job: h.Job}
	c.Job.Token = rand.Text()
	c.Job.Worker = ""
	c.Job.Attempts = 0
	c.TTL = max(0, time.Duration(b.Due-end.Time)*time.Microsecond)
	return c
}

// ListQueues returns the names of the queues whose jobs a worker takes.
func (w *Worker) ListQueues() []string { return strings.Split(w.Queues, ",") }

// How long a worker may be silent until others do not count on it, and until it is not listed any more.
const (
	SilentAfter    = 20 * time.Second
	ForgottenAfter = 150 * time.Second
)

// A WorkerState is what others may expect of a worker.
type WorkerState string

// The states of a worker. Only one that works takes jobs.
const (
	WorkerWorks    WorkerState = "works"
	WorkerEnded    WorkerState = "ended"    // its process
	WorkerSilent   WorkerState = "silent"   // it has not renewed its jobs for SilentAfter
	WorkerDraining WorkerState = "draining" // it takes no more jobs, because it ends
	WorkerRequests WorkerState = "requests" // it has no places
)

// State returns the state of a worker that a Queue has listed.
func (w *Worker) State() WorkerState {
	switch {
	case w.HasEnded():
		return WorkerEnded
	case w.Silent >= SilentAfter:
		return WorkerSilent
	case w.Draining:
		return WorkerDraining
	case w.Places <= 0:
		return WorkerRequests
	}
	return WorkerWorks
}

// LostWorker returns what a Store writes before (0) and after (1) the id of a worker into the reasons of a job that the
// worker has not renewed.
func LostWorker(part int) string {
	return [...]string{"worker ", " ended or stood still in the middle of it\n"}[part]
}

// DescribeReasons returns why attempts have failed, for people: each reason once, in the order in which they came
// first, with how often it came.
func (j *DriveJob) DescribeReasons() string {
	var list []string
	count := map[string]int{}
	for line := range strings.Lines(j.Reasons) {
		line = describeReason(strings.TrimSuffix(line, "\n"))
		if count[line]++; count[line] == 1 {
			list = append(list, line)
		}
	}
	for i, line := range list {
		if n := count[line]; n > 1 {
			list[i] = fmt.Sprintf("%s (%d times)", line, n)
		}
	}
	return strings.Join(list, "; ")
}

// describeReason returns a line of reasons for people: the host of a worker that was lost in place of its id.
func describeReason(line string) string {
	rest, begins := strings.CutPrefix(line, LostWorker(0))
	id, ends := strings.CutSuffix(rest+"\n", LostWorker(1))
	p, ok := process.ParseOwner(id)
	if !begins || !ends || !ok {
		return line
	}
	return "a server on " + p.Host + " ended or stood still in the middle of it"
}

// maxReason is the number of bytes of one reason that is kept.
const maxReason = 500

// Line returns what a Store adds to the reasons of a job, and how many attempts it takes back.
func (r *Return) Line() (line string, uncounted int) {
	if r.Reason == "" {
		return "", 1
	}
	line = strings.ToValidUTF8(r.Reason[:min(len(r.Reason), maxReason)], "")
	return strings.ReplaceAll(line, "\n", " ") + "\n", 0
}
