package graphtest

import (
	"context"
	"time"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// queueCases are what a journal.Queue must do.
var queueCases = []storeCase{
	{"JobComesWithTheRecord", jobComesWithTheRecord},
	{"JobIsRefusedWithTheRecord", jobIsRefusedWithTheRecord},
	{"JobEndsWithTheRecord", jobEndsWithTheRecord},
	{"PutJob", putJob},
	{"TakenOnce", takenOnce},
	{"OthersTakeWhatIsNotRenewed", othersTakeWhatIsNotRenewed},
	{"OldTokensChangeNothing", oldTokensChangeNothing},
	{"AttemptsAndReasons", attemptsAndReasons},
	{"GivenUp", givenUp},
	{"WhichJobs", whichJobs},
	{"JobsOfDeletedThreads", jobsOfDeletedThreads},
	{"Workers", queueWorkers},
	{"LostWorkers", lostWorkers},
	{"Progress", progress},
	{"HowADriveEnds", howADriveEnds},
	{"Notices", notices},
	{"UntilATime", untilATime},
}

// queue returns the queue of the store.
func (h *harness) queue() journal.Queue { return h.s.(journal.Queue) }

// appendJob appends one record of a kind to a thread with a job of a worker.
func (h *harness) appendJob(job journal.DriveJob, ttl time.Duration, after int64, kind journal.Kind) error {
	return h.appendHeld(newHold(job, ttl, journal.RemoveAtEnd), after, kind)
}

// newHold returns the hold of a job.
func newHold(job journal.DriveJob, ttl time.Duration, end journal.AtEnd) *journal.Hold {
	job.Attempts = 1
	h := &journal.Hold{Job: job, TTL: ttl}
	h.SetEnd(end)
	return h
}

// appendHeld appends records of some kinds to the thread of a hold.
func (h *harness) appendHeld(hold *journal.Hold, after int64, kinds ...journal.Kind) error {
	var recs []journal.Record
	for _, kind := range kinds {
		recs = append(recs, journal.Record{Kind: kind, Time: 1})
	}
	return journal.Append(journal.WithHold(h.Context(), hold), h.s, hold.Job.Thread, after, recs...)
}

// mustAppendHeld is appendHeld that must succeed.
func (h *harness) mustAppendHeld(hold *journal.Hold, after int64, kinds ...journal.Kind) {
	h.Helper()
	if err := h.appendHeld(hold, after, kinds...); err != nil {
		h.Fatal(err)
	}
}

// mustAppendJob is appendJob that must succeed.
func (h *harness) mustAppendJob(job journal.DriveJob, ttl time.Duration, after int64, kind journal.Kind) {
	h.Helper()
	if err := h.appendJob(job, ttl, after, kind); err != nil {
		h.Fatal(err)
	}
}

// take returns the jobs that a worker gets.
func (h *harness) take(w journal.Worker, limit int, ttl time.Duration) []journal.DriveJob {
	h.Helper()
	list, err := h.queue().TakeJobs(h.Context(), w, limit, ttl)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// takeOne returns the only job that a worker gets.
func (h *harness) takeOne(worker string, ttl time.Duration) journal.DriveJob {
	h.Helper()
	list := h.take(journal.Worker{ID: worker}, 10, ttl)
	if len(list) != 1 {
		h.Fatalf("worker %s gets %+v, want one job", worker, list)
	}
	return list[0]
}

// takeNone checks that there is nothing for a worker.
func (h *harness) takeNone(worker string) {
	h.Helper()
	if list := h.take(journal.Worker{ID: worker}, 10, leaseLong); len(list) > 0 {
		h.Errorf("worker %s gets %+v", worker, list)
	}
}

// jobs returns all jobs.
func (h *harness) jobs() []journal.DriveJob {
	h.Helper()
	list, err := h.queue().ListJobs(h.Context(), false)
	if err != nil {
		h.Fatal(err)
	}
	return list
}

// returnJob returns a job and checks that this works.
func (h *harness) returnJob(job journal.DriveJob, r journal.Return) {
	h.Helper()
	if err := h.queue().ReturnJob(h.Context(), job.Thread, job.Token, r); err != nil {
		h.Error(err)
	}
}

// finishJob finishes a job and checks that this works.
func (h *harness) finishJob(job journal.DriveJob) {
	h.Helper()
	if err := h.queue().FinishJob(h.Context(), job.Thread, job.Token); err != nil {
		h.Error(err)
	}
}

func jobComesWithTheRecord(h *harness) {
	job := journal.DriveJob{Thread: "t", Run: "r\xff", Token: "x", Worker: "w1", Priority: 3}
	h.mustAppendJob(job, leaseLong, 0, journal.KindStart)
	if list := h.jobs(); len(list) != 1 || list[0].Run != job.Run || list[0].Token != "x" || list[0].Worker != "w1" || list[0].Priority != 3 || list[0].Attempts != 1 {
		h.Fatalf("the jobs are %+v", list)
	}
	h.finishJob(job)
	h.mustAppendJob(job, leaseLong, 1, journal.KindStep)
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("a step has written %+v", list)
	}
	other := job
	other.Thread = "other"
	ctx := journal.WithHold(h.Context(), newHold(other, leaseLong, journal.RemoveAtEnd))
	if err := journal.Append(ctx, h.s, "t", 2, journal.Record{Kind: journal.KindAnswer, Time: 1}); err != nil {
		h.Fatal(err)
	}
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("an answer in thread t has written %+v", list)
	}
	for i, kind := range []journal.Kind{journal.KindClaim, journal.KindAnswer} {
		h.mustAppendJob(job, leaseLong, 3+int64(i), kind)
		if list := h.jobs(); len(list) != 1 {
			h.Errorf("%v has written %+v", kind, list)
		}
		h.finishJob(job)
	}
}

