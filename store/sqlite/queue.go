package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/graph/journal"
)

var _ journal.Queue = (*Store)(nil)

// queue is what schema 5 added: which threads are to be driven, and by whom.
const queue = `
CREATE TABLE drive (
	name     TEXT PRIMARY KEY, -- of the thread
	run      TEXT NOT NULL,
	token    TEXT NOT NULL,
	worker   TEXT NOT NULL, -- empty: it waits
	queue    TEXT NOT NULL,
	priority INTEGER NOT NULL,
	format   INTEGER NOT NULL,
	due      INTEGER NOT NULL, -- Unix microseconds
	attempts INTEGER NOT NULL DEFAULT 1,
	reasons  TEXT NOT NULL DEFAULT '',
	given_up INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX drive_worker ON drive(worker) WHERE worker <> '';
CREATE INDEX drive_given_up ON drive(name) WHERE given_up;
CREATE INDEX drive_due ON drive(priority DESC, due) WHERE NOT given_up;
CREATE TABLE worker (
	id       TEXT PRIMARY KEY,
	host     TEXT NOT NULL,
	pid      INTEGER NOT NULL,
	version  TEXT NOT NULL,
	format   INTEGER NOT NULL,
	queues   TEXT NOT NULL,
	places   INTEGER NOT NULL,
	draining INTEGER NOT NULL,
	seen     INTEGER NOT NULL -- Unix microseconds
) WITHOUT ROWID;
`

// jobColumns are those that queryJobs reads.
const jobColumns = "name, run, token, worker, queue, priority, format, due, attempts, reasons, given_up"

// hasJob reports whether a thread may have a job. Other processes do not write one at the end of a drive, so it need
// not be a part of a transaction.
func (w *writer) hasJob(thread string) bool {
	names, err := w.queryNames("SELECT name FROM drive WHERE name = ?", thread)
	return err != nil || len(names) > 0
}

// putJob writes a job. Someone who continues a thread that was tried before begins to count again.
func (w *writer) putJob(job *journal.DriveJob, ttl time.Duration) error {
	const put = `INSERT INTO drive(name, run, token, worker, queue, priority, format, due, attempts) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
		ON CONFLICT(name) DO UPDATE SET run = ?2, token = ?3, worker = ?4, queue = ?5, priority = ?6, format = ?7, due = ?8, given_up = 0,
			attempts = iif(token = ?3, attempts, ?9), reasons = iif(token = ?3, reasons, '')`
	due := time.Now().Add(ttl).UnixMicro()
	_, err := w.exec(put, job.Thread, job.Run, job.Token, job.Worker, job.Queue, job.Priority, job.Format, due, job.Attempts)
	return err
}

// appendWith adds records to a thread, changes its job, and writes its line; nil: it stays.
func (w *writer) appendWith(thread string, after int64, recs []journal.Record, c *journal.JobChange, line *journal.Line) error {
	if err := checkPlace(after, len(recs)); err != nil {
		return err
	}
	return w.runTransaction(func() error {
		if err := w.addRecords(thread, after, recs); err != nil {
			return err
		}
		if line != nil {
			if err := w.putLine(line); err != nil {
				return err
			}
		}
		return w.changeJob(thread, c)
	})
}

// changeJob changes the job of a thread. It is a part of a transaction.
func (w *writer) changeJob(thread string, c *journal.JobChange) (err error) {
	const back = "UPDATE drive SET worker = '', token = ?3, due = ?4, attempts = max(attempts - 1, 0) WHERE name = ?1 AND token = ?2"
	switch {
	case c.Put:
		return w.putJob(&c.Job, c.TTL)
	case c.Return:
		_, err = w.exec(back, thread, c.Job.Token, rand.Text(), time.Now().UnixMicro())
	case c.Remove:
		_, err = w.exec("DELETE FROM drive WHERE name = ?", thread)
	}
	return err
}

