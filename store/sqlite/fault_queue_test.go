package sqlite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph/journal"
)

// listQueueOperations returns the operations on lines, jobs, triggers and ticks. Each can be made again on a Store on
// which all of them were made.
func listQueueOperations(ctx context.Context) []operation {
	worker := journal.Worker{ID: "w", Host: "h", PID: 7}
	job := journal.DriveJob{Thread: "a", Run: "r", Token: "t"}
	tick := journal.Tick{Trigger: "starts", Key: "k", Time: time.Unix(1, 0), State: journal.TickWaiting}
	return []operation{
		{"fill a line", func(s *Store) error {
			return s.FillLine(ctx, journal.Line{Thread: "b", Order: "b", Status: "done", Label: "l"})
		}},
		{"read a line", func(s *Store) error { _, _, err := s.ReadLine(ctx, "a"); return err }},
		{"list lines", func(s *Store) error { _, err := s.ListLines(ctx, journal.LineRange{}); return err }},
		{"list lines", func(s *Store) error { _, err := s.ListLines(ctx, journal.LineRange{Prefix: "a"}); return err }},
		{"list lines", func(s *Store) error { _, err := s.ListLines(ctx, journal.LineRange{Label: "l"}); return err }},
		{"list waiting lines", func(s *Store) error { _, err := s.ListWaiting(ctx, journal.WaitRange{}); return err }},
		{"list forks", func(s *Store) error { _, err := s.ListForks(ctx, []string{"a"}); return err }},
		{"count lines", func(s *Store) error { _, err := s.CountLines(ctx); return err }},
		{"write the job of thread \"a\"", func(s *Store) error { return s.PutJob(ctx, job, 0) }},
		{"read the job of thread \"a\"", func(s *Store) error { _, _, err := s.ReadJob(ctx, "a"); return err }},
		{"read jobs", func(s *Store) error { _, err := s.ReadJobs(ctx, []string{"a"}); return err }},
		{"list jobs", func(s *Store) error { _, err := s.ListJobs(ctx, false); return err }},
		{"list jobs", func(s *Store) error { _, err := s.ListJobs(ctx, true); return err }},
		{"measure jobs", func(s *Store) error { _, err := s.MeasureJobs(ctx); return err }},
		{"take jobs", func(s *Store) error { _, err := s.TakeJobs(ctx, worker, 1, -time.Second); return err }},
		{"renew jobs", func(s *Store) error {
			return s.RenewJobs(ctx, worker, []journal.Renewal{{Token: "t"}}, time.Hour)
		}},
		{"list workers", func(s *Store) error { _, err := s.ListWorkers(ctx); return err }},
		{"return the job of thread \"a\"", func(s *Store) error { return s.ReturnJob(ctx, "a", "t", journal.Return{}) }},
		{"finish the job of thread \"a\"", func(s *Store) error { return s.FinishJob(ctx, "a", "t") }},
		{"remove a worker", func(s *Store) error { return s.RemoveWorker(ctx, "w") }},
		{"write trigger \"starts\"", func(s *Store) error {
			_, err := s.PutTrigger(ctx, journal.Trigger{ID: "starts"})
			if errors.Is(err, journal.ErrConflict) {
				return nil // it is there
			}
			return err
		}},
		{"list triggers", func(s *Store) error { _, _, err := s.ListTriggers(ctx); return err }},
		{"add ticks", func(s *Store) error { _, err := s.AddTicks(ctx, nil, []journal.Tick{tick}); return err }},
		{"list ticks", func(s *Store) error { _, err := s.ListTicks(ctx, "starts", 9); return err }},
		{"take ticks", func(s *Store) error { _, err := s.TakeTicks(ctx, 9, -time.Second); return err }},
		{"change a tick of trigger \"starts\"", func(s *Store) error {
			list, err := s.ListTicks(ctx, "starts", 1)
			if err != nil || len(list) != 1 {
				return errors.Join(err, fmt.Errorf("change a tick of trigger \"starts\": %d", len(list)))
			}
			return s.ChangeTick(ctx, list[0], 0)
		}},
		{"remove trigger \"starts\"", func(s *Store) error { return s.RemoveTrigger(ctx, "starts") }},
	}
}

// TestFailingDiskOfQueues lets each statement of each operation on lines, jobs and triggers fail once, on one Store:
// the operation says so and what it did, and succeeds when it is tried again.
func TestFailingDiskOfQueues(t *testing.T) {
	disk := &faultyDisk{}
	s, err := openOn(filepath.Join(t.TempDir(), "runs.db"), disk)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	fill(t, s)
	s.w.mu.Lock()
	err = errors.Join(s.w.putLine(&journal.Line{Thread: "a", Order: "a", Status: "waits", Label: "l", Wait: 1, Parent: "a"}), s.w.putJob(&journal.DriveJob{Thread: "b"}, 0))
	s.w.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range listQueueOperations(t.Context()) {
		faults := 0
		for n := 1; ; n++ {
			disk.left, disk.failed = n, ""
			err := c.do(s)
			disk.left = 0
			if disk.failed == "" {
				if err != nil {
					t.Errorf("%s without a fault: %v", c.name, err)
				}
				break
			}
			faults++
			if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), c.name) && !strings.Contains(err.Error(), "list ticks") {
				t.Errorf("%s: %s failed: %v", c.name, disk.failed, err)
			}
		}
		if faults == 0 {
			t.Errorf("%s: it asked nothing of the disk", c.name)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		for _, again := range listQueueOperations(ended) {
			if again.name == c.name && !errors.Is(again.do(s), context.Canceled) {
				t.Errorf("%s: it works although its context has ended", c.name)
			}
		}
	}
}

// TestJobsThatWaited takes jobs that were due before, in the order of their priorities.
func TestJobsThatWaited(t *testing.T) {
	s := openImpatient(t, filepath.Join(t.TempDir(), "runs.db"))
	for _, job := range []journal.DriveJob{{Thread: "a"}, {Thread: "b", Priority: 1}} {
		if err := s.PutJob(t.Context(), job, -time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.TakeJobs(t.Context(), journal.Worker{ID: "w"}, 2, time.Hour)
	if err != nil || len(list) != 2 || list[0].Thread != "b" || list[1].Thread != "a" {
		t.Fatal(list, err)
	}
	for _, job := range list {
		if job.Waited < time.Hour || job.Waited > 2*time.Hour || job.Attempts != 1 {
			t.Errorf("%+v", job)
		}
	}
	if list, err := s.TakeJobs(t.Context(), journal.Worker{ID: "v"}, 0, time.Hour); err != nil || list != nil {
		t.Error(list, err)
	}
	m, err := s.MeasureJobs(t.Context())
	if err != nil || m.ByStatus[""] != (journal.JobCounts{Held: 2}) {
		t.Errorf("%+v, %v", m, err)
	}
}