func jobIsRefusedWithTheRecord(h *harness) {
	job := journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}
	h.mustAppendJob(job, leaseLong, 0, journal.KindStart)
	late := job
	late.Token = "late"
	for _, after := range []int64{0, 5} {
		if err := h.appendJob(late, leaseLong, after, journal.KindStart); err == nil {
			h.Fatal("the record is accepted")
		}
	}
	if list := h.jobs(); len(list) != 1 || list[0].Token != "x" {
		h.Errorf("a record that was refused has left %+v", list)
	}
}

func jobEndsWithTheRecord(h *harness) {
	job := journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}
	head := int64(0)
	for _, together := range []bool{false, true} { // the end is in the batch that begins the drive
		for _, c := range []struct {
			end    journal.AtEnd
			jobs   int
			worker string
		}{{journal.RemoveAtEnd, 0, ""}, {journal.ReturnAtEnd, 1, ""}, {journal.KeepAtEnd, 1, "w1"}} {
			hold := newHold(job, leaseLong, c.end)
			if together {
				h.mustAppendHeld(hold, head, journal.KindClaim, journal.KindEnd)
			} else {
				h.mustAppendHeld(hold, head, journal.KindClaim)
				h.mustAppendHeld(hold, head+1, journal.KindStep, journal.KindEnd)
				head++
			}
			head += 2
			list := h.jobs()
			if len(list) != c.jobs || c.jobs > 0 && list[0].Worker != c.worker {
				h.Fatalf("together %t, at end %d: the jobs are %+v", together, c.end, list)
			}
			if c.end == journal.ReturnAtEnd && (h.takeOne("w2", leaseLong).Attempts != 1) {
				h.Errorf("together %t: the attempt of a drive that has returned its job counts", together)
			}
		}
	}
	late := newHold(job, leaseLong, journal.RemoveAtEnd)
	h.mustAppendHeld(late, head, journal.KindClaim)
	other := journal.DriveJob{Thread: "t", Token: "y", Worker: "w2", Attempts: 1}
	if err := h.queue().PutJob(h.Context(), other, leaseLong); err != nil {
		h.Fatal(err)
	}
	if err := journal.Append(h.Context(), h.s, "t", 0, journal.Record{Kind: journal.KindEnd, Time: 1}); err == nil || len(h.jobs()) != 1 {
		h.Errorf("an end that is refused (%v) has left %+v", err, h.jobs())
	}
	h.mustAppendHeld(late, head+1, journal.KindEnd) // no one has continued the thread: only its newest state counts
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("the end of a drive that has lost its job has left %+v", list)
	}
	if err := h.queue().PutJob(h.Context(), other, leaseLong); err != nil {
		h.Fatal(err)
	}
	if err := journal.Append(h.Context(), h.s, "t", head+2, journal.Record{Kind: journal.KindEnd, Time: 1}); err != nil {
		h.Fatal(err)
	}
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("the end of a drive without a job of its own has left %+v", list)
	}
}

