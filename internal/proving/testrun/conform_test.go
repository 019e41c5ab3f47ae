//go:build unix

package testrun

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/internal/testkit/testneed"
)

// A storedRun is a run of a case in one store, with the records that it left there.
type storedRun struct {
	killedRun
	records []string // without ids and times, sorted: what happens at the same time is saved in any order. nil: agents of a team worked at the same time, and what they see of each other depends on that
}

// runStored runs a case with the store at a URL.
func runStored(t *testing.T, r *Runner, c *testcase.Case, url string) *storedRun {
	t.Helper()
	var agents agentNumbers
	out := &storedRun{}
	ledgers := map[string]int{} // the newest record of each
	var err error
	out.result, err = r.RunCase(t.Context(), c, Setup{Store: url, Drive: func(ctx context.Context, trial *Trial) (graph.Result, error) {
		res, driveErr := trial.Drive(ctx)
		out.questions, out.scratch = res.Questions, trial.Scratch
		out.files, _ = readTree(trial.Scratch, agentsDir, "home")
		st, thread, err := trial.process.Runs.FindThread(ctx, trial.RunID)
		if err != nil {
			return res, err
		}
		entries := slices.Collect(func(yield func(history.Entry) bool) {
			for e, other := range history.Entries(ctx, st, thread) {
				if err = other; err != nil || !yield(e) {
					return
				}
			}
		})
		slices.Reverse(entries)
		names := disturb.LabelRecords(entries, agents.replaceIDs)
		for rec, other := range journal.Records(ctx, st, thread, journal.Range{}) {
			if err = other; err != nil {
				break
			}
			name := names[rec.Seq-1]
			switch rec.Kind {
			case journal.KindClaim, journal.KindSnapshot:
				continue
			case journal.KindEffect, journal.KindStep, journal.KindTask, journal.KindAnswer, journal.KindEdit:
				data := agents.replaceIDs(strings.ReplaceAll(string(rec.Data), trial.RunID, "RUN"))
				if ledger, isLedger := ledgerOf(name.Label); isLedger {
					if at, before := ledgers[ledger]; before {
						out.records[at], _, _ = strings.Cut(out.records[at], " ")
					}
					ledgers[ledger] = len(out.records)
				}
				out.records = append(out.records, fmt.Sprintf("%s %q", name.Label, out.cleanValue(data)))
			default:
				out.records = append(out.records, name.Label)
			}
		}
		slices.Sort(out.records)
		if len(agents.byName) > 0 {
			out.records = nil
		}
		if err != nil {
			return res, err
		}
		return res, driveErr
	}})
	if err != nil {
		t.Fatalf("%s: %v", c.Name, err)
	}
	return out
}

// ledgerOf returns which budget a record keeps the use of. Calls that are made at the same time write it in any order, so what it says between them is not
// compared: only that it was written, and what it says at the end.
func ledgerOf(label string) (name string, isLedger bool) {
	name, _, isLedger = strings.Cut(label, ",n=")
	return name, isLedger && strings.HasPrefix(name, "effect:shared/shared/=budget/")
}

// runComparable runs a case until the name of its directory has the usual length, as three of four have: a record contains the lengths of its
// texts.
func runComparable(t *testing.T, r *Runner, c *testcase.Case, url string) *storedRun {
	t.Helper()
	for range 100 {
		if out := runStored(t, r, c, url); len(filepath.Base(out.scratch)) == len("raddle-test-4294967295") {
			return out
		}
	}
	t.Fatalf("%s: no directory has a name of the usual length", c.Name)
	return nil
}

// compareStores runs the cases of files in each store, and compares the ends, the states, the files and the journals with those of the first one.
func compareStores(t *testing.T, files []string, urls ...string) (cases, records int) {
	t.Helper()
	r := newRunner(t)
	for _, path := range files {
		f, err := testcase.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range f.Cases {
			want := runComparable(t, r, c, urls[0])
			for _, url := range urls[1:] {
				got := runComparable(t, r, c, url)
				kind, _, _ := strings.Cut(url, ":")
				for _, what := range want.compare(&got.killedRun) {
					t.Errorf("%s, %s, %s: %s", path, c.Name, kind, strings.ReplaceAll(what, "without a crash", "in memory"))
				}
				compareRecords(t, fmt.Sprintf("%s, %s, %s", path, c.Name, kind), want.records, got.records)
			}
			cases++
			records += len(want.records)
		}
	}
	return cases, records
}

func compareRecords(t *testing.T, where string, want, got []string) {
	t.Helper()
	if len(want) == 0 && len(got) == 0 {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(want), func(s string) bool { return slices.Contains(got, s) })
	added := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return slices.Contains(want, s) })
	if len(want) != len(got) || len(missing)+len(added) > 0 {
		t.Errorf("%s: the journal has %d records, in memory %d\nmissing: %q\nadded: %q", where, len(got), len(want), missing, added)
	}
}

// writeRandomGraphs writes n graphs, and returns their cases.
func writeRandomGraphs(t *testing.T, n int) (files []string) {
	t.Helper()
	for seed := range n {
		dir := filepath.Join(t.TempDir(), "random")
		testfile.WriteRandomGraph(t, dir, uint64(seed))
		files = append(files, filepath.Join(dir, "r.test.yaml"))
	}
	return files
}

// The same cases have the same states and journals in memory and in a file.
func TestFileStoreConforms(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	files := append(writeRandomGraphs(t, 4), "../../../examples/triage/triage.test.yaml", "../../../examples/map-reduce/map-reduce.test.yaml", "../../../examples/research/research.test.yaml", "../../process/bundle/agents/assistant/assistant.test.yaml")
	cases, records := compareStores(t, files, "memory:", "sqlite:"+filepath.Join(t.TempDir(), "runs.db"))
	t.Logf("%d cases, %d records", cases, records)
}

// All examples, the agents that come with raddle and 20 random graphs have the same states and journals in memory, in a file, on Postgres and on Redis.
func TestExtraStoresConform(t *testing.T) {
	files, err := FindFiles([]string{"../../../examples", "../../process/bundle/agents"})
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, writeRandomGraphs(t, 20)...)
	cases, records := compareStores(t, files, "memory:", "sqlite:"+filepath.Join(t.TempDir(), "runs.db"), pgtest.NewDatabase(t), redistest.Start(t).URL)
	t.Logf("%d graphs, %d cases, %d records", len(files), cases, records)
}
