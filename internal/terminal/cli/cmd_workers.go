package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/runview"
)

func newWorkersCommand(op *opener) *cobra.Command {
	return newGroup(op, &cobra.Command{Use: "workers", Short: "See which servers drive the runs of the store"},
		newOutputCommand(op, "write them as `FORMAT`: text or json", runWorkersLs, &cobra.Command{
			Use:   "ls",
			Short: "List the servers of the store, with their runs",
			Long: `Lists the servers that drive the runs of the store: their versions, how many runs each drives at once and may drive, and
whether it ends. Then come the runs that wait for a server, and those that were given up because their drives failed.`,
			Example: "  raddle workers ls\n  raddle workers ls --output json",
			Args:    checkArgCount(0, 0, ""),
		}))
}

// A listedWorker is a server of the store.
type listedWorker struct {
	ID      string              `json:"id"`
	Host    string              `json:"host"`
	PID     int                 `json:"pid"`
	Version string              `json:"version"`
	Places  int                 `json:"places"` // how many runs it drives at once at most; 0: it only answers requests
	Silent  float64             `json:"silent"` // for how many seconds it has not said that it works
	State   journal.WorkerState `json:"state"`
	Runs    []listedJob         `json:"runs"`
}

// A listedJob is a run that a server drives, that waits for one, or that is given up.
type listedJob struct {
	Run      string    `json:"run"`
	Due      time.Time `json:"due"` // when another server takes it
	Attempts int       `json:"attempts"`
	Reasons  string    `json:"reasons,omitempty"`
}

// listedQueue is what the command prints as JSON.
type listedQueue struct {
	Workers []*listedWorker `json:"workers"`
	Waiting []listedJob     `json:"waiting"` // also those of a server that is gone, which are due soon
	GivenUp []listedJob     `json:"given_up"`
}

func runWorkersLs(ctx context.Context, con *console.Console, p *app.Process, opts outputOptions, _ []string) error {
	st, err := p.Runs.StoreToRead()
	if err != nil {
		return err
	}
	list := &listedQueue{Workers: []*listedWorker{}, Waiting: []listedJob{}, GivenUp: []listedJob{}}
	if st != nil {
		if err := list.read(ctx, st); err != nil {
			return err
		}
	}
	if opts.output == console.FormatJSON {
		return con.PrintJSON(list)
	}
	list.print(con)
	return nil
}

// read reads the servers and the runs of a store.
func (l *listedQueue) read(ctx context.Context, st *runs.Store) error {
	q := runs.QueueOf(st)
	if q == nil {
		return failure.NewUsage("use a store in SQLite or PostgreSQL", "the store %s has no queue: each server continues the runs that it was driving itself", st.Location.URL())
	}
	workers, err := q.ListWorkers(ctx)
	if err != nil {
		return err
	}
	jobs, err := q.ListJobs(ctx, false)
	if err != nil {
		return err
	}
	byID := map[string]*listedWorker{}
	for _, w := range workers {
		line := &listedWorker{
			ID:      w.ID,
			Host:    w.Host,
			PID:     w.PID,
			Version: w.Version,
			Places:  w.Places,
			Silent:  w.Silent.Seconds(),
			State:   w.State(),
			Runs:    []listedJob{},
		}
		byID[w.ID] = line
		l.Workers = append(l.Workers, line)
	}
	for i := range jobs {
		l.add(byID, &jobs[i])
	}
	return nil
}

// add adds a run to those of its server, or to those that have none.
func (l *listedQueue) add(byID map[string]*listedWorker, job *journal.DriveJob) {
	line := listedJob{Run: job.Run, Due: job.Due, Attempts: job.Attempts, Reasons: job.DescribeReasons()}
	switch w := byID[job.Worker]; {
	case job.GivenUp:
		l.GivenUp = append(l.GivenUp, line)
	case w != nil:
		w.Runs = append(w.Runs, line)
	default:
		l.Waiting = append(l.Waiting, line)
	}
}

// print shows the servers to a person.
func (l *listedQueue) print(con *console.Console) {
	if len(l.Workers) == 0 {
		con.PrintNote("no server works on this store; start one: raddle serve")
	} else {
		table := term.NewTable(
			term.NewColumn("HOST", func(w *listedWorker) string { return w.Host }),
			term.NewColumn("PROCESS", func(w *listedWorker) string { return strconv.Itoa(w.PID) }),
			term.NewColumn("VERSION", func(w *listedWorker) string { return w.Version }),
			term.NewColumn("RUNS", func(w *listedWorker) string { return strconv.Itoa(len(w.Runs)) + "/" + strconv.Itoa(w.Places) }),
			term.NewColumn("SEEN", func(w *listedWorker) string { return runview.FormatAge(time.Duration(w.Silent * float64(time.Second))) }),
			term.NewColumn("", func(w *listedWorker) string { return workerStates[w.State] }),
		)
		for _, w := range l.Workers {
			table.AddRow(w)
		}
		con.PrintTable(table)
	}
	if n := len(l.Waiting); n > 0 {
		con.PrintNote("waiting for a server: %s", wording.FormatCount(n, "run"))
	}
	takes := func(w *listedWorker) bool { return w.State == journal.WorkerWorks }
	if len(l.Workers) > 0 && !slices.ContainsFunc(l.Workers, takes) {
		con.PrintNote("no server takes runs now; start one: raddle serve")
	}
	for _, job := range l.GivenUp {
		reasons := cmp.Or(term.CleanText(job.Reasons), "no reason")
		con.PrintNote("given up: run %s, after %d attempts: %s\nnext: raddle resume %s", job.Run, job.Attempts, reasons, job.Run)
	}
}

// workerStates say for people what is unusual about a server.
var workerStates = map[journal.WorkerState]string{
	journal.WorkerEnded:    "has ended",
	journal.WorkerSilent:   "does not answer",
	journal.WorkerDraining: "ends",
	journal.WorkerRequests: "answers requests only",
}
