//go:build unix

package studio_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// pressKey presses a key with modifiers, in the way of a keyboard.
func (b *browser) pressKey(t *testing.T, key, code string, modifiers int64) {
	t.Helper()
	b.do(t, call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: key, Code: code, Modifiers: modifiers}))
}

// takeAll takes pictures of the page in both schemes at all widths, and fails the test for what axe-core finds, and for a page wider than its window.
func (b *browser) takeAll(t *testing.T, axe, name string) {
	t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
			b.do(t, setScheme(scheme), chromedp.EmulateViewport(size[0], size[1]))
			b.wait(t, fmt.Sprintf(`innerWidth === %d`, size[0]))
			shown := fmt.Sprintf("%s-%s-%d", name, scheme, size[0])
			for _, v := range findViolations(t, b, axe) {
				t.Errorf("%s: %s", shown, v)
			}
			if over := read[float64](t, b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%s is %v px wider than the window", shown, over)
			}
			b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", shown+".png"))
		}
	}
}

// A list says what a person knows of its runs. It is filtered, keeps that in its address, and does things with several runs, of which the dangerous ones
// are never what Enter does first. The palette finds a run by its words.
func TestExtraListOfRuns(t *testing.T) {
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	home.AddAgent(t, "writer", map[string]string{"config.yaml": "name: writer\nmodel: script:t.yaml\ninstructions: write\n", "t.yaml": "- {text: \"# A tale of ants\", repeat: true}\n"})
	b := openBrowser(t, home.Serve(t))
	b.open(t, "")
	b.wait(t, `document.querySelector("ol.steps") && document.querySelector("select")?.value`)
	b.takeAll(t, axe, "first-use")
	start := func(agent, prompt, status string) string {
		run := read[string](t, b, fmt.Sprintf(`fetch("/api/v1/runs", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({agent: %q, prompt: %q})}).then((r) => r.json()).then((r) => r.run)`, agent, prompt))
		b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s").then((r) => r.json())).status === %q`, run, status))
		return run
	}
	start("writer", "Write about ants", "done")
	start("writer", "Write about bees", "done")
	start("triage", "The login page is blank", "waiting")
	start("triage", "The cellar is wet", "waiting")
	const rows = `[...document.querySelectorAll("table.runs tbody tr")]`
	has := func(text ...string) string {
		check := fmt.Sprintf(`%s.length === %d`, rows, len(text))
		for i, s := range text {
			check += fmt.Sprintf(` && %s[%d].innerText.includes(%q)`, rows, i, s)
		}
		return check
	}
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.open(t, "runs")
	b.wait(t, has("The cellar is wet", "The login page is blank", "Write about bees", "A tale of ants"))
	b.wait(t, rows+`[2].innerText.includes("api")`)
	b.takeAll(t, axe, "list")
	b.do(t, chromedp.EmulateViewport(1440, 900))

	// the filter is in the address, also after a reload
	b.do(t, evaluate(`document.activeElement.blur()`))
	b.pressKey(t, "/", "Slash", 0)
	b.wait(t, `document.activeElement.type === "search"`)
	b.do(t, chromedp.KeyEvent("cellar"))
	b.wait(t, has("The cellar is wet")+` && location.search === "?text=cellar"`)
	b.do(t, chromedp.Reload())
	b.wait(t, has("The cellar is wet")+` && document.querySelector("input[type=search]").value === "cellar"`)
	b.press(t, "Clear")
	b.wait(t, has("cellar", "login", "bees", "ants"))

	// two runs are selected and cancelled with the keyboard
	b.do(t, evaluate(`document.activeElement.blur()`))
	for range 2 {
		b.pressKey(t, "j", "KeyJ", 0)
		b.pressKey(t, "x", "KeyX", 0)
	}
	b.wait(t, `document.querySelector(".selection").innerText.includes("2 selected")`)
	b.press(t, "Cancel 2")
	b.wait(t, `document.querySelector("dialog[open]") && document.activeElement.innerText === "Leave them"`)
	b.takeAll(t, axe, "list-confirm")
	b.do(t, chromedp.EmulateViewport(1440, 900), chromedp.KeyEvent("\r"))
	b.wait(t, `!document.querySelector("dialog[open]") && `+rows+`.filter((r) => r.innerText.includes("waiting")).length === 2`)
	b.press(t, "Cancel 2")
	b.press(t, "Cancel 2 runs")
	b.wait(t, `document.querySelector(".selection").innerText.includes("2 runs cancelled") && `+rows+`.filter((r) => r.innerText.includes("abandoned")).length === 2`)

	// and all are deleted but one
	b.do(t, evaluate(`document.querySelector("thead input").click()`))
	b.wait(t, `document.querySelector(".selection").innerText.includes("4 selected")`)
	b.do(t, evaluate(rows+`[3].querySelector("input").click()`))
	b.press(t, "Delete 3")
	b.press(t, "Delete 3 runs")
	b.wait(t, has("Write about ants"))

	b.open(t, "")
	b.wait(t, `document.querySelector("table.day")`)
	b.pressKey(t, "k", "KeyK", 2)
	b.wait(t, `document.querySelector("dialog[open] input") === document.activeElement`)
	b.do(t, chromedp.KeyEvent("tale of"))
	b.wait(t, `document.querySelectorAll(".targets li").length === 1 && document.querySelector(".targets li").innerText.includes("Write about ants")`)
	b.takeAll(t, axe, "palette")
	b.do(t, chromedp.KeyEvent("\r"))
	b.wait(t, `location.pathname.startsWith("/runs/1") && document.querySelector(".scrubber")`)
	b.requireSilence(t)
}
