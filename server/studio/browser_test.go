package studio_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// patience is the longest time that a page may take to show what a test waits for. It is long: machines that test several packages at once are slow.
const patience = 2 * time.Minute

// A browser is a tab of a Chromium of its own, and all that it has complained about or requested.
type browser struct {
	ctx  context.Context
	s    *clienttest.Server
	home string // how the addresses begin that the page may request

	mu        sync.Mutex
	reports   []string // errors of the console, exceptions and violations of the content policy
	elsewhere []string // requests that leave the server
}

// openBrowser starts Chromium and logs in to the server.
func openBrowser(t *testing.T, s *clienttest.Server) *browser {
	t.Helper()
	b := startBrowser(t, s.URL+"/")
	b.s = s
	b.do(t, chromedp.Navigate(s.URL+"/"))
	b.wait(t, `document.querySelector("h1")?.innerText === "Log in"`)
	token, _ := json.Marshal(map[string]string{"token": s.Token})
	b.wait(t, fmt.Sprintf(`await fetch("/login", {method: "POST", headers: {"Content-Type": "application/json"}, body: %q}).then((r) => r.ok)`, token))
	b.mu.Lock()
	b.reports = nil // before the log-in, the page has found out that it has no session
	b.mu.Unlock()
	return b
}

// startBrowser starts Chromium, whose requests are to begin with an address.
func startBrowser(t *testing.T, home string) *browser {
	t.Helper()
	testneed.RequirePrograms(t, "chromium")
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()))...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx, home: home}
	if err := chromedp.Do(ctx, call(network.Enable, network.EnableParams{})); err != nil { // starts the browser
		t.Fatal(err)
	}
	// No person looks at a browser without a window: the tab has the focus as if one did.
	b.do(t, call(emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true}))
	go b.listen(chromedp.Console(ctx))
	go b.watch(chromedp.Events(ctx, network.RequestWillBeSent))
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
			b.mu.Lock()
			defer b.mu.Unlock()
			t.Logf("the page shows:\n%s\nreports: %q", text, b.reports)
		}
	})
	return b
}

// call returns the action that sends a command to the tab.
func call[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, c, params)
		return err
	})
}

// listen keeps the errors that the tab reports.
func (b *browser) listen(messages iter.Seq2[chromedp.ConsoleMessage, error]) {
	for m, err := range messages {
		if err != nil {
			return // the browser has ended
		}
		if m.Type == chromedp.ConsoleError || m.IsException() {
			b.mu.Lock()
			b.reports = append(b.reports, m.String()+" "+m.URL)
			b.mu.Unlock()
		}
	}
}

// watch keeps the requests that leave the server.
func (b *browser) watch(requests iter.Seq2[network.EventRequestWillBeSent, error]) {
	for e, err := range requests {
		if err != nil {
			return // the browser has ended
		}
		if to := e.Request.URL; !strings.HasPrefix(to, b.home) && !strings.HasPrefix(to, "data:") && !strings.HasPrefix(to, "blob:"+b.home) {
			b.mu.Lock()
			b.elsewhere = append(b.elsewhere, to)
			b.mu.Unlock()
		}
	}
}

// requireSilence fails the test if the tab has reported anything or requested anything from elsewhere.
func (b *browser) requireSilence(t *testing.T) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.reports) > 0 || len(b.elsewhere) > 0 {
		t.Errorf("reports: %q\nrequests that leave the server: %q", b.reports, b.elsewhere)
	}
}

func (b *browser) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

func (b *browser) open(t *testing.T, path string) {
	t.Helper()
	b.do(t, chromedp.Navigate(b.s.URL+"/"+path))
}

// wait waits until an expression in the page is true. The page may be loaded again meanwhile.
func (b *browser) wait(t *testing.T, expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	check := fmt.Sprintf(`(async () => { while (!(%s)) await new Promise((done) => setTimeout(done, 20)); return true })()`, expression)
	for {
		_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](check, chromedp.EvalAwaitPromise))
		if err == nil {
			return
		}
		if ctx.Err() != nil || !strings.Contains(err.Error(), "context") && !strings.Contains(err.Error(), "navigated") {
			t.Fatalf("waiting for %s: %v", expression, err)
		}
	}
}

