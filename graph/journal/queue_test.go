package journal_test

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// endRecord returns the record of the end of a drive, which was written at second 10; due is in seconds, 0: never.
func endRecord(status record.Status, due int64) journal.Record {
	parts := record.Parts{Status: status, Due: due * 1e6}
	head, data := parts.Append(uint8(journal.KindEnd), nil, nil)
	return journal.Record{Kind: journal.KindEnd, Time: 10e6, Head: head, Data: data}
}

// What happens to a job follows from how its drive was to end, and from how it ended.
func TestJobChangeOf(t *testing.T) {
	claim, step := journal.Record{Kind: journal.KindClaim}, journal.Record{Kind: journal.KindStep}
	broken := journal.Record{Kind: journal.KindEnd, Head: []byte{byte(record.Paused), 9}}
	const (
		nothing = "nothing"
		put     = "put"     // for the worker
		later   = "later"   // put for any worker, with another token, in 5 seconds
		wait    = "wait"    // put for any worker, at once
		remove  = "remove"  // whichever there is
		giveUp  = "return"  // wait for any worker again
		foreign = "foreign" // the context has the job of another thread
	)
	for _, c := range []struct {
		name string
		end  journal.AtEnd
		recs []journal.Record
		want string
	}{
		{"a step", journal.RemoveAtEnd, []journal.Record{step}, nothing},
		{"a claim", journal.RemoveAtEnd, []journal.Record{claim}, put},
		{"an answer", journal.KeepAtEnd, []journal.Record{{Kind: journal.KindAnswer}, step}, put},
		{"done", journal.ReturnAtEnd, []journal.Record{step, endRecord(record.Done, 0)}, remove},
		{"paused", journal.RemoveAtEnd, []journal.Record{endRecord(record.Paused, 0)}, remove},
		{"stopped", journal.ReturnIfStopped, []journal.Record{endRecord(record.Paused, 0)}, giveUp},
		{"canceled", journal.ReturnAtEnd, []journal.Record{endRecord(record.Canceled, 0)}, giveUp},
		{"waits", journal.ReturnIfStopped, []journal.Record{endRecord(record.Waiting, 0)}, remove},
		{"waits, of who only records", journal.ReturnAtEnd, []journal.Record{endRecord(record.Waiting, 0)}, giveUp},
		{"waits for a time", journal.ReturnIfStopped, []journal.Record{endRecord(record.Waiting, 15)}, later},
		{"kept", journal.KeepAtEnd, []journal.Record{endRecord(record.Paused, 0)}, nothing},
		{"a damaged end", journal.ReturnIfStopped, []journal.Record{broken}, giveUp},
		{"a damaged end of one that is removed", journal.RemoveAtEnd, []journal.Record{broken}, remove},
		{"begins and is stopped", journal.ReturnAtEnd, []journal.Record{claim, endRecord(record.Paused, 0)}, wait},
		{"ends and continues", journal.RemoveAtEnd, []journal.Record{endRecord(record.Done, 0), claim}, put},
		{"of another thread", journal.ReturnAtEnd, []journal.Record{claim, endRecord(record.Paused, 0)}, foreign},
	} {
		hold := &journal.Hold{TTL: time.Minute}
		hold.Job = journal.DriveJob{Thread: "t", Token: "token", Worker: "w", Attempts: 3}
		if c.want == foreign {
			hold.Job.Thread = "other"
		}
		hold.SetEnd(c.end)
		got := journal.JobChangeOf(journal.WithHold(t.Context(), hold), "t", c.recs)
		want := journal.JobChange{Job: hold.Job, TTL: hold.TTL}
		switch c.want {
		case put:
			want.Put = true
		case giveUp:
			want.Return = true
		case remove, foreign:
			want = journal.JobChange{Remove: true}
		case wait, later:
			want.Put = true
			want.Job.Worker = ""
			want.Job.Attempts = 0
			want.TTL = 0
		}
		if c.want == later { // as long after the end as its record says
			want.TTL = 5 * time.Second
			if got.Job.Token == want.Job.Token || got.Job.Token == "" {
				t.Errorf("%s: the token is %q", c.name, got.Job.Token)
			}
			want.Job.Token = got.Job.Token
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}

// Without a job in the context, the begin of a drive changes nothing.
func TestJobChangeOfNoJob(t *testing.T) {
	claim := []journal.Record{{Kind: journal.KindClaim}}
	if got := journal.JobChangeOf(context.Background(), "t", claim); got != (journal.JobChange{}) {
		t.Errorf("a claim without a job: %+v", got)
	}
}

// Progress makes earlier attempts not count, and only the first says that it is.
func TestProgressOfHold(t *testing.T) {
	h := &journal.Hold{Job: journal.DriveJob{Token: "x", Attempts: 3}}
	if h.CountAttempts() != 3 || h.Renewal() != (journal.Renewal{Token: "x"}) {
		t.Errorf("%d attempts, %+v", h.CountAttempts(), h.Renewal())
	}
	if !h.NoteProgress() || h.NoteProgress() {
		t.Error("only the first progress is the first")
	}
	if h.CountAttempts() != 1 || !h.Renewal().Progress {
		t.Errorf("after progress: %d attempts, %+v", h.CountAttempts(), h.Renewal())
	}
	if (&journal.Hold{Job: journal.DriveJob{Attempts: 1}}).NoteProgress() {
		t.Error("there was no earlier attempt that has counted")
	}
}

// The reasons of a job are for people, each once; a reason is one line that is not too long.
func TestReasonsOfJobs(t *testing.T) {
	lost := journal.LostWorker(0) + journal.NewWorkerID() + journal.LostWorker(1)
	odd := journal.LostWorker(0) + "?" + journal.LostWorker(1)
	job := journal.DriveJob{Reasons: "no key\n" + lost + "no key\n" + odd + lost + lost}
	got := job.DescribeReasons()
	first, rest, _ := strings.Cut(got, "; a server on ")
	stood := " ended or stood still in the middle of it (3 times); worker ? ended"
	if first != "no key (2 times)" || !strings.Contains(rest, stood) {
		t.Errorf("%q", got)
	}
	if got := (&journal.DriveJob{}).DescribeReasons(); got != "" {
		t.Errorf("no reasons: %q", got)
	}
	for reason, want := range map[string]string{
		"":                             "",
		"a\nb":                         "a b\n",
		strings.Repeat("x", 600):       strings.Repeat("x", 500) + "\n",
		strings.Repeat("é", 600):       strings.Repeat("é", 250) + "\n",
		"x" + strings.Repeat("é", 600): "x" + strings.Repeat("é", 249) + "\n",
	} {
		line, uncounted := (&journal.Return{Reason: reason}).Line()
		if line != want || !utf8.ValidString(line) || (uncounted == 1) != (reason == "") {
			t.Errorf("%.20q: %q, %d", reason, line, uncounted)
		}
	}
}

// Others count on a worker only while it works.
func TestStatesOfWorkers(t *testing.T) {
	for want, w := range map[journal.WorkerState]journal.Worker{
		journal.WorkerWorks:    {Places: 1, Silent: journal.SilentAfter - 1},
		journal.WorkerSilent:   {Places: 1, Silent: journal.SilentAfter, Draining: true},
		journal.WorkerDraining: {Draining: true},
		journal.WorkerRequests: {},
	} {
		w.ID = journal.NewWorkerID()
		if got := w.State(); got != want {
			t.Errorf("%+v: %s, want %s", w, got, want)
		}
	}
	own := journal.Lease{Owner: journal.NewWorkerID()}
	host, pid, ok := own.Holder()
	if found, here := own.FindProcess(); !ok || host == "" || !own.IsLive() || here && found != pid {
		t.Errorf("%v: host %q, process %d (%d)", own, host, pid, found)
	}
	if got := own.String(); !strings.HasPrefix(got, "process ") || strings.Contains(got, "on host") {
		t.Errorf("the holder of an own lease is %q", got)
	}
	other := journal.Lease{Owner: "opaque"}
	if other.String() != "another process" || !other.IsLive() {
		t.Errorf("%v, live: %v", other, other.IsLive())
	}
	other.Expired = true
	if other.IsLive() || (journal.Lease{}).IsLive() {
		t.Error("a lease that has expired, or is free, is live")
	}
	queues := journal.Worker{Queues: "a,,b"}
	if got := strings.Join(queues.ListQueues(), "|"); got != "a||b" {
		t.Errorf("queues %q", got)
	}
}
