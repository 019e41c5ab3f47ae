package gateway

import (
	"context"
	"regexp"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server/servertest"
)

// However often the metrics are read, listing the store takes a tenth of the time at most.
func TestCountRunsSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts runCounts
		lists := 0
		slow := func(context.Context) (map[string]int, error) {
			lists++
			time.Sleep(2 * time.Second)
			return map[string]int{"done": lists}, nil
		}
		for range 100 {
			byStatus, took, err := counts.countRuns(t.Context(), slow)
			if err != nil || took != 2*time.Second || byStatus["done"] != lists {
				t.Fatalf("%v, %s, %v after %d lists", byStatus, took, err, lists)
			}
			time.Sleep(time.Second)
		}
		if lists != 6 {
			t.Errorf("the store was listed %d times in 112 seconds", lists)
		}
	})
}

// A count that failed is not used again.
func TestCountRunsAfterError(t *testing.T) {
	var counts runCounts
	failing := func(context.Context) (map[string]int, error) { return nil, context.Canceled }
	if _, _, err := counts.countRuns(t.Context(), failing); err == nil {
		t.Error("no error")
	}
	list := func(context.Context) (map[string]int, error) { return map[string]int{"done": 1}, nil }
	if byStatus, _, err := counts.countRuns(t.Context(), list); err != nil || byStatus["done"] != 1 {
		t.Errorf("%v %v", byStatus, err)
	}
}

// The metrics say what waits, for how long, and how long the store takes, with a run that waits for an answer, one that
// waits for a server, and one that was given up.
func TestMetricsOfWaiting(t *testing.T) {
	g := open(t, Settings{State: t.TempDir()})
	g.service, _ = servertest.NewHome(t, nil).Serve()
	st, err := g.service.Process().Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	ask, err := graph.Compile(graph.Def{Name: "ask", Start: []string{"ask"}, Nodes: []graph.Node{{Name: "ask", Run: func(ctx context.Context, _ graph.State) (u graph.Update, err error) {
		_, err = graph.Interrupt[string](ctx, graph.Ask{Prompt: "Where to?"})
		return u, err
	}}}, Edges: []graph.Edge{{From: []string{"ask"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for _, id := range []string{"1a", "1b", "1c"} {
		if _, err := (&graph.Runner{Graph: ask, Store: st}).Invoke(t.Context(), graph.Input{Thread: id, Run: id, Label: "ask"}); err != nil {
			t.Fatal(err)
		}
	}
	q := runs.QueueOf(st)
	for _, id := range []string{"1b", "1c"} {
		if err := q.PutJob(t.Context(), journal.DriveJob{Thread: id, Run: id, Token: id, Queue: "elsewhere"}, -time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.ReturnJob(t.Context(), "1c", "1c", journal.Return{Reason: "x", GiveUp: true}); err != nil {
		t.Fatal(err)
	}
	res, text := send(t, g, "GET", "/metrics", "", "Authorization: Bearer "+g.first)
	if res.StatusCode != 200 {
		t.Fatal(res.Status, text)
	}
	value := func(name string) float64 {
		t.Helper()
		found := regexp.MustCompile(`(?m)^raddle_` + regexp.QuoteMeta(name) + ` (.*)$`).FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("there is no %s in\n%s", name, text)
		}
		v, err := strconv.ParseFloat(found[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, want := range map[string]float64{
		`runs{status="waiting"}`:                 1,
		`runs{status="queued"}`:                  1,
		`runs{status="given-up"}`:                1,
		"given_up":                               1,
		"queue_wait_seconds_count":               0,
		`store_append_seconds_bucket{le="+Inf"}`: value("store_append_seconds_count"),
	} {
		if got := value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if lag := value("queue_lag_seconds"); lag < 3600 || lag > 3600+time.Since(began).Seconds()+1 {
		t.Errorf("the lag is %v", lag)
	}
	if wait := value("wait_seconds"); wait <= 0 || wait > time.Since(began).Seconds() {
		t.Errorf("the wait is %v", wait)
	}
	if n := value("store_append_seconds_count"); n < 6 {
		t.Errorf("%v appends were counted", n)
	}
}
