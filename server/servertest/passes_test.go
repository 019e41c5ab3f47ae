package servertest_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/readtest"
	"raddle.dev/server"
	"raddle.dev/server/api"
	"raddle.dev/server/servertest"
)

// Each request that shows a run passes over its journal as often as this says, and no more: most of them once.
func TestPassesOfRequests(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{"confirm/graph.yaml": confirmGraph})
	st := &readtest.Counting{Memory: journal.NewMemory()}
	p, err := app.Open(app.Options{Work: home.Work, Environ: []string{"HOME=" + home.Dir, "RADDLE_BOX=false"}})
	if err == nil {
		err = p.Runs.AttachStore(st)
	}
	if err != nil {
		t.Fatal(err)
	}
	service, err := server.New(p, server.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := service.Close(ctx); err != nil {
			t.Error(err)
		}
	}()
	url := servertest.Listen(t, api.NewHandler(service), func() *server.Caller { return nil })
	send := func(method, path, body string) string {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, url+"/api/v1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode > 299 {
			t.Fatalf("%s %s: %s: %s, %v", method, path, res.Status, text, err)
		}
		return string(text)
	}
	var started struct{ Run string }
	if err := json.Unmarshal([]byte(send("POST", "/runs?wait=30s", `{"agent": "confirm"}`)), &started); err != nil {
		t.Fatal(err)
	}
	if _, err := service.WaitRun(t.Context(), started.Run); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path   string
		passes int
	}{
		{"", 1},
		{"/usage", 1},
		{"/timeline", 1},
		{"/waterfall", 1},
		{"/history", 1},
		{"/state", 1},
		{"/picture.svg", 1},
		{"/picture.svg?at=2", 1},
		{"/events?until=question", 3}, // its id and its state are read, and then its records
		{"/export", 2},                // its state is read, and then its records
		{"/records/1", 1},
	} {
		_ = st.Take(started.Run)
		send("GET", "/runs/"+started.Run+c.path, "")
		if got := st.Take(started.Run); got.Passes != c.passes {
			t.Errorf("GET /runs/ID%s: %s, want %d passes", c.path, got, c.passes)
		}
	}
	_ = st.Take(started.Run)
	// the run is found, prepared under its lock, and checked against the answer; the drive may have begun to read it
	send("POST", "/runs/"+started.Run+"/answers", `{"answers": [{"id": "ask", "value": "Ada"}]}`)
	if _, err := service.WaitRun(t.Context(), started.Run); err != nil {
		t.Fatal(err)
	}
	if got := st.Take(started.Run); got.Passes > 5 {
		t.Errorf("an answer, until the run has ended: %s, want at most 5 passes", got)
	}
	for _, path := range []string{"/runs", "/runs?status=done,failed&text=hello&min_seconds=0.000001&via=api&since=2020-01-01T00:00:00Z", "/runs?text=nothing", "/overview"} {
		text := send("GET", path, "")
		if got := st.Take(started.Run); got.Passes+got.Parts > 0 {
			t.Errorf("GET %s reads journals: %s", path, got)
		}
		if strings.Contains(text, started.Run) == strings.Contains(path, "nothing") && path != "/overview" {
			t.Errorf("GET %s: %s", path, text)
		}
	}
}
