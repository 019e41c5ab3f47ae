//go:build unix

package studio_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// addDuo adds an agent that takes long and archives if its prompt says so, and else publishes.
func addDuo(t *testing.T, home *clienttest.Home) {
	t.Helper()
	home.AddAgent(t, "duo", map[string]string{
		"graph.yaml": "name: duo\nstart: draft\nnodes:\n  draft: {type: script, script: draft.sh, next: pick}\n" +
			"  pick: {type: script, script: pick.sh, fallback: done}\n" +
			"  publish: {type: script, script: ok.sh, next: done}\n  archive: {type: script, script: ok.sh, next: done}\n  done: {type: end, output: \"{{shelf}}\"}\n",
		"draft.sh": "case \"$GRAPH_STATE\" in *slow*) sleep 1.5;; esac\necho '{\"text\": \"words\"}'\n",
		"pick.sh":  "case \"$GRAPH_STATE\" in *slow*) echo '{\"_next\": \"archive\", \"shelf\": \"old\"}';; *) echo '{\"_next\": \"publish\", \"shelf\": \"new\"}';; esac\n",
		"ok.sh":    "echo '{}'\n",
	})
}

// Two runs that a person has chosen in the list are shown next to each other, with one sentence about their difference, where they part, what only one of
// them ran, and their final states; their playheads move together, with the mouse and with the keyboard, and the address leads there again.
func TestExtraCompare(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "sleep")
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	addDuo(t, home)
	b := openBrowser(t, home.Serve(t))
	start := func(prompt string) string {
		run := read[string](t, b, fmt.Sprintf(`fetch("/api/v1/runs", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({agent: "duo", prompt: %q})}).then((r) => r.json()).then((r) => r.run)`, prompt))
		b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s").then((r) => r.json())).status === "done"`, run))
		return run
	}
	first := start("be quick")
	second := start("be slow")
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.open(t, "runs")
	b.wait(t, `document.querySelectorAll("table.runs tbody input").length === 2`)
	b.do(t, evaluate(`document.querySelectorAll("table.runs tbody input").forEach((i) => i.click())`))
	b.follow(t, "Compare")
	b.wait(t, fmt.Sprintf(`decodeURIComponent(location.pathname) === "/runs/%s...%s"`, first, second))
	b.wait(t, `/^B is slower by 1\.\d s, most of it at draft: 1\.\d s instead of \d+ ms; they returned different results\.$/.test(document.querySelector(".told")?.innerText)`)
	b.wait(t, `document.querySelector(".comparison").innerText.includes("First difference: their prompts differ.")`)
	const node = `document.querySelector('.overlaid [data-node="%s"]')`
	b.wait(t, fmt.Sprintf(node, "publish")+`?.querySelector(".visits")?.textContent === "only A" && `+fmt.Sprintf(node, "archive")+`?.querySelector(".visits")?.textContent === "only B"`)
	b.wait(t, `/→ 1\.\d s/.test(`+fmt.Sprintf(node, "draft")+`.querySelector(".visits").textContent)`)
	b.wait(t, `document.querySelectorAll(".pair .picture svg").length >= 2 && document.querySelectorAll(".pair .row").length > 10`)
	b.takeAll(t, axe, "compare")
	b.do(t, chromedp.EmulateViewport(1440, 900))

	// the playheads move together
	b.do(t, evaluate(`document.activeElement.blur()`))
	outputs := func(a, b string) string {
		return fmt.Sprintf(`[...document.querySelectorAll(".pair output.at, .pair .scrubber output")].map((o) => o.innerText.trim()).join("|") === %q`, a+"|"+b)
	}
	b.pressKey(t, "[", "BracketLeft", 0)
	b.wait(t, `/@\d+$/.test(location.pathname) && [...document.querySelectorAll(".pair .scrubber output")].every((o) => /^@\d+$/.test(o.innerText.trim()))`)
	for range 30 {
		b.pressKey(t, "[", "BracketLeft", 0)
	}
	b.wait(t, outputs("@1", "@1"))
	b.wait(t, fmt.Sprintf(node, "archive")+`?.dataset.status === "none"`)
	b.do(t, chromedp.Reload())
	b.wait(t, `document.querySelector(".told") && location.pathname.endsWith("@1")`)
	b.pressMouse(t, `[...document.querySelectorAll(".overlaid th button")].find((e) => e.innerText === "pick")`)
	b.wait(t, fmt.Sprintf(`[...document.querySelectorAll(".pair [data-node=pick]")].every((g) => g.dataset.status === "done" || g.dataset.status === "running") && %s?.dataset.status === "none"`, fmt.Sprintf(node, "archive")))
	b.do(t, evaluate(`document.querySelector(".overlaid summary").click()`))
	b.wait(t, `document.querySelector(".overlaid details").innerText.includes("shelf") && document.querySelector(".overlaid details").innerText.includes("old")`)
	b.requireSilence(t)
}