// waitText waits until the page shows a text.
func (b *browser) waitText(t *testing.T, text string) {
	t.Helper()
	b.wait(t, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// read returns the value of an expression in the page.
func read[T any](t *testing.T, b *browser, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// evaluate runs a script in the page.
func evaluate(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](script)
}

// press presses the button with a text, in the way that the keyboard does. A question about permission had the focus for long enough then.
func (b *browser) press(t *testing.T, text string) {
	t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("dialog[open] button, button")].find((e) => e.innerText.trim() === %q && !e.disabled)`, text)
	b.wait(t, find)
	b.do(t, evaluate(find+`.focus(); `+find+`.scrollIntoView({block: "center"})`)) // a question must be in view
	b.wait(t, find+`.closest('[data-ready="false"]') === null`)
	b.do(t, chromedp.KeyEvent("\r"))
}

// pressMouse clicks the element that an expression finds, with the mouse, where it is on the screen.
func (b *browser) pressMouse(t *testing.T, find string) {
	t.Helper()
	b.wait(t, find)
	at := read[[2]float64](t, b, fmt.Sprintf(`((e) => { e.scrollIntoView({block: "nearest"}); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })(%s)`, find))
	for _, kind := range []input.DispatchMouseEventType{input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased} {
		b.do(t, call(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at[0], Y: at[1], Button: input.MouseButtonLeft, ClickCount: 1}))
	}
}

// follow follows the link with a text, in the way that the keyboard does.
func (b *browser) follow(t *testing.T, text string) {
	t.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll("a")].find((e) => e.innerText.trim() === %q || e.ariaLabel === %[1]q)`, text)
	b.wait(t, find)
	b.do(t, evaluate(find+".focus()"), chromedp.KeyEvent("\r"))
}

// startRun starts an agent and returns the run, which waits for an answer or has ended.
func startRun(t *testing.T, b *browser, agent, until string) (run string) {
	t.Helper()
	run = read[string](t, b, fmt.Sprintf(`fetch("/api/v1/runs", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({agent: %q, prompt: "x"})}).then((r) => r.json()).then((r) => r.run)`, agent))
	if run == "" {
		t.Fatal("no run was started")
	}
	b.wait(t, fmt.Sprintf(`(await fetch("/api/v1/runs/%s").then((r) => r.json())).status === %q`, run, until))
	return run
}

