package studio_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// shareRun writes a run to a file with raddle runs share.
func shareRun(t *testing.T, home *clienttest.Home, run string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "shared run #1.html")
	if out, err := home.Command(t, "runs", "share", run, "-o", path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// openShared opens a file in a browser that has no network.
func openShared(t *testing.T, path string) *browser {
	t.Helper()
	home := "file://" + strings.NewReplacer(" ", "%20", "#", "%23").Replace(path)
	b := startBrowser(t, home)
	b.do(t, call(network.OverrideNetworkState, network.OverrideNetworkStateParams{Offline: true}))
	b.do(t, chromedp.Navigate(home))
	return b
}

// look is what the page of a run shows at a moment, without times that pass and without what a file has not.
const look = `(async () => {
	const rest = () => new Promise((done) => setTimeout(done, 20));
	const settled = () => document.querySelector("#details")?.children.length > 0 && document.querySelector(".picture svg");
	for (let last = "", same = 0; same < 12; await rest()) {
		const now = settled() ? document.querySelector("main").innerText : "";
		same = now !== "" && now === last ? same + 1 : 0;
		last = now;
	}
	document.querySelectorAll("#details details").forEach((d) => (d.open = true));
	return JSON.stringify([
		document.querySelector(".scrubber output").innerText,
		document.querySelector("main .status").innerText,
		[...document.querySelectorAll(".row")].map((r) => r.className + r.innerText),
		document.querySelector("#details").innerText.replace(/\d+ (s|min) ago|just now/g, "ago"),
		[...document.querySelectorAll(".picture [data-node]")].map((g) => g.dataset.node + " " + g.dataset.status + " " + g.getAttribute("aria-label")),
		[...document.querySelectorAll(".picture .edge")].map((g) => g.dataset.from + " " + g.dataset.to + " " + g.hasAttribute("data-taken")),
	], null, 1);
})()`

// A file shows the same as the Studio at some moments and in each part, for every kind of run, without a network and without a request.
func TestExtraSharedRuns(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	addLetters(t, home)
	text, _ := json.Marshal("</script><!-- <script>window.owned=1</script> \u2028 ]]> " + hostile)
	home.AddAgent(t, "hostile", map[string]string{
		"config.yaml":     "name: hostile\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- text: " + string(text) + "\n",
	})
	home.AddAgent(t, "breaks", map[string]string{
		"graph.yaml": "name: breaks\nstart: a\nnodes:\n  a: {type: script, script: a.sh, next: b}\n  b: {type: script, script: b.sh, next: c}\n  c: {type: end}\n",
		"a.sh":       "echo '{\"__proto__\": 1, \"n\": 12345678901234567890, \"list\": [1, [], {}, null, \"</SCRIPT>\"]}'\n",
		"b.sh":       "echo 'no luck' >&2\nexit 3\n",
	})
	home.AddAgent(t, "refuser", map[string]string{
		"config.yaml":     "name: refuser\nmodel: script:transcript.yaml\n",
		"transcript.yaml": "- error: no model today\n",
	})
	home.AddAgent(t, "worker", map[string]string{
		"config.yaml": "name: worker\nmodel: script:transcript.yaml\nglobal_tools: [execute_command]\n",
		"transcript.yaml": "- turn: 1\n  text: I look.\n  tool_calls: [{name: execute_command, args: {command: \"echo found-it\"}}, {name: execute_command, args: {command: \"echo second\"}}]\n" +
			"- turn: 2\n  text: \"**Two** things are here.\"\n",
	})
	b := openBrowser(t, home.Serve(t))
	for _, kind := range []struct{ agent, until string }{
		{"letters", "done"}, {"triage", "waiting"}, {"hostile", "done"}, {"breaks", "done"}, {"refuser", "failed"}, {"worker", "done"},
	} {
		t.Run(kind.agent, func(t *testing.T) {
			run := startRun(t, b, kind.agent, kind.until)
			path := shareRun(t, home, run)
			if info, err := os.Stat(path); err == nil {
				t.Logf("%s: %d bytes", kind.agent, info.Size())
			}
			file := openShared(t, path)
			records := read[[]int](t, b, fmt.Sprintf(`fetch("/api/v1/runs/%s/timeline").then((r) => r.json()).then((r) => r.items.filter((m) => m.text).map((m) => m.record))`, run))
			places := []string{"?show=result", "?show=state", ""}
			for i := 0; i < len(records); i += 1 + len(records)/4 {
				places = append(places, fmt.Sprintf("@%d", records[i]), fmt.Sprintf("@%d?show=state", records[i]))
			}
			for _, place := range places {
				b.open(t, "runs/"+run+place)
				file.do(t, evaluate(fmt.Sprintf(`location.hash = %q`, "#"+place)))
				got := read[string](t, file, look)
				want := ""
				for range 20 { // the Studio waits for its server
					if want = read[string](t, b, look); got == want {
						break
					}
				}
				if got != want {
					t.Errorf("%s: the file shows\n%s\nand the Studio\n%s", place, got, want)
				}
			}
			if got := read[string](t, file, `String(window.owned ?? "") + document.querySelectorAll("script").length + document.querySelectorAll("main iframe, main img, main style, main button.primary, main form").length`); got != "20" {
				t.Errorf("the file has more than it should: %s", got)
			}
			file.requireSilence(t)
			file.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", "shared-"+kind.agent+".png"))
		})
	}
	b.requireSilence(t)
}

// In a file, the playhead moves with the keys, what was asked of a model is there, and what would change the run is not.
func TestExtraSharedRunIsScrubbed(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	addLetters(t, home)
	b := openBrowser(t, home.Serve(t))
	run := startRun(t, b, "letters", "done")
	reply := findRecord(t, b, run, `m.node === "each/one[3]" && m.effect === "reply"`)
	file := openShared(t, shareRun(t, home, run))
	file.wait(t, `document.querySelector(".scrubber output")?.innerText.includes("newest")`)
	for range 3 {
		before := read[string](t, file, "location.hash")
		file.do(t, evaluate(`document.activeElement.blur()`), chromedp.KeyEvent("["))
		file.wait(t, fmt.Sprintf(`location.hash !== %q`, before))
	}
	file.do(t, chromedp.KeyEvent("f"))
	file.do(t, chromedp.Reload())
	file.wait(t, `document.querySelector(".row.later") && !document.querySelector("dialog")`)
	file.do(t, evaluate(fmt.Sprintf(`location.hash = "#@%d"`, reply)))
	file.wait(t, fmt.Sprintf(`document.querySelector("#details").innerText.includes("record %d,")`, reply))
	file.press(t, "Show what was asked")
	file.waitText(t, "A word with c")
	file.waitText(t, "Answer in one word.")
	if got := read[string](t, file, `[...document.querySelectorAll("button, a")].map((e) => e.innerText.trim()).join("|")`); strings.Contains(got, "Fork") || strings.Contains(got, "Cancel") || strings.Contains(got, "Inbox") || strings.Contains(got, "Export") {
		t.Errorf("the file offers %s", got)
	}
	file.requireSilence(t)
}