// howADriveEnds ends drives with each status that their job depends on.
func howADriveEnds(h *harness) {
	head := int64(0)
	for _, c := range []struct {
		end    journal.AtEnd
		status record.Status
		stays  bool
	}{
		{journal.ReturnIfStopped, record.Paused, true},
		{journal.ReturnIfStopped, record.Canceled, true},
		{journal.ReturnIfStopped, record.Waiting, false},
		{journal.ReturnIfStopped, record.Failed, false},
		{journal.ReturnIfStopped, record.Done, false},
		{journal.ReturnAtEnd, record.Waiting, true},
		{journal.ReturnAtEnd, record.Done, false},
		{journal.ReturnAtEnd, record.Abandoned, false},
		{journal.RemoveAtEnd, record.Paused, false},
	} {
		hold := newHold(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, c.end)
		h.mustAppendHeld(hold, head, journal.KindClaim)
		end := record.Parts{Status: c.status}
		headBytes, data := end.Append(uint8(journal.KindEnd), nil, nil)
		rec := journal.Record{Kind: journal.KindEnd, Time: 1, Head: headBytes, Data: data}
		if err := journal.Append(journal.WithHold(h.Context(), hold), h.s, "t", head+1, rec); err != nil {
			h.Fatal(err)
		}
		head += 2
		if list := h.jobs(); (len(list) == 1) != c.stays || c.stays && list[0].Worker != "" {
			h.Errorf("at end %d with the status %d: the jobs are %+v", c.end, c.status, list)
		}
		for _, job := range h.jobs() {
			h.finishJob(job)
		}
	}
}

// untilATime ends drives of threads that wait for a time: the job waits until then, however the drive was to end, and
// what was tried before does not count. The end of a drive without a job removes it.
func untilATime(h *harness) {
	head := int64(0)
	end := func(ctx context.Context, after time.Duration) {
		h.Helper()
		parts := record.Parts{Status: record.Waiting, Due: 1 + after.Microseconds()}
		headBytes, data := parts.Append(uint8(journal.KindEnd), nil, nil)
		recs := []journal.Record{{Kind: journal.KindClaim, Time: 1}, {Kind: journal.KindEnd, Time: 1, Head: headBytes, Data: data}}
		for _, rec := range recs {
			if err := journal.Append(ctx, h.s, "t", head, rec); err != nil {
				h.Fatal(err)
			}
			head++
		}
	}
	for _, how := range []journal.AtEnd{journal.RemoveAtEnd, journal.ReturnIfStopped} {
		hold := newHold(journal.DriveJob{Thread: "t", Run: "r", Token: "x", Worker: "w1", Format: 2}, leaseLong, how)
		end(journal.WithHold(h.Context(), hold), leaseLong)
		list := h.jobs()
		if len(list) != 1 || list[0].Worker != "" || list[0].Token == "x" || list[0].Run != "r" || list[0].Format != 2 || list[0].Attempts != 0 {
			h.Fatalf("at end %d the jobs are %+v", how, list)
		}
		if wait := time.Until(list[0].Due); wait < leaseLong/2 || wait > leaseLong*3/2 {
			h.Errorf("the job is due in %v, want %v", wait, leaseLong)
		}
		h.takeNone("w2")
		h.finishJob(hold.Job)
		if len(h.jobs()) != 1 {
			h.Fatal("the worker that has parked the thread has finished its job")
		}
	}
	end(journal.WithHold(h.Context(), newHold(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, journal.RemoveAtEnd)), -time.Hour)
	job := h.takeOne("w2", leaseLong)
	if job.Attempts != 1 || job.Reasons != "" {
		h.Errorf("the job is %+v", job)
	}
	end(h.Context(), leaseLong)
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("someone has continued the thread without a job, and the jobs are %+v", list)
	}
}

