package studio_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
)

// askToTouch makes an agent that asks whether it may make a file, twice, and starts it. The run waits.
func askToTouch(t *testing.T) (home *clienttest.Home, b *browser, run string) {
	t.Helper()
	home = clienttest.NewHome(t)
	home.AddAgent(t, "toucher", map[string]string{
		"config.yaml":     "name: toucher\nmodel: script:transcript.yaml\nglobal_tools: [execute_command]\n",
		"transcript.yaml": "- {tool_calls: [{name: execute_command, args: {command: touch first}}]}\n- {tool_calls: [{name: execute_command, args: {command: touch second}}]}\n- {text: All done., repeat: true}\n",
	})
	b = openBrowser(t, home.Serve(t))
	return home, b, startRun(t, b, "toucher", "waiting")
}

// countAnswers returns how many questions of a run were answered.
func countAnswers(t *testing.T, b *browser, run string) int {
	t.Helper()
	return int(read[float64](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s").then((r) => r.json()).then((r) => (r.answers ?? []).length)`, run)))
}

// requireNoAnswer fails the test if a question of a run was answered. Requests of the page that were sent before are answered before.
func requireNoAnswer(t *testing.T, b *browser, run, what string) {
	t.Helper()
	if n := countAnswers(t, b, run); n > 0 || read[float64](t, b, `performance.getEntriesByType("resource").filter((e) => e.name.endsWith("/answers")).length`) > 0 {
		t.Fatalf("%s answered the question", what)
	}
}

// A permission is answered by a key only if its question had the focus and was in view for a second, and by the mouse if it was in view.
func TestExtraKeysNeedIntent(t *testing.T) {
	_, b, run := askToTouch(t)
	const button = `document.querySelector("[data-option='1']")`
	const ready = `document.querySelector('form[data-ready="true"]')`
	for _, page := range []string{"inbox", "", "runs/" + run} {
		b.open(t, page)
		b.wait(t, button)
		b.do(t, chromedp.KeyEvent("1"), chromedp.KeyEvent("y"), chromedp.KeyEvent("\r"))
		requireNoAnswer(t, b, run, "a key on "+page+" without a focus")
		b.do(t, evaluate(button+`.focus()`), chromedp.KeyEvent("\r"), chromedp.KeyEvent("1"))
		requireNoAnswer(t, b, run, "a key on "+page+" at once")
		b.do(t, evaluate(button+`.click()`), evaluate(button+`.closest("form").requestSubmit()`), evaluate(`dispatchEvent(new KeyboardEvent("keydown", {key: "1"}))`))
		requireNoAnswer(t, b, run, "a script on "+page)
		b.wait(t, ready)
		b.do(t, evaluate(button+`.click()`))
		requireNoAnswer(t, b, run, "a script on "+page+" after a second")
		b.do(t, evaluate(`{const cover = document.createElement("div"); cover.id = "cover"; cover.style.cssText = "position:fixed;inset:0;background:#888"; document.body.append(cover)}`), chromedp.KeyEvent("1"), chromedp.KeyEvent("\r"))
		requireNoAnswer(t, b, run, "a key on "+page+" in a covered question")
		b.do(t, evaluate(`document.querySelector("#cover").remove()`), chromedp.KeyEvent("1"), chromedp.KeyEvent("\r"))
		requireNoAnswer(t, b, run, "a key on "+page+" just after the cover was taken away")
		b.wait(t, ready)
		b.do(t, evaluate(`document.querySelector("nav a").focus(); `+button+`.focus()`), chromedp.KeyEvent("\r"), chromedp.KeyEvent("1"))
		requireNoAnswer(t, b, run, "a key on "+page+" just after the focus came back")
		b.wait(t, ready)
		b.do(t, evaluate(`document.querySelector("main").style.marginTop = "3000px"; scrollTo(0, 0)`))
		b.wait(t, "!"+ready)
		b.do(t, chromedp.KeyEvent("1"))
		requireNoAnswer(t, b, run, "a key on "+page+" out of view")
	}
	b.open(t, "inbox")
	b.wait(t, button)
	b.do(t, chromedp.KeyEvent("k")) // gives it the focus
	b.wait(t, ready)
	b.do(t, chromedp.KeyEvent("1"))
	b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s").then((r) => r.json())).answers?.length === 1`, run))

	// The next question appears under the hands.
	b.wait(t, `document.querySelector(".permission pre")?.innerText.includes("second")`)
	b.do(t, chromedp.KeyEvent("1"), chromedp.KeyEvent("\r"), chromedp.KeyEvent("1"))
	if n := countAnswers(t, b, run); n != 1 {
		t.Fatalf("%d answers", n)
	}
	b.wait(t, ready+` || (`+button+`.focus(), false)`)
	b.pressMouse(t, button)
	b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s").then((r) => r.json())).status === "done"`, run))
}

// Events that come from the document or the window, which no element is, are keys like others: they open the help, and the pages report nothing.
func TestExtraKeysOnTheDocument(t *testing.T) {
	b := openBrowser(t, clienttest.NewHome(t).Serve(t))
	run := startRun(t, b, "triage", "waiting")
	for _, page := range []string{"", "inbox", "runs/" + run} {
		for _, target := range []string{"document", "window"} {
			b.open(t, page)
			b.wait(t, `document.querySelector("form.question")`)
			for _, key := range []string{"j", "[", "9", "?"} {
				b.do(t, evaluate(fmt.Sprintf(`%s.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true}))`, target, key)))
			}
			b.wait(t, `document.querySelector("dialog[open]")`)
		}
	}
	b.requireSilence(t)
}

// A page of another port cannot show the Studio in a frame: what is typed there reaches no question.
func TestExtraFramesAreRefused(t *testing.T) {
	home, b, run := askToTouch(t)
	var target string
	attack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<p>Type the code 1</p><iframe id=f src="%s" style="opacity:0.1;width:900px;height:600px" onload="loaded=true;setInterval(()=>f.focus(),50)"></iframe>
			<object id=o data="%[1]s"></object><embed src="%[1]s">`, target)
	}))
	defer attack.Close()
	for _, page := range []string{"inbox", "", "runs/" + run, "chat/toucher", "login"} {
		target = b.s.URL + "/" + page
		b.do(t, chromedp.Navigate(attack.URL+"/"))
		b.wait(t, `typeof loaded !== "undefined" && document.activeElement.id === "f"`)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			b.do(t, chromedp.KeyEvent("1"), chromedp.KeyEvent("\r"))
		}
		if read[float64](t, b, `frames.length`) == 0 {
			t.Error("the page has no frame")
		}
	}
	b.open(t, "inbox")
	b.wait(t, `document.querySelector("[data-option='1']")`)
	if n := countAnswers(t, b, run); n != 0 {
		t.Errorf("a page of another port answered %d questions", n)
	}
	if _, err := os.Stat(filepath.Join(home.Dir, "first")); err == nil {
		t.Error("the command was run")
	}
}
