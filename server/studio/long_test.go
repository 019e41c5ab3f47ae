package studio_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// scrub moves the playhead of the page to 200 moments, each once the page shows the one before (or has not within 600 frames), and returns the longest
// task of the main thread in ms, 0 if none took more than 50 ms, and how many different moments the page has shown.
const scrub = `new Promise((done) => {
	let longest = 0
	const shown = new Set()
	new PerformanceObserver((list) => { for (const e of list.getEntries()) longest = Math.max(longest, e.duration) }).observe({type: "longtask", buffered: true})
	const range = document.querySelector(".scrubber input"), output = document.querySelector(".scrubber output"), last = Number(range.max)
	let i = 0
	const move = () => {
		if (i++ === 200) return setTimeout(() => done([longest, shown.size]), 300)
		const before = output.innerText
		range.value = String(Math.floor(last * i / 201))
		range.dispatchEvent(new Event("input", {bubbles: true}))
		follow(before, 600)
	}
	const follow = (before, frames) => requestAnimationFrame(() => {
		if (output.innerText === before && frames > 0) return follow(before, frames - 1)
		shown.add(output.innerText)
		move()
	})
	move()
})`

// A run of 10,000 records opens and scrubs with a small page: only the rows in view are elements, and moving the playhead does not read the
// timeline again, and requests no moment that the page does not show. How long that takes is logged.
func TestExtraLongRun(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "seq", "paste")
	home := clienttest.NewHome(t)
	home.AddAgent(t, "long", map[string]string{
		"graph.yaml": "name: long\nstart: items\nnodes:\n  items: {type: script, script: items.sh, next: each}\n" +
			"  each: {type: map, over: \"{{list}}\", as: item, branch: one, output_key: it, collect_into: got, max_concurrency: 8, next: end}\n" +
			"  one: {type: script, script: one.sh}\n  end: {type: end, output: ok}\n",
		"items.sh": "echo \"{\\\"list\\\": [$(seq -s, 3400)]}\"\n",
		"one.sh":   "echo '{\"it\": 1}'\n",
	})
	b := openBrowser(t, home.Serve(t))
	run := read[string](t, b, `fetch("/api/v1/runs", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({agent: "long"})}).then((r) => r.json()).then((r) => r.run)`)
	b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s").then((r) => r.json())).status === "done"`, run))
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.open(t, "runs/"+run)
	b.wait(t, `document.querySelectorAll(".row").length > 10 && document.querySelector(".picture svg")`)
	t.Logf("the page shows the run %v ms after it was opened", read[float64](t, b, `performance.now()`))
	if records := read[float64](t, b, `Number(document.querySelector(".scrubber output").innerText.match(/\d+/)[0])`); records < 10000 {
		t.Errorf("the run has %v records", records)
	}
	before := read[float64](t, b, `performance.getEntriesByName(new URL("api/v1/runs/`+run+`/timeline?after=0", document.baseURI).href).length`)
	const moments = `performance.getEntriesByType("resource").filter((e) => /\/records\/\d+$/.test(e.name)).length`
	asked := read[float64](t, b, moments)
	moved := read[[]float64](t, b, scrub)
	asked = read[float64](t, b, moments) - asked
	t.Logf("the longest task of the main thread took %v ms; %v of %v moments were requested", moved[0], asked, moved[1])
	if asked < 1 || asked > moved[1] {
		t.Errorf("%v moments were requested, and %v shown", asked, moved[1])
	}
	if moved[1] != 200 {
		t.Errorf("the page has shown %v moments of 200", moved[1])
	}
	if n := read[float64](t, b, `performance.getEntriesByName(new URL("api/v1/runs/`+run+`/timeline?after=0", document.baseURI).href).length`); n != before {
		t.Errorf("the timeline was read %v times more", n-before)
	}
	if rows := read[float64](t, b, `document.querySelectorAll(".row").length`); rows > 80 {
		t.Errorf("the page has %v rows", rows)
	}
	b.requireSilence(t)
}