// lostWorkers removes a worker that has ended in the middle of a job: another gets the job at once, and knows why.
func lostWorkers(h *harness) {
	h.mustAppendJob(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	h.mustAppendJob(journal.DriveJob{Thread: "u", Token: "x", Worker: "w2"}, leaseLong, 0, journal.KindStart)
	h.takeNone("w3")
	if err := h.queue().RemoveWorker(h.Context(), "w1"); err != nil {
		h.Fatal(err)
	}
	job := h.takeOne("w3", leaseLong)
	if job.Thread != "t" || job.Attempts != 2 || job.Reasons != journal.LostWorker(0)+"w1"+journal.LostWorker(1) {
		h.Errorf("the job is %+v", job)
	}
}

// progress tries a thread often: what was tried before a step was finished does not count.
func progress(h *harness) {
	h.mustAppendJob(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	h.returnJob(journal.DriveJob{Thread: "t", Token: "x"}, journal.Return{Reason: "it fell over"})
	job := h.takeOne("w1", leaseLong)
	for _, c := range []struct {
		progress bool
		attempts int
		reasons  string
	}{{false, 2, "it fell over\n"}, {true, 1, ""}} {
		renewal := []journal.Renewal{{Token: job.Token, Progress: c.progress}}
		if err := h.queue().RenewJobs(h.Context(), journal.Worker{ID: "w1"}, renewal, leaseLong); err != nil {
			h.Fatal(err)
		}
		if got := h.jobs()[0]; got.Attempts != c.attempts || got.Reasons != c.reasons {
			h.Errorf("progress %t: the job is %+v", c.progress, got)
		}
	}
	for range 3 { // a return never counts below nothing
		h.returnJob(job, journal.Return{})
		if job = h.takeOne("w1", leaseLong); job.Attempts != 1 {
			h.Errorf("after a return the job is %+v", job)
		}
	}
}

func putJob(h *harness) {
	job := journal.DriveJob{Thread: "t", Run: "r", Token: "x", Worker: "w1", Queue: "q", Priority: 2, Format: 3, Attempts: 1}
	for range 2 {
		if err := h.queue().PutJob(h.Context(), job, leaseLong); err != nil {
			h.Fatal(err)
		}
		got, ok, err := h.queue().ReadJob(h.Context(), "t")
		got.Due = time.Time{}
		if err != nil || !ok || got != job {
			h.Errorf("the job is %+v, %t, %v", got, ok, err)
		}
	}
	if _, ok, err := h.queue().ReadJob(h.Context(), "u"); ok || err != nil {
		h.Errorf("there is a job of an unknown thread: %t, %v", ok, err)
	}
}

func takenOnce(h *harness) {
	for _, thread := range []string{"a", "b", "c"} {
		h.mustAppendJob(journal.DriveJob{Thread: thread, Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	}
	h.takeNone("w2")
	for _, job := range h.jobs() {
		h.returnJob(job, journal.Return{})
	}
	first := h.take(journal.Worker{ID: "w2"}, 2, leaseLong)
	second := h.take(journal.Worker{ID: "w3"}, 10, leaseLong)
	if len(first) != 2 || len(second) != 1 || first[0].Attempts != 1 || first[0].Worker != "w2" || first[0].Token == first[1].Token {
		h.Errorf("the workers get %+v and %+v", first, second)
	}
	h.takeNone("w2")
	if list := h.take(journal.Worker{ID: "w4"}, 0, leaseLong); len(list) > 0 {
		h.Errorf("a worker without a place gets %+v", list)
	}
}

func othersTakeWhatIsNotRenewed(h *harness) {
	h.mustAppendJob(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	// it is over at once
	if err := h.queue().RenewJobs(h.Context(), journal.Worker{ID: "w1"}, []journal.Renewal{{Token: "x"}}, -leaseShort); err != nil {
		h.Fatal(err)
	}
	job := h.takeOne("w2", leaseLong)
	if job.Attempts != 2 || job.Reasons != journal.LostWorker(0)+"w1"+journal.LostWorker(1) {
		h.Errorf("the job is %+v", job)
	}
	if err := h.queue().RenewJobs(h.Context(), journal.Worker{ID: "w1"}, []journal.Renewal{{Token: "x"}, {Token: job.Token}}, -leaseShort); err != nil {
		h.Fatal(err)
	}
	h.takeNone("w3")
	if err := h.queue().RenewJobs(h.Context(), journal.Worker{ID: "w2"}, []journal.Renewal{{Token: "x"}}, -leaseShort); err != nil {
		h.Fatal(err)
	}
	h.takeNone("w3")
}

func oldTokensChangeNothing(h *harness) {
	old := journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}
	h.mustAppendJob(old, -leaseShort, 0, journal.KindStart)
	now := h.takeOne("w2", leaseLong)
	h.returnJob(old, journal.Return{Reason: "too late", GiveUp: true})
	h.finishJob(old)
	if list := h.jobs(); len(list) != 1 || list[0].Token != now.Token || list[0].Worker != "w2" || list[0].GivenUp {
		h.Errorf("the old worker has changed the job: %+v", list)
	}
	h.finishJob(now)
	h.finishJob(now)
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("the job remains: %+v", list)
	}
}

func attemptsAndReasons(h *harness) {
	job := journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}
	h.mustAppendJob(job, leaseLong, 0, journal.KindStart)
	h.returnJob(job, journal.Return{Reason: "it fell\nover"})
	job = h.takeOne("w1", leaseLong)
	if job.Attempts != 2 || job.Reasons != "it fell over\n" {
		h.Errorf("after one reason the job is %+v", job)
	}
	h.mustAppendJob(job, leaseLong, 1, journal.KindClaim) // of the worker that has taken it
	h.returnJob(job, journal.Return{})
	h.returnJob(job, journal.Return{Reason: "again"}) // of an old token
	job = h.takeOne("w1", leaseLong)
	if job.Attempts != 2 || job.Reasons != "it fell over\n" {
		h.Errorf("after a return without a reason the job is %+v", job)
	}
	h.returnJob(job, journal.Return{Reason: "later", Delay: leaseLong})
	h.takeNone("w2")
	h.mustAppendJob(journal.DriveJob{Thread: "t", Token: "person", Worker: "w3"}, leaseLong, 2, journal.KindAnswer)
	if list := h.jobs(); len(list) != 1 || list[0].Attempts != 1 || list[0].Reasons != "" {
		h.Errorf("after an answer the job is %+v", list)
	}
}

func givenUp(h *harness) {
	job := journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}
	h.mustAppendJob(job, leaseLong, 0, journal.KindStart)
	h.mustAppendJob(journal.DriveJob{Thread: "u", Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	h.returnJob(job, journal.Return{Reason: "enough", GiveUp: true})
	h.takeNone("w2")
	list, err := h.queue().ListJobs(h.Context(), true)
	if err != nil || len(list) != 1 || list[0].Thread != "t" || !list[0].GivenUp || list[0].Reasons != "enough\n" {
		h.Errorf("given up are %+v (%v)", list, err)
	}
	m, err := h.queue().MeasureJobs(h.Context())
	if n := m.ByStatus[""]; err != nil || n != (journal.JobCounts{Held: 1, GivenUp: 1}) || m.Lag != 0 {
		h.Errorf("the jobs are measured as %+v (%v)", m, err)
	}
	some, err := h.queue().ReadJobs(h.Context(), []string{"u", "nosuch", "t", "t"})
	if err != nil || len(some) != 2 || some[0].Thread != "t" || !some[0].GivenUp || some[1].Thread != "u" || some[1].GivenUp {
		h.Errorf("some are %+v (%v)", some, err)
	}
	job.Token = "person"
	h.mustAppendJob(job, leaseLong, 1, journal.KindClaim)
	if list, err := h.queue().ListJobs(h.Context(), true); err != nil || len(list) != 0 {
		h.Errorf("after someone has continued it, given up are %+v (%v)", list, err)
	}
}

func whichJobs(h *harness) {
	put := func(thread, queue string, priority, format int) {
		job := journal.DriveJob{Thread: thread, Token: "x", Queue: queue, Priority: priority, Format: format}
		h.mustAppendJob(job, -leaseShort, 0, journal.KindStart)
	}
	put("low", "", 0, 1)
	put("high", "", 5, 1)
	put("gpu", "gpu", 9, 1)
	put("new", "", 9, 2)
	w := journal.Worker{ID: "w1", Format: 1}
	if list := h.take(w, 1, leaseLong); len(list) != 1 || list[0].Thread != "high" {
		h.Errorf("first comes %+v", list)
	}
	if list := h.take(w, 10, leaseLong); len(list) != 1 || list[0].Thread != "low" {
		h.Errorf("then comes %+v", list)
	}
	if list := h.take(journal.Worker{ID: "w2", Format: 1, Queues: "cpu,gpu"}, 10, leaseLong); len(list) != 1 || list[0].Thread != "gpu" {
		h.Errorf("a worker of the queue gpu gets %+v", list)
	}
	if list := h.take(journal.Worker{ID: "w3", Format: 3}, 10, leaseLong); len(list) != 1 || list[0].Thread != "new" {
		h.Errorf("a newer program gets %+v", list)
	}
}

func jobsOfDeletedThreads(h *harness) {
	h.mustAppendJob(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	if err := h.s.Prune(h.Context(), "t", 100); err != nil {
		h.Fatal(err)
	}
	if list := h.jobs(); len(list) != 0 {
		h.Errorf("the job of a deleted thread remains: %+v", list)
	}
}

func queueWorkers(h *harness) {
	w := journal.Worker{ID: "w1", Host: "h\xff", PID: 7, Version: "v1", Format: 2, Queues: "a,b", Places: 64}
	h.mustAppendJob(journal.DriveJob{Thread: "t", Token: "x", Worker: "w1"}, leaseLong, 0, journal.KindStart)
	for _, draining := range []bool{false, true} {
		w.Draining = draining
		if err := h.queue().RenewJobs(h.Context(), w, nil, leaseLong); err != nil {
			h.Fatal(err)
		}
		list, err := h.queue().ListWorkers(h.Context())
		if err != nil || len(list) != 1 || list[0].Silent < 0 || list[0].Silent > time.Minute {
			h.Fatalf("the workers are %+v (%v)", list, err)
		}
		got := list[0]
		got.Silent = 0
		want := w
		want.Driving = 1
		if got != want {
			h.Errorf("the worker is %+v, want %+v", got, want)
		}
	}
	if err := h.queue().RemoveWorker(h.Context(), "w1"); err != nil {
		h.Fatal(err)
	}
	if list, err := h.queue().ListWorkers(h.Context()); err != nil || len(list) != 0 {
		h.Errorf("after its end the workers are %+v (%v)", list, err)
	}
}

// noticeLimit is how long the test of notices waits for one.
const noticeLimit = 20 * time.Second

// notices checks that a worker which takes jobs only after a notice gets each job that becomes free: written by a
// command or with a record, returned, returned by the end of a drive, and left by a worker that has ended.
func notices(h *harness) {
	n, ok := h.s.(journal.Notices)
	if !ok {
		return // a Queue need not tell
	}
	ctx, cancel := context.WithCancel(h.Context())
	taken := make(chan journal.DriveJob, 100)
	begun := make(chan struct{})
	ended := make(chan struct{})
	first := true
	go func() {
		defer close(ended)
		n.ListenJobs(ctx, func() {
			list, err := h.queue().TakeJobs(h.Context(), journal.Worker{ID: "listener"}, 10, leaseLong)
			if err != nil {
				h.Error(err)
			}
			for _, job := range list {
				taken <- job
			}
			if first {
				first = false
				close(begun)
			}
		})
	}()
	defer func() {
		cancel()
		<-ended
	}()
	limit := time.After(noticeLimit)
	await := func(thread, what string) (job journal.DriveJob) {
		h.Helper()
		select {
		case job = <-taken:
		case <-limit:
			h.Fatalf("the worker is not told that %s", what)
		}
		if job.Thread != thread {
			h.Fatalf("the worker gets thread %s, want %s", job.Thread, thread)
		}
		return job
	}
	select {
	case <-begun:
	case <-limit:
		h.Fatal("ListenJobs does not call changed when it begins to listen")
	}
	if err := h.queue().PutJob(h.Context(), journal.DriveJob{Thread: "a", Token: "t"}, 0); err != nil {
		h.Fatal(err)
	}
	job := await("a", "a job was written")
	h.returnJob(job, journal.Return{})
	h.finishJob(await("a", "a job was returned"))

	held := newHold(journal.DriveJob{Thread: "b", Token: "b", Worker: "other"}, leaseLong, journal.ReturnAtEnd)
	h.mustAppendHeld(held, 0, journal.KindStart)
	h.mustAppendHeld(held, 1, journal.KindStep, journal.KindEnd)
	h.finishJob(await("b", "a drive has returned its job"))

	h.mustAppendJob(journal.DriveJob{Thread: "c", Token: "c", Worker: "gone"}, leaseLong, 0, journal.KindStart)
	if err := h.queue().RemoveWorker(h.Context(), "gone"); err != nil {
		h.Fatal(err)
	}
	await("c", "a worker has ended")
}