// TakeJobs implements journal.Queue. It uses the clock of this machine.
func (s *Store) TakeJobs(ctx context.Context, w journal.Worker, limit int, ttl time.Duration) (list []journal.DriveJob, err error) {
	if limit <= 0 || ctx.Err() != nil {
		return nil, ctx.Err()
	}
	queues := w.ListQueues()
	const due = " FROM drive WHERE due <= ?1 AND NOT given_up AND format <= ?2 AND queue IN (%s) ORDER BY priority DESC, due LIMIT ?3"
	find := "SELECT name" + fmt.Sprintf(due, "?4"+strings.Repeat(", ?", len(queues)-1))
	const oldDue = "SELECT due FROM drive WHERE name = ?"
	const take = `UPDATE drive SET worker = ?2, token = ?3 || name, due = ?4, attempts = attempts + 1,
		reasons = iif(worker = '', reasons, reasons || ?5 || worker || ?6) WHERE name = ?1`
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	err = s.retryWhileBusy(ctx, func() error {
		list = nil
		now := time.Now()
		args := []any{now.UnixMicro(), w.Format, limit}
		for _, name := range queues {
			args = append(args, name)
		}
		names, err := s.w.queryNames(find, args...)
		if err != nil || len(names) == 0 {
			return err // it takes no lock of the file unless there is something to take
		}
		return s.w.runTransaction(func() error {
			if names, err = s.w.queryNames(find, args...); err != nil {
				return err
			}
			for _, name := range names {
				var due int64
				if err := s.w.query(oldDue, []any{name}, func(rows *sql.Rows) error { return rows.Scan(&due) }); err != nil {
					return err
				}
				if _, err := s.w.exec(take, name, w.ID, rand.Text(), now.Add(ttl).UnixMicro(), journal.LostWorker(0), journal.LostWorker(1)); err != nil {
					return err
				}
				taken, err := s.w.queryJobs("SELECT "+jobColumns+" FROM drive WHERE name = ?", name)
				if err != nil {
					return err
				}
				for i := range taken {
					taken[i].Waited = now.Sub(time.UnixMicro(due))
				}
				list = append(list, taken...)
			}
			return nil
		})
	})
	return list, s.explainError("take jobs", err)
}

