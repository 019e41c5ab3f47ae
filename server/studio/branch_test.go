package studio_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/clienttest"
	"raddle.dev/internal/testneed"
)

// saidInPage is what both sides have said, as the page shows it.
const saidInPage = `[...document.querySelectorAll(".said")].map((e) => e.querySelector(".text, .markdown")?.innerText.trim()).join("|")`

// waitSaid waits until the page shows exactly what both sides have said.
func waitSaid(t *testing.T, b *browser, said string) {
	t.Helper()
	b.wait(t, fmt.Sprintf(`%s === %q`, saidInPage, said))
}

// A person edits an earlier message, which makes a branch, and switches between the branches, with the keyboard alone. Each turn leads to its
// run. Conversations are found by what was said.
func TestExtraConversationBranches(t *testing.T) {
	testneed.RequireClients(t, filepath.Join("studio", "node_modules", ".prepared"))
	axe, err := os.ReadFile(filepath.Join(testneed.FindRoot(), "studio", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	home := clienttest.NewHome(t)
	home.AddAgent(t, "fruit", map[string]string{
		"config.yaml":     "name: fruit\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- {match: plums, text: Plums are blue., repeat: true}\n- {match: pears, text: Pears are green., repeat: true}\n- {match: apples, text: Apples are red., repeat: true}\n",
	})
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/fruit")
	sendMessage(t, b, "apples")
	waitSaid(t, b, "apples|Apples are red.")
	sendMessage(t, b, "and pears")
	waitSaid(t, b, "apples|Apples are red.|and pears|Pears are green.")
	first := read[string](t, b, "location.pathname")
	b.wait(t, `document.querySelectorAll(".said.user button").length === 2`)
	b.do(t, evaluate(`document.querySelectorAll(".said.user button")[1].focus()`), chromedp.KeyEvent("\r"))
	b.wait(t, `document.activeElement.value === "and pears"`)
	b.do(t, chromedp.KeyEvent("\x1b")) // Escape leaves the message as it was
	b.wait(t, `!document.querySelector(".edit")`)
	b.do(t, evaluate(`document.querySelectorAll(".said.user button")[1].focus()`), chromedp.KeyEvent("\r"))
	b.wait(t, `document.activeElement.value === "and pears"`)
	b.do(t, evaluate(`document.activeElement.select()`), chromedp.KeyEvent("and plums"), chromedp.KeyEvent("\r"))
	waitSaid(t, b, "apples|Apples are red.|and plums|Plums are blue.")
	b.waitText(t, "2 of 2")
	if now := read[string](t, b, "location.pathname"); now == first {
		t.Errorf("the branch has the address of the first one: %s", now)
	}
	if n := read[float64](t, b, `document.querySelectorAll(".sessions li").length`); n != 1 {
		t.Errorf("%v conversations are listed, want 1 with two branches", n)
	}
	for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
		b.do(t, chromedp.EmulateViewport(size[0], size[1]))
		for _, v := range findViolations(t, b, string(axe)) {
			t.Errorf("%d px: %s", size[0], v)
		}
		if over := read[float64](t, b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
			t.Errorf("the page is %v px wider than %d px", over, size[0])
		}
		b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", fmt.Sprintf("branches-%d.png", size[0])))
	}
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.follow(t, "Message before this one")
	waitSaid(t, b, "apples|Apples are red.|and pears|Pears are green.")
	if now := read[string](t, b, "location.pathname"); now != first {
		t.Errorf("the first branch is at %s, want %s", now, first)
	}
	sendMessage(t, b, "apples again") // this branch continues by itself
	waitSaid(t, b, "apples|Apples are red.|and pears|Pears are green.|apples again|Pears are green.")
	b.do(t, evaluate(`document.querySelector(".branch select").focus()`), chromedp.KeyEvent("b2"))
	waitSaid(t, b, "apples|Apples are red.|and plums|Plums are blue.")
	b.do(t, evaluate(`document.querySelectorAll(".said footer a[href^=runs]")[0].focus()`), chromedp.KeyEvent("\r"))
	b.wait(t, `location.pathname.startsWith("/runs/") && document.querySelector("main .status")?.innerText.includes("done")`)
	b.do(t, evaluate(`history.back()`))
	waitSaid(t, b, "apples|Apples are red.|and plums|Plums are blue.")
	b.do(t, chromedp.Focus(chromedp.CSS(".sessions input")), chromedp.KeyEvent("bananas"))
	b.waitText(t, "Nothing like this was said.")
	b.do(t, evaluate(`document.activeElement.select()`), chromedp.KeyEvent("Apples are RED"))
	b.wait(t, `document.querySelectorAll(".sessions li").length === 1`)
	b.requireSilence(t)
}

// A dictation is a provider whose reply arrives word by word, each when the test says so.
type dictation chan string

func (d dictation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if body, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(body), "attached words") {
		http.Error(w, "the text of the file is missing", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		_ = http.NewResponseController(w).Flush() // if the client is gone, its request is cancelled
	}
	for {
		select {
		case word, ok := <-d:
			if !ok {
				send(`{}`, `"stop"`)
				_, _ = io.WriteString(w, "data: [DONE]\n\n")
				return
			}
			text, _ := json.Marshal(word)
			send(`{"content":`+string(text)+`}`, "null")
		case <-r.Context().Done():
			return
		}
	}
}

// A reply appears as it arrives, and is shown once: while it arrives, after a connection was lost, and when it is saved. The text of an
// attached file reaches the model.
func TestExtraReplyArrives(t *testing.T) {
	provider := make(dictation)
	listener := httptest.NewServer(provider)
	t.Cleanup(listener.Close)
	home := clienttest.NewHome(t)
	config := "clients:\n- {type: openai-compatible, name: slow, api_base: " + listener.URL + "/v1, models: [{name: m}]}\n"
	if err := os.WriteFile(filepath.Join(home.Dir, ".config", "raddle", "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	home.AddAgent(t, "writer", map[string]string{"config.yaml": "name: writer\nmodel: slow:m\n"})
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/writer")
	b.wait(t, `document.querySelector("#message")`)
	b.do(t, evaluate(`(() => { const files = new DataTransfer(); files.items.add(new File(["attached words"], "note.txt", {type: "text/plain"}));
		const input = document.querySelector(".composer input[type=file]"); input.files = files.files; input.dispatchEvent(new Event("change", {bubbles: true})) })()`))
	b.waitText(t, "note.txt")
	sendMessage(t, b, "Write")
	const sent = "Write\n\nFile note.txt:\nattached words"
	provider <- "One "
	waitSaid(t, b, sent+"|One")
	b.do(t, evaluate(`window.seen = [], new MutationObserver(() => seen.push([...document.querySelectorAll(".said.assistant")].map((e) => e.innerText.trim()).join("|"))).observe(document.querySelector(".messages"), {childList: true, subtree: true, characterData: true})`))
	provider <- "two "
	waitSaid(t, b, sent+"|One two")
	provider <- "three."
	waitSaid(t, b, sent+"|One two three.")
	close(provider)
	b.wait(t, `document.querySelector("header.bar .status")?.innerText.includes("done") && document.querySelector(".said.assistant:not([aria-busy=true])")`)
	waitSaid(t, b, sent+"|One two three.")
	for _, text := range read[[]string](t, b, "seen") {
		if !strings.HasPrefix("One two three.", text) || text == "" {
			t.Errorf("the page has shown %q meanwhile", text)
		}
	}
	b.requireSilence(t)
}