// readAxe returns axe-core. It skips the test if that is not installed.
func readAxe(t *testing.T) string {
	t.Helper()
	testneed.RequireClients(t, filepath.Join("server", "studio", "page", "node_modules", ".prepared"))
	axe, err := os.ReadFile(filepath.Join(testneed.FindRoot(), "server", "studio", "page", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(axe)
}

// findViolations returns what axe-core finds wrong with the page.
func findViolations(t *testing.T, b *browser, axe string) []string {
	t.Helper()
	b.do(t, evaluate(axe+"\n;0"))
	return read[[]string](t, b, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + " " + n.target.join(" ") + ": " + n.failureSummary)))`)
}

// setScheme sets the colour scheme that the reader prefers.
func setScheme(scheme string) chromedp.Action[chromedp.Void] {
	return call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
}

// Every page loads without reports of the browser, requests nothing from elsewhere and is accessible, in both colour schemes and at all
// widths. The pictures are in out/studio.
func TestExtraPagesAreAccessible(t *testing.T) {
	axe := readAxe(t)
	pictures := filepath.Join(testneed.FindRoot(), "out", "studio")
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, clienttest.NewHome(t).Serve(t))
	run := startRun(t, b, "triage", "waiting")
	for _, page := range []struct{ name, path, shown string }{
		{"home", "", `document.querySelector("select")?.value && document.querySelector("table.runs tbody tr") && document.querySelector("table.day")`},
		{"runs", "runs?status=waiting", `document.querySelector("table.runs tbody tr")`},
		{"runs-none", "runs?text=zzz", `document.querySelector("main .empty")`},
		{"inbox", "inbox", `document.querySelector("form.question")`},
		{"agent", "agents/triage", `document.querySelector(".picture svg")`},
		{"run", "runs/" + run, `document.querySelector(".picture svg") && document.querySelector("form.question") && document.querySelector(".detail")`},
		{"state", "runs/" + run + "?show=state", `document.querySelector(".keys li .author")`},
		{"result", "runs/" + run + "?show=result", `document.querySelector("#details .detail")`},
		{"fork", "runs/" + run + "?beside=" + run + "@3", `document.querySelectorAll(".pair .sheet svg").length === 2 && document.querySelector(".pair section .row") && document.querySelector(".told")`},
		{"new", "chat/triage", `document.querySelector("#message")`},
	} {
		for _, scheme := range []string{"light", "dark"} {
			for _, size := range [][2]int64{{1440, 900}, {1024, 768}, {390, 844}} {
				b.do(t, setScheme(scheme), chromedp.EmulateViewport(size[0], size[1]))
				b.open(t, page.path)
				b.wait(t, page.shown)
				name := fmt.Sprintf("%s-%s-%d", page.name, scheme, size[0])
				for _, v := range findViolations(t, b, axe) {
					t.Errorf("%s: %s", name, v)
				}
				if over := read[float64](t, b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
					t.Errorf("%s is %v px wider than the window", name, over)
				}
				b.takePicture(t, filepath.Join(pictures, name+".png"))
			}
		}
	}
	b.requireSilence(t)
}

// takePicture writes what the tab shows to a file.
func (b *browser) takePicture(t *testing.T, file string) {
	t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, png, 0o644); err != nil {
		t.Fatal(err)
	}
}

// The pictures of the guide can be taken: they are in out/studio, and with RADDLE_PICTURES=update in the guide.
func TestExtraGuidePictures(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	home := clienttest.NewHome(t)
	if err := os.CopyFS(filepath.Join(home.Dir, ".config", "raddle", "agents", "map-reduce"), os.DirFS(filepath.Join(testneed.FindRoot(), "examples", "map-reduce"))); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, home.Serve(t))
	b.do(t, chromedp.EmulateViewport(1280, 760))
	dir := filepath.Join(testneed.FindRoot(), "out", "studio", "guide")
	if os.Getenv("RADDLE_PICTURES") == "update" {
		dir = filepath.Join(testneed.FindRoot(), "docs", "guide", "pictures")
	}
	run := startRun(t, b, "map-reduce", "done")
	b.open(t, "runs/"+run+"@18?show=state")
	b.wait(t, `document.querySelector(".author") && document.querySelector("text.visits")`)
	b.takePicture(t, filepath.Join(dir, "studio-run.png"))
	startRun(t, b, "triage", "waiting")
	b.open(t, "inbox")
	b.wait(t, `document.querySelector("form.question")`)
	b.takePicture(t, filepath.Join(dir, "studio-inbox.png"))
	b.open(t, "chat/assistant")
	sendMessage(t, b, "Where is order 1007, and what would two raddles cost?")
	b.waitText(t, "49.00 EUR")
	b.wait(t, `document.querySelector("main .status")?.innerText.includes("done")`)
	b.takePicture(t, filepath.Join(dir, "studio-chat.png"))
}

// A person starts an agent, answers, goes back, and forks with a changed state, with the keyboard alone. Reload, back and forward show the same moment.
func TestExtraRunWithTheKeyboard(t *testing.T) {
	b := openBrowser(t, clienttest.NewHome(t).Serve(t))
	b.open(t, "")
	b.wait(t, `[...document.querySelectorAll("select option")].some((o) => o.value === "triage")`)
	b.do(t, chromedp.Focus(chromedp.CSS("select")), chromedp.KeyEvent("triage"))
	b.wait(t, `document.querySelector("select").value === "triage"`)
	b.press(t, "Run")
	b.press(t, "yes")
	b.waitText(t, "Anything to add")
	b.press(t, "Answer")
	b.wait(t, `document.querySelector("main .status")?.innerText.includes("done")`)
	const moment = `document.querySelector(".scrubber output").innerText + location.href + document.querySelector(".row[aria-selected=true]").innerText`
	b.do(t, evaluate(`document.activeElement.blur()`))
	for range 4 {
		before := read[string](t, b, "location.href")
		b.do(t, chromedp.KeyEvent("["))
		b.wait(t, fmt.Sprintf(`location.href !== %q && !document.querySelector(".scrubber output").innerText.includes("newest")`, before))
	}
	b.wait(t, `document.querySelector(".row.later")`)
	want := read[string](t, b, moment)
	b.do(t, chromedp.Reload())
	b.wait(t, fmt.Sprintf(`document.querySelector(".row[aria-selected=true]") && %s === %q`, moment, want))
	b.open(t, "inbox")
	b.do(t, evaluate("history.back()"))
	b.wait(t, fmt.Sprintf(`document.querySelector(".row[aria-selected=true]") && %s === %q`, moment, want))
	address := read[string](t, b, "location.pathname")
	// KeyEvent would send the character by itself, which the page cannot refuse as it does with keys of a keyboard.
	b.do(t, call(input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown, Key: "f", Code: "KeyF"}))
	b.wait(t, `document.querySelector("dialog[open] textarea")`)
	const edit = `[...document.querySelectorAll("dialog[open] label")].find((l) => l.innerText.trim() === "report")?.querySelector("textarea")`
	b.wait(t, edit)
	b.do(t, evaluate(edit+".select(), "+edit+".focus()"), chromedp.KeyEvent("Edited by a person."))
	b.press(t, "Fork")
	b.wait(t, fmt.Sprintf(`location.pathname !== %q && document.querySelector("main .status")`, address))
	fork := read[string](t, b, "location.pathname")
	b.wait(t, fmt.Sprintf(`"/runs/" + document.querySelector(".pair section h2 code")?.innerText === %q.split("@")[0] && location.search.includes("beside=")`, address))
	b.wait(t, fmt.Sprintf(`JSON.stringify(await fetch("/api/v1%s/state").then((r) => r.json())).includes("Edited by a person.")`, fork))
	b.requireSilence(t)
}

// The picture says how often each branch of a map ran, and the state who wrote each key: the link leads to that moment. The run can be saved as a file.
func TestExtraVisitsAndAuthors(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	home := clienttest.NewHome(t)
	if err := os.CopyFS(filepath.Join(home.Dir, ".config", "raddle", "agents", "map-reduce"), os.DirFS(filepath.Join(testneed.FindRoot(), "examples", "map-reduce"))); err != nil {
		t.Fatal(err)
	}
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "map-reduce", "done")
	b.open(t, "runs/"+run+"?show=state")
	b.wait(t, `document.querySelector('g[data-node="review_one"] text.visits')?.textContent === "×3"`)
	b.wait(t, `[...document.querySelectorAll(".keys li")].find((l) => l.innerText.startsWith("total"))?.innerText.includes("written by count at @")`)
	b.wait(t, `[...document.querySelectorAll(".keys li")].find((l) => l.innerText.startsWith("paragraphs"))?.querySelector(".author a")`)
	b.do(t, evaluate(`[...document.querySelectorAll(".keys li")].find((l) => l.innerText.startsWith("paragraphs")).querySelector(".author a").click()`))
	b.wait(t, `location.pathname.includes("@") && !document.querySelector(".keys").innerText.includes("total") && !document.querySelector('g[data-node="review_one"] text.visits')`)
	b.press(t, "JSON")
	b.wait(t, `JSON.parse(document.querySelector(".state pre").innerText).paragraphs.length === 3`)
	if got := read[string](t, b, `fetch([...document.querySelectorAll("a")].find((a) => a.innerText === "Export").href).then((r) => r.text())`); !strings.HasPrefix(got, `{"format":"raddle-run-1"`) {
		t.Errorf("the export is %.200s", got)
	}
	b.requireSilence(t)
}

// hostile is a reply that tries to be more than text.
const hostile = "<script>window.owned=1</script><img src=x onerror='window.owned=2'><svg onload='window.owned=3'><a xlink:href='javascript:window.owned=4'>s</a></svg>" +
	"[link](javascript:window.owned=5) ![p](https://elsewhere.example/p.png) <iframe src='https://elsewhere.example/'></iframe> <style>body{display:none}</style>" +
	"<form action='https://elsewhere.example/'><input name=q></form> \u202egnp.exe\u202c \u001b[31mred\u0007 [data](data:text/html,x) LASTWORD"

// What a model writes is text: it runs nothing, loads nothing, adds no element with an effect, and reorders no text.
func TestExtraHostileReplies(t *testing.T) {
	home := clienttest.NewHome(t)
	reply, _ := json.Marshal(hostile)
	huge, _ := json.Marshal(strings.Repeat("# [a](b) **c** `d`\n\n> > > - e\n", 20000))
	for name, text := range map[string]string{"hostile": string(reply), "huge": string(huge)} {
		home.AddAgent(t, name, map[string]string{
			"config.yaml":     "name: " + name + "\nmodel: script:transcript.yaml\n",
			"transcript.yaml": "- text: " + text + "\n",
		})
	}
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "hostile", "done")
	for _, path := range []string{"runs/" + run, "runs/" + run + "?show=result", "runs/" + run + "?show=state", "", "inbox"} {
		b.open(t, path)
		if strings.Contains(path, "result") {
			b.waitText(t, "LASTWORD")
		} else {
			b.wait(t, `document.querySelector("main")`)
		}
		got := read[[]string](t, b, `[String(window.owned ?? ""), ...[...document.querySelectorAll("script:not([src^=studio]), main iframe, main img, main style, main object, main .markdown svg, main .markdown form")].map((e) => e.outerHTML),
			...[...document.querySelectorAll("a")].map((a) => a.href).filter((h) => !h.startsWith(location.origin + "/") && !h.startsWith("https:"))]`)
		if len(got) != 1 || got[0] != "" {
			t.Errorf("%s: %q", path, got)
		}
		if read[bool](t, b, `/[\u0000-\u0008\u000b-\u001f\u202a-\u202e\u2066-\u2069]/.test(document.querySelector("main").textContent)`) {
			t.Errorf("%s has characters that control or reorder text", path)
		}
	}
	run = startRun(t, b, "huge", "done")
	b.open(t, "runs/"+run+"?show=result")
	b.wait(t, `document.querySelector("#details")?.textContent.length > 500000`)
	b.requireSilence(t)
}

// Of two people who answer one question, one wins, and the other reads so.
func TestExtraTwoAnswers(t *testing.T) {
	s := clienttest.NewHome(t).Serve(t)
	first, second := openBrowser(t, s), openBrowser(t, s)
	run := startRun(t, first, "triage", "waiting")
	for _, b := range []*browser{first, second} {
		b.open(t, "runs/"+run)
		b.wait(t, `document.querySelector("[data-option='1']")`)
	}
	// The second page answers what it still shows: its requests are late.
	second.do(t, evaluate(`window.slow = window.fetch, window.fetch = (to, init) => init?.method === "POST" ? window.slow(to, init) : new Promise(() => {})`))
	first.press(t, "yes")
	first.waitText(t, "Anything to add")
	second.press(t, "no")
	second.wait(t, `document.querySelector("[role=alert]")?.innerText`)
	second.do(t, evaluate(`window.fetch = window.slow`))
	second.do(t, evaluate(`document.querySelector('a[href="inbox"]').focus()`), chromedp.KeyEvent("\r")) // the form is gone, and what it said stays
	second.waitText(t, "Anything to add")
	if said := read[string](t, second, `document.querySelector("[role=alert]").innerText`); !strings.Contains(said, "Your answer “no” to page") || !strings.Contains(said, "did not count: first answered “yes”") {
		t.Errorf("the second person reads: %s", said)
	}
	second.press(t, "I have read this")
	second.wait(t, `!document.querySelector("[role=alert]")`)
	if n := read[float64](t, first, fmt.Sprintf(`fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((r) => r.items.filter((m) => m.kind === "answer" && m.place === "page").length)`, url.PathEscape(run))); n != 1 {
		t.Errorf("%v answers are recorded", n)
	}
}

// prepareServer returns a server, and what starts it: every time at the same address.
func prepareServer(t *testing.T, home *clienttest.Home) (s *clienttest.Server, start func() *exec.Cmd) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	s = &clienttest.Server{URL: "http://" + address, Token: rand.Text() + rand.Text(), Home: home}
	return s, func() *exec.Cmd {
		c := home.Command(t, "serve", "--listen", address)
		c.Env = append(c.Env, "RADDLE_SERVER_TOKEN="+s.Token)
		out, err := c.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, address) {
			t.Fatalf("raddle serve says %q, %v", line, err)
		}
		go func() { _, _ = io.Copy(io.Discard, lines) }()
		return c
	}
}

// A page whose server is killed in the middle of a run says so, and recovers when the server is started again: it shows every moment once.
func TestExtraKilledServer(t *testing.T) {
	home := clienttest.NewHome(t)
	nodes := ""
	for i := range 8 {
		nodes += fmt.Sprintf("  n%d: {type: script, script: step.sh, next: n%d}\n", i, i+1)
	}
	home.AddAgent(t, "steps", map[string]string{
		"graph.yaml": "name: steps\nstart: n0\nnodes:\n" + nodes + "  n8: {type: end, output: late}\n",
		"step.sh":    "sleep 0.3\necho '{}'\n",
	})
	s, start := prepareServer(t, home)
	first := start()
	b := openBrowser(t, s)
	run := startRun(t, b, "steps", "running")
	b.do(t, chromedp.EmulateViewport(1440, 2400)) // all rows of the timeline are in view, so that the page has all of them
	b.open(t, "runs/"+run)
	b.wait(t, `document.querySelectorAll(".row").length >= 5`)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	b.waitText(t, "Connection lost")
	start()
	b.wait(t, `!document.body.innerText.includes("Connection lost") && document.querySelector("main .status").innerText.includes("done")`)
	want := read[string](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((r) => r.items.filter((m) => m.text).map((m) => m.record).join())`, run))
	b.wait(t, fmt.Sprintf(`document.querySelector(".scrubber output").innerText.startsWith("@" + %q.split(",").at(-1))`, want))
	if got := read[string](t, b, `[...document.querySelectorAll(".row")].map((r) => r.id.replace("moment-", "")).join()`); got != want {
		t.Errorf("the page shows the records %s, the run has %s; the timeline is %v px high, its rows %v px", got, want,
			read[float64](t, b, `document.querySelector(".timeline").clientHeight`), read[float64](t, b, `document.querySelector(".rows").clientHeight`))
	}
}

// The committed files are those that the sources give.
func TestExtraBundleIsBuilt(t *testing.T) {
	testneed.RequireClients(t, filepath.Join("server", "studio", "page", "node_modules", ".prepared"))
	testneed.RequirePrograms(t, "node")
	built := t.TempDir()
	c := exec.CommandContext(t.Context(), "node", "build.mjs", built)
	c.Dir = filepath.Join(testneed.FindRoot(), "server", "studio", "page")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	names := map[string]bool{}
	for _, dir := range []string{built, "dist"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names[e.Name()] = true
		}
	}
	for name := range names {
		want, wantErr := os.ReadFile(filepath.Join(built, name))
		got, gotErr := os.ReadFile(filepath.Join("dist", name))
		if wantErr != nil || gotErr != nil || !bytes.Equal(want, got) {
			t.Errorf("dist/%s is not what the sources give (%v, %v): run node build.mjs in server/studio/page", name, wantErr, gotErr)
		}
	}
}
