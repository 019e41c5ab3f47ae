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

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
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
	axe := readAxe(t)
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
	b.wait(t, `document.activeElement.id === "message" && !document.querySelector(".edit")`) // where the next message is written
	if now := read[string](t, b, "location.pathname"); now == first {
		t.Errorf("the branch has the address of the first one: %s", now)
	}
	if n := read[float64](t, b, `document.querySelectorAll(".sessions li").length`); n != 1 {
		t.Errorf("%v conversations are listed, want 1 with two branches", n)
	}
	for _, scheme := range []string{"dark", "light"} {
		for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
			name := fmt.Sprintf("branches-%s-%d", scheme, size[0])
			b.do(t, setScheme(scheme), chromedp.EmulateViewport(size[0], size[1]))
			for _, v := range findViolations(t, b, axe) {
				t.Errorf("%s: %s", name, v)
			}
			if over := read[[]float64](t, b, `[document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]`); over[0] > 0 || over[1] > 0 {
				t.Errorf("%s: the page is larger than the window by %v px", name, over)
			}
			b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", name+".png"))
		}
	}
	b.do(t, chromedp.EmulateViewport(1440, 900))
	b.follow(t, "Previous version of this message")
	waitSaid(t, b, "apples|Apples are red.|and pears|Pears are green.")
	if now := read[string](t, b, "location.pathname"); now != first {
		t.Errorf("the first branch is at %s, want %s", now, first)
	}
	b.wait(t, `document.activeElement.ariaLabel === "Next version of this message"`) // there is none before it
	b.do(t, chromedp.KeyEvent("\r"))
	waitSaid(t, b, "apples|Apples are red.|and plums|Plums are blue.")
	b.wait(t, `document.activeElement.ariaLabel === "Previous version of this message"`)
	b.do(t, chromedp.KeyEvent("\r"))
	waitSaid(t, b, "apples|Apples are red.|and pears|Pears are green.")
	sendMessage(t, b, "apples again") // this branch continues by itself
	waitSaid(t, b, "apples|Apples are red.|and pears|Pears are green.|apples again|Pears are green.")
	b.do(t, evaluate(`document.querySelector(".branch select").focus()`), chromedp.KeyEvent("b2"))
	waitSaid(t, b, "apples|Apples are red.|and plums|Plums are blue.")
	b.wait(t, `document.activeElement === document.querySelector(".branch select")`) // the next key chooses another branch
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

// A dictation is a provider whose replies arrive word by word, each when the test says so. An empty word ends a reply.
type dictation struct {
	words chan string
	left  chan struct{} // gets a value when a client is gone before the end of a reply
	want  string        // is in every request
}