// queryNames returns the first column of rows.
func (w *writer) queryNames(text string, args ...any) (names []string, err error) {
	err = w.query(text, args, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// queryJobs returns the jobs that a statement selects with jobColumns.
func (w *writer) queryJobs(text string, args ...any) (list []journal.DriveJob, err error) {
	err = w.query(text, args, func(rows *sql.Rows) error {
		var job journal.DriveJob
		var due int64
		err := rows.Scan(&job.Thread, &job.Run, &job.Token, &job.Worker, &job.Queue, &job.Priority, &job.Format, &due, &job.Attempts, &job.Reasons, &job.GivenUp)
		job.Due = time.UnixMicro(due)
		list = append(list, job)
		return err
	})
	return list, err
}

// query calls scan for each row of a statement.
func (w *writer) query(text string, args []any, scan func(*sql.Rows) error) (err error) {
	if w.conn == nil {
		return w.none
	}
	st, err := w.stmts.get(text)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(context.Background(), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// useWriter calls f with the connection that writes, and again while another process has the file.
func (s *Store) useWriter(ctx context.Context, what string, f func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.explainError(what, s.retryWhileBusy(ctx, func() error { return f(time.Now()) }))
}

// RenewJobs implements journal.Queue.
func (s *Store) RenewJobs(ctx context.Context, w journal.Worker, jobs []journal.Renewal, ttl time.Duration) error {
	const save = `INSERT INTO worker(id, host, pid, version, format, queues, places, draining, seen) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
		ON CONFLICT(id) DO UPDATE SET host = ?2, pid = ?3, version = ?4, format = ?5, queues = ?6, places = ?7, draining = ?8, seen = ?9`
	return s.useWriter(ctx, "renew jobs", func(now time.Time) error {
		return s.w.runTransaction(func() error {
			for _, job := range jobs {
				const extend = `UPDATE drive SET due = ?3, attempts = iif(?4, min(attempts, 1), attempts), reasons = iif(?4, '', reasons)
					WHERE worker = ?1 AND worker <> '' AND token = ?2`
				if _, err := s.w.exec(extend, w.ID, job.Token, now.Add(ttl).UnixMicro(), job.Progress); err != nil {
					return err
				}
			}
			if _, err := s.w.exec(save, w.ID, w.Host, w.PID, w.Version, w.Format, w.Queues, w.Places, w.Draining, now.UnixMicro()); err != nil {
				return err
			}
			_, err := s.w.exec("DELETE FROM worker WHERE seen < ?", now.Add(-journal.ForgottenAfter).UnixMicro())
			return err
		})
	})
}

// PutJob implements journal.Queue.
func (s *Store) PutJob(ctx context.Context, job journal.DriveJob, ttl time.Duration) error {
	return s.useWriter(ctx, fmt.Sprintf("write the job of thread %q", job.Thread), func(time.Time) error { return s.w.putJob(&job, ttl) })
}

// FinishJob implements journal.Queue.
func (s *Store) FinishJob(ctx context.Context, thread, token string) error {
	return s.useWriter(ctx, fmt.Sprintf("finish the job of thread %q", thread), func(time.Time) error {
		_, err := s.w.exec("DELETE FROM drive WHERE name = ? AND token = ?", thread, token)
		return err
	})
}

// ReturnJob implements journal.Queue.
func (s *Store) ReturnJob(ctx context.Context, thread, token string, r journal.Return) error {
	const put = `UPDATE drive SET worker = '', token = ?3, due = ?4, attempts = max(attempts - ?5, 0), reasons = reasons || ?6, given_up = ?7
		WHERE name = ?1 AND token = ?2`
	line, uncounted := r.Line()
	return s.useWriter(ctx, fmt.Sprintf("return the job of thread %q", thread), func(now time.Time) error {
		_, err := s.w.exec(put, thread, token, rand.Text(), now.Add(r.Delay).UnixMicro(), uncounted, line, r.GiveUp)
		return err
	})
}

// ReadJob implements journal.Queue. A file that is open for reading only shows no jobs.
func (s *Store) ReadJob(ctx context.Context, thread string) (job journal.DriveJob, ok bool, err error) {
	err = s.readQueue(ctx, fmt.Sprintf("read the job of thread %q", thread), func() error {
		list, err := s.w.queryJobs("SELECT "+jobColumns+" FROM drive WHERE name = ?", thread)
		if len(list) > 0 {
			job = list[0]
			ok = true
		}
		return err
	})
	return job, ok, err
}

// MeasureJobs implements journal.Queue. A file that is open for reading only shows no jobs.
func (s *Store) MeasureJobs(ctx context.Context) (m journal.QueueMeasure, err error) {
	const text = `SELECT ifnull(l.status, ''), sum(NOT given_up AND worker = '' AND due <= ?1), sum(NOT given_up AND worker = '' AND due > ?1),
		sum(NOT given_up AND worker <> ''), sum(given_up <> 0), max(iif(given_up, 0, ?1 - due))
		FROM drive d LEFT JOIN line l ON l.name = d.name GROUP BY 1`
	m.ByStatus = map[string]journal.JobCounts{}
	err = s.readQueue(ctx, "measure jobs", func() error {
		return s.w.query(text, []any{time.Now().UnixMicro()}, func(rows *sql.Rows) error {
			var status string
			var n journal.JobCounts
			var lag int64
			err := rows.Scan(&status, &n.Due, &n.Later, &n.Held, &n.GivenUp, &lag)
			m.ByStatus[status] = n
			m.Lag = max(m.Lag, time.Duration(lag)*time.Microsecond)
			return err
		})
	})
	return m, err
}

// ReadJobs implements journal.Queue. A file that is open for reading only shows no jobs.
func (s *Store) ReadJobs(ctx context.Context, threads []string) (list []journal.DriveJob, err error) {
	err = s.readQueue(ctx, "read jobs", func() error {
		list = nil
		for names := range chunkNames(threads) {
			part, err := s.w.queryJobs("SELECT "+jobColumns+" FROM drive WHERE name IN "+nameList, names...)
			if err != nil {
				return err
			}
			list = append(list, part...)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b journal.DriveJob) int { return strings.Compare(a.Thread, b.Thread) })
	return slices.CompactFunc(list, func(a, b journal.DriveJob) bool { return a.Thread == b.Thread }), err
}

// ListJobs implements journal.Queue. A file that is open for reading only shows no jobs.
func (s *Store) ListJobs(ctx context.Context, givenUp bool) (list []journal.DriveJob, err error) {
	which := ""
	if givenUp {
		which = " WHERE given_up"
	}
	err = s.readQueue(ctx, "list jobs", func() error {
		list, err = s.w.queryJobs("SELECT " + jobColumns + " FROM drive" + which + " ORDER BY name")
		return err
	})
	return list, err
}

// readQueue is useWriter for statements that only read, which a file that is open for reading only does not answer.
func (s *Store) readQueue(ctx context.Context, what string, f func() error) error {
	if s.readOnly {
		return ctx.Err()
	}
	return s.useWriter(ctx, what, func(time.Time) error { return f() })
}

// ListWorkers implements journal.Queue.
func (s *Store) ListWorkers(ctx context.Context) (list []journal.Worker, err error) {
	const text = `SELECT id, host, pid, version, format, queues, places, draining, seen, (SELECT count(*) FROM drive WHERE worker = id AND worker <> '')
		FROM worker WHERE seen >= ? ORDER BY id`
	err = s.readQueue(ctx, "list workers", func() error {
		list = nil
		now := time.Now()
		return s.w.query(text, []any{now.Add(-journal.ForgottenAfter).UnixMicro()}, func(rows *sql.Rows) error {
			var w journal.Worker
			var seen int64
			err := rows.Scan(&w.ID, &w.Host, &w.PID, &w.Version, &w.Format, &w.Queues, &w.Places, &w.Draining, &seen, &w.Driving)
			w.Silent = now.Sub(time.UnixMicro(seen))
			list = append(list, w)
			return err
		})
	})
	return list, err
}

// RemoveWorker implements journal.Queue.
func (s *Store) RemoveWorker(ctx context.Context, id string) error {
	return s.useWriter(ctx, "remove a worker", func(now time.Time) error {
		return s.w.runTransaction(func() error {
			if _, err := s.w.exec("UPDATE drive SET due = ?2 WHERE worker = ?1 AND worker <> ''", id, now.UnixMicro()); err != nil {
				return err
			}
			_, err := s.w.exec("DELETE FROM worker WHERE id = ?", id)
			return err
		})
	})
}
