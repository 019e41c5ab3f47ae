//go:build unix

package api

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/server/servertest"
)

// A fork may replace templates of prompts: the copy asks with the new text, its record says so, and neither the original nor the file changes.
func TestForkTemplates(t *testing.T) {
	const definition = `
name: poet
model: script:transcript.yaml
start: draft
nodes:
  draft: {type: llm, prompt: "Draft of {{initial_prompt}}", state_updates: {draft: "{{output}}"}, next: polish}
  polish: {type: llm, prompt: "Polish {{draft}}", state_updates: {poem: "{{output}}"}, next: done}
  done: {type: end, output: "{{poem}}"}
`
	home := servertest.NewHome(t, map[string]string{
		"poet/graph.yaml":      definition,
		"poet/transcript.yaml": "- {match: Draft of, text: roses, repeat: true}\n- {match: Polish roses, text: Red roses, repeat: true}\n- {match: Shorten roses, text: Roses!, repeat: true}\n",
		"talk/config.yaml":     "name: talk\nmodel: script:transcript.yaml\n",
		"talk/transcript.yaml": "- {text: hello, repeat: true}\n",
	})
	w := serveHome(t, home)
	end := func(run string) map[string]any {
		t.Helper()
		if _, err := w.service.WaitRun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		return w.get(200, "GET", "/runs/"+run, "")
	}
	run := w.get(201, "POST", "/runs", `{"agent": "poet", "prompt": "flowers"}`)["run"].(string)
	if got := end(run)["output"]; got != "Red roses" {
		t.Fatalf("the original says %v", got)
	}
	templates := func(run string) (list []map[string]any) {
		t.Helper()
		text, err := io.ReadAll(w.send("GET", "/runs/"+run+"/templates", "").Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return list
	}
	if got := templates(run); len(got) != 2 || got[1]["node"] != "polish" || got[1]["text"] != "Polish {{draft}}" || got[1]["changed"] != nil {
		t.Errorf("templates of the original: %v", got)
	}
	fork := w.get(201, "POST", "/runs/"+run+"/fork", `{"at": 1, "start": true, "templates": {"polish": "Shorten {{draft}} hunter2hunter2"}}`)["run"].(string)
	detail := end(fork)
	if got := detail["output"]; got != "Roses!" {
		t.Errorf("the copy says %v: %v", got, detail)
	}
	if got := jsonText(t, detail["start"].(map[string]any)["templates"]); !strings.HasPrefix(got, `{"polish":"Shorten {{draft}} `) || strings.Contains(got, "hunter2") {
		t.Errorf("the start record of the copy has %s", got)
	}
	if got := templates(fork); got[0]["changed"] != nil || got[1]["changed"] != true {
		t.Errorf("templates of the copy: %v", got)
	}
	again := w.get(201, "POST", "/runs/"+fork+"/fork", `{"at": 1, "start": true}`)["run"].(string)
	if got := end(again)["output"]; got != "Roses!" {
		t.Errorf("the copy of the copy says %v", got)
	}
	if got := w.get(200, "GET", "/runs/"+run, ""); got["output"] != "Red roses" || got["start"].(map[string]any)["templates"] != nil {
		t.Errorf("the original has changed: %v", got)
	}
	if text, err := os.ReadFile(filepath.Join(home.Dir, ".config", "raddle", "agents", "poet", "graph.yaml")); err != nil || string(text) != definition {
		t.Errorf("graph.yaml is %s %v", text, err)
	}

	before := len(w.get(200, "GET", "/runs", "")["items"].([]any))
	for _, body := range []string{`{"at": 1, "templates": {"other": "x"}}`, `{"at": 1, "templates": {"done": "x"}}`} {
		res := w.send("POST", "/runs/"+run+"/fork", body)
		if text, _ := io.ReadAll(res.Body); res.StatusCode < 400 || res.StatusCode >= 500 {
			t.Errorf("%s: %s %s", body, res.Status, text)
		}
	}
	talk := w.get(201, "POST", "/runs", `{"agent": "talk", "prompt": "hi"}`)["run"].(string)
	end(talk)
	if got := templates(talk); len(got) != 0 {
		t.Errorf("a conversation has the templates %v", got)
	}
	if after := len(w.get(200, "GET", "/runs", "")["items"].([]any)); after != before+1 {
		t.Errorf("refused forks left %d runs", after-before-1)
	}
}
