//go:build unix

package studio_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"raddle.dev/internal/testkit/clienttest"
	"raddle.dev/internal/testkit/testneed"
)

// A run in which agents, a call and a node failed shows them as failed, in the picture, in the rows and in the parts; a past run has its own graph, and
// the page says that the file has changed. The pictures are in out/studio.
func TestExtraPicturesAreTrue(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	home := clienttest.NewHome(t)
	home.AddAgent(t, "worker", map[string]string{"config.yaml": "name: worker\ninstructions: work\n"})
	home.AddAgent(t, "lead", map[string]string{
		"config.yaml": "name: lead\nmodel: script:t.yaml\ncan_spawn_agents: true\nspawnable_agents: [worker]\ninstructions: lead\nglobal_tools: [execute_command]\n",
		"t.yaml": "- match: .\n  tool_calls:\n  - {id: c1, name: agent__spawn, args: {agent: worker, prompt: one}}\n  - {id: c2, name: agent__spawn, args: {agent: worker, prompt: two}}\n" +
			"  - {id: c3, name: execute_command, args: {command: \"cat nothing\"}}\n- tool_calls:\n  - {id: c4, name: agent__collect, args: {any: false}}\n- {text: over, repeat: true}\n",
	})
	home.AddAgent(t, "past", map[string]string{
		"graph.yaml": "name: past\nstart: alpha\nnodes:\n  alpha: {type: script, script: bad.sh, fallback: fine}\n  fine: {type: script, script: ok.sh, next: done}\n  done: {type: end, output: over}\n",
		"bad.sh":     "echo the reason >&2\nexit 3\n", "ok.sh": "echo '{}'\n",
	})
	b := openBrowser(t, home.Serve(t))
	team, past := startRun(t, b, "lead", "done"), startRun(t, b, "past", "done")
	file := filepath.Join(home.Dir, ".config", "raddle", "agents", "past", "graph.yaml")
	if err := os.WriteFile(file, []byte("name: past\nstart: beta\nnodes:\n  beta: {type: end}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func(place string) string {
		return fmt.Sprintf(`document.querySelector('g[data-node="%s"]')?.dataset.status`, place)
	}
	axe := readAxe(t)
	for _, page := range []struct{ name, path, shown string }{
		{"failed-team", "runs/" + team, status("worker") + ` === "failed" && ` + status("tools") + ` === "failed" && ` + status("model") + ` === "done" && document.querySelectorAll(".row.failed").length >= 4`},
		{"failed-parts", "runs/" + team + "?show=result", `[...document.querySelectorAll(".parts .status-failed")].length === 2 && document.querySelector(".parts .error")`},
		{"past", "runs/" + past, status("alpha") + ` === "failed" && ` + status("fine") + ` === "done" && !document.querySelector('g[data-node="beta"]') && document.querySelector("main").innerText.includes("have changed since")`},
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
				b.takePicture(t, filepath.Join(testneed.FindRoot(), "out", "studio", name+".png"))
			}
		}
	}
	b.requireSilence(t)
}
