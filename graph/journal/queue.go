package journal

import (
	"context"
	"strings"
	"time"
)

// Queue may be implemented by a Store that says which threads are to be driven, so that any worker on the store continues what another one has
// left. It holds at most one DriveJob for each thread. A job is written by the same transaction as the record that makes its thread runnable: see
// WithJob. It does not replace the claim and the lease, which keep two drives of one thread apart: a worker that has taken a job may still find
// that someone else drives the thread, and then returns the job.
//
// The clock of the store counts. A Prune that deletes a thread deletes its job too. All methods but TakeJobs may be called twice without harm.
type Queue interface {
	// TakeJobs gives jobs that are due to a worker, at most limit, until ttl from now: those that wait for a worker, and those whose worker has
	// not renewed them in time. It counts an attempt of each, and adds to Reasons that a worker has been lost. Higher priorities come first, then
	// those that are due longest. It leaves out jobs that are given up, those of a format above the worker's, those of queues that the worker
	// does not have, and those that the worker holds already.
	TakeJobs(ctx context.Context, w Worker, limit int, ttl time.Duration) ([]DriveJob, error)

	// RenewJobs extends all jobs of a worker until ttl from now, and records that the worker lives. What it says about itself replaces what was
	// recorded before.
	RenewJobs(ctx context.Context, w Worker, ttl time.Duration) error

	// FinishJob removes a job: its thread has ended, waits for a person, or was stopped on purpose. It does nothing if the job has another token.
	FinishJob(ctx context.Context, thread, token string) error

	// ReturnJob lets a job wait for a worker again. It does nothing if the job has another token.
	ReturnJob(ctx context.Context, thread, token string, r Return) error

	// ListJobs returns all jobs, or only those that are given up, by thread.
	ListJobs(ctx context.Context, givenUp bool) ([]DriveJob, error)

	// ListWorkers returns the workers that have renewed their jobs in the last ten leases, by id.
	ListWorkers(ctx context.Context) ([]Worker, error)

	// RemoveWorker records that a worker has ended. Its jobs are due when they have not been renewed.
	RemoveWorker(ctx context.Context, id string) error
}

// A DriveJob says that a thread is to be driven: by anyone from Due on if it has no worker, otherwise by its worker until Due.
type DriveJob struct {
	// Thread is the thread.
	Thread string

	// Run is the run of the thread, which a store does not read.
	Run string

	// Token is new whenever someone writes or takes the job. Who has another one has lost it.
	Token string

	// Worker is the id of the worker that drives the thread; "": the job waits.
	Worker string

	// Queue is the name of the queue; "" is the queue of every worker that names none.
	Queue string

	// Priority is higher for what is driven first.
	Priority int

	// Format is the newest format of records that whoever drives the thread must know.
	Format int

	// Due is when the job may be taken.
	Due time.Time

	// Attempts is how often the job was taken since a person has touched the thread.
	Attempts int

	// Reasons is why attempts have failed, one line for each, the newest last.
	Reasons string

	// GivenUp reports that no worker takes the job, until someone continues the thread.
	GivenUp bool
}

// A Return says how a job waits again. The zero Return is for a drive that was stopped for a reason outside of its thread, such as the end
// of its process: the job is due at once and the attempt does not count.
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

	// Seen is when it has renewed its jobs; a store sets it.
	Seen time.Time

	// Driving is how many jobs it holds; a store sets it.
	Driving int
}

// jobKey is the key of a job in a context.
type jobKey struct{}

// pendingJob is what WithJob adds to a context.
type pendingJob struct {
	job DriveJob
	ttl time.Duration
}

// WithJob returns a context with which a Store that is a Queue writes a job in the transaction of the records that begin a drive of its thread, or
// answer it. The job belongs to its worker until ttl from then. It replaces an earlier job of the thread; of one with the same token it keeps how often it
// was tried.
func WithJob(ctx context.Context, job DriveJob, ttl time.Duration) context.Context {
	return context.WithValue(ctx, jobKey{}, &pendingJob{job: job, ttl: ttl})
}

// JobOf returns the job that a Store writes together with records of a thread, as WithJob has said, and how long it belongs to its worker. ok is
// false if it writes none.
func JobOf(ctx context.Context, thread string, recs []Record) (job DriveJob, ttl time.Duration, ok bool) {
	p, _ := ctx.Value(jobKey{}).(*pendingJob)
	if p == nil || p.job.Thread != thread {
		return job, 0, false
	}
	for i := range recs {
		switch recs[i].Kind {
		case KindStart, KindClaim, KindAnswer:
			return p.job, p.ttl, true
		}
	}
	return job, 0, false
}

// ListQueues returns the names of the queues whose jobs a worker takes.
func (w *Worker) ListQueues() []string { return strings.Split(w.Queues, ",") }

// WorkerLeases is for how many times the time of its jobs a worker is listed that does not renew them any more.
const WorkerLeases = 10

// LostWorker returns what a Store writes before (0) and after (1) the id of a worker into the reasons of a job that the worker has not renewed.
func LostWorker(part int) string {
	return [...]string{"worker ", " ended or stood still in the middle of it\n"}[part]
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