func (d *dictation) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if body, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(body), d.want) {
		http.Error(w, "the request has no "+d.want, http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta, finish string) {
		fmt.Fprintf(w, "data: {\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
		_ = http.NewResponseController(w).Flush() // if the client is gone, its request is cancelled
	}
	for {
		select {
		case word := <-d.words:
			if word == "" {
				send(`{}`, `"stop"`)
				_, _ = io.WriteString(w, "data: [DONE]\n\n")
				return
			}
			text, _ := json.Marshal(word)
			send(`{"content":`+string(text)+`}`, "null")
		case <-r.Context().Done():
			d.left <- struct{}{}
			return
		}
	}
}

// newDictation returns a provider, and a home whose agent writer uses it.
func newDictation(t *testing.T, want string) (*dictation, *clienttest.Home) {
	t.Helper()
	provider := &dictation{words: make(chan string), left: make(chan struct{}, 1), want: want}
	listener := httptest.NewServer(provider)
	t.Cleanup(listener.Close)
	home := clienttest.NewHome(t)
	config := "clients:\n- {type: openai-compatible, name: slow, api_base: " + listener.URL + "/v1, models: [{name: m}]}\n"
	if err := os.WriteFile(filepath.Join(home.Dir, ".config", "raddle", "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	home.AddAgent(t, "writer", map[string]string{"config.yaml": "name: writer\nmodel: slow:m\n"})
	return provider, home
}

// observeReplies makes the page keep all that it shows of replies from now on, for readReplies.
func observeReplies(t *testing.T, b *browser) {
	t.Helper()
	b.do(t, evaluate(`window.seen = [], new MutationObserver(() => seen.push([...document.querySelectorAll(".said.assistant")].map((e) => e.innerText.trim()).join("|"))).observe(document.querySelector(".messages"), {childList: true, subtree: true, characterData: true})`))
}

// waitReply waits until the page shows exactly a reply that has ended. It has never shown something else than the beginning of it, and never nothing.
func waitReply(t *testing.T, b *browser, sent, reply string) {
	t.Helper()
	b.wait(t, `document.querySelector("header.bar .status")?.innerText.includes("done") && document.querySelector(".said.assistant:not([aria-busy=true])")`)
	waitSaid(t, b, sent+"|"+reply)
	for _, text := range read[[]string](t, b, "seen") {
		if !strings.HasPrefix(reply, text) || text == "" {
			t.Errorf("the page has shown %q meanwhile", text)
		}
	}
}

// A reply appears as it arrives, and is shown once: while it arrives, and when it is saved. The text of an attached file reaches the model.
func TestExtraReplyArrives(t *testing.T) {
	provider, home := newDictation(t, "attached words")
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/writer")
	b.wait(t, `document.querySelector("#message")`)
	b.do(t, evaluate(`(() => { const files = new DataTransfer(); files.items.add(new File(["attached words"], "note.txt", {type: "text/plain"}));
		const input = document.querySelector(".composer input[type=file]"); input.files = files.files; input.dispatchEvent(new Event("change", {bubbles: true})) })()`))
	b.waitText(t, "note.txt")
	sendMessage(t, b, "Write")
	const sent = "Write\n\nFile note.txt:\nattached words"
	provider.words <- "One "
	waitSaid(t, b, sent+"|One")
	b.do(t, chromedp.Reload()) // a page that comes later has the same text
	waitSaid(t, b, sent+"|One")
	observeReplies(t, b)
	provider.words <- "two "
	waitSaid(t, b, sent+"|One two")
	provider.words <- "three."
	waitSaid(t, b, sent+"|One two three.")
	provider.words <- ""
	waitReply(t, b, sent, "One two three.")
	b.requireSilence(t)
}

// A conversation whose server is killed in the middle of a reply says so, and recovers when the server is started again: nothing that was said
// is missing or there twice, and the conversation continues.
func TestExtraKilledConversation(t *testing.T) {
	provider, home := newDictation(t, "Write")
	s, start := prepareServer(t, home)
	first := start()
	b := openBrowser(t, s)
	b.open(t, "chat/writer")
	sendMessage(t, b, "Write")
	provider.words <- "One "
	waitSaid(t, b, "Write|One")
	observeReplies(t, b)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	<-provider.left
	b.waitText(t, "Connection lost")
	waitSaid(t, b, "Write|One")
	start()
	provider.words <- "One " // the drive asks for the reply again
	provider.words <- "two."
	b.wait(t, `!document.body.innerText.includes("Connection lost")`)
	waitSaid(t, b, "Write|One two.")
	provider.words <- ""
	waitReply(t, b, "Write", "One two.")
	sendMessage(t, b, "More")
	provider.words <- "Three."
	provider.words <- ""
	waitSaid(t, b, "Write|One two.|More|Three.")
}

// A permission to change a file shows the change as a diff, and its buttons are in view on a phone, however long the change is.
func TestExtraPermissionShowsChange(t *testing.T) {
	axe := readAxe(t)
	home := clienttest.NewHome(t)
	file := filepath.Join(t.TempDir(), "notes.txt") // outside of the working directory
	if err := os.WriteFile(file, []byte("first\nold line\nlast\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args, _ := json.Marshal(map[string]string{"path": file, "contents": "first\n" + strings.Repeat("new line\n", 60) + "last\n"})
	home.AddAgent(t, "editor", map[string]string{
		"config.yaml":     "name: editor\nmodel: script:transcript.yaml\nglobal_tools: [fs_write]\n",
		"transcript.yaml": "- match: Change\n  text: I change it.\n  tool_calls: [{name: fs_write, args: " + string(args) + "}]\n- text: It is changed.\n",
	})
	b := openBrowser(t, home.Serve(t))
	b.open(t, "chat/editor")
	sendMessage(t, b, "Change the notes that I wrote yesterday")
	const diff = `((all) => all.removed + "/" + all.added)({removed: [...document.querySelectorAll(".question .removed")].map((e) => e.innerText.trim()).join(), added: document.querySelectorAll(".question .added").length})`
	b.wait(t, fmt.Sprintf(`%s === "-old line/60"`, diff))
	if prompt := read[string](t, b, `document.querySelector(".question .prompt").innerText`); prompt != "May fs_write be called?" {
		t.Errorf("the question is %q: what it is about is below", prompt)
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
			b.do(t, setScheme(scheme), chromedp.EmulateViewport(size[0], size[1]), chromedp.Reload())
			b.wait(t, fmt.Sprintf(`%s === "-old line/60"`, diff))
			b.wait(t, `((r) => r && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector(".question .options")?.getBoundingClientRect())`)
			for _, v := range findViolations(t, b, axe) {
				t.Errorf("%s, %d px: %s", scheme, size[0], v)
			}
			if over := read[float64](t, b, `((e) => e.scrollWidth - e.clientWidth)(document.querySelector(".sessions"))`); over > 0 {
				t.Errorf("%s, %d px: the list of conversations is %v px wider than its place", scheme, size[0], over)
			}
			b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", fmt.Sprintf("permission-%s-%d.png", scheme, size[0])))
		}
	}
	b.press(t, "once")
	b.waitText(t, "It is changed.")
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "new line") != 60 {
		t.Errorf("the file has %q, %v", text, err)
	}
	b.requireSilence(t)
}
