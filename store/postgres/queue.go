package postgres

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"raddle.dev/graph/journal"
)

var _ journal.Queue = (*Store)(nil)

// Parts of an append, which change the job of its thread; t is the thread, if the records are accepted. Someone who
// continues a thread that was tried before begins to count again.
const (
	insertJob = `, j AS (INSERT INTO raddle_drive AS d (name, run, token, worker, queue, priority, format, due, attempts)
		SELECT $1, $9, $10, $11, $12, $13, $14, clock_timestamp() + $15 * interval '1 microsecond', $16 FROM t` + replaceJob + ")"
	replaceJob = `
		ON CONFLICT (name) DO UPDATE SET run = EXCLUDED.run, token = EXCLUDED.token, worker = EXCLUDED.worker, queue = EXCLUDED.queue,
			priority = EXCLUDED.priority, format = EXCLUDED.format, due = EXCLUDED.due, given_up = false,
			attempts = CASE WHEN d.token = EXCLUDED.token THEN d.attempts ELSE EXCLUDED.attempts END,
			reasons = CASE WHEN d.token = EXCLUDED.token THEN d.reasons ELSE '' END`
	removeJob     = ", j AS (DELETE FROM raddle_drive USING t WHERE name = $1)"
	returnHeldJob = `, j AS (UPDATE raddle_drive SET worker = '', token = $10, due = clock_timestamp(), attempts = greatest(attempts - 1, 0)
		FROM t WHERE name = $1 AND token = $9)`
)

// changeJob returns the part of an append that changes a job, and its arguments; "" if nothing changes.
func changeJob(c journal.JobChange) (text string, args []any) {
	switch {
	case c.Put:
		return insertJob, jobArgs(&c.Job, c.TTL)
	case c.Return:
		return returnHeldJob, []any{[]byte(c.Job.Token), []byte(rand.Text())}
	case c.Remove:
		return removeJob, nil
	}
	return "", nil
}

// jobArgs returns the arguments of insertJob.
func jobArgs(job *journal.DriveJob, ttl time.Duration) []any {
	return []any{
		[]byte(job.Run),
		[]byte(job.Token),
		[]byte(job.Worker),
		[]byte(job.Queue),
		int64(job.Priority),
		int64(job.Format),
		ttl.Microseconds(),
		int64(job.Attempts),
	}
}

// The statements of jobs.
const (
	jobFields  = "d.name, d.run, d.token, d.worker, d.queue, d.priority, d.format, d.due, d.attempts, d.reasons, d.given_up"
	jobColumns = jobFields + ", 0::bigint"

	// now() is the beginning of the statement: unlike clock_timestamp(), an index serves it.
	takeJobs = `WITH c AS (SELECT name, due FROM raddle_drive
			WHERE due <= now() AND NOT given_up AND format <= $3 AND queue = ANY($4)
			ORDER BY priority DESC, due LIMIT $5 FOR UPDATE SKIP LOCKED)
		UPDATE raddle_drive AS d SET worker = $1, token = $2 || d.name, due = clock_timestamp() + $6 * interval '1 microsecond',
			attempts = d.attempts + 1, reasons = CASE WHEN d.worker = '' THEN d.reasons ELSE d.reasons || $7 || d.worker || $8 END
		FROM c WHERE d.name = c.name RETURNING ` + jobFields + ", (extract(epoch FROM clock_timestamp() - c.due) * 1000000)::bigint"

	measureJobs = `SELECT coalesce(l.status, ''), count(*) FILTER (WHERE NOT given_up AND worker = '' AND due <= now()),
		count(*) FILTER (WHERE NOT given_up AND worker = '' AND due > now()), count(*) FILTER (WHERE NOT given_up AND worker <> ''),
		count(*) FILTER (WHERE given_up), coalesce((extract(epoch FROM now() - min(due) FILTER (WHERE NOT given_up)) * 1000000)::bigint, 0)
		FROM raddle_drive d LEFT JOIN raddle_line l ON l.name = d.name GROUP BY 1`

	renewJobs = "UPDATE raddle_drive SET due = clock_timestamp() + $2 * interval '1 microsecond' WHERE worker = $1 AND worker <> '' AND token = ANY($3)"

	noteProgress = "UPDATE raddle_drive SET attempts = 1, reasons = '' WHERE worker = $1 AND worker <> '' AND token = ANY($2) AND attempts > 1"

	returnJob = `UPDATE raddle_drive SET worker = '', token = $3, due = clock_timestamp() + $4 * interval '1 microsecond',
		attempts = greatest(attempts - $5, 0), reasons = reasons || $6, given_up = $7 WHERE name = $1 AND token = $2`

	saveWorker = `INSERT INTO raddle_worker (id, host, pid, version, format, queues, places, draining, seen)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp())
		ON CONFLICT (id) DO UPDATE SET host = EXCLUDED.host, pid = EXCLUDED.pid, version = EXCLUDED.version, format = EXCLUDED.format,
			queues = EXCLUDED.queues, places = EXCLUDED.places, draining = EXCLUDED.draining, seen = EXCLUDED.seen`

	putJob = `INSERT INTO raddle_drive AS d (name, run, token, worker, queue, priority, format, due, attempts)
		VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8 * interval '1 microsecond', $9)` + replaceJob

	forgetWorkers = "DELETE FROM raddle_worker WHERE seen < clock_timestamp() - $1 * interval '1 microsecond'"

	listWorkers = `SELECT w.id, w.host, w.pid, w.version, w.format, w.queues, w.places, w.draining,
		(extract(epoch FROM clock_timestamp() - w.seen) * 1000000)::bigint,
		(SELECT count(*) FROM raddle_drive d WHERE d.worker = w.id AND d.worker <> '')
		FROM raddle_worker w WHERE w.seen >= clock_timestamp() - $1 * interval '1 microsecond' ORDER BY w.id`

	releaseJobs = "UPDATE raddle_drive SET due = clock_timestamp() WHERE worker = $1 AND worker <> ''"
)

