package studio_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// shownPNG is a picture of 8 by 8 pixels, in base64.
const shownPNG = "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"

// give makes the page receive a file as a paste or as a drop.
func give(event, name, mime, data string) string {
	return fmt.Sprintf(`(() => {
		const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0)), box = new DataTransfer();
		box.items.add(new File([bytes], %q, {type: %q}));
		const init = {bubbles: true, cancelable: true, clipboardData: box, dataTransfer: box};
		document.querySelector("#message").dispatchEvent(%q === "paste" ? new ClipboardEvent("paste", init) : new DragEvent("drop", init));
	})()`, data, name, mime, event)
}

// openSeer opens a new conversation with an agent that says what it sees.
func openSeer(t *testing.T) *browser {
	t.Helper()
	home := clienttest.NewHome(t)
	home.AddAgent(t, "sees", map[string]string{
		"config.yaml":     "name: sees\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- match: Look\n  text: I see it.\n  repeat: true\n- match: Again\n  text: I see it again.\n",
	})
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/sees")
	b.wait(t, `document.querySelector("#message")`)
	return b
}

// A file that only says that it is a picture is refused with the reason, and one that is too large before it is sent; what was written stays.
func TestExtraConversationRefusesFiles(t *testing.T) {
	b := openSeer(t)
	b.do(t, evaluate(give("paste", "lie.png", "image/png", "dGV4dA==")))
	b.waitText(t, "lie.png")
	sendMessage(t, b, "Look at this")
	b.waitText(t, "its content is something else")
	b.press(t, "✕")
	b.wait(t, `!document.querySelector(".composer .files") && document.querySelector("#message").value.trim() === "Look at this"`)
	b.do(t, evaluate(`(() => {
		const box = new DataTransfer();
		box.items.add(new File([new Uint8Array(11 << 20)], "large.png", {type: "image/png"}));
		document.querySelector("#message").dispatchEvent(new DragEvent("drop", {bubbles: true, cancelable: true, dataTransfer: box}));
	})()`))
	b.waitText(t, "large.png has 11.0 MB, and may have 10.0 MB.")
	if read[bool](t, b, `!!document.querySelector(".composer .files")`) {
		t.Error("the large file is attached")
	}
}

// Pictures are pasted and dropped into a conversation, shown with their names and sizes, and kept by an edit of the message.
func TestExtraConversationPictures(t *testing.T) {
	axe := readAxe(t)
	b := openSeer(t)
	b.do(t, evaluate(give("paste", "pasted.png", "image/png", shownPNG)), evaluate(give("drop", "dropped.pdf", "application/pdf", "JVBERi0xLjcK")))
	b.wait(t, `document.querySelectorAll(".composer .files li").length === 2`)
	sendMessage(t, b, "Look at this")
	b.waitText(t, "I see it.")
	const shown = `[...document.querySelectorAll(".said.user figcaption")].map((e) => e.innerText.trim()).join("|")`
	b.wait(t, shown+` === "pasted.png · 75 bytes|dropped.pdf · 9 bytes"`)
	b.wait(t, `document.querySelector(".said.user img").naturalWidth === 8`)
	if got := read[string](t, b, `document.querySelector(".said.user .text").innerText`); got != "Look at this" {
		t.Errorf("the message is %q", got)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 820, 390} {
			b.do(t, chromedp.EmulateViewport(width, 844), setScheme(scheme))
			for _, v := range findViolations(t, b, axe) {
				t.Errorf("%d px, %s: %s", width, scheme, v)
			}
			if over := read[float64](t, b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("the page is %v px wider than %d px", over, width)
			}
			b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", fmt.Sprintf("media-%s-%d.png", scheme, width)))
		}
	}
	b.press(t, "Edit")
	b.wait(t, `document.querySelector(".edit textarea")?.value === "Look at this"`)
	b.do(t, evaluate(`document.querySelector(".edit textarea").select()`), chromedp.KeyEvent("Again"), chromedp.KeyEvent("\r"))
	b.waitText(t, "I see it again.")
	if got := read[string](t, b, shown); !strings.HasPrefix(got, "pasted.png · 75 bytes|") {
		t.Errorf("the edited message has %q", got)
	}
	b.requireSilence(t)
}
