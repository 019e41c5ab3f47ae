package studio_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
)

// addTalker adds an agent that greets, asks before it runs a command, fails, and says something hostile.
func addTalker(t *testing.T, home *clienttest.Home) {
	t.Helper()
	text, _ := json.Marshal("Bye. " + hostile)
	home.AddAgent(t, "talker", map[string]string{
		"config.yaml": "name: talker\nmodel: script:transcript.yaml\nglobal_tools: [execute_command]\n",
		"transcript.yaml": "- match: Hello\n  text: Hello **Ada**.\n" +
			"- match: What is here\n  turn: 2\n  text: I look.\n  tool_calls: [{name: execute_command, args: {command: \"touch looked && echo found-it\"}}]\n" +
			"- match: What is here\n  turn: 3\n  text: A file is here.\n" +
			"- match: Goodbye\n  text: " + string(text) + "\n" +
			"- match: Refuse\n  error: no model today\n",
	})
}

// sendMessage writes a message in the page and sends it with Enter.
func sendMessage(t *testing.T, b *browser, text string) {
	t.Helper()
	b.wait(t, `document.querySelector("#message") && ![...document.querySelectorAll("button")].some((b) => b.innerText === "Stop")`)
	b.do(t, chromedp.Focus(chromedp.CSS("#message")), chromedp.KeyEvent(text), chromedp.KeyEvent("\r"))
}

// A person talks with an agent, after a click with the keyboard alone: replies are Markdown, calls are folded, a permission is asked inline, a failed turn is
// followed by another one, and a reload shows the same conversation.
func TestExtraConversation(t *testing.T) {
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	addTalker(t, home)
	b := openBrowser(t, home.Serve(t))
	b.open(t, "agents/talker")
	b.pressMouse(t, `[...document.querySelectorAll("main a")].find((e) => e.innerText.trim() === "Talk")`)
	b.waitText(t, "New conversation")
	sendMessage(t, b, "Hello there")
	b.wait(t, `location.pathname.startsWith("/chat/talker/hello-there-") && document.querySelector(".said.assistant strong")?.innerText === "Ada"`)
	sendMessage(t, b, "What is here?")
	b.waitText(t, "found-it")
	b.press(t, "once")
	b.waitText(t, "A file is here.")
	b.do(t, evaluate(`document.querySelector("details.call summary").focus()`), chromedp.KeyEvent("\r"))
	b.wait(t, `document.querySelector("details.call[open] pre.text:last-of-type")?.innerText.includes("found-it")`)
	sendMessage(t, b, "Refuse this")
	b.waitText(t, "no model today")
	sendMessage(t, b, "Goodbye")
	b.waitText(t, "LASTWORD")
	if got := read[string](t, b, `String(window.owned ?? "") + document.querySelectorAll("main iframe, main img, main style, main form:not(.composer)").length`); got != "0" {
		t.Errorf("a reply was more than text: %s", got)
	}
	const said = `[...document.querySelectorAll(".said")].map((e) => e.innerText.split("\n")[0]).join("|")`
	want := read[string](t, b, said)
	if !strings.HasPrefix(want, "Hello there|Hello Ada.|What is here?|I look.|A file is here.|") {
		t.Errorf("the page shows %s", want)
	}
	b.do(t, chromedp.Reload())
	b.wait(t, fmt.Sprintf(`%s === %q`, said, want))
	for _, size := range [][2]int64{{1440, 900}, {390, 844}} {
		b.do(t, chromedp.EmulateViewport(size[0], size[1]))
		for _, v := range findViolations(t, b, axe) {
			t.Errorf("%d px: %s", size[0], v)
		}
		if over := read[float64](t, b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("the page is %v px wider than %d px", over, size[0])
		}
	}
	b.do(t, evaluate(`document.querySelector(".sessions summary").focus()`), chromedp.KeyEvent("\r")) // the list is closed on a phone
	b.do(t, chromedp.Focus(chromedp.CSS(".sessions input")), chromedp.KeyEvent("nothing"))
	b.waitText(t, "Nothing like this was said.")
	b.requireSilence(t)
}

// A turn that works can be stopped, and the conversation continues.
func TestExtraStopTurn(t *testing.T) {
	home := clienttest.NewHome(t)
	home.AddAgent(t, "slow", map[string]string{
		"config.yaml":     "name: slow\nmodel: script:transcript.yaml\nglobal_tools: [execute_command]\n",
		"transcript.yaml": "- match: Work\n  tool_calls: [{name: execute_command, args: {command: \"sleep 600\"}}]\n- match: Again\n  text: I am here.\n",
	})
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/slow")
	sendMessage(t, b, "Work")
	b.press(t, "once")
	b.press(t, "Stop")
	sendMessage(t, b, "Again")
	b.waitText(t, "I am here.")
	b.requireSilence(t)
}

// A turn that was added elsewhere appears in a page that shows a conversation without an open turn.
func TestExtraTurnFromElsewhere(t *testing.T) {
	home := clienttest.NewHome(t)
	addTalker(t, home)
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/talker")
	sendMessage(t, b, "Hello there")
	b.waitText(t, "Hello Ada.")
	b.wait(t, `document.querySelector("header.bar .status")?.innerText.includes("done")`)
	b.do(t, chromedp.Reload())
	b.wait(t, `document.querySelectorAll(".said").length === 2`)
	b.wait(t, `(await fetch("/api/v1/runs", {method: "POST", headers: {"Content-Type": "application/json"},
		body: JSON.stringify({agent: "talker", session: location.pathname.split("/")[3], prompt: "Goodbye"})})).ok`)
	b.waitText(t, "LASTWORD")
	b.requireSilence(t)
}
