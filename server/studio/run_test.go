package studio_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// addLetters adds an agent that asks a model about twelve items, adds the replies with a script, and asks the model again.
func addLetters(t *testing.T, home *clienttest.Home) {
	home.AddAgent(t, "letters", map[string]string{
		"graph.yaml": `
name: letters
model: script:transcript.yaml
start: split
nodes:
  split: {type: script, script: split.sh, next: each}
  each: {type: map, over: "{{letters}}", as: letter, branch: one, output_key: word, collect_into: words, next: sum}
  one: {type: llm, instructions: Answer in one word., prompt: "A word with {{letter}}", state_updates: {word: "{{output}}"}}
  sum: {type: script, script: sum.sh, next: title}
  title: {type: llm, prompt: "A title for {{total}} words", state_updates: {title: "{{output}}"}, next: done}
  done: {type: end, output: "{{title}}"}
`,
		"split.sh":        "echo '{\"letters\": [\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\",\"h\",\"i\",\"j\",\"k\",\"l\"]}'\n",
		"sum.sh":          "echo '{\"total\": 12}'\n",
		"transcript.yaml": "- {match: A word, text: ant, usage: {input: 9, output: 1}, repeat: true}\n- {match: A title, text: Twelve ants, usage: {input: 7, output: 2}, repeat: true}\n",
	})
}

// findRecord returns the number of the first record of a run for which an expression of its moment m is true.
func findRecord(t *testing.T, b *browser, run, expression string) int {
	t.Helper()
	return int(read[float64](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((r) => r.items.find((m) => %s).record)`, run, expression)))
}

// click clicks the element of a selector.
func (b *browser) click(t *testing.T, selector string) {
	t.Helper()
	b.wait(t, fmt.Sprintf(`document.querySelector(%q)`, selector))
	b.do(t, evaluate(fmt.Sprintf(`document.querySelector(%q).dispatchEvent(new MouseEvent("click", {bubbles: true}))`, selector)))
}

// The picture counts the items of a map up to the playhead. The inspector shows what a model was asked and what a script has written.
func TestExtraRunIsInspected(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	addLetters(t, home)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "letters", "done")
	const counted = `document.querySelector('g[data-node="each"] text.visits')?.textContent`
	b.open(t, "runs/"+run)
	b.wait(t, counted+` === "12 of 12"`)
	seventh := int(read[float64](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((r) => r.items.filter((m) => m.kind === "task")[6].record)`, run)))
	b.open(t, fmt.Sprintf("runs/%s@%d", run, seventh))
	b.wait(t, counted+` === "7 of 12"`)
	b.open(t, fmt.Sprintf("runs/%s@%d", run, findRecord(t, b, run, `m.node === "sum" && m.effect === "script"`)))
	b.waitText(t, `{"total": 12}`)
	b.open(t, fmt.Sprintf("runs/%s@%d", run, findRecord(t, b, run, `m.node === "each/one[3]" && m.effect === "reply"`)))
	b.press(t, "Show what was asked")
	b.waitText(t, "A word with c")
	b.waitText(t, "Answer in one word.")
	b.waitText(t, "A journal has replies, and not what was asked.")
	zoom := `document.querySelector(".zoom output").innerText`
	all := read[string](t, b, zoom)
	b.click(t, `[aria-label="Zoom in"]`)
	b.wait(t, fmt.Sprintf(`%s !== %q`, zoom, all))
	b.click(t, `[aria-label="Zoom out"]`)
	b.wait(t, fmt.Sprintf(`%s === %q`, zoom, all))
	b.requireSilence(t)
}