// TakeJobs implements journal.Queue.
func (s *Store) TakeJobs(ctx context.Context, w journal.Worker, limit int, ttl time.Duration) (list []journal.DriveJob, err error) {
	if limit <= 0 {
		return nil, ctx.Err()
	}
	queues := listBytes(w.ListQueues())
	err = s.sendWrite(ctx, func(ctx context.Context, c *pgx.Conn) (err error) {
		list, err = queryJobs(ctx, c, takeJobs, []byte(w.ID), []byte(rand.Text()), int64(w.Format), queues, int64(limit), ttl.Microseconds(),
			[]byte(journal.LostWorker(0)), []byte(journal.LostWorker(1)))
		return err
	})
	return list, s.explainError("take jobs", err)
}

// listBytes returns texts as the server gets them.
func listBytes(texts []string) [][]byte {
	list := make([][]byte, len(texts))
	for i, text := range texts {
		list[i] = []byte(text)
	}
	return list
}

// queryJobs sends a statement that returns jobs.
func queryJobs(ctx context.Context, c *pgx.Conn, text string, args ...any) ([]journal.DriveJob, error) {
	rows, err := sendQuery(ctx, c, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []journal.DriveJob
	for rows.Next() {
		var name, run, token, worker, queue, reasons []byte
		var priority, format, attempts, waited int64
		var job journal.DriveJob
		if err := rows.Scan(&name, &run, &token, &worker, &queue, &priority, &format, &job.Due, &attempts, &reasons, &job.GivenUp, &waited); err != nil {
			return nil, err
		}
		job.Thread = string(name)
		job.Run = string(run)
		job.Token = string(token)
		job.Worker = string(worker)
		job.Queue = string(queue)
		job.Reasons = string(reasons)
		job.Priority = int(priority)
		job.Format = int(format)
		job.Attempts = int(attempts)
		job.Waited = time.Duration(waited) * time.Microsecond
		list = append(list, job)
	}
	return list, rows.Err()
}

// RenewJobs implements journal.Queue.
func (s *Store) RenewJobs(ctx context.Context, w journal.Worker, jobs []journal.Renewal, ttl time.Duration) error {
	var tokens, ahead []string
	for _, job := range jobs {
		tokens = append(tokens, job.Token)
		if job.Progress {
			ahead = append(ahead, job.Token)
		}
	}
	err := s.sendWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := execStatement(ctx, c, renewJobs, []byte(w.ID), ttl.Microseconds(), listBytes(tokens)); err != nil {
			return err
		}
		if len(ahead) > 0 {
			if _, err := execStatement(ctx, c, noteProgress, []byte(w.ID), listBytes(ahead)); err != nil {
				return err
			}
		}
		_, err := execStatement(ctx, c, saveWorker, []byte(w.ID), []byte(w.Host), int64(w.PID), []byte(w.Version), int64(w.Format),
			[]byte(w.Queues), int64(w.Places), w.Draining)
		if err == nil {
			_, err = execStatement(ctx, c, forgetWorkers, journal.ForgottenAfter.Microseconds())
		}
		return err
	})
	return s.explainError("renew jobs", err)
}

// PutJob implements journal.Queue.
func (s *Store) PutJob(ctx context.Context, job journal.DriveJob, ttl time.Duration) error {
	return s.writeJob(ctx, "write", job.Thread, putJob, append([]any{[]byte(job.Thread)}, jobArgs(&job, ttl)...)...)
}

