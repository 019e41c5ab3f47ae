//go:build linux

package studio_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

const (
	crowdSize     = 20                     // agents that write at the same time
	chunkEvery    = 100 * time.Millisecond // of one agent: 200 chunks per second in total
	chunksOfReply = 100
	maxGrowth     = 50 << 20 // in bytes, of the page and of the server each
)

// A crowd is a provider of two models: that of a leader, who starts 20 agents and collects them, and that of the agents, who write all the
// time and call a tool after each reply until they are stopped.
type crowd struct {
	writing atomic.Int64 // replies of agents that are being written
	chunks  atomic.Int64 // that were written
	stopped atomic.Bool
}

// chatRequest is what a crowd reads of a request.
type chatRequest struct {
	Model    string
	Messages []struct {
		Role    string
		Content json.RawMessage
	}
}

func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req chatRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &req)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"r\",\"model\":%q,\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", req.Model, delta, finish)
		_ = http.NewResponseController(w).Flush() // if the client is gone, its request is cancelled
	}
	end := func(calls []string) {
		finish := `"stop"`
		if len(calls) > 0 {
			send(`{"tool_calls":[`+strings.Join(calls, ",")+`]}`, "null")
			finish = `"tool_calls"`
		}
		send(`{}`, finish)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
	if req.Model == "leader" {
		send(`{"content":"I lead."}`, "null")
		end(req.lead())
		return
	}
	c.writing.Add(1)
	defer c.writing.Add(-1)
	start := time.Now()
	for i := range chunksOfReply {
		select {
		case <-time.After(time.Until(start.Add(time.Duration(i) * chunkEvery))):
		case <-r.Context().Done():
			return
		}
		if c.stopped.Load() {
			break
		}
		send(fmt.Sprintf(`{"content":"**word** %d of a reply, "}`, i), "null")
		c.chunks.Add(1)
	}
	if c.stopped.Load() {
		end(nil)
		return
	}
	end([]string{formatCall(0, len(req.Messages), "fs_ls", `{"path":"."}`)})
}

// lead returns the calls of the leader: it starts the agents, collects them, and has nothing to do then.
func (r *chatRequest) lead() (calls []string) {
	var ids []string
	for _, m := range r.Messages {
		var text string
		var started struct{ ID string }
		if m.Role != "tool" || json.Unmarshal(m.Content, &text) != nil {
			continue
		}
		if json.Unmarshal([]byte(text), &started) == nil && started.ID != "" {
			ids = append(ids, started.ID)
		}
	}
	results := 0
	for _, m := range r.Messages {
		if m.Role == "tool" {
			results++
		}
	}
	switch {
	case results == 0:
		for i := range crowdSize {
			calls = append(calls, formatCall(i, len(r.Messages), "agent__spawn", fmt.Sprintf(`{"agent":"writer","prompt":"Write chapter %d."}`, i+1)))
		}
	case results == crowdSize:
		list, _ := json.Marshal(map[string]any{"ids": ids})
		calls = append(calls, formatCall(0, len(r.Messages), "agent__collect", string(list)))
	}
	return calls
}

// formatCall returns a call of a tool on the wire.
func formatCall(index, turn int, name, args string) string {
	return fmt.Sprintf(`{"index":%d,"id":"call_%d_%d","type":"function","function":{"name":%q,"arguments":%q}}`, index, turn, index, name, args)
}

// measurePage returns the memory of the page after a garbage collection, as Chromium says it, in bytes.
func measurePage(t *testing.T, b *browser) float64 {
	t.Helper()
	if _, err := chromedp.Call(b.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	use, err := chromedp.Call(b.ctx, runtime.GetHeapUsage, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return use.UsedSize + use.EmbedderHeapUsedSize + use.BackingStorageSize
}

// measureServer returns the memory of a process that is in use, in bytes, as the kernel counts it.
func measureServer(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(value), "kB")), 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib * 1024
		}
	}
	t.Fatal("the kernel does not say how much memory the server uses")
	return 0
}