// A fork stops at the breaks that were set in the picture, continues when a person says so, and a fork behind a node has the result that was
// written in the dialog. The model is not asked for what is recorded.
func TestExtraForkWithBreaksAndResult(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	addLetters(t, home)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "letters", "done")
	status := func(want string) {
		t.Helper()
		b.wait(t, fmt.Sprintf(`(document.querySelector('[aria-label="Run B"] .status') ?? document.querySelector("main .status"))?.innerText.includes(%q)`, want))
	}
	b.open(t, "runs/"+run+"@1")
	b.click(t, `g[data-node="sum"]`)
	b.press(t, "Stop before")
	b.wait(t, `document.querySelector('g[data-node="sum"] path.break') && document.querySelector('g[data-node="sum"]').getAttribute("aria-label").includes("stops before")`)
	b.open(t, "runs/"+run+"@1") // the breaks of a run that has ended are not kept
	b.wait(t, `document.querySelector(".picture svg") && !document.querySelector("path.break")`)
	b.click(t, `g[data-node="sum"]`)
	b.press(t, "Stop before")
	b.do(t, evaluate(`document.querySelector(".row").click()`))
	b.press(t, "Fork here")
	b.waitText(t, "The copy stops before sum.")
	b.press(t, "Fork")
	status("paused")
	fork := read[string](t, b, `location.pathname.split("/").at(-1)`)
	if fork == run {
		t.Fatal("the page shows the original")
	}
	b.wait(t, `document.querySelector('main g[data-node="sum"] path.break')`)
	b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s/state").then((r) => r.json())).next.join() === "sum"`, fork))
	b.press(t, "Resume")
	status("done")

	b.open(t, fmt.Sprintf("runs/%s@%d", run, findRecord(t, b, run, `m.node === "title" && m.effect === "reply"`)))
	b.press(t, "Fork here")
	b.click(t, "dialog[open] label.check input")
	const edit = `[...document.querySelectorAll("dialog[open] fieldset")].find((f) => f.querySelector("legend").innerText === "Result of title")?.querySelector("textarea")`
	b.wait(t, edit+`?.value === "Twelve ants"`)
	b.do(t, evaluate(edit+".select(), "+edit+".focus()"), chromedp.KeyEvent("A dozen ants"))
	b.press(t, "Fork")
	b.wait(t, `document.querySelector(".pair")`)
	status("done")
	fork = read[string](t, b, `location.pathname.split("/").at(-1)`)
	view := read[map[string]any](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s").then((r) => r.json())`, fork))
	if view["output"] != "A dozen ants" {
		t.Errorf("the output of the fork is %v", view["output"])
	}
	replies := `fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((r) => r.items.filter((m) => m.effect === "reply").length)`
	if n := read[float64](t, b, fmt.Sprintf(replies, fork)); n != 0 {
		t.Errorf("the model was asked %v times again", n)
	}
	b.requireSilence(t)
}

// A person changes the template of a node's prompt in the dialog of a fork: the copy asks with it and says so, and the original stays as it is.
func TestExtraForkWithTemplate(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	addLetters(t, home)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "letters", "done")
	b.open(t, fmt.Sprintf("runs/%s@%d", run, findRecord(t, b, run, `m.node === "sum"`)))
	b.press(t, "Fork here")
	b.click(t, "dialog[open] details.templates summary")
	const edit = `[...document.querySelectorAll("dialog[open] details.templates label")].find((l) => l.innerText.trim() === "title")?.querySelector("textarea")`
	b.wait(t, edit+`?.value === "A title for {{total}} words"`)
	b.do(t, evaluate(edit+".select(), "+edit+".focus()"), chromedp.KeyEvent("A title, short, for {{total}} words"))
	pictures := filepath.Join(testneed.FindRoot(), "out", "studio")
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
			b.do(t, call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}), chromedp.EmulateViewport(size[0], size[1]))
			b.do(t, evaluate(edit+".scrollIntoView({block: 'center'})"))
			b.takePicture(t, filepath.Join(pictures, fmt.Sprintf("template-%s-%d.png", scheme, size[0])))
		}
	}
	b.press(t, "Fork")
	b.wait(t, fmt.Sprintf(`location.pathname !== "/runs/%s" && !location.pathname.includes("@") && (document.querySelector('[aria-label="Run B"] .status') ?? document.querySelector("main .status"))?.innerText.includes("done")`, run))
	fork := read[string](t, b, `location.pathname.split("/").at(-1)`)
	b.open(t, "runs/"+fork+"?show=result")
	b.waitText(t, "Prompt template of title, changed in this run")
	b.waitText(t, "A title, short, for {{total}} words")
	b.open(t, fmt.Sprintf("runs/%s@%d", fork, findRecord(t, b, fork, `m.node === "title" && m.effect === "reply"`)))
	b.press(t, "Show what was asked")
	b.waitText(t, "A title, short, for 12 words")
	b.open(t, "runs/"+run+"?show=result")
	b.waitText(t, "Twelve ants")
	if read[bool](t, b, `document.body.innerText.includes("Prompt template")`) {
		t.Error("the original says that a template has changed")
	}
	b.requireSilence(t)
}

// The parts of the Run page that open on demand are accessible in both colour schemes, and no page is wider than its window. The pictures
// are in out/studio.
func TestExtraRunPartsAreAccessible(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	addLetters(t, home)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "letters", "done")
	reply := fmt.Sprintf("runs/%s@%d", run, findRecord(t, b, run, `m.node === "title" && m.effect === "reply"`))
	for name, prepare := range map[string]func(){
		"node":  func() { b.click(t, `g[data-node="sum"]`); b.press(t, "Stop before"); b.press(t, "Stop after") },
		"asked": func() { b.press(t, "Show what was asked"); b.wait(t, `document.querySelector(".sent")`) },
		"result": func() {
			b.press(t, "Fork here")
			b.click(t, "dialog[open] label.check input")
			b.waitText(t, "Result of title")
		},
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
				b.do(t, call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}), chromedp.EmulateViewport(size[0], size[1]))
				b.open(t, reply)
				b.wait(t, `document.querySelector(".picture svg") && document.querySelector(".detail")`)
				prepare()
				shown := strings.Join([]string{"run", name, scheme, fmt.Sprint(size[0])}, "-")
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
	b.requireSilence(t)
}
