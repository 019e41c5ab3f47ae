package studio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// Home, the page of an agent and the inbox say that their server is gone, keep what they show, and recover by themselves when it is there
// again: without a reload they show how the run that it was driving has ended, and an answer is recorded.
func TestExtraPagesRecover(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	home.AddAgent(t, "waits", map[string]string{
		"graph.yaml": "name: waits\nstart: work\nnodes:\n  work: {type: script, script: work.sh, timeout: 60, next: done}\n  done: {type: end, output: late}\n",
		"work.sh":    "while [ ! -e \"$RADDLE_WORKSPACE/go\" ]; do sleep 0.05; done\necho '{}'\n",
	})
	s, start := prepareServer(t, home)
	server := start()
	b := openBrowser(t, s)
	startRun(t, b, "triage", "waiting")
	for _, path := range []string{"", "agents/waits", "inbox"} {
		run := startRun(t, b, "waits", "running")
		b.do(t, chromedp.EmulateViewport(390, 844))
		b.open(t, path)
		shown := fmt.Sprintf(`[...document.querySelectorAll("table.runs tr")].find((r) => r.querySelector("a[href*=\"%s\"]"))?.innerText`, run)
		if path == "inbox" {
			shown = `document.querySelector("[data-option='1']")?.innerText`
		}
		b.wait(t, shown)
		b.do(t, evaluate(`window.same = true`))
		if err := server.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = server.Wait() // it was killed
		b.wait(t, `document.querySelector("[role=alert]")?.innerText`)
		if !read[bool](t, b, "!!("+shown+")") {
			t.Errorf("/%s does not show any more what it had", path)
		}
		server = start()
		b.wait(t, `!document.querySelector("[role=alert]")`)
		if err := os.WriteFile(filepath.Join(home.Dir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if path == "inbox" {
			over := read[float64](t, b, `innerWidth - document.querySelector("[data-option='1']").getBoundingClientRect().right`)
			if over < 0 {
				t.Errorf("the button is %v px outside the window", -over)
			}
			b.click(t, "[data-option='1']")
			b.waitText(t, "Anything to add")
		} else {
			b.wait(t, shown+`.includes("done")`)
		}
		if !read[bool](t, b, `window.same === true`) {
			t.Errorf("/%s was loaded again", path)
		}
		if err := os.Remove(filepath.Join(home.Dir, "go")); err != nil {
			t.Fatal(err)
		}
	}
}

// A picture whose request is lost is loaded again, as everything else of a page.
func TestExtraPictureOfALostServer(t *testing.T) {
	home := clienttest.NewHome(t)
	b := openBrowser(t, home.Serve(t))
	startRun(t, b, "triage", "waiting")
	b.open(t, "")
	b.do(t, evaluate(`window.realFetch = window.fetch, window.fetch = (to, ...rest) => String(to).includes("picture.svg") ? Promise.reject(new TypeError("lost")) : realFetch(to, ...rest)`))
	b.follow(t, "triage")
	b.wait(t, `document.querySelector("main [role=alert]")?.innerText === "The server does not answer."`)
	b.do(t, evaluate(`window.fetch = window.realFetch`))
	b.wait(t, `document.querySelector("main .picture svg") && !document.querySelector("[role=alert]")`)
}