// A page that shows a live team of 20 agents with 200 chunks per second in total does not grow, and neither does the server: for 10 seconds,
// or as many minutes as RADDLE_SOAK says. At the end the page has every moment of the run.
func TestExtraTeamSoak(t *testing.T) {
	long := 10 * time.Second
	if text := os.Getenv("RADDLE_SOAK"); text != "" {
		minutes, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("RADDLE_SOAK is %q: it must be a number of minutes", text)
		}
		long = time.Duration(minutes * float64(time.Minute))
	}
	provider := &crowd{}
	listener := httptest.NewServer(provider)
	t.Cleanup(listener.Close)
	home := clienttest.NewHome(t)
	config := "clients:\n- {type: openai-compatible, name: crowd, api_base: " + listener.URL + "/v1, models: [{name: leader}, {name: writer}]}\n"
	if err := os.WriteFile(filepath.Join(home.Dir, ".config", "raddle", "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	home.AddAgent(t, "leader", map[string]string{"config.yaml": fmt.Sprintf("name: leader\nmodel: crowd:leader\ncan_spawn_agents: true\nspawnable_agents: [writer]\nmax_concurrent_agents: %d\n", crowdSize)})
	home.AddAgent(t, "writer", map[string]string{"config.yaml": "name: writer\nmodel: crowd:writer\nglobal_tools: [fs_ls]\nmax_iterations: 100000\n"})
	s := home.Serve(t)
	b := openBrowser(t, s)
	b.do(t, chromedp.EmulateViewport(1440, 900))
	run := startRun(t, b, "leader", "running")
	b.open(t, "runs/"+run)
	b.wait(t, fmt.Sprintf(`document.querySelectorAll(".live li").length === %d`, crowdSize))
	if n := provider.writing.Load(); n != crowdSize {
		t.Errorf("%d agents write", n)
	}
	b.do(t, evaluate(`window.tasks = [], new PerformanceObserver((list) => { for (const e of list.getEntries()) tasks.push(e.duration) }).observe({type: "longtask"})`))
	page, server := measurePage(t, b), measureServer(t, s.PID)
	start, before := time.Now(), provider.chunks.Load()
	var pageNow, serverNow float64
	var measured []float64 // of the server: between two garbage collections it has more than it holds
	for done := false; !done; {
		time.Sleep(min(30*time.Second, time.Until(start.Add(long)))) // the test is about time
		done = time.Since(start) >= long
		pageNow, serverNow = measurePage(t, b), measureServer(t, s.PID)
		measured = append(measured, serverNow)
		t.Logf("after %3.0f s: %d chunks, page %.1f MB (%+.1f), server %.1f MB (%+.1f), tasks of the main thread above 50 ms: %v", time.Since(start).Seconds(), provider.chunks.Load()-before,
			pageNow/1e6, (pageNow-page)/1e6, serverNow/1e6, (serverNow-server)/1e6, read[[]float64](t, b, `tasks.splice(0)`))
	}
	if n, all := provider.chunks.Load()-before, int64(long/chunkEvery*crowdSize); n < all/2 {
		t.Errorf("the agents have written %d chunks of %d: the machine is too busy for this test", n, all)
	}
	if pageNow-page > maxGrowth {
		t.Errorf("the page has grown by %.1f MB", (pageNow-page)/1e6)
	}
	if serverNow = slices.Min(measured[max(0, len(measured)-5):]); serverNow-server > maxGrowth {
		t.Errorf("the server has grown by %.1f MB", (serverNow-server)/1e6)
	}
	b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", "team.png"))
	b.wait(t, `!document.querySelector(".connection").innerText`)
	provider.stopped.Store(true)
	b.wait(t, `document.querySelector("main .status")?.innerText.includes("done")`)
	b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s/timeline").then((r) => r.json())).items.filter((m) => m.text).length === Number(document.querySelector(".scrubber input").max) + 1`, run))
	b.requireSilence(t)
}
