//go:build unix

package studio_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// addWide adds an agent whose graph has many nodes that are not alike, in lines of five.
func addWide(t *testing.T, home *clienttest.Home, name string, n int) {
	t.Helper()
	var g strings.Builder
	fmt.Fprintf(&g, "name: %s\nstart: plan\nnodes:\n  plan: {type: script, script: ok.sh, next: [", name)
	for i := 0; i < n; i += 5 {
		if i > 0 {
			g.WriteString(", ")
		}
		fmt.Fprintf(&g, "s%d", i)
	}
	g.WriteString("]}\n")
	for i := range n {
		next := fmt.Sprintf("s%d", i+1)
		if i%5 == 4 {
			next = "done"
		}
		fmt.Fprintf(&g, "  s%d: {type: script, script: ok.sh, state_updates: {o%[1]d: \"{{output}}\"}, next: %s}\n", i, next)
	}
	g.WriteString("  done: {type: end, output: over}\n")
	home.AddAgent(t, name, map[string]string{"graph.yaml": g.String(), "ok.sh": "echo '{}'\n"})
}

// drag moves the mouse with its button pressed, from the middle of what find returns.
func (b *browser) drag(t *testing.T, find string, dx, dy float64) {
	t.Helper()
	at := read[[]float64](t, b, fmt.Sprintf(`(() => { const r = (%s).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`, find))
	send := func(kind input.DispatchMouseEventType, x, y float64) {
		b.do(t, call(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1}))
	}
	send(input.DispatchMouseEventTypeMousePressed, at[0], at[1])
	for i := range 5 {
		part := float64(i+1) / 5
		send(input.DispatchMouseEventTypeMouseMoved, at[0]+dx*part, at[1]+dy*part)
	}
	send(input.DispatchMouseEventTypeMouseReleased, at[0]+dx, at[1]+dy)
}

// Nodes that are alike are drawn as one, which says how far they are, and what they took; a person unfolds them, finds one, zooms with wheel and keys, moves
// the picture without choosing what is under the pointer, and goes from node to node with the arrows.
func TestExtraLargePicture(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "sleep")
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	addFan(t, home, 50)
	addWide(t, home, "wide", 500)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "fan", "waiting")
	const node = `document.querySelector('.picture [data-node="%s"]')`
	group := fmt.Sprintf(node, "w1 … w49")
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.open(t, "runs/"+run)
	b.wait(t, group+`?.querySelector(".visits")?.textContent === "49 of 49"`)
	b.wait(t, fmt.Sprintf(node, "w50")+`.dataset.status === "failed" && `+group+`.dataset.status === "done" && `+fmt.Sprintf(node, "w7")+` === null`)
	b.takeAll(t, axe, "folded")
	b.do(t, chromedp.EmulateViewport(1440, 900))

	// the playhead shows how many of them had ended
	half := read[string](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((t) => String(t.items.filter((m) => m.kind === "effect")[25].record))`, run))
	b.open(t, "runs/"+run+"@"+half)
	b.wait(t, group+`?.dataset.status === "running"`)
	b.open(t, "runs/"+run)
	b.wait(t, group+`?.dataset.status === "done"`)

	// what took long
	b.do(t, evaluate(`(() => { const s = document.querySelector(".picture-tools select"); s.value = "time"; s.dispatchEvent(new Event("change", {bubbles: true})) })()`))
	b.wait(t, `/ s$/.test(`+group+`.querySelector(".visits").textContent) && `+group+`.style.getPropertyValue("--share") === "45%"`)
	b.takeAll(t, axe, "heat")
	b.do(t, chromedp.EmulateViewport(1440, 900))

	// a click chooses the group, and a drag moves the picture and chooses nothing
	b.pressMouse(t, group)
	b.wait(t, `document.querySelector(".node-bar")?.innerText.includes("Unfold them") && document.querySelector(".node-bar button").disabled`)
	b.press(t, "Unfold w1 … w49")
	b.wait(t, `document.querySelectorAll(".picture g.node[data-node]").length === 54 && document.querySelector(".overview .seen")`)
	b.takeAll(t, axe, "unfolded")
	b.do(t, chromedp.EmulateViewport(1440, 900))
	place := fmt.Sprintf(`JSON.stringify(%s.getBoundingClientRect())`, fmt.Sprintf(node, "ask"))
	before := read[string](t, b, place)
	bar := read[string](t, b, `document.querySelector(".node-bar").innerText`)
	b.drag(t, `document.querySelector(".picture")`, -120, -40)
	b.wait(t, place+` !== `+fmt.Sprintf("%q", before))
	if is := read[string](t, b, `document.querySelector(".node-bar").innerText`); is != bar {
		t.Errorf("the drag has chosen %s", is)
	}

	// a node is found by its name, and the view goes there
	b.do(t, evaluate(`(() => { const i = document.querySelector(".picture-tools input"); i.focus(); i.value = "w48"; i.dispatchEvent(new Event("input", {bubbles: true})) })()`))
	isSeen := func(name string) string {
		return fmt.Sprintf(`(() => { const [n, v] = [%s, document.querySelector(".picture")].map((e) => e.getBoundingClientRect()); return n.left >= v.left && n.right <= v.right && n.top >= v.top && n.bottom <= v.bottom })()`, fmt.Sprintf(node, name))
	}
	b.wait(t, isSeen("w48")+` && document.querySelectorAll("[data-found]").length === 1`)
	b.do(t, chromedp.KeyEvent("\r"))
	b.wait(t, `document.activeElement.dataset?.node === "w48"`)
	b.pressKey(t, "ArrowLeft", "ArrowLeft", 0)
	b.wait(t, `document.activeElement.dataset?.node === "w47" && `+isSeen("w47"))
	b.do(t, chromedp.KeyEvent("\r"))
	b.wait(t, `document.querySelector(".node-bar strong").innerText === "w47"`)
	const scale = `Number(document.querySelector(".picture-tools button:nth-child(2)").innerText.replace(/\D/g, ""))`
	was := read[float64](t, b, scale)
	b.pressKey(t, "+", "Equal", 0)
	b.wait(t, fmt.Sprintf(`%s > %v`, scale, was))
	b.pressKey(t, "0", "Digit0", 0)
	b.wait(t, fmt.Sprintf(`%s < %v && %s`, scale, was, isSeen("w1")+" && "+isSeen("w49")))
	b.do(t, evaluate(`document.querySelector(".picture").dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: 200, clientY: 400, bubbles: true, cancelable: true}))`))
	b.wait(t, fmt.Sprintf(`%s > 0 && document.querySelector(".overview")`, scale))
	b.press(t, "Fold again")
	b.wait(t, group)

	// one stop of Tab leads over the picture
	if n := read[float64](t, b, `document.querySelectorAll('.picture [tabindex="0"]').length`); n != 1 {
		t.Errorf("the picture has %v stops of Tab", n)
	}

	// 500 nodes move without long tasks
	b.open(t, "agents/wide")
	b.wait(t, `document.querySelectorAll(".picture g.node[data-node]").length > 500`)
	b.takeAll(t, axe, "wide")
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.do(t, evaluate(`window.tasks = [], new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => e.duration))).observe({type: "longtask"})`))
	for range 3 {
		b.drag(t, `document.querySelector(".picture")`, -200, 0)
		b.do(t, evaluate(`document.querySelector(".picture").dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: 400, clientY: 400, bubbles: true, cancelable: true}))`))
	}
	t.Logf("long tasks while 500 nodes moved, in ms: %v", read[[]float64](t, b, `tasks`))
	b.requireSilence(t)
}
