//go:build unix

package studio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// addFan adds an agent with workers that work at the same time, of which one takes long and one fails, and a question after them.
func addFan(t *testing.T, home *clienttest.Home, n int) {
	t.Helper()
	var g strings.Builder
	g.WriteString("name: fan\nstart: plan\nnodes:\n  plan: {type: script, script: ok.sh, next: [")
	for i := 1; i <= n; i++ {
		if i > 1 {
			g.WriteString(", ")
		}
		fmt.Fprintf(&g, "w%d", i)
	}
	g.WriteString("]}\n")
	for i := 1; i <= n; i++ {
		script := "work.sh"
		if i == n-2 {
			script = "long.sh"
		}
		if i == n {
			fmt.Fprintf(&g, "  w%d: {type: script, script: bad.sh, state_updates: {o%[1]d: \"{{output}}\"}, fallback: ask, next: ask}\n", i)
			continue
		}
		fmt.Fprintf(&g, "  w%d: {type: script, script: %s, state_updates: {o%[1]d: \"{{output}}\"}, next: ask}\n", i, script)
	}
	g.WriteString("  ask: {type: approval, question: \"Send it?\", options: [yes, no], routes: {yes: send, no: send}, on_other: send}\n")
	g.WriteString("  send: {type: script, script: ok.sh, next: done}\n  done: {type: end, output: over}\n")
	home.AddAgent(t, "fan", map[string]string{
		"graph.yaml": g.String(), "ok.sh": "echo '{}'\n", "work.sh": "sleep 0.3\necho '{}'\n", "long.sh": "sleep 3\necho '{}'\n", "bad.sh": "sleep 0.1\necho broken >&2\nexit 1\n",
	})
}

// Fifty workers that worked at the same time are drawn at the same time; the chain that the run took so long for is marked and told; a person finds what has
// failed, zooms to a span, and goes to its moment, with the keyboard.
func TestExtraWaterfall(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "sleep")
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	addFan(t, home, 50)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "fan", "waiting")
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.open(t, "runs/"+run)
	b.press(t, "Waterfall")
	b.wait(t, `location.search === "?view=waterfall" && document.querySelectorAll(".lane-row").length > 10`)
	b.wait(t, `/ s: w48, script/.test(document.querySelector(".critical-path").innerText)`)
	// many bars are over the same place of the axis
	const over = `(() => { const bars = [...document.querySelectorAll(".span-script")].map((e) => e.getBoundingClientRect()); return Math.max(...bars.map((a) => bars.filter((r) => r.left < a.right && r.right > a.left && r.top !== a.top).length)) })()`
	if n := read[float64](t, b, over); n < 10 {
		t.Errorf("at most %v bars overlap in time", n)
	}
	if n := read[float64](t, b, `document.querySelectorAll(".lane-row").length`); n > 45 {
		t.Errorf("%v of 52 rows are elements", n)
	}
	b.takeAll(t, axe, "waterfall")
	b.do(t, chromedp.EmulateViewport(1440, 900))

	choose := func(value string) {
		b.do(t, evaluate(fmt.Sprintf(`(() => { const s = document.querySelector(".waterfall select"); s.value = %q; s.dispatchEvent(new Event("change", {bubbles: true})) })()`, value)))
	}
	choose("critical")
	b.wait(t, `[...document.querySelectorAll(".lane-row")].some((r) => r.innerText.includes("w48")) && ![...document.querySelectorAll(".lane-row")].some((r) => r.innerText.includes("w47"))`)
	choose("failed")
	b.wait(t, `[...document.querySelectorAll(".lane-row")].map((r) => r.querySelector(".name").innerText.trim()).join() === "w50"`)
	b.do(t, chromedp.Focus(chromedp.CSS(".lanes")))
	b.pressKey(t, "ArrowDown", "ArrowDown", 0)
	b.wait(t, `document.querySelector(".told").innerText.startsWith("w50: script") && document.querySelector(".told").innerText.includes("failed")`)
	b.wait(t, `/@\d+/.test(decodeURIComponent(location.pathname)) && document.querySelector(".playhead") && document.querySelector(".detail")?.innerText.includes("broken")`)
	width := read[float64](t, b, `document.querySelector(".span.chosen").getBoundingClientRect().width`)
	b.pressKey(t, "Enter", "Enter", 0)
	b.wait(t, fmt.Sprintf(`document.querySelector(".span.chosen").getBoundingClientRect().width > 3 * %v`, width))
	choose("")
	b.press(t, "All")
	b.do(t, evaluate(`(() => { const i = document.querySelector(".waterfall input"); i.value = "w4"; i.dispatchEvent(new Event("input", {bubbles: true})) })()`))
	b.wait(t, `document.querySelectorAll(".lane-row").length === 11`)
	b.do(t, chromedp.Reload())
	b.wait(t, `document.querySelector(".lanes") && document.querySelector(".playhead")`)
	b.requireSilence(t)
}
