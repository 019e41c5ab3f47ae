//go:build unix

package app

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/testfile"
)

const asker = `
name: asker
start: ask
nodes:
  ask: {type: input, question: "Well?", next: end}
  end: {type: end, output: done}
`

// waiting is a process with a run that waits for an answer.
func waiting(t *testing.T) (p *Process, id string) {
	t.Helper()
	work := t.TempDir()
	testfile.WriteFile(t, filepath.Join(work, "asker", "graph.yaml"), asker)
	p, err := Open(Options{Work: work, Environ: []string{"HOME=" + filepath.Join(work, "home"), "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	run, err := p.StartRun(Request{Agent: "./asker"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	return p, run.ID
}

// A run that an invisible process holds is not touched until its lease
// ends or the user takes the run over.
func TestALeaseOfAnotherMachine(t *testing.T) {
	p, id := waiting(t)
	st, err := p.Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	const far = "1/ffff/far/77/123/123.1"
	if _, err := st.Store.(journal.Leaser).AcquireLease(t.Context(), id, far, "", time.Hour); err != nil {
		t.Fatal(err)
	}
	_, resumed := p.ResumeRun(t.Context(), id, ResumeOptions{})
	_, removed := p.Runs.RemoveRun(t.Context(), id)
	_, cancelled := p.Runs.CancelRun(t.Context(), id)
	_, pruned := p.Runs.PruneRun(t.Context(), id, history.Keep{})
	gone := p.Runs.RemoveRuns(t.Context(), []string{id}, func(string) {})
	for what, err := range map[string]error{"Resume": resumed, "Remove": removed, "Cancel": cancelled, "Prune": pruned, "RemoveAll": gone} {
		driven, ok := errors.AsType[*runs.BusyError](err)
		if !ok || !strings.Contains(driven.Error(), "process 77 on host far") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if e, ok := errors.AsType[*failure.Error](resumed); !ok || e.Kind != failure.Stale || !strings.Contains(e.Next, "raddle resume "+id+" --takeover") {
		t.Errorf("%+v", resumed)
	}
	run, err := p.ResumeRun(t.Context(), id, ResumeOptions{Takeover: true})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	res, err := run.resumeDrive(t.Context(), Driver{}, []graph.Answer{{ID: run.Questions[0].ID, Value: "yes"}})
	if err != nil || res.Status != graph.Done {
		t.Errorf("%v, %v", res.Status, err)
	}
	if l, err := st.Store.(journal.Leaser).ReadLease(t.Context(), id); err != nil || l.Owner != "" {
		t.Errorf("the lease is left: %+v, %v", l, err)
	}
}

// A store that cannot be written can be read, and a damaged run hides no other.
func TestLookingAtAStore(t *testing.T) {
	p, id := waiting(t)
	st, err := p.Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	broken := journal.Record{Kind: journal.KindStart, Time: 1, Head: []byte("x"), Sum: 7}
	if err := st.Append(t.Context(), "zz", 0, []journal.Record{broken}); err != nil {
		t.Fatal(err)
	}
	file, work := st.Location.Place(), p.Dirs.Work
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && os.Geteuid() == 0 {
		// Permissions do not apply to root; store/sqlite tests that the file opens for reading.
		t.Log("root may write everything")
	} else if err := errors.Join(os.Chmod(file, 0o444), os.Chmod(filepath.Dir(file), 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(file), 0o755) })
	p = look(t, work)
	list, err := p.Runs.ListRuns(t.Context(), "")
	if err != nil || len(list) != 2 || list[0].Status != runs.Damaged || !strings.Contains(list[0].Reason, "record 1 of thread zz is damaged") || list[1].Run != id || list[1].Status != "waiting" {
		t.Errorf("%+v, %v", list, err)
	}
	if d, err := p.Runs.ReadRunDetail(t.Context(), id); err != nil || d.Status != "waiting" || len(d.Snapshot.Questions) != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

// A drive that was ended from elsewhere says who did it, and what to do.
func TestADriveThatIsEndedElsewhere(t *testing.T) {
	p, id := waiting(t)
	r, err := p.ResumeRun(t.Context(), id, ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, test := range []struct {
		by   graph.DisplacedError
		says string
		next string
	}{
		{graph.DisplacedError{Status: graph.Abandoned, By: "Ada", Reason: "too dear"}, "was abandoned by Ada (too dear)", "raddle runs show " + id},
		{graph.DisplacedError{Status: graph.Paused, By: "Ada"}, "was edited by Ada", "raddle resume " + id},
		{graph.DisplacedError{Status: graph.Running, Lease: journal.Lease{Owner: "1/ffff/far/77/123/123.1"}}, "was taken over by process 77 on host far", "raddle runs ls"},
		{graph.DisplacedError{Status: graph.Running}, "was taken over by another process", "raddle runs ls"},
	} {
		err := r.explainError(&test.by)
		e, ok := errors.AsType[*failure.Error](err)
		if !ok || e.Kind != failure.Stale || !strings.Contains(err.Error(), test.says) || !strings.Contains(e.Next, test.next) || !errors.Is(err, graph.ErrLeaseLost) {
			t.Errorf("%v; next: %+v", err, e)
		}
	}
}