// FinishJob implements journal.Queue.
func (s *Store) FinishJob(ctx context.Context, thread, token string) error {
	return s.writeJob(ctx, "finish", thread, "DELETE FROM raddle_drive WHERE name = $1 AND token = $2", []byte(thread), []byte(token))
}

// ReturnJob implements journal.Queue.
func (s *Store) ReturnJob(ctx context.Context, thread, token string, r journal.Return) error {
	line, uncounted := r.Line()
	return s.writeJob(ctx, "return", thread, returnJob, []byte(thread), []byte(token), []byte(rand.Text()), r.Delay.Microseconds(),
		int64(uncounted), []byte(line), r.GiveUp)
}

// writeJob sends a statement that changes the job of a thread.
func (s *Store) writeJob(ctx context.Context, what, thread, text string, args ...any) error {
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := execStatement(ctx, c, text, args...)
		return err
	})
	return s.explainError(fmt.Sprintf("%s the job of thread %q", what, thread), err)
}

// ReadJob implements journal.Queue.
func (s *Store) ReadJob(ctx context.Context, thread string) (job journal.DriveJob, ok bool, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		list, err := queryJobs(ctx, c, "SELECT "+jobColumns+" FROM raddle_drive d WHERE name = $1", []byte(thread))
		if len(list) > 0 {
			job = list[0]
			ok = true
		}
		return err
	})
	return job, ok, s.explainError(fmt.Sprintf("read the job of thread %q", thread), err)
}

// MeasureJobs implements journal.Queue.
func (s *Store) MeasureJobs(ctx context.Context) (m journal.QueueMeasure, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		m = journal.QueueMeasure{ByStatus: map[string]journal.JobCounts{}}
		rows, err := sendQuery(ctx, c, measureJobs)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var status []byte
			var due, later, held, givenUp, lag int64
			if err := rows.Scan(&status, &due, &later, &held, &givenUp, &lag); err != nil {
				return err
			}
			m.ByStatus[string(status)] = journal.JobCounts{Due: int(due), Later: int(later), Held: int(held), GivenUp: int(givenUp)}
			m.Lag = max(m.Lag, time.Duration(lag)*time.Microsecond)
		}
		return rows.Err()
	})
	return m, s.explainError("measure jobs", err)
}

// ReadJobs implements journal.Queue.
func (s *Store) ReadJobs(ctx context.Context, threads []string) (list []journal.DriveJob, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) (err error) {
		list, err = queryJobs(ctx, c, "SELECT "+jobColumns+" FROM raddle_drive d WHERE name = ANY($1) ORDER BY name", listBytes(threads))
		return err
	})
	return list, s.explainError("read jobs", err)
}

// ListJobs implements journal.Queue.
func (s *Store) ListJobs(ctx context.Context, givenUp bool) (list []journal.DriveJob, err error) {
	which := ""
	if givenUp {
		which = " WHERE given_up"
	}
	err = s.runRead(ctx, func(c *pgx.Conn) (err error) {
		list, err = queryJobs(ctx, c, "SELECT "+jobColumns+" FROM raddle_drive d"+which+" ORDER BY name")
		return err
	})
	return list, s.explainError("list jobs", err)
}

// ListWorkers implements journal.Queue.
func (s *Store) ListWorkers(ctx context.Context) (list []journal.Worker, err error) {
	err = s.runRead(ctx, func(c *pgx.Conn) error {
		list = nil
		rows, err := sendQuery(ctx, c, listWorkers, journal.ForgottenAfter.Microseconds())
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var id, host, version, queues []byte
			var pid, format, places, silent, driving int64
			var w journal.Worker
			if err := rows.Scan(&id, &host, &pid, &version, &format, &queues, &places, &w.Draining, &silent, &driving); err != nil {
				return err
			}
			w.ID = string(id)
			w.Host = string(host)
			w.Version = string(version)
			w.Queues = string(queues)
			w.PID = int(pid)
			w.Format = int(format)
			w.Places = int(places)
			w.Driving = int(driving)
			w.Silent = time.Duration(silent) * time.Microsecond
			list = append(list, w)
		}
		return rows.Err()
	})
	return list, s.explainError("list workers", err)
}

// RemoveWorker implements journal.Queue.
func (s *Store) RemoveWorker(ctx context.Context, id string) error {
	err := s.runWrite(ctx, func(ctx context.Context, c *pgx.Conn) error {
		if _, err := execStatement(ctx, c, releaseJobs, []byte(id)); err != nil {
			return err
		}
		_, err := execStatement(ctx, c, "DELETE FROM raddle_worker WHERE id = $1", []byte(id))
		return err
	})
	return s.explainError("remove a worker", err)
}
