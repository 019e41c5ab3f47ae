package studio_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/server/servertest"
)

// What a person writes while the agent works is shown as waiting until the agent has it, and belongs to the same turn.
func TestExtraMessageWhileItWorks(t *testing.T) {
	m := servertest.StartHeldModel(t)
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	home.AddAgent(t, "talker", map[string]string{"config.yaml": "name: talker\nmodel: held:m\n"})
	if err := os.WriteFile(filepath.Join(home.Dir, ".config", "raddle", "config.yaml"), []byte(m.Config()), 0o600); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/talker")
	b.waitText(t, "New conversation")
	sendMessage(t, b, "How high?")
	if got := <-m.Asked; got != "How high?" {
		t.Errorf("the first request says %q", got)
	}
	b.wait(t, `[...document.querySelectorAll("button")].some((b) => b.innerText === "Stop")`)
	b.do(t, chromedp.Focus(chromedp.CSS("#message")), chromedp.KeyEvent("Use metres."), chromedp.KeyEvent("\r"))
	b.wait(t, `document.querySelector(".said.queued .text")?.innerText === "Use metres." && document.querySelector("#message").value === ""`)
	for _, v := range findViolations(t, b, axe) {
		t.Error(v)
	}
	m.Reply <- "29 feet"
	if got := <-m.Asked; got != "How high? | Use metres." {
		t.Errorf("the second request says %q", got)
	}
	b.wait(t, `!document.querySelector(".said.queued")`)
	m.Reply <- "9 m"
	const said = `[...document.querySelectorAll(".said")].map((e) => e.innerText.split("\n")[0]).join("|")`
	b.wait(t, said+` === "How high?|29 feet|Use metres.|9 m"`)
	b.requireSilence(t)
}
