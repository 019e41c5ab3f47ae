package studio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// The page of an agent: tools are tried within the rules of the user, knowledge bases are searched, and runs have their time and cost.
func TestExtraAgentPage(t *testing.T) {
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	home.AddAgent(t, "clerk", map[string]string{
		"config.yaml":     "name: clerk\nmodel: script:transcript.yaml\nglobal_tools: [fs_ls, execute_command]\ndocuments: [fruit.md]\nembedding_model: keyword\nmisspelt: 1\n",
		"transcript.yaml": "- {text: Plums are blue., repeat: true}\n",
		"fruit.md":        "# Plums\n\nPlums are blue.\n",
	})
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "clerk", "done") // it builds the knowledge base
	b.open(t, "agents/clerk")
	b.wait(t, fmt.Sprintf(`document.querySelector(".measures rect") && document.querySelector(".measures").textContent.includes(%q)`, run))
	if got := read[string](t, b, `document.querySelector(".finding").innerText`); !strings.Contains(got, "line 6: ") || !strings.Contains(got, "misspelt") {
		t.Errorf("the finding says %q", got)
	}
	if got := read[string](t, b, `document.querySelector(".measures svg").ariaLabel`); !strings.HasPrefix(got, "Time worked of the last 1 runs: ") {
		t.Errorf("the chart says %q", got)
	}
	openTool := func(name string) string { // returns the selector of its form
		t.Helper()
		find := fmt.Sprintf(`[...document.querySelectorAll("details.call summary")].find((e) => e.innerText.startsWith(%q))`, name)
		b.wait(t, find)
		b.do(t, evaluate(find+".focus()"), chromedp.KeyEvent("\r"))
		form := fmt.Sprintf(`form[aria-label="Try %s"]`, name)
		b.wait(t, fmt.Sprintf(`document.querySelector('%s')?.checkVisibility()`, form))
		return form
	}
	form := openTool("fs_ls")
	b.do(t, chromedp.Focus(chromedp.CSS(form+" textarea")), chromedp.KeyEvent("."), evaluate(fmt.Sprintf(`document.querySelector('%s button').focus()`, form)), chromedp.KeyEvent("\r"))
	b.waitText(t, "A model would read:")
	form = openTool("execute_command")
	b.do(t, chromedp.Focus(chromedp.CSS(form+" textarea")), chromedp.KeyEvent("touch tried && echo it-ran"), evaluate(fmt.Sprintf(`document.querySelector('%s button').focus()`, form)), chromedp.KeyEvent("\r"))
	b.waitText(t, "Call it once")
	if _, err := os.Stat(filepath.Join(home.Dir, "tried")); err == nil {
		t.Error("the command has run before a person has allowed it")
	}
	for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
		b.do(t, chromedp.EmulateViewport(size[0], size[1]))
		for _, v := range findViolations(t, b, axe) {
			t.Errorf("%d px: %s", size[0], v)
		}
		if over := read[float64](t, b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("the page is %v px wider than %d px", over, size[0])
		}
		b.do(t, evaluate(`document.querySelector("#tools").scrollIntoView()`))
		b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", fmt.Sprintf("agent-%d.png", size[0])))
	}
	b.press(t, "Call it once")
	b.wait(t, `[...document.querySelectorAll("pre.text")].some((e) => e.innerText.includes("it-ran"))`)
	if _, err := os.Stat(filepath.Join(home.Dir, "tried")); err != nil {
		t.Error(err)
	}
	b.do(t, chromedp.Focus(chromedp.CSS(".base input")), chromedp.KeyEvent("blue"), chromedp.KeyEvent("\r"))
	b.wait(t, `document.querySelector(".chunks")?.innerText.includes("Plums are blue.")`)
	b.requireSilence(t)
}
